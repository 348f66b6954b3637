// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// A schedule is kept as it was added, is due when its time has come, and is changed only
// as it was read.
func testSchedules(t *testing.T, s session.Store) {
	type scheduler interface {
		session.Store
		queue.Schedules
	}
	q := has[scheduler](t, s)
	list := func(due bool) []queue.Schedule {
		t.Helper()
		all, err := q.Schedules(t.Context(), due)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	later := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	for _, add := range []queue.Schedule{{Name: "b", Data: []byte("what b does"), Due: later}, {Name: "a", Data: []byte("what a does"), Due: later.Add(-2 * time.Hour)}, {Name: "c"}} {
		if err := q.Schedule(t.Context(), add); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Schedule(t.Context(), queue.Schedule{Name: "a"}); !errors.Is(err, session.ErrExists) {
		t.Errorf("a second one with the name: %v", err)
	}
	all := list(false)
	if len(all) != 3 || all[0].Name != "a" || string(all[1].Data) != "what b does" || !all[1].Due.Equal(later) || !all[2].Due.IsZero() {
		t.Fatalf("%+v", all)
	}
	due := list(true)
	if len(due) != 1 || due[0].Name != "a" || due[0].Now.Before(due[0].Due) || due[0].Now.After(later) {
		t.Fatalf("due: %+v", due)
	}
	fired := due[0]
	fired.Due, fired.Fired, fired.Session, fired.Note = later, later.Add(-2*time.Hour), "talk", "went well"
	if err := q.Fired(t.Context(), fired); err != nil {
		t.Fatal(err)
	}
	if err := q.Fired(t.Context(), fired); !errors.Is(err, queue.ErrChanged) {
		t.Errorf("as it was read before: %v", err)
	}
	if due := list(true); len(due) != 0 {
		t.Errorf("due after that: %+v", due)
	}
	if got := list(false)[0]; !got.Fired.Equal(fired.Fired) || got.Session != "talk" || got.Note != "went well" || string(got.Data) != "what a does" || got.Version <= fired.Version {
		t.Errorf("%+v", got)
	}
	if err := q.Unschedule(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := q.Unschedule(t.Context(), "a"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if err := q.Fired(t.Context(), list(false)[0]); err != nil {
		t.Error(err)
	}
}
