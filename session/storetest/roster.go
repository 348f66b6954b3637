// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// A worker is on the roster from when it says so until its time is over, with
// what it said last.
func testRoster(t *testing.T, s session.Store) {
	type roster interface {
		session.Store
		queue.Roster
	}
	q := has[roster](t, s)
	is := func(want ...string) {
		t.Helper()
		list, err := q.Roster(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range list {
			got = append(got, w.ID+": "+string(w.Data))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the roster is %q, want %q", got, want)
		}
	}
	enter := func(id, data string, lasts time.Duration) {
		t.Helper()
		if err := q.Enter(t.Context(), queue.Present{ID: id, Data: []byte(data)}, lasts); err != nil {
			t.Fatal(err)
		}
	}
	is()
	enter("b", "can do little", time.Hour)
	enter("a", "", time.Hour)
	enter("gone", "died long ago", -time.Second)
	is("a: ", "b: can do little")
	enter("b", "can do more", time.Hour)
	enter("a", "", -time.Second)
	is("b: can do more")
	if err := q.Enter(t.Context(), queue.Present{}, time.Hour); err == nil {
		t.Error("a worker without an id")
	}
}
