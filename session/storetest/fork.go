// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/antiphon-go/antiphon/session"
)

// Ids of nested sessions are the same for the same call, and different for all
// others.
func testNest(t *testing.T, s session.Store) {
	n := has[session.SubsessionStore](t, s)
	seen := map[string]string{}
	for _, parent := range []string{"a", "b"} {
		for number := 1; number < 4; number++ {
			for _, call := range []string{"call_1", "", "../x y", "call_2"} {
				id, what := n.Nest(parent, number, call), fmt.Sprint(parent, number, call)
				if n.Nest(parent, number, call) != id {
					t.Errorf("two ids for %s", what)
				}
				if number != 1 && call == "../x y" || call == "" {
					continue // the number alone distinguishes calls
				}
				if seen[id] != "" {
					t.Errorf("%q is for %s and for %s", id, seen[id], what)
				}
				seen[id] = what
			}
		}
	}
	put(t, s, "a", 0, said("outer"))
	id := n.Nest("a", 1, "call_1")
	put(t, s, id, 0, said("inner"))
	wantEntries(t, load(t, s, id, 0), entries(0, said("inner")))
	wantEntries(t, load(t, s, "a", 0), entries(0, said("outer")))
}

// J2: one caller gets the lock, the others an error.
func testLock(t *testing.T, s session.Store) {
	l := has[session.Locker](t, s)
	unlock, err := l.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Lock(t.Context(), "a"); !errors.Is(err, session.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	other, err := l.Lock(t.Context(), "b")
	if err != nil {
		t.Fatalf("another session: %v", err)
	}
	put(t, s, "a", 0, said("1"))
	put(t, s, "b", 0, said("1"))
	put(t, s, "free", 0, said("1"))
	wantLocked(t, s, "a", "b")
	if err := unlock(); err != nil {
		t.Error(err)
	}
	wantLocked(t, s, "b")
	if err := unlock(); err != nil {
		t.Errorf("unlocked twice: %v", err)
	}
	again, err := l.Lock(t.Context(), "a")
	if err != nil {
		t.Fatalf("behind the unlock: %v", err)
	}
	if err := unlock(); err != nil { // by a previous holder
		t.Error(err)
	}
	if _, err := l.Lock(t.Context(), "a"); !errors.Is(err, session.ErrBusy) {
		t.Errorf("an old unlock took a new lock away: got %v", err)
	}
	for _, unlock := range []func() error{again, other} {
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}
}

// wantLocked checks which sessions are locked, if the store knows.
func wantLocked(t *testing.T, s session.Store, want ...string) {
	t.Helper()
	l, ok := s.(session.LockLister)
	if !ok {
		return
	}
	got, err := l.Locked(t.Context())
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the sessions %q are locked, want %q: %v", got, want, err)
	}
}

// F3: a fork begins with the entries of the other, and both continue.
func testFork(t *testing.T, s session.Store) {
	f := has[session.Forker](t, s)
	var list []session.Entry
	for n := range int64(600) {
		put(t, s, "a", n, said("%d", n+1))
		list = append(list, session.Entry{Seq: n + 1, Body: said("%d", n+1)})
	}
	for _, at := range []int64{0, 1, 255, 256, 257, 511, 599, 600} {
		id := fmt.Sprintf("fork at %d", at)
		if err := f.Fork(t.Context(), "a", at, id); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		wantEntries(t, load(t, s, id, 0), list[:at])
		put(t, s, id, at, said("%s", id))
		want := append(entries(0, bodiesOf(list[:at])...), session.Entry{Seq: at + 1, Body: said("%s", id)})
		wantEntries(t, load(t, s, id, 0), want)
		for _, after := range []int64{at - 1, at, at + 1} {
			wantEntries(t, load(t, s, id, after), want[min(max(after, 0), at+1):])
		}
		if err := s.Append(t.Context(), id, at, entries(at, said("x"))); !errors.Is(err, session.ErrConflict) {
			t.Errorf("%s: got %v, want ErrConflict", id, err)
		}
	}
	if err := f.Fork(t.Context(), "a", 3, "a/42-x"); err == nil {
		t.Error("Fork makes a session that is not nested, with the id of one that is")
	}
	more := entries(3, said("x"), said("y"))
	if err := f.Fork(t.Context(), "a", 3, "with more", more...); err != nil {
		t.Fatal(err)
	}
	put(t, s, "with more", 5, said("z"))
	wantEntries(t, load(t, s, "with more", 0), slices.Concat(list[:3], more, entries(5, said("z"))))
	if err := f.Fork(t.Context(), "a", 4, "with a gap", more...); err == nil {
		t.Error("a fork at entry 4 that goes on with another entry 4: no error")
	}
	if n := len(load(t, s, "with a gap", 0)); n != 0 {
		t.Error("a fork whose further entries are wrong is there")
	}
	put(t, s, "a", 600, said("601"))
	wantEntries(t, load(t, s, "a", 0), append(list, session.Entry{Seq: 601, Body: said("601")}))
	wantEntries(t, load(t, s, "fork at 600", 600), entries(600, said("fork at 600")))

	if err := f.Fork(t.Context(), "a", 1, "fork at 1"); !errors.Is(err, session.ErrExists) {
		t.Errorf("to a session that is there: got %v, want ErrExists", err)
	}
	if err := f.Fork(t.Context(), "nobody's", 0, "x"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("of a session that is not there: got %v, want ErrNotFound", err)
	}
	for _, at := range []int64{-1, 602} {
		if err := f.Fork(t.Context(), "a", at, "x"); err == nil {
			t.Errorf("at entry %d of 601: no error", at)
		}
	}
	if n := len(load(t, s, "x", 0)); n != 0 {
		t.Error("a fork that failed is there")
	}
}

func bodiesOf(list []session.Entry) []session.Body {
	var bodies []session.Body
	for _, e := range list {
		bodies = append(bodies, e.Body)
	}
	return bodies
}

// F3: forks of forks, from before and after where they begin.
func testForkOfFork(t *testing.T, s session.Store) {
	f := has[session.Forker](t, s)
	id := "0"
	put(t, s, id, 0, said("a"), said("b"), said("c"))
	want := []session.Body{said("a"), said("b"), said("c")}
	for n := 1; n <= 30; n++ {
		next := fmt.Sprint(n)
		at := int64(len(want)) - int64(n%3)
		if err := f.Fork(t.Context(), id, at, next); err != nil {
			t.Fatal(err)
		}
		want = want[:at:at]
		put(t, s, next, at, said("%d", n), said("%d again", n))
		want = append(want, said("%d", n), said("%d again", n))
		wantEntries(t, load(t, s, next, 0), entries(0, want...))
		for after := range at + 2 {
			wantEntries(t, load(t, s, next, after), entries(after, want[after:]...))
		}
		id = next
	}
	if err := f.Fork(t.Context(), id, 1, "early"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "early", 1, said("other"))
	wantEntries(t, load(t, s, "early", 0), entries(0, said("a"), said("other")))
}
