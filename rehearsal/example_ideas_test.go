// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
)

// ask sends one question to a mock model with a script.
func ask(script, question string) (*api.Response, error) {
	play, err := rehearsal.Parse("example.script", []byte(script))
	if err != nil {
		log.Fatal(err)
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	client := &responses.Client{BaseURL: url}
	return client.Create(context.Background(), &api.Request{Model: "rehearsal", Input: item.NewList(item.User(question))})
}

// A scripted call, with arguments that a program must be ready for.
func ExampleScript_calls() {
	res, err := ask("turn\n  call clock {\"city\":\"Oslo\"}\n  call_raw clock {\"city\":\n", "What time is it?")
	if err != nil {
		log.Fatal(err)
	}
	for _, it := range res.Output {
		call, err := item.As[item.FunctionCall](it)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(call.Name, call.Arguments)
	}
	// Output:
	// clock {"city":"Oslo"}
	// clock {"city":
}

// A mock model with a small context refuses a long history, as real ones do.
func ExampleScript_window() {
	_, err := ask("window 2\nturn\n  say Hello.\n", "A question that is longer than that.")
	if e, ok := errors.AsType[*endpoint.Error](err); ok {
		fmt.Println(e.Class)
	}
	// Output:
	// context_overflow
}

// A mistake in a script is reported with its place, and what may have been meant.
func ExampleParse_errors() {
	_, err := rehearsal.Parse("hello.script", []byte("turn\n  sai Hello.\n"))
	fmt.Println(err)
	// Output:
	// hello.script:2:3: unknown statement "sai" (statements are reason, say, call, call_raw, custom, pause)
}
