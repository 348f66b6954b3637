// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// L3: a call that waits for its rate is told of and does not hold the calls behind it,
// unless calls are made one after another; a call that is repeated is told of, too.
func TestDelayedCalls(t *testing.T) {
	for _, c := range []struct {
		parallel int
		order    []string
	}{
		{2, []string{"quick 0s", "quick 0s", "slow 0s", "slow 1m0s", "slow 2m0s"}},
		{1, []string{"quick 2m0s", "quick 2m0s", "slow 0s", "slow 1m0s", "slow 2m0s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var order []string
			begun := time.Now()
			note := func(name string) func(context.Context, string) (string, error) {
				return func(_ context.Context, s string) (string, error) {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, name+" "+time.Since(begun).String())
					return s, nil
				}
			}
			a := &agent.Agent{Parallel: c.parallel, Policy: agent.Policy{Allow: []string{"*"}}}
			a.Model = agenttest.Script(t, agenttest.Completed(call("s1", "slow", "1"), call("s2", "slow", "2"), call("s3", "slow", "3"), call("q1", "quick", "4"), call("q2", "quick", "5")), saying("done"))
			a.Tools = []tool.Tool{textTool("slow", note("slow"), tool.RateLimit(&tool.Rate{Calls: 1, Per: time.Minute})), textTool("quick", note("quick"))}
			s := session.New()
			events, err := drain(a.Stream(t.Context(), s, item.User("go")))
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(order)
			if !slices.Equal(order, c.order) {
				t.Errorf("parallel %d: %v", c.parallel, order)
			}
			var delayed []string
			for _, p := range progressOf(events, agent.ProgressDelayed) {
				if p.Wait <= 0 || p.Tool != "slow" || p.Reason == "" || p.Retry || p.Took != 0 || p.Error != "" {
					t.Errorf("%+v", p)
				}
				delayed = append(delayed, p.CallID)
			}
			if len(delayed) != 2 || delayed[0] == delayed[1] {
				t.Errorf("delayed: %v", delayed)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		failures := []error{errors.New("busy")}
		a := &agent.Agent{Model: agenttest.Script(t, agenttest.Completed(call("c1", "t", "x")), saying("done"))}
		a.Tools = []tool.Tool{textTool("t", func(_ context.Context, s string) (string, error) {
			if len(failures) > 0 {
				err := failures[0]
				failures = nil
				return "", err
			}
			return s, nil
		}, tool.ReadOnly(), tool.Retries(tool.Retry{Max: 1}))}
		s := session.New()
		events, err := drain(a.Stream(t.Context(), s, item.User("go")))
		if p := progressOf(events, agent.ProgressDelayed); err != nil || len(p) != 1 || p[0].Reason != "busy" || !p[0].Retry || p[0].Wait <= 0 || outputs(history(s))["c1"] != "x" {
			t.Errorf("%v, %+v, %v", err, p, outputs(history(s)))
		}
	})
}

// S8: cancelling a run ends the waits of its calls; those that did not start say so.
func TestDelayedCallsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent.Agent{Policy: agent.Policy{Allow: []string{"*"}}}
		a.Model = agenttest.Script(t, agenttest.Completed(call("s1", "echo", "1"), call("s2", "echo", "2")))
		a.Tools = []tool.Tool{echo(tool.RateLimit(&tool.Rate{Calls: 1, Per: time.Hour}))}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := session.New()
		res, err := a.Run(ctx, s, item.User("go"))
		out := outputs(history(s))
		if !errors.Is(err, context.DeadlineExceeded) || res.Why != agent.StopCancelled || out["s1"] != "1" && out["s2"] != "2" {
			t.Errorf("%+v, %v, %v", res, err, out)
		}
		contains(t, out["s1"]+out["s2"], "error: The call was cancelled before the tool started")
	})
}

// J1 J15: a call that waits for its rate is not marked as started. For a process that
// takes over the log of that moment its outcome is not unknown.
func TestWaitingCallHasNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		build := func(calls ...string) *agent.Agent {
			var reply []item.Item
			for _, id := range calls {
				reply = append(reply, call(id, "echo", id))
			}
			a := &agent.Agent{Policy: agent.Policy{Allow: []string{"*"}}}
			replies := []agenttest.Reply{saying("done")}
			if len(calls) > 0 {
				replies = slices.Insert(replies, 0, agenttest.Completed(reply...))
			}
			a.Model = agenttest.Script(t, replies...)
			a.Tools = []tool.Tool{echo(tool.RateLimit(&tool.Rate{Calls: 1, Per: time.Hour}))}
			return a
		}
		s := session.New()
		var then []session.Entry
		var waits string
		for ev, err := range build("c1", "c2").Stream(t.Context(), s, item.User("go")) {
			if err != nil {
				t.Fatal(err)
			}
			if p, ok := ev.(agent.Progress); ok && p.Kind == agent.ProgressDelayed {
				then, waits = slices.Clone(s.Log()), p.CallID
			}
		}
		started := 0
		for _, e := range then {
			if _, ok := e.Body.(session.CallStarted); ok {
				started++
			}
		}
		if len(then) == 0 || started > 1 {
			t.Fatalf("%d entries, %d calls are marked as started", len(then), started)
		}
		all := 0
		for _, e := range s.Log() {
			if _, ok := e.Body.(session.CallStarted); ok {
				all++
			}
		}
		if all != 2 || outputs(history(s))["c1"] != "c1" || outputs(history(s))["c2"] != "c2" {
			t.Errorf("%d calls are marked as started: %v", all, outputs(history(s)))
		}
		store := new(session.Memory)
		if err := store.Append(t.Context(), "s", 0, then); err != nil {
			t.Fatal(err)
		}
		taken, err := session.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		res, err := build().Run(t.Context(), taken, item.User("go on"))
		if out := outputs(history(taken))[waits]; err != nil || res.Text != "done" || out == "" || strings.Contains(out, plan.OutcomeUnknown) {
			t.Errorf("%v, %q: %v", err, out, outputs(history(taken)))
		}
	})
}

// L3: whatever a rate delays, no call of a tool starts before one that the model made
// earlier, and the model reads the outputs in the order of its calls.
func TestOrderUnderRate(t *testing.T) {
	for _, parallel := range []int{1, 2, 3, 8} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			started := map[string]time.Time{}
			run := func(took time.Duration) func(context.Context, string) (string, error) {
				return func(_ context.Context, s string) (string, error) {
					mu.Lock()
					started[s] = time.Now()
					mu.Unlock()
					time.Sleep(took)
					return s, nil
				}
			}
			var first, second, want []item.Item
			for i := range 6 {
				id := string(rune('a' + i))
				first = append(first, call("s"+id, "slow", "1"+id), call("q"+id, "quick", "1"+id))
				second = append(second, call("S"+id, "slow", "2"+id))
			}
			want = append(slices.Clone(first), second...)
			var last *api.Request
			replies := [][]item.Item{first, second, {item.Assistant("done")}}
			a := &agent.Agent{Parallel: parallel, Policy: agent.Policy{Allow: []string{"*"}}}
			a.Model = agenttest.ModelFunc(func(_ context.Context, req *api.Request) agenttest.Reply {
				next := replies[0]
				last, replies = req, replies[1:]
				return agenttest.Completed(next...)
			})
			a.Tools = []tool.Tool{
				textTool("slow", run(20*time.Second), tool.RateLimit(&tool.Rate{Calls: 2, Per: time.Minute})),
				textTool("quick", func(_ context.Context, s string) (string, error) { return s, nil }),
			}
			if _, err := a.Run(t.Context(), session.New(), item.User("go")); err != nil {
				t.Fatal(err)
			}
			order := slices.Sorted(maps.Keys(started)) // the model's order
			if len(order) != 12 || !slices.IsSortedFunc(order, func(a, b string) int { return started[a].Compare(started[b]) }) {
				t.Errorf("parallel %d: started %v", parallel, started)
			}
			var outputs []string
			for _, it := range last.Input.All() {
				if it.IsOutput() {
					outputs = append(outputs, it.CallID())
				}
			}
			for i, c := range want {
				if len(outputs) != len(want) || outputs[i] != c.CallID() {
					t.Fatalf("parallel %d: the model reads the outputs of %v", parallel, outputs)
				}
			}
		})
	}
}
