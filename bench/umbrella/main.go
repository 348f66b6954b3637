// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Umbrella is the program of the README: client, loop and one tool.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

type place struct {
	City string `json:"city" jsonschema:"the city's name"`
}

func main() {
	weather := tool.Must("weather", "Tells the weather of a city.",
		func(ctx context.Context, in place) (string, error) { return "Rain in " + in.City + ".", nil },
		tool.ReadOnly())
	a := &agent.Agent{
		Model:   &responses.Client{Key: endpoint.NewKey(os.Getenv("OPENAI_API_KEY"))},
		Request: api.Request{Model: "gpt-5.1"},
		Tools:   []tool.Tool{weather},
	}
	for ev, err := range a.Stream(context.Background(), session.New(), item.User("Do I need an umbrella in Oslo?")) {
		if err != nil {
			log.Fatal(err)
		}
		if d, ok := ev.(agent.Delta); ok && d.Kind == agent.DeltaText {
			fmt.Print(d.Text)
		}
	}
}
