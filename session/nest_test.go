// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

func filled(t *testing.T, store session.Store) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two", "three"} {
		if _, err := s.Append(t.Context(), session.InputItem{Item: item.User(text)}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// F3: a session can be forked at any entry; both go on by themselves.
func TestForkAtAnyEntry(t *testing.T) {
	for at := range int64(4) {
		store := new(session.Memory)
		s := filled(t, store)
		f, err := s.Fork(t.Context(), at, "f")
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []*session.Session{s, f} {
			if _, err := one.Append(t.Context(), session.InputItem{Item: item.User("of " + one.ID())}); err != nil {
				t.Fatal(err)
			}
		}
		for id, want := range map[string]int{"s": 4, "f": int(at) + 1} {
			again, err := session.Open(t.Context(), store, id)
			if err != nil {
				t.Fatal(err)
			}
			log := again.Log()
			if len(log) != want {
				t.Errorf("at %d: %s has %d entries, want %d", at, id, len(log), want)
			}
			last := log[len(log)-1].Body.(session.InputItem)
			if diff := cmp.Diff(item.User("of "+id).JSON(), last.Item.JSON()); diff != "" {
				t.Errorf("at %d: %s (-want +got):\n%s", at, id, diff)
			}
		}
		if _, err := s.Fork(t.Context(), at, "f"); !errors.Is(err, session.ErrExists) && at > 0 {
			t.Errorf("at %d: the same id again: %v", at, err)
		}
	}
	s := filled(t, new(session.Memory))
	for _, at := range []int64{-1, 4} {
		if _, err := s.Fork(t.Context(), at, "f"); err == nil {
			t.Errorf("forked at %d of 3", at)
		}
	}
}

// forkWatch calls a function before each append to a session.
type forkWatch struct {
	*session.Memory
	before func(id string)
}

func (w *forkWatch) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	w.before(id)
	return w.Memory.Append(ctx, id, after, entries)
}

// F3 L7: nobody can lock a fork, and run it, before it asks again about calls that
// were approved in the other session.
func TestForkIsReserved(t *testing.T) {
	w := &forkWatch{Memory: new(session.Memory), before: func(string) {}}
	s := filled(t, w)
	for _, b := range []session.Body{
		session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Call("c", "write", "{}")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
		session.ApprovalAsked{CallID: "c", Number: 1, Tool: "write", Arguments: "{}"}, session.Approval{CallID: "c", Number: 1, Allowed: true},
	} {
		if _, err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	w.before = func(id string) {
		seen++
		if _, err := w.Lock(t.Context(), id); !errors.Is(err, session.ErrBusy) {
			t.Errorf("another writer of %s: %v", id, err)
		}
	}
	f, err := s.Fork(t.Context(), int64(len(s.Log())), "f")
	if err != nil || seen != 1 {
		t.Fatal(seen, err)
	}
	unlock, err := f.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

// only is a store of one session, such as a transcript.
type only struct{ m session.Memory }

func (o *only) Append(ctx context.Context, _ string, after int64, entries []session.Entry) error {
	return o.m.Append(ctx, "", after, entries)
}

func (o *only) Load(ctx context.Context, _ string, after int64) iter.Seq2[session.Entry, error] {
	return o.m.Load(ctx, "", after)
}

// F2: the session of a nested run is never in the log of the one around it. A
// store that keeps many has it, one that keeps one does not.
func TestNestedSession(t *testing.T) {
	for _, store := range []session.Store{new(session.Memory), new(only)} {
		s := filled(t, store)
		id := s.NestedID(session.OpenCall{Number: 2, CallID: "call/../é 1"})
		if id != "s/2-call1" {
			t.Errorf("id %q", id)
		}
		for n := range 2 {
			in, err := s.Nested(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(in.Log()); got != n {
				t.Errorf("%T: %d entries, want %d", store, got, n)
			}
			if _, err := in.Append(t.Context(), session.RunStarted{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(filled(t, new(only)).Log()); got != 3 {
			t.Errorf("%d entries", got)
		}
		again, err := session.Open(t.Context(), store, "s")
		if err != nil || len(again.Log()) != 3 {
			t.Errorf("%T: %d entries, %v", store, len(again.Log()), err)
		}
		_, forkErr := s.Fork(t.Context(), 1, "f")
		if _, many := store.(session.SubsessionStore); many != (forkErr == nil) {
			t.Errorf("%T: %v", store, forkErr)
		}
	}
}
