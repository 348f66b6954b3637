// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// long is a session of two questions, each with a call: entries 1 to 16.
func long() []session.Body {
	return join(
		given(item.System("rules"), item.User("q1")),                                                                // 1 2
		turn(1, reasoning("rs1"), call("c1")), []session.Body{answered("c1", "one")}, turn(2, item.Assistant("a1")), // 3-6, 7, 8-10
		given(item.User("q2")),                                                                    // 11
		turn(3, call("c2")), []session.Body{answered("c2", "two")}, turn(4, item.Assistant("a2")), // 12-14, 15, 16-18
	)
}

func compacted(through int64, kept ...int64) session.Body {
	return session.Compacted{Through: through, Kept: kept, By: session.BySummary, Items: []item.Item{item.User("summary")}}
}

// C2 R6: where a compaction ends, and what stays.
func TestCompacted(t *testing.T) {
	const all = "system:rules user:q1 rs1 c1() c1=one assistant:a1 user:q2 c2() c2=two assistant:a2"
	for _, c := range []struct {
		name string
		more []session.Body
		want string
	}{
		{"nothing", nil, all},
		{"after the first answer", []session.Body{compacted(10)}, "system:rules user:summary user:q2 c2() c2=two assistant:a2"},
		{"the question stays", []session.Body{compacted(10, 2)}, "system:rules user:q1 user:summary user:q2 c2() c2=two assistant:a2"},
		{"a reply cannot stay", []session.Body{compacted(10, 5, 7, 9)}, "system:rules user:summary user:q2 c2() c2=two assistant:a2"},
		{"in the middle of a reply", []session.Body{compacted(14)}, "system:rules user:summary c2() c2=two assistant:a2"},
		{"in front of all", []session.Body{compacted(1)}, all},
		{"of all", []session.Body{compacted(99)}, "system:rules user:summary"},
		{"failed", []session.Body{session.Compacted{Through: 10, Failure: "why", Items: []item.Item{item.User("x")}}}, all},
		{"again", []session.Body{compacted(7), compacted(15)}, "system:rules user:summary assistant:a2"},
		{"backwards", []session.Body{compacted(15), compacted(7)}, "system:rules user:summary assistant:a2"},
		{"and on", append([]session.Body{compacted(18)}, turn(5, item.Assistant("a3"))...), "system:rules user:summary assistant:a3"},
		{"restored", []session.Body{compacted(7), compacted(15), session.Restored{Seq: 19}}, all},
		{"the last one restored", []session.Body{compacted(7), compacted(15), session.Restored{Seq: 20}}, "system:rules user:summary assistant:a1 user:q2 c2() c2=two assistant:a2"},
		{"what is not in force", []session.Body{compacted(15), session.Restored{Seq: 7}}, "system:rules user:summary assistant:a2"},
		{"quarantined meanwhile", []session.Body{compacted(15), session.Quarantined{Seq: 7, Reason: "No."}, session.Restored{Seq: 19}},
			strings.Replace(all, "c1=one", "c1=The original output of this call is left out: the endpoint refused it. No.", 1)},
		{"reasoning dropped meanwhile", []session.Body{compacted(15), session.ReasoningDropped{}, session.Restored{Seq: 19}}, strings.Replace(all, "rs1 ", "", 1)},
	} {
		v := fold(append(long(), c.more...)...)
		v.Apply(session.Entry{Seq: 99, Body: session.TurnStarted{}})
		if got := outline(v); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

// P1 P4 C6: what replaces others may hold calls of its own; their ids are not
// those of others.
func TestCompactedWithCalls(t *testing.T) {
	items := []item.Item{call("c2"), result("c2", "in it"), call("open"), result("nobody's", "x"), reasoning("rs9")}
	v := fold(append(long(), session.Compacted{Through: 10, Items: items})...)
	if got, want := outline(v), "system:rules call_1() call_1=in it user:q2 c2() c2=two assistant:a2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, b := range join(turn(5, call("call_1")), []session.Body{answered("call_1", "three")}) {
		v.Apply(session.Entry{Seq: 99, Body: b})
	}
	if got := outline(v); !strings.HasSuffix(got, "assistant:a2 call_3() call_3=three") {
		t.Error(got)
	}
}

// I12: the report says what broke the common beginning, and where.
func TestCompactionChanges(t *testing.T) {
	log := append(long(), session.TurnStarted{Turn: 5}, session.TurnEnded{Turn: 5, Status: item.StatusCompleted}, compacted(10, 2), session.TurnStarted{Turn: 6})
	v := fold(log...)
	index, bytes, seq, why, changed := v.Changed()
	if !changed || index != 2 || seq != 4 || why != session.ByCompaction || bytes != len(item.System("rules").JSON())+len(item.User("q1").JSON())+2 {
		t.Error(index, bytes, seq, why, changed)
	}
}

// C1: markers for what was read again; what is not an output, or is shorter than
// the marker, stays; an output that the endpoint refused is no reason to leave
// another out.
func TestCollapsed(t *testing.T) {
	text := strings.Repeat("text ", 40)
	log := []session.Body{session.InputItem{Item: item.User("q")}} // 1
	for i := range 3 {
		id := fmt.Sprintf("c%d", i)
		log = append(log, session.InputItem{Item: call(id)}, session.InputItem{Item: result(id, text)}) // 3 5 7
	}
	short := func(more ...session.Body) (out []bool) {
		v := fold(append(slices.Clip(log), more...)...)
		for _, it := range items(v) {
			if it.IsOutput() {
				out = append(out, it.JSON() != result(it.CallID(), text).JSON())
			}
		}
		return out
	}
	for _, c := range []struct {
		name string
		more []session.Body
		want []bool
	}{
		{"one", []session.Body{session.Collapsed{Seqs: []int64{3}, By: 5}}, []bool{true, false, false}},
		{"both", []session.Body{session.Collapsed{Seqs: []int64{3, 5}, By: 7}}, []bool{true, true, false}},
		{"by an earlier one", []session.Body{session.Collapsed{Seqs: []int64{5}, By: 3}}, []bool{false, false, false}},
		{"by no output", []session.Body{session.Collapsed{Seqs: []int64{3}, By: 4}}, []bool{false, false, false}},
		{"no output", []session.Body{session.Collapsed{Seqs: []int64{1, 2}, By: 5}}, []bool{false, false, false}},
		{"refused", []session.Body{session.Collapsed{Seqs: []int64{3}, By: 5}, session.Quarantined{Seq: 5}}, []bool{false, true, false}},
	} {
		if diff := cmp.Diff(c.want, short(c.more...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if session.Collapses(result("c", "short")) || !session.Collapses(result("c", text)) || session.Collapses(item.User(text)) {
		t.Error("Collapses is wrong")
	}
}

// C2: the account in words, for a person.
func TestExplain(t *testing.T) {
	log := join(long(), []session.Body{compacted(10), session.Note{Item: item.User("n")}}, given(item.User(" ")), turn(5, call("c2"), call("c9")), []session.Body{
		session.CallOutput{CallID: "c2", Item: result("c2", "again")}, session.Quarantined{Seq: 15, Reason: "No."}})
	var entries []session.Entry
	for i, b := range log {
		entries = append(entries, session.Entry{Seq: int64(i + 1), Time: time.Now(), Body: b})
	}
	var got []string
	a := session.Explain(slices.Values(entries))
	for _, l := range a.Log {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%d %s %s %d %d %s", l.Seq, l.Kind, l.Disposition, l.Index, l.By, l.Reason)))
	}
	const gone = "the compaction of entry 19 stands for it"
	const waits = `outputs are wanted: call "c9" of entry 24`
	want := []string{
		"1 given sent 0 0",
		"2 given compacted -1 19 " + gone,
		"4 received compacted -1 19 " + gone,
		"5 received compacted -1 19 " + gone,
		"7 answered compacted -1 19 " + gone,
		"9 received compacted -1 19 " + gone,
		"11 given sent 2 0",
		"13 received sent 3 0",
		"15 answered replaced 4 27 the endpoint refused it: No.",
		"17 received sent 5 0",
		"19 compacted sent 1 0",
		"20 note note -1 0",
		"21 given left_out -1 0 it says nothing",
		"23 received waiting -1 0 " + waits,
		"24 received waiting -1 0 " + waits,
		"26 answered waiting -1 0 " + waits,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := a.Compactions; len(c) != 1 || c[0].State != session.InForce || c[0].Replaces != 5 {
		t.Errorf("%+v", c)
	}
}

// L9: a turn on a history that was compacted looks at what is new in it.
func TestLongAfterCompaction(t *testing.T) {
	v := new(session.View)
	seq := int64(0)
	apply := func(b session.Body) {
		seq++
		v.Apply(session.Entry{Seq: seq, Body: b})
	}
	user, reply := item.User("q"), item.Assistant("a")
	for n := range 100_000 {
		apply(session.InputItem{Item: user})
		if n == 50_000 {
			apply(compacted(seq))
		}
		apply(session.InputItem{Item: reply})
	}
	if n := v.Items().Len(); n < 99_000 || n > 101_000 {
		t.Errorf("%d items", n)
	}
}
