// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// A tool from a Go function, a run, and a range over its events. The model is
// the rehearsal's, over a real socket; with another BaseURL and a Key it is any
// other.
func Example() {
	type place struct {
		City string `json:"city" jsonschema:"a city's name"`
	}
	weather := tool.Must("weather", "Tell the weather in a city.", func(_ context.Context, p place) (string, error) {
		return "it rains in " + p.City + ".", nil
	}, tool.ReadOnly())

	url, stop := rehearse("testdata/weather.script")
	defer stop()
	a := &agent.Agent{Model: &responses.Client{BaseURL: url}, Tools: []tool.Tool{weather}}
	a.Request.Model = "rehearsal"
	run := a.Start(session.New(), item.User("Do I need an umbrella in Bergen?"))
	for ev, err := range run.Events(context.Background()) {
		switch ev := ev.(type) {
		case nil:
			fmt.Println("error:", err)
		case agent.Delta: // as it comes
			if ev.Kind == agent.DeltaText {
				fmt.Print(ev.Text)
			}
		case agent.Recorded: // in the log
			if said, ok := ev.Body.(session.OutputItem); ok && said.Item.IsCall() {
				fmt.Println("->", said.Item.Name())
			}
		}
	}
	res := run.Result()
	fmt.Printf("\n%s after %d turns and %d call\n", res.Why, res.Turns, res.Calls)
	// Output:
	// -> weather
	// Take an umbrella: it rains in Bergen.
	// answered after 2 turns and 1 call
}

// rehearse starts the scripted model.
func rehearse(file string) (baseURL string, stop func()) {
	script, err := rehearsal.Load(file)
	if err != nil {
		panic(err)
	}
	baseURL, stop, err = (&rehearsal.Server{Script: script}).Start()
	if err != nil {
		panic(err)
	}
	return baseURL, stop
}
