// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program uses the client alone, without an agent: an answer at once, one that is
// streamed, a conversation that sends only what is new, and an error. Start it with
//
//	go run ./examples/go/client
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
)

const script = `
again
turn
  say You said: {{question}}
`

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	play, err := rehearsal.Parse("client.script", []byte(script))
	if err != nil {
		return err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return err
	}
	defer stop()
	// Without a BaseURL it is OpenAI's, with Key: endpoint.NewKey(os.Getenv("OPENAI_API_KEY")).
	client := &responses.Client{BaseURL: url}

	// At once.
	history := item.NewList(item.User("One."))
	res, err := client.Create(ctx, &api.Request{Model: "rehearsal", Input: history})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s (%d tokens)\n", res.Text(), res.Usage.TotalTokens)

	// Streamed. What the model said is sent again as it was received, byte for byte.
	history.Append(append(res.Output, item.User("Two."))...)
	if err := follow(ctx, client, history, out); err != nil {
		return err
	}

	// A chain takes the whole history, and sends what is new and the id of the answer
	// before it.
	chain := &responses.Chain{Client: client}
	defer chain.Close()
	for _, more := range []string{"Three.", "Four."} {
		history.Append(item.User(more))
		if err := follow(ctx, chain, history, out); err != nil {
			return err
		}
	}

	// An error has a class to decide by, and words for a person.
	_, err = client.Retrieve(ctx, "resp_unknown", nil)
	if problem, ok := errors.AsType[*endpoint.Error](err); ok {
		fmt.Fprintf(out, "%s, status %d: %s\n", problem.Class, problem.Status, problem.Message)
	}
	return nil
}

// follow prints an answer as it arrives and adds its items to the history.
func follow(ctx context.Context, model agent.Model, history *item.List, out io.Writer) error {
	var answer api.Accumulator
	for ev, err := range model.Stream(ctx, &api.Request{Model: "rehearsal", Input: history.Clone()}) {
		if err != nil {
			return err
		}
		if ev.Type == api.EventTextDelta {
			fmt.Fprint(out, ev.Delta)
		}
		items, err := answer.Add(ev)
		if err != nil {
			return err
		}
		history.Append(items...)
	}
	_, err := fmt.Fprintln(out)
	return err
}
