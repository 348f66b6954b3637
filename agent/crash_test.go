// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// ledger counts how often a tool ran, by its text.
type ledger struct {
	mu  sync.Mutex
	ran map[string]int
}

func (l *ledger) tool(name string, opts ...tool.Option) tool.Tool {
	return textTool(name, func(_ context.Context, s string) (string, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.ran == nil {
			l.ran = map[string]int{}
		}
		l.ran[s]++
		return s, nil
	}, opts...)
}

// crashRig has a conversation of two rounds of calls before its answer. A
// history without the first round gets it again, and so on, so that any resumed
// run comes to the same end.
func crashRig(t *testing.T) (*rig, *ledger) {
	r := newRig(t)
	l := new(ledger)
	r.agent.Tools = []tool.Tool{l.tool("work"), l.tool("alone", tool.Exclusive()), l.tool("denied")}
	r.agent.Policy.Deny = []string{"denied"}
	r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
		body := string(req.Body)
		switch {
		case !strings.Contains(body, `"a1"`):
			return agenttest.Completed(
				item.Must(&item.Reasoning{ID: "rs_1", Summary: []item.Part{}, EncryptedContent: "gAAA"}),
				item.Assistant("First, this."), call("a1", "work", "a1"), call("a2", "denied", "a2"), call("a3", "alone", "a3"))
		case !strings.Contains(body, `"b1"`):
			return agenttest.Completed(call("b1", "work", "b1"), call("b2", "nobody", "b2"))
		}
		return agenttest.Completed(item.Assistant("All done."))
	})
	return r, l
}

// check resumes the session and looks at everything: the end, the requests, and
// that no tool ran twice.
func (l *ledger) check(t *testing.T, r *rig, at string) {
	t.Helper()
	before := history(r.session)
	r.agent.Model = r.client()
	res, err := r.agent.Run(t.Context(), r.session, item.User("go on"))
	if err != nil || res.Why != agent.StopEndTurn || res.Text != "All done." {
		t.Fatalf("%s: resumed: %+v, %v", at, res, err)
	}
	r.inputs()
	after := history(r.session)
	if err := agenttest.CheckPairing(after...); err != nil {
		t.Errorf("%s: %v", at, err)
	}
	if len(after) < len(before) || !slices.Equal(before, after[:len(before)]) {
		t.Errorf("%s: the history was rewritten: (-before +after)\n%s", at, cmp.Diff(outline(before), outline(after)))
	}
	for text, n := range l.ran {
		if n > 1 {
			t.Errorf("%s: %s ran %d times", at, text, n)
		}
	}
	for id, out := range outputs(after) {
		ok := out == id && l.ran[id] == 1 ||
			strings.HasPrefix(out, "error: The run was interrupted") ||
			l.ran[id] == 0 && strings.HasPrefix(out, "error: ")
		if !ok {
			t.Errorf("%s: %s ran %d times, its output is %q", at, id, l.ran[id], out)
		}
	}
}

// J1 P1 P2: a crash after any entry. The next process reads what is there and
// goes on; what finished is not run again, what may have run is said to.
func TestCrashAfterAnyEntry(t *testing.T) {
	whole, _ := crashRig(t)
	whole.run(item.User("go"))
	var log []session.Entry
	for e := range whole.session.Entries() {
		log = append(log, e)
	}
	for n := range len(log) + 1 {
		r, l := crashRig(t)
		l.ran = map[string]int{}
		for _, e := range log[:n] {
			// A call that was started may have run: count it, so that it must not
			// run again.
			if s, ok := e.Body.(session.CallStarted); ok && s.CallID != "b2" {
				l.ran[s.CallID]++
			}
		}
		if err := r.store.Append(t.Context(), "s", 0, log[:n]); err != nil {
			t.Fatal(err)
		}
		r.reopen()
		l.check(t, r, fmt.Sprintf("after entry %d", n))
	}
}

// diskFull is a store that fails at one append and all that follow.
type diskFull struct {
	session.Store
	left int
}

var errFull = errors.New("no space left on device")

func (d *diskFull) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	if d.left == 0 {
		return errFull
	}
	d.left--
	return d.Store.Append(ctx, id, after, entries)
}

// recorded returns the items that the store holds.
func recorded(t *testing.T, store session.Store) map[item.Item]bool {
	t.Helper()
	items := map[item.Item]bool{}
	for e, err := range store.Load(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case session.OutputItem:
			items[b.Item] = true
		case session.CallOutput:
			items[b.Item] = true
		}
	}
	return items
}

// J1: a store that fails at any append ends the run with its error. Whatever was
// told to be done by then is in the store, and with room again the run goes on.
func TestStoreFailsAtAnyAppend(t *testing.T) {
	for n := 0; ; n++ {
		r, l := crashRig(t)
		full := &diskFull{r.store, n}
		s, err := session.Open(t.Context(), full, "s")
		if err != nil {
			t.Fatal(err)
		}
		var failure error
		for ev, err := range r.agent.Stream(t.Context(), s, item.User("go")) {
			if failure != nil {
				t.Fatalf("append %d: %s after the error", n, nameOf(ev))
			}
			failure = err
			var done item.Item
			if e, ok := ev.(agent.Recorded); ok {
				switch b := e.Body.(type) {
				case session.OutputItem:
					done = b.Item
				case session.CallOutput:
					done = b.Item
				}
			}
			if !done.IsZero() && !recorded(t, r.store)[done] {
				t.Errorf("append %d: %v was told of and is not recorded", n, done)
			}
		}
		if failure == nil {
			break // it got through
		}
		if !errors.Is(failure, errFull) {
			t.Fatalf("append %d: %v", n, failure)
		}
		r.reopen()
		l.check(t, r, fmt.Sprintf("append %d", n))
	}
}

// J1: a crash while the model was asked: what was asked is asked again, without
// a word from anybody.
func TestCrashInTurn(t *testing.T) {
	for _, log := range [][]session.Body{
		{session.InputItem{Item: item.User("go")}},
		{session.InputItem{Item: item.User("go")}, session.TurnStarted{Turn: 1}},
		{session.InputItem{Item: item.User("go")}, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Assistant("so far")}},
		{session.InputItem{Item: item.User("go")}, session.TurnStarted{Turn: 1}, session.TurnEnded{Turn: 1, Status: item.StatusFailed}},
	} {
		r := newRig(t, agenttest.Completed(item.Assistant("done")))
		if _, err := r.session.Append(t.Context(), append([]session.Body{session.RunStarted{}}, log...)...); err != nil {
			t.Fatal(err)
		}
		r.reopen()
		if res := r.run(); res.Text != "done" {
			t.Errorf("after %T: %+v", log[len(log)-1], res)
		}
		r.inputs()
	}
}

// J1: when nothing can be recorded any more, what still runs is told to end.
func TestStoreFailsBesideATool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{replies: []any{[]item.Item{call("c1", "slow", ""), call("c2", "quick", "")}}}
		slow := textTool("slow", func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		quick := textTool("quick", func(context.Context, string) (string, error) { time.Sleep(time.Second); return "ok", nil })
		a := &agent.Agent{Model: m, Tools: []tool.Tool{slow, quick}, Policy: agent.Policy{Allow: []string{"*"}}}
		// Up to the request; the reply, two verdicts, two starts.
		s, err := session.Open(t.Context(), &diskFull{new(session.Memory), 2}, "s")
		if err != nil {
			t.Fatal(err)
		}
		events, err := drain(a.Stream(t.Context(), s, item.User("go")))
		if !errors.Is(err, errFull) {
			t.Errorf("got %v", err)
		}
		if n := len(told[session.CallStarted](events)); n != 2 {
			t.Errorf("%d calls were started", n)
		}
		if n := len(told[session.CallOutput](events)); n != 0 {
			t.Errorf("%d outputs are told of that are not recorded", n)
		}
	})
}

// L6: whoever ranges over the events may leave at any of them. The run puts its
// history in order before the range ends.
func TestLeaveAtAnyEvent(t *testing.T) {
	for n := 0; ; n++ {
		r, l := crashRig(t)
		seen := 0
		for range r.agent.Stream(t.Context(), r.session, item.User("go")) {
			if seen == n {
				break
			}
			seen++
		}
		checkClosed(t, r.session, fmt.Sprintf("event %d", n))
		if seen < n {
			break
		}
		r.reopen()
		l.check(t, r, fmt.Sprintf("event %d", n))
	}
}

// L6: the same for the end of the context.
func TestCancelAtAnyEvent(t *testing.T) {
	for n := 0; ; n++ {
		r, l := crashRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		var last agent.Event
		var failure error
		for ev, err := range r.agent.Stream(ctx, r.session, item.User("go")) {
			if failure = err; err != nil {
				continue
			}
			last = ev
			if seen == n {
				cancel()
			}
			seen++
		}
		cancel()
		if nameOf(last) != "stopped" {
			t.Fatalf("event %d: the last event is %s", n, nameOf(last))
		}
		stopped := stopOf(t, []agent.Event{last})
		if why := agent.StopReason(stopped.Why); why == agent.StopCancelled != errors.Is(failure, context.Canceled) || why != agent.StopCancelled && why != agent.StopEndTurn {
			t.Errorf("event %d: %+v, %v", n, stopped, failure)
		}
		checkClosed(t, r.session, fmt.Sprintf("event %d", n))
		r.reopen()
		l.check(t, r, fmt.Sprintf("event %d", n))
		if seen <= n {
			break
		}
	}
}

// checkClosed wants the log to end with the run's end, and no call open.
func checkClosed(t *testing.T, s *session.Session, at string) {
	t.Helper()
	var v session.View
	var last session.Entry
	for e := range s.Entries() {
		v.Apply(e)
		last = e
	}
	if _, ok := last.Body.(session.Stopped); !ok {
		t.Errorf("%s: the log ends with %T", at, last.Body)
	}
	if n := len(v.Open()); n > 0 {
		t.Errorf("%s: %d calls are open", at, n)
	}
}

// P2: an imported history with a call that nobody answered.
func TestImportedOpenCall(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	l := new(ledger)
	r.agent.Tools = []tool.Tool{l.tool("work")}
	r.run(item.User("go"), call("c1", "work", "x"), item.User("well?"))
	if len(l.ran) > 0 {
		t.Error("an imported call was run")
	}
	got := outline(r.last())
	want := []string{"user: go", `c1: work({"text":"x"})`, "c1 = error: The run was interrupted while this call was under way. Whether it took effect is not known.", "user: well?"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A panic in whoever ranges over the events leaves nothing running.
func TestPanicInTheRange(t *testing.T) {
	r, _ := crashRig(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		for ev := range r.agent.Stream(t.Context(), r.session, item.User("go")) {
			if nameOf(ev) == "call_started" {
				panic("mine")
			}
		}
	}()
	r.reopen()
	if res := r.run(); res.Why != agent.StopEndTurn {
		t.Errorf("then: %+v", res)
	}
	r.inputs()
}
