// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program asks a second model if the first one fails in the middle of a
// conversation. Start it with
//
//	go run ./examples/fallback
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
)

// Choice is a model at an endpoint.
type Choice struct {
	agent.Model
	Name string
}

// Fallback is a Model that asks its choices in order. It asks the next choice if the
// previous one failed before any part of its answer was yielded: half of one answer
// and half of another are not an answer. Every request begins with the first choice
// again.
//
// The session needs no changes: it holds items, and every choice gets all of them.
// The run leaves out reasoning that only another endpoint can read.
type Fallback []Choice

// Stream implements [agent.Model].
func (f Fallback) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for i, choice := range f {
			own := *req
			own.Model = choice.Name
			begun := false
			var failure error
			for event, err := range choice.Model.Stream(ctx, &own) {
				if err != nil && !begun && i < len(f)-1 && another(ctx, err) {
					failure = err
					break
				}
				begun = true
				if !yield(event, err) {
					return
				}
			}
			if failure == nil {
				return
			}
		}
	}
}

// another reports whether another model might succeed. An invalid request fails
// everywhere. A model's refusal is not a reason to ask further models until one
// gives in.
func another(ctx context.Context, err error) bool {
	var e *endpoint.Error
	if ctx.Err() != nil || !errors.As(err, &e) {
		return false
	}
	switch e.Class {
	case endpoint.BadRequest, endpoint.Policy, endpoint.Canceled:
		return false
	}
	return true
}

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
		Model: Fallback{
			{&responses.Client{BaseURL: first.URL + "/v1"}, "large"},
			{&responses.Client{BaseURL: second.URL + "/v1"}, "small"},
		},
		Retry: endpoint.Retry{Max: -1}, // a second model is quicker than a second attempt
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
	return nil
}
