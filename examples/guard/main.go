// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program has three guards: a rule, a second model and a moderation endpoint. What
// they object to is not sent, not kept and not shown. Start it with
//
//	go run ./examples/guard
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"regexp"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

var card = regexp.MustCompile(`\b\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}\b`)

// privacy keeps card numbers from the model. It is a rule, and it goes first, so that
// the endpoint never gets a number. Guards can withdraw only what they saw.
var privacy = agent.Guard{
	Name:  "privacy",
	First: true,
	Input: func(_ context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
		if n := len(card.FindAllString(c.Text(), -1)); n > 0 {
			return &agent.Tripwire{Reason: "please write without the card's number", Value: n}, nil
		}
		return nil, nil
	},
}

// blackout and reach are hooks, because they change or refuse single calls instead of
// ending the run. A tool's output is input too: the number is blacked out, and the
// rest is sent. The model reads the error of a refused call and can do something
// else.
var blackout = agent.Hooks{
	Name: "blackout",
	BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
		if strings.Contains(c.Call.Arguments, "order 9") {
			return nil, errors.New("order 9 is another customer's")
		}
		return ctx, nil
	},
	AfterTool: func(_ context.Context, c *agent.ToolCall) error {
		if c.Failure == tool.NoFailure {
			c.Output = item.Text(card.ReplaceAllString(c.Output.Display(), "[card]"))
		}
		return nil
	},
}

// topic asks a second model whether a question is about orders. It runs beside the
// request, so it costs no time if it agrees; its tokens count in the run.
func topic(second *agent.Agent) agent.Guard {
	return agent.Guard{
		Name: "topic",
		Input: func(ctx context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
			res, err := second.Run(ctx, session.New(), item.User(c.Text()))
			if err != nil {
				return nil, err // it has not decided, so nothing is shown
			}
			if res.Text != "yes" {
				return &agent.Tripwire{Reason: "I only talk about orders"}, nil
			}
			return nil, nil
		},
	}
}

// moderate is what the last guard needs of a moderation endpoint: the categories that
// it flags in a text.
type moderate func(ctx context.Context, text string) (flagged []string, err error)

// tone keeps answers from the screen that the endpoint flags.
func tone(ask moderate) agent.Guard {
	return agent.Guard{
		Name: "tone",
		Hold: true, // yield no part of a reply before the guard has seen all of it
		Output: func(ctx context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
			flagged, err := ask(ctx, c.Text())
			if err != nil || len(flagged) == 0 {
				return nil, err
			}
			return &agent.Tripwire{Reason: "it was flagged", Value: flagged}, nil
		},
	}
}

// promises stands for a moderation endpoint in this example.
func promises(_ context.Context, text string) (flagged []string, err error) {
	if strings.Contains(text, "guarantee") {
		flagged = append(flagged, "promise")
	}
	return flagged, nil
}

// script is the script of the mock model, for the questions that reach it.
const script = `
turn
  call look {"what":"order 7"}
turn
  say {{output "look" 1}}
round
turn
  call look {"what":"order 9"}
turn
  say I cannot see that order.
round
turn
  say {{if eq question "Thank you."}}You are welcome.{{else}}We guarantee that it comes tomorrow.{{end}}
`

// topicScript is the script of the second model.
const topicScript = `
turn
  say {{if eq question "Write a poem about cards."}}no{{else}}yes{{end}}
`

var questions = []string{
	"My card is 4111 1111 1111 1111. Did you charge it?",
	"Where is order 7?",
	"And where is order 9?",
	"Write a poem about cards.",
	"Will it come tomorrow?",
	"Thank you.",
}

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// serve starts a mock model with a script.
func serve(name, script string) (model agent.Model, stop func(), err error) {
	play, err := rehearsal.Parse(name, []byte(script))
	if err != nil {
		return nil, nil, err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	return &responses.Client{BaseURL: url}, stop, err
}

func run(ctx context.Context, out io.Writer) error {
	model, stop, err := serve("guard.script", script)
	if err != nil {
		return err
	}
	defer stop()
	small, stop, err := serve("topic.script", topicScript)
	if err != nil {
		return err
	}
	defer stop()
	second := &agent.Agent{Model: small, Request: api.Request{Model: "rehearsal", Instructions: "Is this about an order? Answer yes or no."}}
	look := tool.Must("look", "Looks an order up.", func(_ context.Context, in struct {
		What string `json:"what"`
	}) (string, error) {
		return in.What + " is on its way, paid with 4111-1111-1111-1111", nil
	}, tool.ReadOnly())
	a := &agent.Agent{
		Model:   model,
		Request: api.Request{Model: "rehearsal"},
		Tools:   []tool.Tool{look},
		Guards:  []agent.Guard{privacy, topic(second), tone(promises)},
		Hooks:   []agent.Hooks{blackout},
	}
	s := session.New()
	for _, question := range questions {
		fmt.Fprintln(out, ">", question)
		res, err := a.Run(ctx, s, item.User(question))
		var trip *agent.Tripwire
		switch {
		case errors.As(err, &trip):
			fmt.Fprintf(out, "(the guard %q: %s)\n", trip.Guard, trip.Reason)
		case err != nil:
			return err
		default:
			fmt.Fprintln(out, res.Text)
		}
	}
	return nil
}
