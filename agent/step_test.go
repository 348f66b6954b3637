// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// steps performs effects, each with a session that was read anew, until the run
// stops.
func (r *rig) steps() plan.Stop {
	r.t.Helper()
	for range 100 {
		r.reopen()
		e, err := r.agent.Step(r.t.Context(), r.session)
		if stop, ok := e.(plan.Stop); ok {
			r.reopen()
			return stop
		}
		if err != nil {
			r.t.Fatalf("%T: %v", e, err)
		}
	}
	r.t.Fatal("it does not stop")
	return plan.Stop{}
}

func (r *rig) give(items ...item.Item) {
	r.t.Helper()
	for _, it := range items {
		if _, err := r.session.Append(r.t.Context(), session.InputItem{Item: it}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// kinds are the kinds of a log's entries.
func kinds(s *session.Session) (list []string) {
	for e := range s.Entries() {
		list = append(list, session.Kind(e.Body))
	}
	return list
}

// Steps by processes that know nothing but the log write the log that a run does.
func TestStepsAreARun(t *testing.T) {
	whole, _ := crashRig(t)
	whole.give(item.User("go"))
	whole.run()
	r, _ := crashRig(t)
	r.give(item.User("go"))
	if stop := r.steps(); stop.Why != agent.StopEndTurn {
		t.Fatalf("%+v", stop)
	}
	if diff := cmp.Diff(kinds(whole.session), kinds(r.session)); diff != "" {
		t.Errorf("(-run +steps)\n%s", diff)
	}
	if diff := cmp.Diff(outline(history(whole.session)), outline(history(r.session))); diff != "" {
		t.Errorf("(-run +steps)\n%s", diff)
	}
	r.inputs()

	r.give(item.User("again"))
	if stop := r.steps(); stop.Why != agent.StopEndTurn || slices.Index(kinds(r.session)[1:], "run_started") < 0 {
		t.Errorf("a second run: %+v", stop)
	}
}

// checkSteps lets steps finish what is in the store, and looks at everything: the
// end, the requests, that no tool ran twice, and that the run is one.
func (l *ledger) checkSteps(t *testing.T, r *rig, at string) {
	t.Helper()
	if stop := r.steps(); stop.Why != agent.StopEndTurn {
		t.Fatalf("%s: %+v", at, stop)
	}
	r.inputs()
	after := history(r.session)
	if err := agenttest.CheckPairing(after...); err != nil {
		t.Errorf("%s: %v", at, err)
	}
	var log []session.Entry
	for e := range r.session.Entries() {
		log = append(log, e)
	}
	if err := agenttest.CheckLog(log); err != nil {
		t.Errorf("%s: %v", at, err)
	}
	runs := 0
	for e := range r.session.Entries() {
		if b, ok := e.Body.(session.RunStarted); ok && !b.Resumes {
			runs++
		}
	}
	if runs != 1 {
		t.Errorf("%s: %d runs", at, runs)
	}
	for text, n := range l.ran {
		if n > 1 {
			t.Errorf("%s: %s ran %d times", at, text, n)
		}
	}
	for id, out := range outputs(after) {
		if out == id && l.ran[id] != 1 || out != id && !strings.HasPrefix(out, "error: ") {
			t.Errorf("%s: %s ran %d times, its output is %q", at, id, l.ran[id], out)
		}
	}
}

// J1 P1 P2: a process may end after any entry of a step, and another goes on, in the
// same run.
func TestStepAfterAnyEntry(t *testing.T) {
	whole, _ := crashRig(t)
	whole.give(item.User("go"))
	whole.steps()
	var log []session.Entry
	for e := range whole.session.Entries() {
		log = append(log, e)
	}
	for n := range log[1 : len(log)-1] {
		n += 2 // what the user said, and the run's start
		r, l := crashRig(t)
		l.ran = map[string]int{}
		for _, e := range log[:n] {
			if s, ok := e.Body.(session.CallStarted); ok && s.CallID != "b2" {
				l.ran[s.CallID]++
			}
		}
		if err := r.store.Append(t.Context(), "s", 0, log[:n]); err != nil {
			t.Fatal(err)
		}
		l.checkSteps(t, r, fmt.Sprintf("after entry %d", n))
	}
}

// J1: a store that fails at any append ends the step with its error, and the next one
// goes on.
func TestStepStoreFailsAtAnyAppend(t *testing.T) {
	for n := 0; ; n++ {
		r, l := crashRig(t)
		r.give(item.User("go"))
		full := &diskFull{r.store, n}
		var failure error
		for failure == nil {
			s, err := session.Open(t.Context(), full, "s")
			if err != nil {
				t.Fatal(err)
			}
			var e plan.Effect
			if e, failure = r.agent.Step(t.Context(), s); failure == nil {
				if _, stop := e.(plan.Stop); stop {
					return // it got through
				}
			}
		}
		if !errors.Is(failure, errFull) {
			t.Fatalf("append %d: %v", n, failure)
		}
		l.checkSteps(t, r, fmt.Sprintf("append %d", n))
	}
}

// Limits count over all processes of a run, however these end.
func TestStepLimits(t *testing.T) {
	r := newRig(t)
	m := &memory{replies: []any{[]item.Item{call("a", "echo", "x")}}}
	r.agent.Model, r.agent.Tools = m, []tool.Tool{echo()}
	r.agent.Limits = agent.Limits{MaxTurns: 4, MaxTokens: 1000}
	r.give(item.User("go"))
	if stop := r.steps(); stop.Why != agent.StopMaxTurns || len(m.asked) != 4 {
		t.Errorf("%+v after %d turns", stop, len(m.asked))
	}

	r = newRig(t)
	m = &memory{replies: []any{listen(func(_ context.Context, yield func(api.Event, error) bool) { panic("crash") })}}
	r.agent.Model, r.agent.Limits = m, agent.Limits{MaxTurns: 3}
	r.give(item.User("go"))
	for range 3 {
		r.reopen()
		func() {
			defer func() { recover() }()
			r.agent.Step(t.Context(), r.session)
		}()
	}
	if stop := r.steps(); stop.Why != agent.StopMaxTurns || len(m.asked) != 3 {
		t.Errorf("%+v after %d turns that crashed", stop, len(m.asked))
	}
}

// The end of a step's context is not the end of the run: the next step asks again.
func TestStepCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRig(t)
	m := &memory{replies: []any{
		listen(func(ctx context.Context, yield func(api.Event, error) bool) {
			cancel()
			yield(api.Event{}, ctx.Err())
		}),
		[]item.Item{item.Assistant("Here I am.")},
	}}
	r.agent.Model = m
	r.give(item.User("go"))
	if e, err := r.agent.Step(ctx, r.session); !errors.Is(err, context.Canceled) || e != (plan.Ask{Turn: 1}) {
		t.Fatalf("%#v, %v", e, err)
	}
	if _, err := r.agent.Step(ctx, r.session); !errors.Is(err, context.Canceled) {
		t.Errorf("a step whose context has ended: %v", err)
	}
	if stop := r.steps(); stop.Why != agent.StopEndTurn || len(m.asked) != 2 {
		t.Errorf("%+v after %d turns", stop, len(m.asked))
	}
	if list := kinds(r.session); strings.Count(strings.Join(list, " "), "run_started") != 1 {
		t.Errorf("%v", list)
	}

	r.give(item.User("and now stop"))
	if _, err := r.session.Append(t.Context(), session.RunStarted{}, session.StopAsked{Why: string(agent.StopCancelled), Detail: "enough"}); err != nil {
		t.Fatal(err)
	}
	if stop := r.steps(); stop.Why != agent.StopCancelled || stop.Detail != "enough" {
		t.Errorf("%+v", stop)
	}
}

// impatient is a store whose lock is not to be had before the caller's time is
// over.
type impatient struct{ *session.Memory }

func (impatient) Lock(ctx context.Context, id string) (unlock func() error, err error) {
	if _, limited := ctx.Deadline(); limited {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return func() error { return nil }, nil
}

// A run whose time passes before it has the lock stops for that, and its log says
// so.
func TestTimeOverBeforeLock(t *testing.T) {
	r := newRig(t)
	m := &memory{replies: []any{[]item.Item{item.Assistant("too late")}}}
	r.agent.Model, r.agent.Limits.MaxTime = m, time.Millisecond
	s, err := session.Open(t.Context(), impatient{new(session.Memory)}, "s")
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.agent.Run(t.Context(), s, item.User("go"))
	if err != nil || res.Why != agent.StopMaxTime || len(m.asked) != 0 {
		t.Errorf("%+v, %v after %d turns", res, err, len(m.asked))
	}
	if list := kinds(s); len(list) == 0 || list[len(list)-1] != "stopped" {
		t.Errorf("the log does not say that it stopped: %v", list)
	}
}

// G2: hooks see each reply once, in whatever process, and again where a process
// ended before they had answered.
func TestStepHooks(t *testing.T) {
	r := newRig(t)
	var seen []bool
	r.agent.Model = &memory{replies: []any{[]item.Item{call("a", "echo", "x")}, []item.Item{item.Assistant("Done.")}}}
	r.agent.Tools = []tool.Tool{echo()}
	crash := true
	r.agent.Hooks = []agent.Hooks{{AfterModel: func(_ context.Context, c *agent.ModelCall) error {
		seen = append(seen, c.Stored)
		if crash {
			crash = false
			panic(errors.New("the process ends here"))
		}
		return nil
	}}}
	r.give(item.User("go"))
	full := &diskFull{r.store, 2} // the run and the turn; the reply, before hooks see it
	s, err := session.Open(t.Context(), full, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.agent.Step(t.Context(), s); err == nil {
		t.Fatal("the step succeeds")
	}
	if stop := r.steps(); stop.Why != agent.StopEndTurn {
		t.Errorf("%+v", stop)
	}
	if want := []bool{false, true, false}; !slices.Equal(seen, want) {
		t.Errorf("replies of the log were seen as %v, want %v", seen, want)
	}
}

// G2: hooks see the input of steps, which others append, before it is sent; what they
// object to is sent by nobody.
func TestStepInput(t *testing.T) {
	r := newRig(t)
	r.agent.Tools = []tool.Tool{echo()}
	m := &memory{replies: []any{[]item.Item{call("a", "echo", "x")}, []item.Item{item.Assistant("Done.")}}}
	r.agent.Model = m
	var seen []string
	r.agent.Hooks = []agent.Hooks{{Name: "censor", BeforeInput: func(_ context.Context, c *agent.InputCall) error {
		seen = append(seen, fmt.Sprint(outline(c.Input), c.History.Len()))
		if strings.Contains(fmt.Sprint(outline(c.Input)), "secret") {
			return errors.New("no secrets")
		}
		return nil
	}}}
	r.give(item.User("before"), item.Assistant("An answer that was imported."), item.User("go"), item.Developer("be short"))
	for range 4 { // the request, the verdict, the call
		if len(r.session.Log()) > 5 && len(seen) == 1 && kinds(r.session)[len(kinds(r.session))-1] == "answered" {
			break
		}
		if _, err := r.agent.Step(t.Context(), r.session); err != nil {
			t.Fatal(err)
		}
		r.reopen()
	}
	r.give(item.User("and a secret"))
	if stop := r.steps(); stop.Why != agent.StopVetoed || !strings.Contains(stop.Detail, "no secrets") || len(m.asked) != 1 {
		t.Errorf("%+v after %d turns", stop, len(m.asked))
	}
	r.give(item.User("then this"))
	if stop := r.steps(); stop.Why != agent.StopEndTurn || len(m.asked) != 2 {
		t.Errorf("%+v after %d turns", stop, len(m.asked))
	}
	if text := m.asked[1].Input.JSON(); strings.Contains(text, "secret") || !strings.Contains(text, "then this") {
		t.Errorf("it was sent: %s", text)
	}
	want := []string{"[user: go developer: be short] 2", "[user: and a secret] 6", "[user: then this] 6"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("the hook saw (-want +got)\n%s", diff)
	}

	// The error of a hook reaches the process that stops the run.
	r.give(item.User("a secret again"))
	r.reopen()
	var err error
	for e := plan.Effect(nil); err == nil; {
		if e, err = r.agent.Step(t.Context(), r.session); err == nil {
			if _, stopped := e.(plan.Stop); stopped {
				t.Fatal("a run that a hook stopped ends without an error")
			}
		}
		r.session, _ = session.Open(t.Context(), r.store, "s")
	}
	contains(t, err.Error(), "no secrets")
}

// L3: calls that start while the reply comes are done when the step is.
func TestStepEarly(t *testing.T) {
	r := newRig(t)
	r.agent.Model = &memory{replies: []any{[]item.Item{call("a", "echo", "x"), call("b", "late", "y")}, []item.Item{item.Assistant("Done.")}}}
	r.agent.Tools = []tool.Tool{echo(tool.EarlyStart()), textTool("late", func(_ context.Context, s string) (string, error) { return s, nil })}
	r.give(item.User("go"))
	if _, err := r.agent.Step(t.Context(), r.session); err != nil {
		t.Fatal(err)
	}
	var v session.View
	for e := range r.session.Entries() {
		v.Apply(e)
	}
	if open := v.Open(); len(open) != 1 || open[0].CallID != "b" {
		t.Errorf("open after the step: %+v", open)
	}
	if stop := r.steps(); stop.Why != agent.StopEndTurn {
		t.Errorf("%+v", stop)
	}
}

// rote is a model whose reply follows from the request alone.
type rote func(req *api.Request) []item.Item

func (f rote) Stream(_ context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) { speak(yield, "resp", f(req)...) }
}

// delegating makes an agent that has a subagent do one task after the other, each in
// three turns, and never comes to an end. Asked counts the questions to both.
func delegating(t *testing.T, asked *int, fork bool) (outer, helper *agent.Agent) {
	helper = &agent.Agent{Tools: []tool.Tool{echo()}, Policy: agent.Policy{Allow: []string{"*"}}}
	helper.Request.Model = "m"
	helper.Model = rote(func(req *api.Request) []item.Item {
		*asked++
		if n := req.Input.Len(); n < 5 {
			return []item.Item{call(fmt.Sprintf("h%d", n), "echo", fmt.Sprint(n))}
		}
		return []item.Item{item.Assistant("It is done.")}
	})
	do, err := agent.AsTool("do", "Does it.", helper)
	if err != nil {
		t.Fatal(err)
	}
	outer = &agent.Agent{Tools: []tool.Tool{do}, Policy: agent.Policy{Allow: []string{"*"}}, Prices: func(string) (agent.Price, bool) { return agent.Price{Input: 1e6}, true }}
	helper.Prices = outer.Prices
	outer.Request.Model = "m"
	if fork {
		outer.Tools = []tool.Tool{agent.ForkTool(), echo()}
	}
	outer.Model = rote(func(req *api.Request) []item.Item {
		*asked++
		n := req.Input.Len()
		forked := -1
		for i, it := range req.Input.All() {
			if it.IsOutput() && strings.Contains(outputText(it), "You are the fork") {
				forked = n - i
			}
		}
		switch {
		case forked > 5:
			return []item.Item{item.Assistant("It is done.")}
		case forked > 0:
			return []item.Item{call(fmt.Sprintf("h%d", n), "echo", fmt.Sprint(n))}
		case fork:
			return []item.Item{forkCall(fmt.Sprintf("f%d", n), "Do it.")}
		}
		return []item.Item{item.Call(fmt.Sprintf("c%d", n), "do", fmt.Sprintf(`{"task":"task %d"}`, n))}
	})
	return outer, helper
}

// bounds are limits that stop a run that delegates, and where.
var bounds = map[string]func(outer, helper *agent.Agent){
	"turns":           func(outer, _ *agent.Agent) { outer.Limits.MaxTurns = 7 },
	"tokens":          func(outer, _ *agent.Agent) { outer.Limits.MaxTokens = 100 },
	"cost":            func(outer, _ *agent.Agent) { outer.Limits.MaxCost = 70 },
	"budget's turns":  func(outer, _ *agent.Agent) { outer.Budget = &agent.Budget{Turns: 7} },
	"budget's tokens": func(outer, _ *agent.Agent) { outer.Budget = &agent.Budget{Tokens: 100} },
	"budget's cost":   func(outer, _ *agent.Agent) { outer.Budget = &agent.Budget{Cost: 70} },
	"two budgets": func(outer, helper *agent.Agent) {
		outer.Budget = &agent.Budget{Turns: 7}
		helper.Budget = outer.Budget
		outer.Limits.MaxTurns = 9
	},
	"the helper's turns": func(outer, helper *agent.Agent) { outer.Limits.MaxTurns, helper.Limits.MaxTurns = 7, 2 },
}

// P1: a run that another process performs after every effect stops where it does in
// one process: what it and its subagents used is in the log, also of a Budget.
func TestStepBudgets(t *testing.T) {
	for i := range 2 * len(bounds) {
		name, fork := slices.Sorted(maps.Keys(bounds))[i/2], i%2 > 0
		bound := bounds[name]
		var asked int
		whole := newRig(t)
		var helper *agent.Agent
		whole.agent, helper = delegating(t, &asked, fork)
		bound(whole.agent, helper)
		res := whole.run(item.User("go"))
		once := asked

		asked = 0
		r := newRig(t)
		r.give(item.User("go"))
		var stop plan.Stop
		for over := false; !over; {
			r.agent, helper = delegating(t, &asked, fork)
			bound(r.agent, helper)
			r.reopen()
			e, err := r.agent.Step(t.Context(), r.session)
			if err != nil {
				t.Fatal(err)
			}
			stop, over = e.(plan.Stop)
		}
		if stop.Why != res.Why || stop.Detail != res.Detail || asked != once {
			t.Errorf("%s, by a fork %v: %+v after %d turns, in one process %s (%s) after %d", name, fork, stop, asked, res.Why, res.Detail, once)
		}
	}
}

// J1 P1: nor does a run get more than its limits when one process, or each, ends
// at any append, in the session or in that of a subagent; whether its Budget lives on,
// or not.
func TestStepBudgetsOfKilled(t *testing.T) {
	for i := range 8 {
		lives, fork, all := i%2 > 0, i/2%2 > 0, i/4 > 0
		first := 0
		if all { // each process ends after so many, which must do to get on
			first = 6
		}
		for n := first; ; n++ {
			asked, killed := 0, false
			r := newRig(t)
			r.give(item.User("go"))
			outer, helper := delegating(t, &asked, fork)
			var left atomic.Int64
			left.Store(int64(n))
			for range 100 {
				if !lives {
					outer, helper = delegating(t, &asked, fork)
				}
				if all {
					left.Store(int64(n))
				}
				if outer.Budget == nil {
					outer.Budget = &agent.Budget{Turns: 7}
				}
				outer.Limits.MaxTurns, helper.Limits.MaxTurns = 9, 4
				s, err := session.Open(t.Context(), &killer{Memory: r.store, left: &left}, "s")
				if err != nil {
					t.Fatal(err)
				}
				e, err := outer.Step(t.Context(), s)
				killed = killed || err != nil
				if stop, is := e.(plan.Stop); is && err == nil {
					if stop.Why != agent.StopMaxTurns || asked != 7 {
						t.Errorf("append %d, of each process %v, the budget lives %v, by a fork %v: %+v after %d turns", n, all, lives, fork, stop, asked)
					}
					break
				}
			}
			r.reopen()
			if list := kinds(r.session); list[len(list)-1] != "stopped" {
				t.Errorf("append %d: %v", n, list)
			}
			if !killed {
				break
			}
		}
	}
}

// killer is the store of a process that ends at an append: none succeeds after it.
// The next process has another one, with the same count.
type killer struct {
	*session.Memory
	left *atomic.Int64 // appends until then
	dead atomic.Bool
}

func (k *killer) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	if k.dead.Load() || k.left.Add(-1) == -1 {
		k.dead.Store(true)
		return errFull
	}
	return k.Memory.Append(ctx, id, after, entries)
}

// L7: steps after a stop for an approval come to a stop again, though nothing was
// decided in between, also where a subagent's call waits.
func TestStepWaitsAgain(t *testing.T) {
	for name, nested := range map[string]bool{"own call": false, "a subagent's call": true} {
		t.Run(name, func(t *testing.T) {
			l := &ledger{ran: map[string]int{}}
			answers := []agenttest.Reply{agenttest.Completed(call("a", "write", "x")), agenttest.Completed(item.Assistant("done"))}
			if nested {
				answers = []agenttest.Reply{
					agenttest.Completed(item.Call("outer", "helper", `{"task":"write"}`)), answers[0], answers[1], agenttest.Completed(item.Assistant("all done")),
				}
			}
			r := newRig(t, answers...)
			r.agent.Tools = []tool.Tool{l.tool("write")}
			r.agent.Policy = agent.Policy{Pause: true}
			if nested {
				inner := *r.agent
				helper, err := agent.AsTool("helper", "Helps.", &inner)
				if err != nil {
					t.Fatal(err)
				}
				r.agent.Tools = []tool.Tool{helper}
				r.agent.Policy.Allow = []string{"helper"}
			}
			r.give(item.User("go"))
			for range 3 {
				if stop := r.steps(); stop.Why != agent.StopApprovalPending {
					t.Fatalf("%+v", stop)
				}
				if left, err := agent.PendingApprovals(t.Context(), r.session); err != nil || len(left) != 1 {
					t.Fatalf("%+v %v", left, err)
				}
			}
			left, err := agent.PendingApprovals(t.Context(), r.session)
			if err != nil {
				t.Fatal(err)
			}
			p := left[0]
			if err := agent.Decide(t.Context(), r.session, agent.Decision{Session: p.Session, Number: p.Number, CallID: p.CallID, Allow: true}); err != nil {
				t.Fatal(err)
			}
			if stop := r.steps(); stop.Why != agent.StopEndTurn || l.ran["x"] != 1 {
				t.Errorf("%+v, ran %v", stop, l.ran)
			}
		})
	}
}
