// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program answers a question at the terminal: text appears as it is written, and
// each call with what came of it. Start it with
//
//	go run ./examples/go/stream
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// script is what the mock model says.
const script = `
turn
  say I look it up.
  call weather {"city": "Bergen"}
turn
  call weather {"city": "Atlantis"}
turn
  say Take an umbrella to Bergen. Do not go to the other place: {{error "weather" 2}}.
`

type place struct {
	City string `json:"city" jsonschema:"the name of a city"`
}

func weather(_ context.Context, p place) (string, error) {
	if p.City != "Bergen" {
		return "", fmt.Errorf("there is no city named %s", p.City)
	}
	return "It rains.", nil
}

func main() {
	log.SetFlags(0)
	// Ctrl-C ends the run in good order: what was said is in the session.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, "Do I need an umbrella in Bergen, or in Atlantis?", os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, question string, out io.Writer) error {
	play, err := rehearsal.Parse("stream.script", []byte(script))
	if err != nil {
		return err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return err
	}
	defer stop()
	a := &agent.Agent{
		Model:   &responses.Client{BaseURL: url}, // another BaseURL and a Key select any other model
		Request: api.Request{Model: "rehearsal"},
		Tools:   []tool.Tool{tool.Must("weather", "Tells the weather in a city.", weather, tool.ReadOnly())},
	}
	answer := a.Start(session.New(), item.User(question))
	for ev, err := range answer.Events(ctx) {
		if err != nil {
			return err
		}
		switch ev := ev.(type) {
		case agent.Delta: // a piece of text, as it arrives
			if ev.Kind == agent.DeltaText {
				fmt.Fprint(out, ev.Text)
			}
		case agent.Recorded: // in the log
			if said, ok := ev.Body.(session.OutputItem); ok {
				fmt.Fprint(out, ending(said.Item))
			}
		case agent.Progress:
			if ev.Kind == agent.ProgressReturned {
				fmt.Fprintf(out, "<- %s %s\n", ev.Tool, cmp.Or(ev.Error, "has answered"))
			}
		}
	}
	res := answer.Result()
	_, err = fmt.Fprintf(out, "(%s: %d requests, %d calls, %d tokens)\n", res.Why, res.Turns, res.Calls, res.TotalTokens)
	return err
}

// ending returns what deltas do not show: the end of a message, or a call.
func ending(it item.Item) string {
	call, err := item.As[item.FunctionCall](it)
	if err != nil {
		return "\n"
	}
	return fmt.Sprintf("-> %s %s\n", call.Name, call.Arguments)
}
