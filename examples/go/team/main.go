// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program has a team of agents: the receptionist asks an expert, who is a tool,
// and hands the conversation to billing, which speaks from then on. Start it with
//
//	go run ./examples/go/team
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// The scripts of the mock models. In a program, all agents may share one client.
const (
	reception = `
turn
  call ask_expert {"task": "Does tea keep?"}
turn
  say {{output "ask_expert" 1}}
round
turn
  call to_billing {"reason": "a question about an invoice"}
`
	expert = `
turn
  say Tea keeps for two years in a closed tin.
`
	// A script's place is that in the conversation, so the first two turns were
	// somebody else's.
	billing = `
turn
  say -
round
turn
  say -
turn
  say Billing here. You said: {{question}}
again
turn
  say I correct it.
`
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	member := func(instructions, script string) (*agent.Agent, error) {
		play, err := rehearsal.Parse("team.script", []byte(script))
		if err != nil {
			return nil, err
		}
		url, stop, err := (&rehearsal.Server{Script: play}).Start()
		stops = append(stops, func() { stop() })
		return &agent.Agent{
			Model:   &responses.Client{BaseURL: url}, // another BaseURL and a Key select any other model
			Request: api.Request{Model: "rehearsal", Instructions: instructions},
		}, err
	}
	front, err := member("You receive customers.", reception)
	if err != nil {
		return err
	}
	wise, err := member("You know all about tea.", expert)
	if err != nil {
		return err
	}
	money, err := member("You answer questions about invoices.", billing)
	if err != nil {
		return err
	}
	// The expert gets a task and gives an answer; its work stays out of the conversation.
	ask, err := agent.AsTool("ask_expert", "Answers a question about tea.", wise)
	if err != nil {
		return err
	}
	front.Tools = []tool.Tool{ask}
	// Billing gets the conversation.
	front.Handoffs = []agent.Handoff{{Name: "to_billing", Description: "Hands over questions about money.", Agent: money}}
	front.Limits.MaxTurns = 20 // of all of them together

	s := session.New()
	for _, question := range []string{"Does tea keep?", "My invoice is wrong.", "It says 41 instead of 14."} {
		res, err := front.Run(ctx, s, item.User(question))
		if err != nil {
			return err
		}
		speaker := "reception"
		if res.Speaker != "" {
			speaker = res.Speaker
		}
		all := res.All()
		fmt.Fprintf(out, "> %s\n%s: %s (%d requests)\n", question, speaker, res.Text, all.Turns)
	}
	return nil
}
