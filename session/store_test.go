// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

func load(t *testing.T, store session.Store, id string) []session.Entry {
	t.Helper()
	var list []session.Entry
	for e, err := range store.Load(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

var compare = cmp.Comparer(func(a, b item.Item) bool { return a == b })

// A session reads back what it wrote, numbered without gaps.
func TestOpenReadsBack(t *testing.T) {
	var store session.Memory
	s, err := session.Open(t.Context(), &store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), session.RunStarted{}, session.InputItem{Item: item.User("q")}); err != nil {
		t.Fatal(err)
	}
	entries, err := s.Append(t.Context(), session.TurnStarted{Turn: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Seq != 3 {
		t.Errorf("appended %+v", entries)
	}
	again, err := session.Open(t.Context(), &store, "s")
	if err != nil {
		t.Fatal(err)
	}
	var got []session.Entry
	for e := range again.Entries() {
		got = append(got, e)
	}
	want := []session.Entry{
		{Seq: 1, Body: session.RunStarted{}},
		{Seq: 2, Body: session.InputItem{Item: item.User("q")}},
		{Seq: 3, Body: session.TurnStarted{Turn: 1}},
	}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for range again.Entries() {
		break // is no trouble
	}
}

// Two writers of one session: one of them is told.
func TestConflict(t *testing.T) {
	var store session.Memory
	one, _ := session.Open(t.Context(), &store, "s")
	two, _ := session.Open(t.Context(), &store, "s")
	if _, err := one.Append(t.Context(), session.RunStarted{}); err != nil {
		t.Fatal(err)
	}
	_, err := two.Append(t.Context(), session.RunStarted{}, session.InputItem{Item: item.User("q")})
	if !errors.Is(err, session.ErrConflict) || !strings.Contains(err.Error(), `"s"`) {
		t.Errorf("got %v, want a conflict that names the session", err)
	}
	if n := len(load(t, &store, "s")); n != 1 {
		t.Errorf("%d entries, want the first writer's", n)
	}
	for range two.Entries() {
		t.Error("the refused entries are in the session")
	}
	if _, err := two.Append(t.Context(), session.RunStarted{}); !errors.Is(err, session.ErrConflict) {
		t.Errorf("then got %v", err)
	}
}

// What has happened is written even if the context has ended.
func TestAppendOutlivesCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store := &watching{Store: new(session.Memory)}
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, session.RunStarted{}); err != nil {
		t.Fatal(err)
	}
	if store.err != nil {
		t.Errorf("the store was called with %v", store.err)
	}
}

// watching is a store that looks at the context.
type watching struct {
	session.Store
	err error
}

func (w *watching) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	w.err = ctx.Err()
	return w.Store.Append(ctx, id, after, entries)
}

// A log that cannot be read is an error, not a shorter log.
func TestOpenFails(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := session.Open(t.Context(), failing{broken}, "s")
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), `"s"`) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Append(context.Context, string, int64, []session.Entry) error { return f.err }

func (f failing) Load(context.Context, string, int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		if yield(session.Entry{Seq: 1, Body: session.RunStarted{}}, nil) {
			yield(session.Entry{}, f.err)
		}
	}
}

// A refused append leaves the session as it was, and can be tried again.
func TestAppendFails(t *testing.T) {
	store := &flaky{Store: new(session.Memory), err: errors.New("full")}
	s, _ := session.Open(t.Context(), store, "s")
	if _, err := s.Append(t.Context(), session.RunStarted{}); !errors.Is(err, store.err) {
		t.Fatalf("got %v", err)
	}
	store.err = nil
	entries, err := s.Append(t.Context(), session.RunStarted{})
	if err != nil || entries[0].Seq != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
}

type flaky struct {
	session.Store
	err error
}

func (f *flaky) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	if f.err != nil {
		return f.err
	}
	return f.Store.Append(ctx, id, after, entries)
}

// Many sessions in one store, and readers beside writers.
func TestMemoryConcurrently(t *testing.T) {
	var store session.Memory
	var wg sync.WaitGroup
	for i := range 8 {
		id := fmt.Sprintf("s%d", i%4)
		wg.Go(func() {
			for n := range 100 {
				err := store.Append(t.Context(), id, int64(n), []session.Entry{{Seq: int64(n + 1), Body: session.TurnStarted{Turn: n}}})
				if err != nil && !errors.Is(err, session.ErrConflict) {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 20 {
				seq := int64(0)
				for e := range store.Load(t.Context(), id, 0) {
					if seq++; e.Seq != seq {
						t.Errorf("entry %d where %d belongs", e.Seq, seq)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		if n := len(load(t, &store, fmt.Sprintf("s%d", i))); n == 0 || n > 100 {
			t.Errorf("session %d has %d entries", i, n)
		}
	}
	if n := len(load(t, &store, "nobody's")); n != 0 {
		t.Errorf("an unknown session has %d entries", n)
	}
}

// A session that was deleted while its lock was waited for is not gone on with:
// its subagents would leave sessions that belong to nothing.
func TestLockOfADeletedSession(t *testing.T) {
	store := new(session.Memory)
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), session.InputItem{Item: item.User("hello")}); err != nil {
		t.Fatal(err)
	}
	again, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Lock(t.Context()); !errors.Is(err, session.ErrNotFound) || !strings.Contains(err.Error(), "deleted since it was read") {
		t.Error(err)
	}
}

// OpenLocked has the lock before it reads, so that what is shown of the end of a log is the end.
func TestOpenLocked(t *testing.T) {
	ctx := t.Context()
	store := new(session.Memory)
	s, err := session.Open(ctx, store, "s")
	if err == nil {
		_, err = s.Append(ctx, session.RunStarted{})
	}
	if err != nil {
		t.Fatal(err)
	}
	began := false
	s, unlock, err := session.OpenLocked(ctx, store, "s", func() error {
		_, _, err := session.OpenLocked(ctx, store, "s", nil)
		if !errors.Is(err, session.ErrBusy) {
			t.Errorf("the session is not locked: %v", err)
		}
		began = true
		_, err = store.Info(ctx, "s")
		return err
	})
	if err != nil || !began || len(s.Log()) != 1 {
		t.Fatalf("%v, %v, %d entries", err, began, len(s.Log()))
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no")
	if _, _, err := session.OpenLocked(ctx, store, "s", func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if _, unlock, err := session.OpenLocked(ctx, store, "s", nil); err != nil || unlock() != nil {
		t.Errorf("a lock was left: %v", err)
	}
}

// gappy is a store that lost entries without noticing it.
type gappy struct {
	session.Memory
	yields []session.Entry
}

func (g *gappy) Load(_ context.Context, _ string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for _, e := range g.yields {
			if e.Seq > after && !yield(e, nil) {
				return
			}
		}
	}
}

// noLoad is a store whose Load forgets to return an iterator.
type noLoad struct{ session.Store }

func (noLoad) Load(context.Context, string, int64) iter.Seq2[session.Entry, error] { return nil }

// A log with a gap, with an entry twice or with an empty one is not taken for the whole, also
// where a session that is open reads on. J2 G8
func TestOpenFindsGaps(t *testing.T) {
	entry := func(seq int64) session.Entry {
		return session.Entry{Seq: seq, Body: session.InputItem{Item: item.User("x")}}
	}
	for name, yields := range map[string][]session.Entry{
		"a gap": {entry(1), entry(3)}, "no beginning": {entry(2)}, "twice": {entry(1), entry(1)}, "an empty one": {entry(1), {Seq: 2}},
	} {
		if _, err := session.Open(t.Context(), &gappy{yields: yields}, "s"); !errors.Is(err, session.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := session.Open(t.Context(), noLoad{}, "s"); err == nil {
		t.Error("a store without an iterator is read")
	}
	store := &gappy{yields: []session.Entry{entry(1), entry(2)}}
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	store.yields = append(store.yields, entry(4))
	if err := s.Refresh(t.Context()); !errors.Is(err, session.ErrDamaged) || len(s.Log()) != 2 {
		t.Errorf("%v, %d entries", err, len(s.Log()))
	}
}

// hollow is a store whose locks, watches and inboxes succeed and return nil.
type hollow struct{ session.Memory }

func (*hollow) Lock(context.Context, string) (unlock func() error, err error) { return nil, nil }

func (*hollow) Watch(context.Context, string, int64) iter.Seq2[session.Entry, error] { return nil }

func (*hollow) Deliveries(context.Context, string) iter.Seq2[session.Delivery, error] { return nil }

func (*hollow) Notify(string, func()) (stop func()) { return nil }

// A store of one's own that returns no function or iterator is named in an error. G8
func TestHollowStore(t *testing.T) {
	store := new(hollow)
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	check := func(method string, err error) {
		if err == nil || !strings.Contains(err.Error(), method) || !strings.Contains(err.Error(), "*session_test.hollow") {
			t.Errorf("%s: %v", method, err)
		}
	}
	_, err = s.Lock(t.Context())
	check("no function to unlock", err)
	_, err = s.Hold(t.Context())
	check("no function to unlock", err)
	_, _, err = session.OpenLocked(t.Context(), store, "s", nil)
	check("no function to unlock", err)
	for _, err := range s.Watch(t.Context(), 0) {
		check("Watch", err)
	}
	for _, err := range s.Deliveries(t.Context()) {
		check("Deliveries", err)
	}
	s.Notify(func() {})()
}
