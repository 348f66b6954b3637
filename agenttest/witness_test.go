// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// A store is held against what was reported of it.
func ExampleAuditor() {
	var reports bytes.Buffer // what a process writes to a pipe, until it is killed
	kept := new(session.Memory)
	store := agenttest.StepStore(kept, agenttest.Reporter(&reports))
	s, err := session.Open(context.Background(), store, "s")
	if err != nil {
		panic(err)
	}
	if _, err := s.Append(context.Background(), session.InputItem{Item: item.User("Hello")}); err != nil {
		panic(err)
	}

	var w agenttest.Auditor
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
		err := agenttest.StepStore(store, agenttest.Reporter(&reports)).Append(t.Context(), "s", 0, entries)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		var w agenttest.Auditor
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
		dies := func(s agenttest.Step) error { return errors.New("killed") } // neither taken nor reported
		_ = agenttest.StepStore(new(session.Memory), agenttest.Both(agenttest.Reporter(&reports), dies)).Append(t.Context(), "s", 0, one)
		var w agenttest.Auditor
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
	for name, fail := range map[string]func(s agenttest.Step) error{
		"done": func(agenttest.Step) error { return nil },
		"failed, and there": func(s agenttest.Step) error {
			if s.Name == "fork" && s.Done {
				return errors.New("the connection was lost")
			}
			return nil
		},
		"failed, and not there": func(s agenttest.Step) error {
			if s.Name == "fork" {
				return errors.New("no space left")
			}
			return nil
		},
	} {
		var reports bytes.Buffer
		kept := new(session.Memory)
		report := agenttest.Reporter(&reports)
		store := agenttest.StepStore(agenttest.StepStore(kept, fail), report)
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
		var w agenttest.Auditor
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
	var w agenttest.Auditor
	check := func(store session.Store) error {
		t.Helper()
		if err := w.Hear(&reports, nil); err != nil {
			t.Fatal(err)
		}
		_, err := w.Check(t.Context(), store, nil)
		return err
	}
	store := agenttest.StepStore(kept, agenttest.Reporter(&reports))
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
		store = agenttest.StepStore(kept, agenttest.Reporter(&reports))
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
	store = agenttest.StepStore(kept, agenttest.Reporter(&reports))
	if err := errors.Join(
		store.Append(t.Context(), "s", 0, one), check(kept), store.(session.Forker).Fork(t.Context(), "s", 1, "f"), store.Append(t.Context(), "f", 1, call),
		store.(session.Forker).Fork(t.Context(), "f", 2, "g"), store.(session.Catalog).Delete(t.Context(), "f"), check(kept),
		store.(session.Catalog).Delete(t.Context(), "s"), store.(session.Catalog).Delete(t.Context(), "g"), check(kept),
	); err != nil {
		t.Errorf("a fork of a deleted fork: %v", err)
	}

	// Without a fork it has to go at once.
	store = agenttest.StepStore(stray, agenttest.Reporter(&reports))
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

// J1: what is wrong with a log is found without asking those who wrote it.
func TestCheckLog(t *testing.T) {
	call := item.Call("c1", "work", `{}`)
	out, _, err := item.OutputFor(call, item.Text("done"))
	if err != nil {
		t.Fatal(err)
	}
	begin := []session.Body{session.RunStarted{}, session.InputItem{Item: item.User("go")}, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: call}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted}}
	start, repeatable, answer := session.CallStarted{CallID: "c1"}, session.CallStarted{CallID: "c1", Repeatable: true}, session.CallOutput{CallID: "c1", Item: out}
	for name, c := range map[string]struct {
		more  []session.Body
		ran   agenttest.CallCounts
		log   string
		calls string
	}{
		"sound":                    {[]session.Body{start, answer, session.TurnStarted{Turn: 2}}, agenttest.CallCounts{Began: 1, Ended: 1}, "", ""},
		"no output":                {[]session.Body{start, session.TurnStarted{Turn: 2}}, agenttest.CallCounts{}, "has no output", ""},
		"two outputs":              {[]session.Body{start, answer, answer}, agenttest.CallCounts{}, "no call c1 waits", ""},
		"run again":                {[]session.Body{start, session.RunStarted{}, start}, agenttest.CallCounts{Began: 2}, "must not be run again", "begun 2 times"},
		"run again, as it may be":  {[]session.Body{repeatable, session.RunStarted{}, repeatable}, agenttest.CallCounts{Began: 2}, "", ""},
		"run again when answered":  {[]session.Body{repeatable, answer, repeatable}, agenttest.CallCounts{}, "no call c1 waits", ""},
		"run without an intent":    {nil, agenttest.CallCounts{Began: 1}, "", "begun 1 times, and the log says 0"},
		"run more than it says":    {[]session.Body{repeatable}, agenttest.CallCounts{Began: 2}, "", "begun 2 times, and the log says 1"},
		"the same item twice":      {[]session.Body{start, answer, session.TurnStarted{Turn: 2}, said(2), said(2)}, agenttest.CallCounts{}, "is there twice", ""},
		"an item of no turn":       {[]session.Body{start, answer, said(1)}, agenttest.CallCounts{}, "not under way", ""},
		"a turn that was there":    {[]session.Body{start, answer, session.TurnStarted{Turn: 1}}, agenttest.CallCounts{}, "behind turn 1", ""},
		"cut, and never started":   {[]session.Body{start, answer, session.TurnStarted{Turn: 2}, session.OutputItem{Turn: 2, Item: item.Call("c2", "work", "{}")}, session.RunStarted{}, session.TurnStarted{Turn: 3}}, agenttest.CallCounts{}, "", ""},
		"started while it runs":    {[]session.Body{repeatable, repeatable}, agenttest.CallCounts{}, "runs already", ""},
		"paused, and goes on then": {[]session.Body{session.CallStarted{CallID: "c1", Session: "s/1"}, session.Paused{CallID: "c1", Session: "s/1"}, session.CallStarted{CallID: "c1", Session: "s/1"}, answer}, agenttest.CallCounts{}, "", ""},
	} {
		var log []session.Entry
		for i, b := range append(begin[:len(begin):len(begin)], c.more...) {
			log = append(log, session.Entry{Seq: int64(i) + 1, Body: b})
		}
		ran := map[string]agenttest.CallCounts{agenttest.CallKey("s", 1, "c1"): c.ran}
		for what, got := range map[string]struct {
			err  error
			want string
		}{"log": {agenttest.CheckLog(log), c.log}, "calls": {agenttest.CheckCalls("s", log, 0, ran), c.calls}} {
			if got.want == "" != (got.err == nil) || got.err != nil && !strings.Contains(got.err.Error(), got.want) {
				t.Errorf("%s: %s: %v", name, what, got.err)
			}
		}
	}
	gap := []session.Entry{{Seq: 2, Body: session.RunStarted{}}}
	if err := agenttest.CheckLog(gap); err == nil {
		t.Error("a log that begins with entry 2 is sound")
	}
	if err := agenttest.CheckCalls("s", nil, 0, map[string]agenttest.CallCounts{agenttest.CallKey("s", 1, "c1"): {Began: 1}}); err == nil {
		t.Error("a call that no log has is sound")
	}
}

func said(turn int) session.Body {
	return session.OutputItem{Turn: turn, Item: item.Must(&item.Message{ID: "msg_1", Role: item.RoleAssistant, Content: item.Text("x")})}
}

// J1: the ledger knows of each call that began and ended, under the key that the
// log gives.
func TestLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l, err := agenttest.OpenLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	work := tool.Must("work", "Works.", func(ctx context.Context, _ struct{}) (string, error) { return agenttest.KeyOf(ctx), nil }, tool.ReadOnly())
	fall := tool.Must("fall", "Falls.", func(context.Context, struct{}) (string, error) { panic("on the floor") }, tool.ReadOnly())
	srv := agenttest.NewServer(t, agenttest.Completed(item.Call("c1", "work", "{}"), item.Call("c2", "fall", "{}")), agenttest.Completed(item.Assistant("done")))
	a := &agent.Agent{Model: srv.Client(), Tools: []tool.Tool{l.Tool(work), l.Tool(fall)}, Hooks: []agent.Hooks{l.Hooks()}}
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ran, err := agenttest.ReadCallLog(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"c1", "c2"} {
		if key := agenttest.CallKey(s.ID(), 1, id); ran[key] != (agenttest.CallCounts{Began: 1, Ended: 1}) {
			t.Errorf("%s: %+v", key, ran)
		}
	}
	if err := agenttest.CheckCalls(s.ID(), s.Log(), 0, ran); err != nil {
		t.Error(err)
	}
	if none, err := agenttest.ReadCallLog(path + "-not"); err != nil || len(none) > 0 {
		t.Error(none, err)
	}
}

// An error of a listener before a step keeps it from being taken, one behind it
// does not.
func TestStepsFail(t *testing.T) {
	broken := errors.New("broken")
	for _, done := range []bool{false, true} {
		kept := new(session.Memory)
		var seen []string
		store := agenttest.StepStore(kept, func(s agenttest.Step) error {
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
