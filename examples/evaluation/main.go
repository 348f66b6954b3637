// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program evaluates an agent: it runs each case of a table several times, scores
// the results, and exits with status 1 if too few runs passed. Start it with
//
//	go run ./examples/evaluation
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Case is a question and the checks of its answer.
type Case struct {
	Name, Question string
	Checks         []Check
}

// Check checks one property of a result. The error says what is wrong.
type Check func(res *agent.Result) error

// Says requires a text in the answer, ignoring case.
func Says(text string) Check {
	return func(res *agent.Result) error {
		if !strings.Contains(strings.ToLower(res.Text), strings.ToLower(text)) {
			return fmt.Errorf("it does not say %q", text)
		}
		return nil
	}
}

// Calls requires calls of exactly these tools, in this order.
func Calls(names ...string) Check {
	return func(res *agent.Result) error {
		var called []string
		for _, it := range res.Items {
			if it.IsCall() {
				called = append(called, it.Name())
			}
		}
		if !slices.Equal(called, names) {
			return fmt.Errorf("it calls %v, not %v", called, names)
		}
		return nil
	}
}

// Within limits the number of turns: an agent that wanders is expensive even if its
// answer is right.
func Within(turns int) Check {
	return func(res *agent.Result) error {
		if res.Turns > turns {
			return fmt.Errorf("it takes %d turns, more than %d", res.Turns, turns)
		}
		return nil
	}
}

var cases = []Case{
	{"looks it up", "What is the weather in Bergen?", []Check{Calls("weather"), Says("rain"), Within(2)}},
	{"knows its limits", "Who wins tomorrow?", []Check{Calls(), Says("cannot")}},
	{"is polite", "Thank you!", []Check{Says("welcome")}},
}

// Score is the result of a case.
type Score struct {
	Passed, Runs int
	Tokens       int64
	Reasons      []string
}

// Evaluate runs each case several times. Runs are concurrent up to a limit, and each
// has its own session.
func Evaluate(ctx context.Context, a *agent.Agent, cases []Case, times int) []Score {
	scores := make([]Score, len(cases))
	var mu sync.Mutex
	var group sync.WaitGroup
	room := make(chan struct{}, 8)
	for i, c := range cases {
		for range times {
			group.Go(func() {
				room <- struct{}{}
				defer func() { <-room }()
				res, err := a.Run(ctx, session.New(), item.User(c.Question))
				for _, check := range c.Checks {
					if err == nil {
						err = check(res)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				s := &scores[i]
				s.Runs++
				if res != nil {
					s.Tokens += res.TotalTokens
				}
				if err == nil {
					s.Passed++
				} else if !slices.Contains(s.Reasons, err.Error()) {
					s.Reasons = append(s.Reasons, err.Error())
				}
			})
		}
	}
	group.Wait()
	return scores
}

// Report prints the scores and returns the fraction of runs that passed.
func Report(out io.Writer, cases []Case, scores []Score) (share float64) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	passed, runs := 0, 0
	for i, s := range scores {
		passed, runs = passed+s.Passed, runs+s.Runs
		slices.Sort(s.Reasons)
		row := fmt.Sprintf("%s\t%d of %d\t%d tokens", cases[i].Name, s.Passed, s.Runs, s.Tokens)
		if len(s.Reasons) > 0 {
			row += "\t" + strings.Join(s.Reasons, "; ")
		}
		fmt.Fprintln(table, row)
	}
	_ = table.Flush()
	return float64(passed) / float64(max(runs, 1))
}

// script is the script of the mock model. The model looks up the weather whatever
// the question is, and answers with it, so the second case fails.
const script = `
turn
  call weather {"city":"Bergen"}
turn
  say {{if eq question "Thank you!"}}You are welcome.{{else}}I see {{output "weather" 1}}.{{end}}
`

func main() {
	log.SetFlags(0)
	times := flag.Int("times", 3, "how often each case is run")
	least := flag.Float64("least", 0.9, "the share of runs that must pass")
	flag.Parse()
	share, err := run(context.Background(), os.Stdout, *times)
	if err != nil {
		log.Fatal(err)
	}
	if share < *least {
		log.Fatalf("%.0f %% passed, less than %.0f %%", 100*share, 100**least)
	}
}

func run(ctx context.Context, out io.Writer, times int) (share float64, err error) {
	play, err := rehearsal.Parse("evaluation.script", []byte(script))
	if err != nil {
		return 0, err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return 0, err
	}
	defer stop()
	weather := tool.Must("weather", "Tells the weather in a city.", func(_ context.Context, in struct {
		City string `json:"city"`
	}) (string, error) {
		return "rain in " + in.City, nil
	}, tool.ReadOnly())
	a := &agent.Agent{
		Model:   &responses.Client{BaseURL: url},
		Request: api.Request{Model: "rehearsal"},
		Tools:   []tool.Tool{weather},
		Limits:  agent.Limits{MaxTurns: 8},
	}
	return Report(out, cases, Evaluate(ctx, a, cases, times)), nil
}
