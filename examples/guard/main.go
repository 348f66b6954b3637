// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program has three guards, implemented as hooks: one for questions, one for
// calls and one for answers. What they object to is not sent, not run and not shown.
// Start it with
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

// privacy keeps card numbers from the model, whatever their source. It checks the
// items' JSON, so it covers everything that would be sent.
var privacy = agent.Hooks{
	Name: "privacy",
	BeforeInput: func(_ context.Context, c *agent.InputCall) error {
		for _, it := range c.Input {
			if card.MatchString(it.JSON()) {
				return errors.New("please write without the card's number")
			}
		}
		return nil
	},
	// A tool's output is input too. Here only the number is blacked out, and the
	// rest is sent.
	AfterTool: func(_ context.Context, c *agent.ToolCall) error {
		if c.Failure == tool.NoFailure {
			c.Output = item.Text(card.ReplaceAllString(c.Output.Display(), "[card]"))
		}
		return nil
	},
}

// reach limits the tool to the customer's own orders. The model reads the error and
// can do something else.
var reach = agent.Hooks{
	Name: "reach",
	BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
		if strings.Contains(c.Call.Arguments, "order 9") {
			return nil, errors.New("order 9 is another customer's")
		}
		return ctx, nil
	},
}

// tone keeps promises out of answers.
var tone = agent.Hooks{
	Name: "tone",
	AfterModel: func(_ context.Context, c *agent.ModelCall) error {
		for _, it := range c.Output {
			if m, err := item.As[item.Message](it); err == nil && strings.Contains(m.Content.Display(), "guarantee") {
				return errors.New("it promises something")
			}
		}
		return nil
	},
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

var questions = []string{
	"My card is 4111 1111 1111 1111. Did you charge it?",
	"Where is order 7?",
	"And where is order 9?",
	"Will it come tomorrow?",
	"Thank you.",
}

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	play, err := rehearsal.Parse("guard.script", []byte(script))
	if err != nil {
		return err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return err
	}
	defer stop()
	look := tool.Must("look", "Looks an order up.", func(_ context.Context, in struct {
		What string `json:"what"`
	}) (string, error) {
		return in.What + " is on its way, paid with 4111-1111-1111-1111", nil
	}, tool.ReadOnly())
	a := &agent.Agent{
		Model:      &responses.Client{BaseURL: url},
		Request:    api.Request{Model: "rehearsal"},
		Tools:      []tool.Tool{look},
		Hooks:      []agent.Hooks{privacy, reach, tone},
		HoldOutput: true, // yield no part of a reply before the hooks have seen all of it
	}
	s := session.New()
	for _, question := range questions {
		fmt.Fprintln(out, ">", question)
		res, err := a.Run(ctx, s, item.User(question))
		switch {
		case res != nil && res.Why == agent.StopVetoed: // err reports it too
			fmt.Fprintf(out, "(the guard %q: %s)\n", res.Guard, res.Detail)
		case err != nil:
			return err
		default:
			fmt.Fprintln(out, res.Text)
		}
	}
	return nil
}
