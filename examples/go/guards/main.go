// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program has two guards: one refuses questions with a card number before a model
// reads them, the other refuses replies that promise money, which nobody then sees.
// Start it with
//
//	go run ./examples/go/guards
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

// script is what the mock model says.
const script = `
again
turn
  say {{if eq question "I am not content."}}We pay you back 500 euros.{{else}}You said: {{question}}{{end}}
`

var (
	card    = regexp.MustCompile(`\d{4}( ?\d{4}){3}`)
	promise = regexp.MustCompile(`pay you back`)
)

// matches returns the check of a guard: it objects to text that matches.
func matches(pattern *regexp.Regexp, reason string) func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) {
	return func(_ context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
		if found := pattern.FindString(c.Text()); found != "" {
			return &agent.Tripwire{Reason: reason, Value: len(found)}, nil // a Value of your own
		}
		return nil, nil
	}
}

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	play, err := rehearsal.Parse("guards.script", []byte(script))
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
		Guards: []agent.Guard{
			// First: the endpoint never gets the number. Without it the guard reads beside the request.
			{Name: "privacy", Input: matches(card, "please write without the number of your card"), First: true},
			// Hold: nobody sees a word of a reply before the guard has read all of it.
			{Name: "promises", Output: matches(promise, "the reply promised money"), Hold: true},
		},
	}
	s := session.New()
	for _, text := range []string{
		"My card is 4111 1111 1111 1111. Did you charge it?", "Where is my order?", "I am not content.", "Thank you.",
	} {
		fmt.Fprintln(out, ">", text)
		for ev, err := range a.Stream(ctx, s, item.User(text)) {
			if no, ok := errors.AsType[*agent.Tripwire](err); ok {
				fmt.Fprintf(out, "(%s: %s)\n", no.Guard, no.Reason)
			} else if err != nil {
				return err
			}
			if said, ok := ev.(agent.Delta); ok {
				fmt.Fprint(out, said.Text)
			}
			if done, ok := ev.(agent.Recorded); ok {
				if _, ok := done.Body.(session.OutputItem); ok {
					fmt.Fprintln(out)
				}
			}
		}
	}
	return nil
}
