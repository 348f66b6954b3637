// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program answers a data set with several agents at once, over one budget, and
// prints a table of what each answer cost. Start it with
//
//	go run ./examples/go/costs
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

// script is what the mock model says: it is right about the first two.
const script = `
again
turn
  say {{if eq question "2+2"}}4{{else if eq question "3*3"}}9{{else}}about 80{{end}}
`

// cases are questions with their answers.
var cases = []struct{ question, answer string }{{"2+2", "4"}, {"3*3", "9"}, {"9*9", "81"}}

// prices are in euros for a million tokens.
var prices = map[string]agent.Price{
	"small": {Input: 0.2, Cached: 0.02, Output: 1},
	"large": {Input: 2, Cached: 0.2, Output: 10},
}

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	play, err := rehearsal.Parse("costs.script", []byte(script))
	if err != nil {
		return err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return err
	}
	defer stop()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "model\tquestion\tanswer\tright\ttokens\tmicroeuros")
	var all agent.Usage
	for _, model := range []string{"small", "large"} {
		a := &agent.Agent{
			Model:   &responses.Client{BaseURL: url}, // another BaseURL and a Key select any other model
			Request: api.Request{Model: model, Instructions: "Answer with a number."},
			Prices:  func(model string) (agent.Price, bool) { p, ok := prices[model]; return p, ok },
		}
		var tasks []agent.Task
		for _, c := range cases {
			tasks = append(tasks, agent.Task{Agent: a, Session: session.New(), Input: []item.Item{item.User(c.question)}})
		}
		group := agent.Group{Budget: &agent.Budget{Cost: 1}, Parallel: 2} // one euro for all of them
		for i, done := range group.Run(ctx, tasks...) {                   // in the order of the tasks
			if done.Err != nil {
				return done.Err
			}
			used, right := done.Result.All(), strings.TrimSpace(done.Result.Text) == cases[i].answer
			fmt.Fprintf(table, "%s\t%s\t%s\t%v\t%d\t%.1f\n", model, cases[i].question, done.Result.Text, right, used.Tokens, 1e6*used.Cost)
			all.Add(used)
		}
	}
	fmt.Fprintf(table, "all\t\t\t\t%d\t%.1f\n", all.Tokens, 1e6*all.Cost)
	return table.Flush()
}
