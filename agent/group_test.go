// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// parrot is an agent whose model repeats the last message, after wait.
func parrot(wait func(ctx context.Context, text string)) *agent.Agent {
	a := &agent.Agent{Model: agenttest.ModelFunc(func(ctx context.Context, req *api.Request) agenttest.Reply {
		m, err := item.As[item.Message](req.Input.At(req.Input.Len() - 1))
		if err != nil {
			panic(err)
		}
		text := m.Content.Display()
		wait(ctx, text)
		if strings.Contains(text, "bad") {
			return agenttest.Failure(400, "", "bad input")
		}
		return agenttest.Completed(item.Assistant(text))
	})}
	return a
}

func tasksOf(a *agent.Agent, texts ...string) (tasks []agent.Task) {
	for _, text := range texts {
		tasks = append(tasks, agent.Task{Agent: a, Input: []item.Item{item.User(text)}})
	}
	return tasks
}

// G9: results come in the order of the tasks, whatever ends first, with their errors; no
// more than the bound run at once.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		a := parrot(func(_ context.Context, text string) {
			n := running.Add(1)
			for now := most.Load(); n > now && !most.CompareAndSwap(now, n); now = most.Load() {
			}
			time.Sleep(time.Duration(10-len(text)) * time.Second)
			running.Add(-1)
		})
		tasks := append(tasksOf(a, "a", "bb", "bad", "cccc"), agent.Task{Input: []item.Item{item.User("no agent")}})
		results := (&agent.Group{Parallel: 2}).Run(t.Context(), tasks...)
		for i, want := range []string{"a", "bb", "", "cccc", ""} {
			r := results[i]
			if r.Result == nil || r.Text != want || (r.Err == nil) != (want != "") || r.Session == nil {
				t.Errorf("task %d: %+v, %v", i, r.Result, r.Err)
			}
		}
		if most.Load() != 2 {
			t.Errorf("%d at once", most.Load())
		}
		if len((&agent.Group{}).Run(t.Context())) != 0 {
			t.Error("results without a task")
		}
	})
}

// Two writers of one session would garble it: the second task is refused, the others run. G8
func TestGroupSameSession(t *testing.T) {
	tasks := tasksOf(parrot(func(context.Context, string) {}), "a", "bb", "ccc")
	tasks[0].Session = session.New()
	tasks[2].Session = tasks[0].Session
	results := new(agent.Group).Run(t.Context(), tasks...)
	if results[0].Text != "a" || results[1].Text != "bb" || results[0].Err != nil || results[1].Err != nil {
		t.Error(results[0].Err, results[1].Err)
	}
	last := results[2]
	if last.Err == nil || last.Err.Error() != "agent: task 3 has the session of task 1" || last.Result == nil || last.Session != tasks[0].Session {
		t.Errorf("%+v, %v", last.Result, last.Err)
	}
}

// G9: all tasks draw on the group's budget, and on the context's.
func TestGroupBudget(t *testing.T) {
	a := parrot(func(context.Context, string) {})
	own, outer := &agent.Budget{Turns: 3}, &agent.Budget{Turns: 100}
	answered, stopped := 0, 0
	for _, r := range (&agent.Group{Budget: own}).Run(agent.WithBudget(t.Context(), outer), tasksOf(a, "a", "b", "c", "d", "e")...) {
		switch {
		case r.Err == nil && r.Why == agent.StopEndTurn:
			answered++
		case r.Err == nil && r.Why == agent.StopMaxTurns:
			stopped++
		}
	}
	if answered != 3 || stopped != 2 || own.Used().Turns != 3 || outer.Used().Turns != 3 {
		t.Errorf("%d answered, %d stopped, used %+v and %+v", answered, stopped, own.Used(), outer.Used())
	}
}

// L4: a budget that a run gets in two ways counts each turn and token once.
func TestBudgetCountsOnce(t *testing.T) {
	a := parrot(func(context.Context, string) {})
	once := func(name string, total *agent.Budget, run func()) {
		t.Helper()
		run()
		if u := total.Used(); u != (agent.Usage{Turns: 1, Tokens: 25}) {
			t.Errorf("%s: used %+v", name, u)
		}
	}
	total := new(agent.Budget)
	once("two children", total, func() {
		a.Budget = total.Child()
		if _, err := a.Run(agent.WithBudget(t.Context(), total.Child()), session.New(), item.User("x")); err != nil {
			t.Error(err)
		}
	})
	total = new(agent.Budget)
	once("a group in a child", total, func() {
		a.Budget = total
		(&agent.Group{Budget: total}).Run(agent.WithBudget(t.Context(), total.Child().Child()), tasksOf(a, "x")...)
	})
	total = &agent.Budget{Turns: 1}
	once("no turn left", total, func() {
		a.Budget = total.Child()
		ctx := agent.WithBudget(t.Context(), total.Child())
		for range 2 {
			if _, err := a.Run(ctx, session.New(), item.User("x")); err != nil {
				t.Error(err)
			}
		}
	})
}

// L4: no usage that is drawn by hand switches a limit off or gives anything back.
func TestBudgetSpend(t *testing.T) {
	b := &agent.Budget{Turns: 2, Tokens: 100, Cost: 1}
	b.Spend(agent.Usage{Turns: math.MinInt, Tokens: math.MinInt64, Cost: math.NaN()})
	b.Spend(agent.Usage{Turns: -1, Tokens: -1, Cost: -1})
	if u := b.Used(); u != (agent.Usage{}) {
		t.Errorf("used %+v", u)
	}
	if err := b.Take(); err != nil {
		t.Error(err)
	}
	for range 2 {
		b.Spend(agent.Usage{Turns: math.MaxInt, Tokens: math.MaxInt64, Cost: math.Inf(1)})
	}
	if u := b.Used(); u != (agent.Usage{Turns: math.MaxInt, Tokens: math.MaxInt64, Cost: math.MaxFloat64}) {
		t.Errorf("used %+v", u)
	}
	if err := b.Take(); err == nil {
		t.Error("a turn was left")
	}
}

// S8: a task is cancelled alone, by an error of another one if asked for, or with all.
func TestGroupCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := parrot(func(ctx context.Context, text string) {
			if strings.HasPrefix(text, "slow") {
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
			}
		})
		one, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tasks := tasksOf(a, "slow", "slow too", "fast")
		tasks[0].Cancel = one.Done()
		results := (&agent.Group{}).Run(t.Context(), tasks...)
		if results[0].Why != agent.StopCancelled || results[0].Err == nil || results[1].Text != "slow too" || results[2].Text != "fast" {
			t.Errorf("one: %+v", results)
		}
		results = (&agent.Group{}).Run(t.Context(), tasks[0])
		if results[0].Why != agent.StopCancelled || results[0].Err == nil || len(results[0].Session.Log()) > 0 {
			t.Errorf("before it started: %+v", results[0])
		}

		results = (&agent.Group{StopOnError: true, Parallel: 2}).Run(t.Context(), tasksOf(a, "slow", "bad", "never")...)
		for _, i := range []int{0, 2} {
			if !errors.Is(results[i].Err, agent.ErrOtherTask) || results[i].Why != agent.StopCancelled {
				t.Errorf("task %d: %+v, %v", i, results[i].Result, results[i].Err)
			}
		}
		if err := results[1].Err; err == nil || errors.Is(err, agent.ErrOtherTask) {
			t.Errorf("the error itself: %v", err)
		}

		ctx, cancelAll := context.WithTimeout(t.Context(), time.Second)
		defer cancelAll()
		for i, r := range (&agent.Group{}).Run(ctx, tasksOf(a, "slow", "slow")...) {
			if !errors.Is(r.Err, context.DeadlineExceeded) || r.Why != agent.StopCancelled {
				t.Errorf("task %d: %+v, %v", i, r.Result, r.Err)
			}
		}
	})
}

// A panic of a model reaches the caller, after the other tasks have ended.
func TestGroupPanic(t *testing.T) {
	defer func() {
		if v := recover(); v != "boom" {
			t.Errorf("recovered %v", v)
		}
	}()
	a := parrot(func(context.Context, string) {})
	bad := &agent.Agent{Model: panicky{}}
	(&agent.Group{}).Run(t.Context(), agent.Task{Agent: bad, Input: []item.Item{item.User("a")}}, tasksOf(a, "b")[0])
	t.Error("no panic")
}

type panicky struct{}

func (panicky) Stream(context.Context, *api.Request) iter.Seq2[api.Event, error] { panic("boom") }
