// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
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

// slow is a store whose first events of a stream are written when it is let.
type slow struct {
	store.Store
	let   chan struct{}
	busy  chan struct{} // closed when a server has found that another one makes a response
	once  sync.Once
	reads atomic.Int64 // of events, in entries
}

func (s *slow) Create(ctx context.Context, info session.Info, entries ...session.Entry) error {
	if strings.HasSuffix(info.ID, ".events") {
		<-s.let
	}
	return s.Store.Create(ctx, info, entries...)
}

func (s *slow) Lock(ctx context.Context, id string) (func() error, error) {
	unlock, err := s.Store.Lock(ctx, id)
	if errors.Is(err, session.ErrBusy) {
		s.once.Do(func() { close(s.busy) })
	}
	return unlock, err
}

func (s *slow) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for e, err := range s.Store.Load(ctx, id, after) {
			if strings.HasSuffix(id, ".events") {
				s.reads.Add(1)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// sharing serves a gateway over a store that is shared.
func sharing(t *testing.T, in store.Store, up string) *world {
	t.Helper()
	keep := &gateway.Store{In: in}
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up, false)}}}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	t.Cleanup(func() {
		w.end()
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// A request that is sent again to another server, before the first event is stored, gets the events of
// the response with their own numbers, and so does a GET of the stream. V2 V4
func TestRepeatedEarly(t *testing.T) {
	in := opened(t)
	up, let := rehearsed(t, func(string) bool { return false }), make(chan struct{})
	var stores []*slow
	var at []*world
	for range 3 {
		stores = append(stores, &slow{Store: in, let: let, busy: make(chan struct{})})
		at = append(at, sharing(t, stores[len(at)], up))
	}
	w := at[0]
	const body = `{"model":"m","input":"a","background":true,"stream":true}`
	var first, second string
	var all sync.WaitGroup
	all.Go(func() { _, first = w.keyed("k", body) })
	var id string
	for id == "" { // it has begun
		for info, err := range in.List(t.Context(), session.Query{Tags: []string{"gateway-key"}, Archived: true}) {
			if err != nil {
				t.Fatal(err)
			}
			for e := range in.Load(t.Context(), info.ID, 0) {
				if n, ok := e.Body.(session.Note); ok {
					id = text(n.Item, "response_id")
				}
			}
		}
	}
	all.Go(func() { _, second = at[1].keyed("k", body) })
	<-stores[1].busy
	var third string
	all.Go(func() { _, _, third = at[2].ask(http.MethodGet, "/responses/"+id+"?stream=true", "") })
	<-stores[2].busy
	close(let)
	all.Wait()
	want := w.parse(first)
	if len(want) < 5 {
		t.Fatalf("%d events: %s", len(want), first)
	}
	for _, got := range []string{second, third} {
		if list := w.parse(got); !slices.EqualFunc(list, want, func(a, b api.Event) bool { return a.JSON() == b.JSON() }) {
			t.Errorf("%s\nwant\n%s", got, first)
		}
	}
}

// A stream whose server was killed before an event was stored has events all the same: those of its end. V2
func TestLeftBeforeItsEvents(t *testing.T) {
	in := opened(t)
	keep := &gateway.Store{In: in}
	rec := server.StoredObject{Response: begun(t, "resp_left"), Background: true, Streamed: true, Input: []item.Item{item.User("x")}}
	if err := errors.Join(keep.Put(t.Context(), rec), keep.Close()); err != nil {
		t.Fatal(err)
	}
	w := sharing(t, in, says(t, "Yes.").URL)
	for range 2 {
		code, _, text := w.ask(http.MethodGet, "/responses/resp_left?stream=true", "")
		if list := w.parse(text); code != http.StatusOK || len(list) != 4 || list[3].Type != api.EventIncomplete {
			t.Errorf("%d %s", code, text)
		}
	}
}

// A response whose kept events make no sense ends all the same, once.
func TestLeftWithOddEvents(t *testing.T) {
	in := opened(t)
	keep := &gateway.Store{In: in}
	rec := server.StoredObject{Response: begun(t, "resp_left"), Background: true, Streamed: true, Input: []item.Item{item.User("x")}}
	odd, err := api.ParseEventString(`{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":3,"content_index":2,"delta":"x"}`)
	if err := errors.Join(err, keep.Put(t.Context(), rec), keep.AddEvents(t.Context(), "resp_left", 0, []api.Event{odd}, false), keep.Close()); err != nil {
		t.Fatal(err)
	}
	w := sharing(t, in, says(t, "Yes.").URL)
	entries := func() (n int64) {
		for info, err := range in.List(t.Context(), session.Query{Archived: true}) {
			if n += info.Entries; err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	first := int64(0)
	for i := range 3 {
		if got, err := w.typed().Retrieve(t.Context(), "resp_left", nil); err != nil || got.Status != item.StatusIncomplete {
			t.Errorf("%v %v", got, err)
		}
		if n := entries(); i == 0 {
			first = n
		} else if n != first {
			t.Errorf("%d entries, then %d", first, n)
		}
	}
}

// Who follows a response at another server reads each of its events once, and not all of them again and
// again.
func TestFollowReadsOnce(t *testing.T) {
	in := &slow{Store: opened(t), let: make(chan struct{}), busy: make(chan struct{})}
	close(in.let)
	rec := server.StoredObject{Response: begun(t, "resp_long"), Background: true, Streamed: true}
	maker := &gateway.Store{In: in}
	ev := func(n int) api.Event {
		made, err := api.ParseEventString(fmt.Sprintf(`{"type":"response.in_progress","sequence_number":%d,"response":%s}`, n, responseJSON(t, rec.Response)))
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	err := errors.Join(maker.Put(t.Context(), rec), maker.AddEvents(t.Context(), "resp_long", 0, []api.Event{ev(0)}, false))
	if err != nil {
		t.Fatal(err)
	}
	w := sharing(t, in, says(t, "Yes.").URL)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.base+"/responses/resp_long?stream=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	const n = 20
	before := int64(0)
	for i := range n {
		for lines.Scan() && !strings.Contains(lines.Text(), fmt.Sprintf(`"sequence_number":%d,`, i)) {
		}
		if i == 0 {
			before = in.reads.Load()
		}
		if err := maker.AddEvents(t.Context(), "resp_long", int64(i)+1, []api.Event{ev(i + 1)}, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := in.reads.Load() - before; got > 3*n {
		t.Errorf("%d entries were read for %d events", got, n)
	}
	if err := maker.Close(); err != nil {
		t.Error(err)
	}
}

func responseJSON(t *testing.T, r *api.Response) string {
	t.Helper()
	text, err := r.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A response that waits is queued at each server, and in progress at each when its stream says so, or when
// an item of it is complete.
func TestProgressElsewhere(t *testing.T) {
	in := opened(t)
	for _, by := range []string{"events", "output"} {
		maker, other := &gateway.Store{In: in}, &gateway.Store{In: in}
		id := "resp_" + by
		r := begun(t, id)
		r.Status = item.StatusQueued
		status := func(want string) {
			t.Helper()
			if rec, err := other.Get(t.Context(), id); err != nil || rec.Response.Status != want {
				t.Errorf("by %s: %+v, %v; want %s", by, rec.Response, err, want)
			}
		}
		if err := maker.Put(t.Context(), server.StoredObject{Response: r, Background: true, Streamed: by == "events", Input: []item.Item{item.User("x")}}); err != nil {
			t.Fatal(err)
		}
		status(item.StatusQueued)
		if by == "events" {
			ev, err := api.ParseEventString(`{"type":"response.in_progress","sequence_number":0,"response":` + responseJSON(t, begun(t, id)) + `}`)
			if err := errors.Join(err, maker.AddEvents(t.Context(), id, 0, []api.Event{ev}, false)); err != nil {
				t.Fatal(err)
			}
		} else if err := maker.AddOutput(t.Context(), id, 0, item.Assistant("One.")); err != nil {
			t.Fatal(err)
		}
		status(item.StatusInProgress)
		if err := errors.Join(maker.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	}
}
