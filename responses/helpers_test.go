// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func hello() *api.Request {
	return &api.Request{Model: "m", Input: item.NewList(item.User("hello"))}
}

// drained is what a stream gave.
type drained struct {
	events []api.Event // kept
	items  []item.Item
	resp   *api.Response
	whole  bool // the last event was seen
	err    error
}

// drain reads a stream to its end. It fails the test when an error is not the
// last thing that is yielded, or unfit to be shown.
func drain(t *testing.T, c *responses.Client, req *api.Request) drained {
	t.Helper()
	return drainContext(t.Context(), t, c, req)
}

func drainContext(ctx context.Context, t *testing.T, c *responses.Client, req *api.Request) drained {
	t.Helper()
	var d drained
	var acc api.Accumulator
	for ev, err := range c.Stream(ctx, req) {
		if d.err != nil {
			t.Errorf("%q and %v were yielded after the error", ev.Type, err)
		}
		if d.err = err; err != nil {
			presentable(t, err)
			continue
		}
		d.events = append(d.events, ev)
		items, err := acc.Add(ev)
		if err != nil {
			t.Errorf("event %s: %v", ev.Type, err)
		}
		d.items = append(d.items, items...)
	}
	d.resp, d.whole = acc.Response()
	return d
}

func (d drained) text() string {
	var b strings.Builder
	for _, ev := range d.events {
		if ev.Type == api.EventTextDelta {
			b.WriteString(ev.Delta)
		}
	}
	return b.String()
}

// presentable checks that an error could be shown to a person.
func presentable(t *testing.T, err error) {
	t.Helper()
	s := err.Error()
	if strings.ContainsFunc(s, unicode.IsControl) || s == "" || strings.Contains(s, "<nil>") || strings.HasSuffix(s, ": ") {
		t.Errorf("unfit to be shown: %q", s)
	}
}

// wantClass fails the test unless err is an endpoint.Error of the class.
func wantClass(t *testing.T, err error, class endpoint.Class) *endpoint.Error {
	t.Helper()
	var e *endpoint.Error
	if !errors.As(err, &e) || e.Class != class {
		t.Fatalf("got error %s, want class %s", describe(err), class)
	}
	return e
}

func describe(err error) string {
	var e *endpoint.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("of class %s: %v", e.Class, e)
	}
	return fmt.Sprint(err)
}
