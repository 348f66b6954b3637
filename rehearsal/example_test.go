// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
)

// A program can be tried, and tested, against a model that plays a script.
func Example() {
	script, err := rehearsal.Parse("hello.script", []byte(`
turn greet
  say Hello. You said: {{question}}
`))
	if err != nil {
		log.Fatal(err)
	}
	server := &rehearsal.Server{Script: script}
	baseURL, stop, err := server.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	client := &responses.Client{BaseURL: baseURL}
	request := &api.Request{Model: "rehearsal", Input: item.NewList(item.User("Good evening."))}
	for event, err := range client.Stream(context.Background(), request) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(event.Delta)
	}
	// Output: Hello. You said: Good evening.
}

// A client can be tried against an endpoint that has less: here one that stores
// nothing and opens no WebSocket.
func ExampleServer_without() {
	server := &rehearsal.Server{Without: []rehearsal.Feature{rehearsal.Stored, rehearsal.WebSocket}}
	baseURL, stop, err := server.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	chain := &responses.Chain{Client: &responses.Client{BaseURL: baseURL}, Transport: responses.WebSocket}
	defer chain.Close()
	request := &api.Request{Model: "rehearsal", Input: item.NewList(item.User("Good evening."))}
	for _, err := range chain.Stream(context.Background(), request) {
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("over HTTP: %v\n", chain.Uses() == responses.HTTP)
	// Output: over HTTP: true
}
