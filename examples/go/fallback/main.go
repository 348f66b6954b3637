// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program asks a second model if the first one fails in the middle of a
// conversation. Start it with
//
//	go run ./examples/go/fallback
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// model starts a mock model that says its name.
func model(name string) (*rehearsal.Server, error) {
	script, err := rehearsal.Parse(name, []byte("turn\n  say This is {{model}}. You said: {{question}}\nagain\nturn\n  say This is {{model}}. You said: {{question}}\n"))
	return &rehearsal.Server{Script: script}, err
}

func run(ctx context.Context, out io.Writer) error {
	large, err := model("large")
	if err != nil {
		return err
	}
	small, err := model("small")
	if err != nil {
		return err
	}
	var down atomic.Bool
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, `{"error":{"message":"overloaded","code":"server_is_overloaded"}}`, http.StatusServiceUnavailable)
			return
		}
		large.ServeHTTP(w, r)
	}))
	defer first.Close()
	second := httptest.NewServer(small)
	defer second.Close()

	a := &agent.Agent{
		Model: agent.Fallback{
			// Max -1: a second model is quicker than a second attempt.
			{Model: &responses.Client{BaseURL: first.URL + "/v1"}, Name: "large", Retry: endpoint.Retry{Max: -1}},
			{Model: &responses.Client{BaseURL: second.URL + "/v1"}, Name: "small"},
		},
	}
	s := session.New()
	for i, question := range []string{"Hello?", "Are you still there?", "And now?"} {
		down.Store(i == 1)
		res, err := a.Run(ctx, s, item.User(question))
		if err != nil {
			return err
		}
		fmt.Fprintln(out, res.Text)
	}
	// The log says why the second model was asked.
	for e := range s.Entries() {
		if n, ok := e.Body.(session.Noticed); ok {
			fmt.Fprintln(out, "notice:", n.Text)
		}
	}
	return nil
}
