// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session"
)

// tallied is a store that counts the bytes of the notes that are read.
type tallied struct {
	inMemory
	read int
}

func (c *tallied) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for e, err := range c.inMemory.Load(ctx, id, after) {
			if n, ok := e.Body.(session.Note); ok {
				c.read += len(n.Item.JSON())
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// The events of a long response are read from the asked one on, and not all of them.
func TestEventsFrom(t *testing.T) {
	ctx := t.Context()
	in := new(tallied)
	keep := &gateway.Store{In: in, Owner: "o"}
	rec := server.StoredObject{Response: &api.Response{ID: "resp_1", Status: item.StatusInProgress}, Background: true}
	if err := keep.Put(ctx, rec); err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		ev, err := api.ParseEventString(fmt.Sprintf(`{"type":"response.output_text.delta","sequence_number":%d,"delta":"%s"}`, i, strings.Repeat("word ", 20)))
		if err != nil {
			t.Fatal(err)
		}
		rec.Events = append(rec.Events, ev)
	}
	for _, err := range keep.Events(ctx, "resp_1", 0) {
		if !errors.Is(err, server.ErrNotFound) {
			t.Errorf("events of a response that is being made: %v", err)
		}
	}
	rec.Response = &api.Response{ID: "resp_1", Status: item.StatusCompleted, Output: []item.Item{item.Assistant("done")}}
	if err := keep.Put(ctx, rec); err != nil {
		t.Fatal(err)
	}
	all, err := keep.Get(ctx, "resp_1")
	if err != nil || len(all.Events) != len(rec.Events) || all.Events[777].JSON() != rec.Events[777].JSON() {
		t.Fatalf("%d events, %v", len(all.Events), err)
	}
	for _, from := range []int{0, 1, 1000, 19_999, 20_000} {
		n := from
		for ev, err := range keep.Events(ctx, "resp_1", int64(from)) {
			if err != nil || ev.JSON() != rec.Events[n].JSON() {
				t.Fatalf("event %d: %q, %v", n, ev.JSON(), err)
			}
			n++
		}
		if n != len(rec.Events) {
			t.Errorf("the events from %d on end at %d", from, n)
		}
	}
	for _, from := range []int64{0, 10_000, 19_999} {
		in.read = 0
		for range keep.Events(ctx, "resp_1", from) {
			break
		}
		if in.read == 0 || in.read > 1<<20 {
			t.Errorf("for event %d, %d bytes are read", from, in.read)
		}
	}
	other := &gateway.Store{In: in, Owner: "another"}
	for _, err := range other.Events(ctx, "resp_1", 0) {
		if !errors.Is(err, server.ErrNotFound) {
			t.Errorf("the events of another owner: %v", err)
		}
	}
	if err := errors.Join(keep.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
}

// ending is a store that ends a response just before its live events are read.
type ending struct {
	inMemory
	end func()
}

func (e *ending) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	if end := e.end; end != nil && strings.HasSuffix(id, ".events") {
		e.end = nil
		end()
	}
	return e.inMemory.Load(ctx, id, after)
}

// A response that ends while another server reads it is read with its end.
func TestEndWhileRead(t *testing.T) {
	ctx := t.Context()
	in := new(ending)
	keep, other := &gateway.Store{In: in}, &gateway.Store{In: in}
	rec := server.StoredObject{Response: &api.Response{ID: "resp_1", Status: item.StatusInProgress}, Background: true}
	ev, err := api.ParseEventString(`{"type":"response.output_text.delta","sequence_number":0,"delta":"x"}`)
	if err := errors.Join(err, keep.Put(ctx, rec), keep.AddEvents(ctx, "resp_1", 0, []api.Event{ev}, false)); err != nil {
		t.Fatal(err)
	}
	in.end = func() {
		rec.Response, rec.Events = &api.Response{ID: "resp_1", Status: item.StatusCompleted}, []api.Event{ev, ev}
		if err := keep.Put(ctx, rec); err != nil {
			t.Error(err)
		}
	}
	got, err := other.Get(ctx, "resp_1")
	if err != nil || got.Response.Status != item.StatusCompleted || len(got.Events) != 2 {
		t.Errorf("%+v, %d events, %v", got.Response, len(got.Events), err)
	}
	if err := errors.Join(keep.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
}
