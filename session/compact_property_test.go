// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// C2: a compaction that is taken back leaves what is sent as if it had never
// been, byte for byte, whatever else was decided meanwhile.
func TestAnyCompactionIsReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		var never session.View
		for _, e := range l.entries {
			switch b := e.Body.(type) {
			case session.Compacted:
				if slices.ContainsFunc(b.Items, item.Item.IsCall) {
					t.Skip("later calls may have got other ids for the sake of these")
				}
			case session.Restored:
			default:
				never.Apply(e)
			}
		}
		for l.view.Compaction() > 0 {
			l.add(session.Restored{Seq: l.view.Compaction()})
		}
		if diff := cmp.Diff(bytesOf(&never), bytesOf(&l.view)); diff != "" {
			t.Fatalf("(-never compacted +restored):\n%s", diff)
		}
	})
}

// I12 C2: decisions are remembered, not repeated: what is sent after any log is
// what a view sends that has settled everything first, and decides then.
func TestAnyDecisionHoldsForLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		n := l.view.Items().Len()
		before := bytesOf(&l.view)
		l.add(session.InputItem{Item: item.User(l.mark())})
		l.add(session.Restored{Seq: -1}) // nothing, and yet nothing may change
		l.add(session.TurnStarted{Turn: l.turn + 2})
		if got := bytesOf(&l.view); !strings.HasPrefix(got, strings.TrimSuffix(before, "]")) || l.view.Items().Len() != n+1 {
			t.Fatalf("%s\nbecame\n%s", before, got)
		}
	})
}

// C2 R6 P1: a compaction replaces whole replies with their outputs and nothing of
// the system's or the developer's; what it keeps stays where it stood; its items
// follow; behind them all is as it was.
func TestAnyCompactionIsAView(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		for l.view.Compaction() > 0 {
			l.add(session.Restored{Seq: l.view.Compaction()})
		}
		was := items(&l.view)
		var seqs []int64
		for i := range was {
			seq, _ := l.view.Seq(i)
			seqs = append(seqs, seq)
		}
		at := l.pick("at", len(was)+1)
		through, first := l.view.Boundary(at)
		if first > at {
			t.Fatalf("the boundary at or before %d is at %d", at, first)
		}
		if through == 0 {
			t.Skip("nothing ends there")
		}
		var replaceable []string
		for i, it := range l.view.Replaceable(through) {
			if i >= first || it != was[i] {
				t.Fatalf("item %d can be replaced, before %d", i, first)
			}
			replaceable = append(replaceable, it.JSON())
		}
		kept := []int64{l.entry(), l.entry()}
		summary := item.User("what was before")
		l.add(session.Compacted{Through: through, Kept: kept, Items: []item.Item{summary}})
		l.add(session.TurnStarted{Turn: l.turn + 2})
		got := items(&l.view)

		var want, gone []string
		for i, it := range was[:first] {
			role := it.Role()
			other := it.Type() == item.TypeMessage && role != item.RoleAssistant && !session.IsBreakNote(it)
			switch instruction := role == item.RoleSystem || role == item.RoleDeveloper; {
			case other && (instruction || slices.Contains(kept, seqs[i])):
				want = append(want, it.JSON())
				if !instruction {
					gone = append(gone, it.JSON())
				}
			default:
				gone = append(gone, it.JSON())
			}
		}
		if diff := cmp.Diff(replaceable, gone); diff != "" {
			t.Fatalf("Replaceable (-said +are):\n%s", diff)
		}
		if len(want) < first {
			want = append(want, summary.JSON())
		}
		for _, it := range was[first:] {
			want = append(want, it.JSON())
		}
		if diff := cmp.Diff(want, rawTexts(got)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if err := agenttest.CheckPairing(got...); err != nil {
			t.Fatal(err)
		}
		if _, _, _, why, changed := l.view.Changed(); len(want) < len(was) && (!changed || why == "") {
			t.Fatal("the report says that nothing changed")
		}
	})
}

func rawTexts(list []item.Item) []string {
	var s []string
	for _, it := range list {
		s = append(s, it.JSON())
	}
	return s
}

// C2: every item of the log has one fate, every item of the request is told
// of, and the two agree.
func TestAnyLogIsExplained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := draw(t)
		a := session.Explain(slices.Values(l.entries))
		l.add(session.RunStarted{})
		l.add(session.TurnStarted{})
		if diff := cmp.Diff(rawTexts(items(&l.view)), rawTexts(carried(a))); diff != "" {
			t.Fatalf("the request (-is +told):\n%s", diff)
		}
		told := make([]int, len(a.Request))
		i := 0
		for _, e := range l.entries {
			if it, ok := said(e.Body); ok {
				for a.Log[i].Kind == "compacted" || a.Log[i].Kind == "note" || a.Log[i].Kind == "break" {
					i++
				}
				if a.Log[i].Seq != e.Seq || a.Log[i].Item != it {
					t.Fatalf("entry %d is told of as %+v", e.Seq, a.Log[i])
				}
				i++
			}
		}
		for _, x := range a.Log {
			sent := x.Disposition == session.Sent || x.Disposition == session.Changed || x.Disposition == session.Replaced
			if sent != (x.Index >= 0) || x.Disposition != session.Sent && x.Disposition != session.NotSent && x.Reason == "" {
				t.Fatalf("%+v", x)
			}
			if x.Index < 0 {
				continue
			}
			told[x.Index]++
			c := a.Request[x.Index]
			if c.Seq != x.Seq || (x.Disposition == session.Sent) != (c.Item == x.Item) {
				t.Fatalf("%+v\nis carried as %+v", x, c)
			}
			if (x.Kind == "compacted") != (c.For > 0) {
				t.Fatalf("%+v stands for %d", x, c.For)
			}
		}
		for i, n := range told {
			if n != 1 {
				t.Fatalf("item %d of the request is told of %d times: %+v", i, n, a.Request[i])
			}
		}
	})
}

func carried(a *session.InputReport) (list []item.Item) {
	for _, c := range a.Request {
		list = append(list, c.Item)
	}
	return list
}
