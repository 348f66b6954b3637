// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/storetest"
)

// A store is held against what was reported of it.
func ExampleAuditor() {
	var reports bytes.Buffer // what a process writes to a pipe, until it is killed
	kept := new(session.Memory)
	store := storetest.StepStore(kept, storetest.Reporter(&reports))
	s, err := session.Open(context.Background(), store, "s")
	if err != nil {
		panic(err)
	}
	if _, err := s.Append(context.Background(), session.InputItem{Item: item.User("Hello")}); err != nil {
		panic(err)
	}

	var w storetest.Auditor
	if err := w.Hear(&reports, nil); err != nil {
		panic(err)
	}
	counts, err := w.Check(context.Background(), kept, nil)
	fmt.Println(counts.Entries, err)
	_, err = w.Check(context.Background(), new(session.Memory), nil)
	fmt.Println(err != nil)
	// Output:
	// 1 <nil>
	// true
}

// wrong is a store that does something else than it is told.
type wrong struct {
	session.Memory
	change func(entries []session.Entry) []session.Entry
	err    error
}

func (w *wrong) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	changed := w.change(append([]session.Entry(nil), entries...))
	if err := w.Memory.Append(ctx, id, after, changed); err != nil {
		return err
	}
	return w.err
}

// J1: a witness finds what is lost, doubled, garbled, cut or made up.
func TestWitness(t *testing.T) {
	all := func(e []session.Entry) []session.Entry { return e }
	none := func([]session.Entry) []session.Entry { return nil }
	half := func(e []session.Entry) []session.Entry { return e[:1] }
	failed := errors.New("no space left")
	for name, c := range map[string]struct {
		change func([]session.Entry) []session.Entry
		err    error
		want   string // "" if all is well
	}{
		"sound":                  {all, nil, ""},
		"failed, and not there":  {none, failed, ""},
		"failed, and there":      {all, failed, ""},
		"failed, and half there": {half, failed, "nobody wrote 1 given"},
		"lost":                   {none, nil, "it has 0 entries, and 2 were written"},
		"half lost":              {half, nil, "it has 1 entries, and 2 were written"},
		"doubled":                {func(e []session.Entry) []session.Entry { return append(e, session.Entry{Seq: 3, Body: e[1].Body}) }, nil, "nobody wrote"},
		"garbled":                {func(e []session.Entry) []session.Entry { e[1].Body = session.Stopped{Why: "answere"}; return e }, nil, "entry 2 is 2 stopped"},
		"an item, one byte of it": {func(e []session.Entry) []session.Entry {
			e[0].Body = session.InputItem{Item: item.User("he")}
			return e
		}, nil, "entry 1 is 1 given"},
	} {
		var reports bytes.Buffer
		store := &wrong{change: c.change, err: c.err}
		entries := []session.Entry{{Seq: 1, Body: session.InputItem{Item: item.User("hi")}}, {Seq: 2, Body: session.Stopped{Why: "answered"}}}
		err := storetest.StepStore(store, storetest.Reporter(&reports)).Append(t.Context(), "s", 0, entries)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		var w storetest.Auditor
		if err := w.Hear(&reports, nil); err != nil {
			t.Fatal(err)
		}
		_, err = w.Check(t.Context(), store, nil)
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// J1: of an append that nobody reported as done, it is all the same whether it
// is there, whole, and no other.
func TestWitnessOfTheKilled(t *testing.T) {
	one := []session.Entry{{Seq: 1, Body: session.InputItem{Item: item.User("one")}}}
	two := []session.Entry{{Seq: 1, Body: session.InputItem{Item: item.User("two")}}}
	for name, c := range map[string]struct {
		there []session.Entry
		want  string
	}{
		"not there": {nil, ""},
		"there":     {one, ""},
		"another":   {two, "nobody wrote"},
	} {
		var reports bytes.Buffer
		dies := func(s storetest.Step) error { return errors.New("killed") } // neither taken nor reported
		_ = storetest.StepStore(new(session.Memory), storetest.Both(storetest.Reporter(&reports), dies)).Append(t.Context(), "s", 0, one)
		var w storetest.Auditor
		var lines []string
		err := w.Hear(strings.NewReader(reports.String()+"hello\n{\"do\":\"do"), func(line string) { lines = append(lines, line) })
		if err != nil || len(lines) != 1 || lines[0] != "hello" {
			t.Fatal(err, lines)
		}
		store := new(session.Memory)
		if err := store.Append(t.Context(), "s", 0, c.there); err != nil {
			t.Fatal(err)
		}
		counts, err := w.Check(t.Context(), store, nil)
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) || counts.Unsure != 1 {
			t.Errorf("%s: %+v, %v", name, counts, err)
		}
	}
}

// A fork that was reported as failed may have been made all the same.
func TestWitnessOfFork(t *testing.T) {
	for name, fail := range map[string]func(s storetest.Step) error{
		"done": func(storetest.Step) error { return nil },
		"failed, and there": func(s storetest.Step) error {
			if s.Name == "fork" && s.Done {
				return errors.New("the connection was lost")
			}
			return nil
		},
		"failed, and not there": func(s storetest.Step) error {
			if s.Name == "fork" {
				return errors.New("no space left")
			}
			return nil
		},
	} {
		var reports bytes.Buffer
		kept := new(session.Memory)
		report := storetest.Reporter(&reports)
		store := storetest.StepStore(storetest.StepStore(kept, fail), report)
		s, err := session.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), session.InputItem{Item: item.User("one")}, session.InputItem{Item: item.User("two")}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Fork(t.Context(), 1, "f"); err != nil != (name != "done") {
			t.Fatalf("%s: %v", name, err)
		}
		if name != "failed, and not there" {
			f, err := session.Open(t.Context(), store, "f")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Append(t.Context(), session.InputItem{Item: item.User("three")}); err != nil {
				t.Fatal(err)
			}
		}
		var w storetest.Auditor
		if err := w.Hear(&reports, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Check(t.Context(), kept, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if made := w.Made("f"); made != 1 && name != "failed, and not there" {
			t.Errorf("%s: the fork was made with %d entries", name, made)
		}
	}
}

// J4: what is nested in a deleted session stays for its forks, also for one that
// was made before the last check, and goes with the last of them.
func TestWitnessOfDeleted(t *testing.T) {
	kept, stray := new(session.Memory), new(session.Memory)
	var reports bytes.Buffer
	var w storetest.Auditor
	check := func(store session.Store) error {
		t.Helper()
		if err := w.Hear(&reports, nil); err != nil {
			t.Fatal(err)
		}
		_, err := w.Check(t.Context(), store, nil)
		return err
	}
	store := storetest.StepStore(kept, storetest.Reporter(&reports))
	one := []session.Entry{{Seq: 1, Body: session.InputItem{Item: item.User("one")}}}
	call := []session.Entry{{Seq: 2, Body: session.CallStarted{CallID: "x", Session: "s/1-x"}}}
	if err := errors.Join(
		store.Append(t.Context(), "s", 0, one), store.Append(t.Context(), "s", 1, call), store.Append(t.Context(), "s/1-x", 0, one),
		store.(session.Forker).Fork(t.Context(), "s", 2, "f"), check(kept),
		store.(session.Forker).Fork(t.Context(), "f", 2, "g"),
	); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"s", "f", "g"} {
		if err := errors.Join(store.(session.Catalog).Delete(t.Context(), id), check(kept)); err != nil {
			t.Errorf("after %s was deleted: %v", id, err)
		}
	}
	if got := w.Sessions(); len(got) > 0 {
		t.Errorf("there should be nothing left, and there is %q", got)
	}

	// A fork keeps what it began with, though its origin goes before the check.
	for _, known := range []bool{true, false} {
		kept = new(session.Memory)
		store = storetest.StepStore(kept, storetest.Reporter(&reports))
		first := store.Append(t.Context(), "s", 0, one)
		if known {
			first = errors.Join(first, check(kept))
		}
		if err := errors.Join(
			first, store.Append(t.Context(), "s", 1, call), store.(session.Forker).Fork(t.Context(), "s", 2, "f"),
			store.(session.Catalog).Delete(t.Context(), "s"), check(kept),
			store.(session.Catalog).Delete(t.Context(), "f"), check(kept),
		); err != nil {
			t.Errorf("the origin was known %t: %v", known, err)
		}
	}

	// So does a fork of a fork that came and went since the last check.
	kept = new(session.Memory)
	store = storetest.StepStore(kept, storetest.Reporter(&reports))
	if err := errors.Join(
		store.Append(t.Context(), "s", 0, one), check(kept), store.(session.Forker).Fork(t.Context(), "s", 1, "f"), store.Append(t.Context(), "f", 1, call),
		store.(session.Forker).Fork(t.Context(), "f", 2, "g"), store.(session.Catalog).Delete(t.Context(), "f"), check(kept),
		store.(session.Catalog).Delete(t.Context(), "s"), store.(session.Catalog).Delete(t.Context(), "g"), check(kept),
	); err != nil {
		t.Errorf("a fork of a deleted fork: %v", err)
	}

	// Without a fork it has to go at once.
	store = storetest.StepStore(stray, storetest.Reporter(&reports))
	if err := errors.Join(
		store.Append(t.Context(), "s", 0, one), store.Append(t.Context(), "s", 1, call), store.Append(t.Context(), "s/1-x", 0, one),
		check(stray), store.(session.Catalog).Delete(t.Context(), "s"), stray.Append(t.Context(), "s/1-x", 0, one),
	); err != nil {
		t.Fatal(err)
	}
	if err := check(stray); err == nil || !strings.Contains(err.Error(), "it was deleted, and has 1 entries") {
		t.Errorf("got %v", err)
	}
}

// An error of a listener before a step keeps it from being taken, one behind it
// does not.
func TestStepsFail(t *testing.T) {
	broken := errors.New("broken")
	for _, done := range []bool{false, true} {
		kept := new(session.Memory)
		var seen []string
		store := storetest.StepStore(kept, func(s storetest.Step) error {
			seen = append(seen, s.String())
			if s.Done == done {
				return broken
			}
			return nil
		})
		err := store.Append(t.Context(), "s", 0, []session.Entry{{Seq: 1, Body: session.RunStarted{}}})
		n := 0
		for range kept.Load(t.Context(), "s", 0) {
			n++
		}
		if !errors.Is(err, broken) || n == 1 != done || seen[0] != "append/run_started/before" || len(seen) == 2 != done {
			t.Errorf("%v: %v, %d entries, steps %v", done, err, n, seen)
		}
		if _, ok := store.(session.SubsessionStore); !ok {
			t.Error("the store keeps no nested sessions any more")
		}
	}
}
