// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// TestStore tests that a store keeps the contract of [session.Store] and of each
// optional interface that it implements: [session.SubsessionStore],
// [session.Locker], [session.Forker], [session.Watcher], [session.Inbox], [session.Catalog],
// [session.Searcher], [session.Blobs], [session.Verifier] and
// the queue of package session/queue. open returns an empty
// store; it is called for each subtest, and should use t.Cleanup to close the store.
func TestStore(t *testing.T, open func(t *testing.T) session.Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s session.Store)
	}{
		{"append", testAppend},
		{"every kind", testEveryKind},
		{"conflict", testConflict},
		{"long", testLong},
		{"break", testBreak},
		{"refused", testRefused},
		{"cancelled", testCancelled},
		{"writers of one session", testRace},
		{"sessions side by side", testSideBySide},
		{"nest", testNest},
		{"lock", testLock},
		{"fork", testFork},
		{"fork of a fork", testForkOfFork},
		{"watch", testWatch},
		{"watch the deleted", testWatchDeleted},
		{"inbox", testInbox},
		{"inbox of a fork", testInboxOfFork},
		{"full inbox", testInboxFull},
		{"inbox of a deleted session", testInboxDeleted},
		{"inbox with many senders", testInboxRace},
		{"notify", testNotify},
		{"queue", testQueue},
		{"order of the queue", testQueueOrder},
		{"turns of tenants", testQueueTurns},
		{"caps of tenants", testQueueCap},
		{"queue and deletion", testQueueDelete},
		{"queue read at once", testQueueRead},
		{"queue of a nested session", testQueueNested},
		{"queue of a nested session with a sender", testQueueNestedRace},
		{"queue with many workers", testQueueRace},
		{"limits of endpoints", testLimits},
		{"limit of runs", testLimitOfRuns},
		{"schedules", testSchedules},
		{"roster of workers", testRoster},
		{"catalog", testCatalog},
		{"names", testNames},
		{"title", testTitle},
		{"labels", testLabels},
		{"owners", testOwners},
		{"pages", testPages},
		{"search", testSearch},
		{"search what was withdrawn", testSearchWithdrawn},
		{"search by owner", testSearchOwners},
		{"search forks", testSearchForks},
		{"delete", testDelete},
		{"delete below a fork", testDeleteBelowFork},
		{"delete what a fork names", testDeleteNested},
		{"blobs", testBlobs},
		{"sweep", testSweep},
		{"verify", testVerify},
		{"random", testRandom},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// has returns the store as S, or skips the test.
func has[S session.Store](t *testing.T, s session.Store) S {
	t.Helper()
	more, ok := s.(S)
	if !ok {
		t.Skipf("%T does not implement %v", s, reflect.TypeFor[S]())
	}
	return more
}

// entries numbers the bodies as the entries after number after.
func entries(after int64, bodies ...session.Body) []session.Entry {
	var list []session.Entry
	for i, b := range bodies {
		list = append(list, session.Entry{Seq: after + int64(i) + 1, Body: b})
	}
	return list
}

func said(format string, args ...any) session.Body {
	return session.InputItem{Item: item.User(fmt.Sprintf(format, args...))}
}

// put appends to a session.
func put(t *testing.T, s session.Store, id string, after int64, bodies ...session.Body) {
	t.Helper()
	if err := s.Append(t.Context(), id, after, entries(after, bodies...)); err != nil {
		t.Fatalf("append to %q: %v", id, err)
	}
}

// load reads a session.
func load(t *testing.T, s session.Store, id string, after int64) []session.Entry {
	t.Helper()
	var list []session.Entry
	for e, err := range s.Load(t.Context(), id, after) {
		if err != nil {
			t.Fatalf("load %q: %v", id, err)
		}
		list = append(list, e)
	}
	return list
}

// texts are entries as text, without their times.
func texts(t *testing.T, list []session.Entry) []string {
	t.Helper()
	var all []string
	for _, e := range list {
		e.Time = time.Time{}
		b, err := session.AppendEntry(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(b))
	}
	return all
}

// wantEntries compares entries of a store with the expected ones.
func wantEntries(t *testing.T, got, want []session.Entry) {
	t.Helper()
	g, w := texts(t, got), texts(t, want)
	for i := range max(len(g), len(w)) {
		switch {
		case i >= len(g):
			t.Fatalf("%d entries, want %d; the first one missing is %.300s", len(g), len(w), w[i])
		case i >= len(w):
			t.Fatalf("%d entries, want %d; the first one too many is %.300s", len(g), len(w), g[i])
		case g[i] != w[i]:
			t.Fatalf("entry %d:\n%.300s\nwant\n%.300s", i+1, g[i], w[i])
		}
	}
}

func testAppend(t *testing.T, s session.Store) {
	if n := len(load(t, s, "nobody's", 0)); n != 0 {
		t.Errorf("a session nobody wrote to has %d entries", n)
	}
	want := entries(0, session.RunStarted{}, said("hello"), session.TurnStarted{Turn: 1}, said("again"))
	put(t, s, "a", 0, want[0].Body, want[1].Body)
	put(t, s, "b", 0, said("another's"))
	put(t, s, "a", 2, want[2].Body)
	put(t, s, "a", 3, want[3].Body)
	wantEntries(t, load(t, s, "a", 0), want)
	for after := int64(-1); after < 6; after++ {
		wantEntries(t, load(t, s, "a", after), want[min(max(after, 0), 4):])
	}
	wantEntries(t, load(t, s, "b", 0), entries(0, said("another's")))
	for _, e := range load(t, s, "a", 0) {
		if !e.Time.IsZero() && e.Time.Location() != time.UTC {
			t.Errorf("entry %d has a time in %v, want UTC", e.Seq, e.Time.Location())
		}
	}
}

// picture is an item with a payload of n bytes.
func picture(n int, seed byte) item.Item {
	data := bytes.Repeat([]byte{seed, 1, 2, 3, 4, 5, 6}, n/7+1)[:n]
	text := `{"type":"message", "role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` +
		base64.StdEncoding.EncodeToString(data) + `"}],"n":1.50}`
	it, err := item.ParseString(text)
	if err != nil {
		panic(err) // it is written above
	}
	return it
}

// everyBody returns a body of each kind, with items that must be kept byte for byte.
func everyBody() []session.Body {
	odd, err := item.ParseString("{ \"type\":\"message\",\n\"role\":\"user\", \"content\":\"caf\\u00e9 \\/ <&> \\ud800\",\"n\":1e3,\"n\":1.0}")
	if err != nil {
		panic(err) // it is written above
	}
	rule := session.Rule{Verdict: session.Allow, Tool: "t", Member: "m", Prefix: []string{"a", ""}, Under: "/", Arguments: "{}", Definition: "d"}
	return []session.Body{
		session.InputItem{Item: odd}, session.RunStarted{}, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: odd, Partial: true},
		session.TurnEnded{Turn: 1, ResponseID: "r", Status: "failed", Reason: "\x00\xff", Class: "c", Usage: &api.Usage{InputTokens: 1 << 60}, Refused: 1, Cost: 0.1},
		session.ApprovalAsked{CallID: "c", Number: 1, Tool: "t", Arguments: "{}", Custom: true, Reason: "r", Rules: []session.Rule{rule}, Sandbox: "workspace"},
		session.Approval{CallID: "c", Number: 1, Allowed: true, Reason: "r", By: "b", Decided: session.DeciderPerson, Edited: "{}", Remember: &rule, Definition: "d", Asked: "w"},
		session.CallStarted{CallID: "c", Arguments: "{\n}", Session: "s", Repeatable: true},
		session.SubagentUsage{CallID: "c", Session: "s", Turns: 1, Tokens: 2, Cost: 1e-300}, session.Paused{CallID: "c", Session: "s"},
		session.CallOutput{CallID: "c", Item: odd, Failed: true, Edited: true}, session.CallDropped{CallID: "c", Reason: "r"},
		session.ItemsWithdrawn{Seqs: []int64{1, 2}, Reason: "r", By: "b"},
		session.ReasoningDropped{Reason: "r"}, session.Quarantined{Seq: 1, Reason: "r"},
		session.Compacted{Through: 1, Kept: []int64{1}, By: session.BySummary, Items: []item.Item{odd, picture(9000, 1)}, Failure: "f", Before: 2, After: 1, Cost: 1},
		session.Restored{Seq: 1}, session.Collapsed{Seqs: []int64{1, 2}, By: 3}, session.Noticed{Turn: 1, Kind: "k", ItemID: "i", CallID: "c", Text: "t"},
		session.Superseded{Seqs: []int64{1, 2}, By: 3}, session.Delivered{Key: "k", By: "b", From: "f", Shown: "s", Queued: true, Problem: "p"}, session.StopAsked{Why: "w", AfterTurn: true, Detail: "d", Run: 2},
		session.Stopped{Why: "w", Detail: "d"}, session.Note{Item: odd},
	}
}

// W8, W14: entries are read back as written, byte for byte.
func testEveryKind(t *testing.T, s session.Store) {
	var want []session.Entry
	for _, b := range everyBody() {
		want = append(want, session.Entry{Seq: int64(len(want) + 1), Body: b})
	}
	for _, n := range []int{1, 3000, 4096, 5000, 300_000, 256 << 10, 1 << 20} {
		want = append(want, session.Entry{Seq: int64(len(want) + 1), Body: session.InputItem{Item: picture(n, byte(n))}})
	}
	for _, e := range want {
		put(t, s, "one by one", e.Seq-1, e.Body)
	}
	if err := s.Append(t.Context(), "at once", 0, want); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one by one", "at once"} {
		wantEntries(t, load(t, s, id, 0), want)
	}
	// Entries that were read can be written elsewhere, although their payloads are not
	// in memory.
	if err := s.Append(t.Context(), "a copy", 0, load(t, s, "at once", 0)); err != nil {
		t.Fatal(err)
	}
	wantEntries(t, load(t, s, "a copy", 0), want)
}

// J8: a store verifies what it wrote without finding errors, also after refused
// appends, forks, nested sessions and payloads; a session that does not exist is an
// error.
func testVerify(t *testing.T, s session.Store) {
	v := has[session.Verifier](t, s)
	put(t, s, "a", 0, everyBody()...)
	end := int64(len(everyBody()))
	if err := s.Append(t.Context(), "a", 3, entries(3, said("refused"))); !errors.Is(err, session.ErrConflict) {
		t.Fatalf("got %v, want ErrConflict", err)
	}
	put(t, s, "a", end, session.InputItem{Item: picture(300_000, 7)})
	put(t, s, "a/1-c", 0, said("nested"))
	if f, ok := s.(session.Forker); ok {
		for _, at := range []int64{1, 7, end + 1} {
			to := fmt.Sprint("fork-", at)
			if err := f.Fork(t.Context(), "a", at, to); err != nil {
				t.Fatal(err)
			}
			put(t, s, to, at, said("on"), said("and on"))
		}
	}
	for _, ids := range [][]string{nil, {"a"}, {"a/1-c", "a"}} {
		for d, err := range v.Verify(t.Context(), ids...) {
			t.Errorf("%q: %v, %v", ids, d, err)
		}
	}
	failed := false
	for _, err := range v.Verify(t.Context(), "nobody's") {
		failed = errors.Is(err, session.ErrNotFound)
	}
	if !failed {
		t.Error("a session that does not exist: want ErrNotFound")
	}
}

func testConflict(t *testing.T, s session.Store) {
	put(t, s, "a", 0, said("1"), said("2"))
	for _, after := range []int64{0, 1, 3, 100} {
		err := s.Append(t.Context(), "a", after, entries(after, said("other")))
		if !errors.Is(err, session.ErrConflict) {
			t.Errorf("after %d: got %v, want ErrConflict", after, err)
		}
	}
	if err := s.Append(t.Context(), "new", 1, entries(1, said("other"))); !errors.Is(err, session.ErrConflict) {
		t.Errorf("behind the end of a new session: got %v, want ErrConflict", err)
	}
	wantEntries(t, load(t, s, "a", 0), entries(0, said("1"), said("2")))
	if n := len(load(t, s, "new", 0)); n != 0 {
		t.Errorf("the refused entries are there")
	}
	put(t, s, "a", 2, said("3"))
}

// A log of thousands of entries, in appends of many sizes, can be read from any
// entry.
func testLong(t *testing.T, s session.Store) {
	var want []session.Entry
	for n := 1; len(want) < 3000; n = n*7%61 + 1 {
		after := int64(len(want))
		var bodies []session.Body
		for i := range n {
			bodies = append(bodies, said("%d of %d after %d", i, n, after))
		}
		put(t, s, "long", after, bodies...)
		want = append(want, entries(after, bodies...)...)
	}
	wantEntries(t, load(t, s, "long", 0), want)
	for after := 0; after <= len(want); after += 97 {
		wantEntries(t, load(t, s, "long", int64(after)), want[after:])
	}
}

// A Load can be stopped early, and entries can be appended during a Load.
func testBreak(t *testing.T, s session.Store) {
	put(t, s, "a", 0, said("1"), said("2"), said("3"))
	for range 50 {
		for e, err := range s.Load(t.Context(), "a", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Seq == 2 {
				break
			}
		}
	}
	n := int64(0)
	for e, err := range s.Load(t.Context(), "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq > 3 {
			break // it may include entries that are written meanwhile
		}
		put(t, s, "b", n, e.Body)
		n++
	}
	wantEntries(t, load(t, s, "b", 0), load(t, s, "a", 0))
}

// Invalid appends are refused completely and leave the store usable.
func testRefused(t *testing.T, s session.Store) {
	put(t, s, "a", 0, said("1"))
	for name, list := range map[string][]session.Entry{
		"wrong number": {{Seq: 5, Body: said("5")}},
		"a gap":        {{Seq: 2, Body: said("2")}, {Seq: 4, Body: said("4")}},
	} {
		if err := s.Append(t.Context(), "a", 1, list); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	put(t, s, "a", 1, said("2"))
	wantEntries(t, load(t, s, "a", 0), entries(0, said("1"), said("2")))
}

// With a cancelled context all or nothing is written.
func testCancelled(t *testing.T, s session.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Append(ctx, "a", 0, entries(0, said("1"), said("2")))
	if n := len(load(t, s, "a", 0)); err == nil && n != 2 || err != nil && n != 0 {
		t.Errorf("%d entries after %v", n, err)
	}
}

// J2: of several appends at the same place, one succeeds.
func testRace(t *testing.T, s session.Store) {
	const writers, rounds = 8, 20
	for round := range int64(rounds) {
		var wg sync.WaitGroup
		won := make([]bool, writers)
		for w := range writers {
			wg.Go(func() {
				err := s.Append(t.Context(), "a", round, entries(round, said("writer %d", w)))
				won[w] = err == nil
				if err != nil && !errors.Is(err, session.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		winner := slices.Index(won, true)
		if winner < 0 || slices.Contains(won[winner+1:], true) {
			t.Fatalf("round %d: %v have written", round, won)
		}
		wantEntries(t, load(t, s, "a", round), entries(round, said("writer %d", winner)))
	}
}

// Sessions that are written concurrently do not affect each other, even if appends
// to one of them keep failing.
func testSideBySide(t *testing.T, s session.Store) {
	const sessions, steps = 8, 40
	put(t, s, "refused", 0, said("1"))
	var wg sync.WaitGroup
	for n := range sessions {
		id := fmt.Sprintf("s%d", n)
		wg.Go(func() {
			for i := range int64(steps) {
				bodies := []session.Body{said("%s %d", id, i)}
				if i%10 == 5 {
					bodies[0] = session.InputItem{Item: picture(10_000, byte(i))} // the same for all
				}
				if err := s.Append(t.Context(), id, i, entries(i, bodies...)); err != nil {
					t.Errorf("%s: %v", id, err)
					return
				}
			}
		})
		wg.Go(func() {
			for range steps {
				if err := s.Append(t.Context(), "refused", 0, entries(0, said("x"))); !errors.Is(err, session.ErrConflict) {
					t.Errorf("got %v, want ErrConflict", err)
				}
			}
		})
	}
	wg.Wait()
	for n := range sessions {
		id := fmt.Sprintf("s%d", n)
		var want []session.Body
		for i := range int64(steps) {
			if want = append(want, said("%s %d", id, i)); i%10 == 5 {
				want[i] = session.InputItem{Item: picture(10_000, byte(i))}
			}
		}
		wantEntries(t, load(t, s, id, 0), entries(0, want...))
	}
}
