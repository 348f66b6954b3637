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
	"github.com/antiphon-go/antiphon/session/storetest"
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

// F3 L7: a fork and its questions about calls that were approved in the other session
// are one write, so no process can find the one without the other.
func TestForkAsksAtOnce(t *testing.T) {
	for _, copies := range []bool{false, true} {
		writes := 0
		store := storetest.StepStore(new(session.Memory), func(s storetest.Step) error {
			if !s.Done && s.Name != "load" {
				writes++
			}
			return nil
		})
		if copies { // it is no Forker
			store = struct{ session.SubsessionStore }{store.(session.SubsessionStore)}
		}
		s := filled(t, store)
		_, err := s.Append(t.Context(),
			session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Call("c", "write", "{}")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
			session.ApprovalAsked{CallID: "c", Number: 1, Tool: "write", Arguments: "{}"}, session.Approval{CallID: "c", Number: 1, Allowed: true})
		if err != nil {
			t.Fatal(err)
		}
		writes = 0
		f, err := s.Fork(t.Context(), int64(len(s.Log())), "f")
		if err != nil || writes != 1 {
			t.Fatalf("copies %v: %d writes, %v", copies, writes, err)
		}
		if err := f.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		var v session.View
		for _, e := range f.Log() {
			v.Apply(e)
		}
		if c, ok := v.Call("c", 1); !ok || c.Verdict != nil || !c.Asked {
			t.Errorf("copies %v: the fork holds the approval: %+v", copies, c)
		}
		if _, err := f.Append(t.Context(), session.RunStarted{}); err != nil {
			t.Errorf("copies %v: %v", copies, err)
		}
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

// F2: the session of a subagent is never in the log of the one around it. A
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
