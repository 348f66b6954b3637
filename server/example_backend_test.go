// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/server"
)

// A backend can be a function. This one repeats what was said last; the server
// does the rest: streams, stored responses, conversations, WebSockets.
func Example() {
	echo := func(_ context.Context, r *server.Request, w *server.Writer) error {
		last, err := item.As[item.Message](r.Items[len(r.Items)-1])
		if err != nil {
			return server.Invalid("", "input", "The last item must be a message.")
		}
		_ = w.Text("You said: ")
		return w.Text(last.Content.Display())
	}
	s := &server.Server{Backend: server.BackendFunc(echo)} // an http.Handler
	baseURL, stop, err := s.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	client := &responses.Client{BaseURL: baseURL}
	request := &api.Request{Model: "echo", Input: item.NewList(item.User("Good evening."))}
	for event, err := range client.Stream(context.Background(), request) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(event.Delta)
	}
	// Output: You said: Good evening.
}
