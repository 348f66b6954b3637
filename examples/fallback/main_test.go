// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
)

// The second model stands in while the first is down, and no longer.
func TestFallback(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	const want = "This is large. You said: Hello?\nThis is small. You said: Are you still there?\nThis is large. You said: And now?\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &out, want)
	}
}

// broken yields n events and then fails.
type broken struct {
	n   int
	err error
}

func (b broken) Stream(context.Context, *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for range b.n {
			if !yield(api.Event{}, nil) {
				return
			}
		}
		yield(api.Event{}, b.err)
	}
}

// No second model is asked once there was output, for a request that is at fault, and
// after the last one; its error is the answer then.
func TestFallbackEnds(t *testing.T) {
	down := &endpoint.Error{Class: endpoint.Overloaded}
	bad := &endpoint.Error{Class: endpoint.BadRequest}
	last := errors.New("the last one")
	for _, c := range []struct {
		name   string
		first  broken
		events int
		want   error
	}{
		{"down", broken{0, down}, 1, last},
		{"down after output", broken{2, down}, 2, down},
		{"a bad request", broken{0, bad}, 0, bad},
	} {
		var got error
		events := 0
		for _, err := range (Fallback{{c.first, "a"}, {broken{1, last}, "b"}}).Stream(t.Context(), &api.Request{}) {
			if got = err; err == nil {
				events++
			}
		}
		if got != c.want || events != c.events {
			t.Errorf("%s: %d events, then %v", c.name, events, got)
		}
	}
}
