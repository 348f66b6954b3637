// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program bounds single tools and the whole run: a time limit, a rate, an output
// that is shortened, calls that are repeated after an error, and a last turn that must
// be an answer. Start it with
//
//	go run ./examples/go/limits
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// script is what the mock model says; it would go on for ever.
const script = `
turn
  call flaky {}
  call slow {}
  call long {}
turn
  call flaky {}
turn
  say That is all that I found: {{error "slow" 1}}
`

type none struct{}

// tools have limits of their own. Each stands in the tool's definition.
func tools() []tool.Tool {
	var calls atomic.Int64
	flaky := func(context.Context, none) (string, error) {
		if calls.Add(1) == 1 {
			return "", errors.New("the service is busy")
		}
		return "an answer", nil
	}
	slow := func(ctx context.Context, _ none) (string, error) {
		<-ctx.Done() // the tool's limit, or the end of the run
		return "", ctx.Err()
	}
	long := func(context.Context, none) (string, error) { return strings.Repeat("a line of a log\n", 10_000), nil }
	service := &tool.Rate{Calls: 100, Per: time.Minute} // tools that use one service share a rate
	return []tool.Tool{
		tool.Must("flaky", "Asks a service.", flaky, tool.ReadOnly(), tool.RateLimit(service), tool.Retries(tool.Retry{Max: 2, Wait: time.Millisecond})),
		tool.Must("slow", "Takes too long.", slow, tool.ReadOnly(), tool.Timeout(50*time.Millisecond)),
		tool.Must("long", "Reads a log.", long, tool.ReadOnly(), tool.MaxOutput(output.Limit{Bytes: 1024})),
	}
}

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	play, err := rehearsal.Parse("limits.script", []byte(script))
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
		Tools:   tools(),
		// The third request is the last one, so it asks for an answer.
		Limits: agent.Limits{MaxTurns: 3, AnswerNow: true, MaxTime: time.Minute, MaxRepeats: 5},
	}
	said := map[string]string{} // calls run at the same time, and end in any order
	answer := a.Start(session.New(), item.User("Look everywhere."))
	for ev, err := range answer.Events(ctx) {
		if err != nil {
			return err
		}
		if p, ok := ev.(agent.Progress); ok && p.Kind == agent.ProgressReturned {
			said[p.Tool] = fmt.Sprintf("failed: %v, bytes left out: %d", p.Error != "", p.LeftOut)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		fmt.Fprintf(out, "%s %s\n", name, said[name])
	}
	res := answer.Result()
	_, err = fmt.Fprintf(out, "%s\n(%s after %d requests: %s)\n", res.Text, res.Why, res.Turns, res.Detail)
	return err
}
