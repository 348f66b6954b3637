// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
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
		if _, err := r.session.Append(r.t.Context(), session.Given{Item: it}); err != nil {
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
	if stop := r.steps(); stop.Why != agent.Answered {
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
	if stop := r.steps(); stop.Why != agent.Answered || slices.Index(kinds(r.session)[1:], "run_started") < 0 {
		t.Errorf("a second run: %+v", stop)
	}
}

// checkSteps lets steps finish what is in the store, and looks at everything: the
// end, the requests, that no tool ran twice, and that the run is one.
func (l *ledger) checkSteps(t *testing.T, r *rig, at string) {
	t.Helper()
	if stop := r.steps(); stop.Why != agent.Answered {
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
	if stop := r.steps(); stop.Why != agent.MaxTurns || len(m.asked) != 4 {
		t.Errorf("%+v after %d turns", stop, len(m.asked))
	}

	r = newRig(t)
	m = &memory{replies: []any{listen(func(_ context.Context, yield func(item.Event, error) bool) { panic("crash") })}}
	r.agent.Model, r.agent.Limits = m, agent.Limits{MaxTurns: 3}
	r.give(item.User("go"))
	for range 3 {
		r.reopen()
		func() {
			defer func() { recover() }()
			r.agent.Step(t.Context(), r.session)
		}()
	}
	if stop := r.steps(); stop.Why != agent.MaxTurns || len(m.asked) != 3 {
		t.Errorf("%+v after %d turns that crashed", stop, len(m.asked))
	}
}

// The end of a step's context is not the end of the run: the next step asks again.
func TestStepCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRig(t)
	m := &memory{replies: []any{
		listen(func(ctx context.Context, yield func(item.Event, error) bool) {
			cancel()
			yield(item.Event{}, ctx.Err())
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
	if stop := r.steps(); stop.Why != agent.Answered || len(m.asked) != 2 {
		t.Errorf("%+v after %d turns", stop, len(m.asked))
	}
	if list := kinds(r.session); strings.Count(strings.Join(list, " "), "run_started") != 1 {
		t.Errorf("%v", list)
	}

	r.give(item.User("and now stop"))
	if _, err := r.session.Append(t.Context(), session.RunStarted{}, session.StopAsked{Why: string(agent.Cancelled), Detail: "enough"}); err != nil {
		t.Fatal(err)
	}
	if stop := r.steps(); stop.Why != agent.Cancelled || stop.Detail != "enough" {
		t.Errorf("%+v", stop)
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
	full := &diskFull{r.store, 4} // the run, the turn, the call, the turn's end
	s, err := session.Open(t.Context(), full, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.agent.Step(t.Context(), s); err == nil {
		t.Fatal("the step succeeds")
	}
	if stop := r.steps(); stop.Why != agent.Answered {
		t.Errorf("%+v", stop)
	}
	if want := []bool{false, true, false}; !slices.Equal(seen, want) {
		t.Errorf("replies of the log were seen as %v, want %v", seen, want)
	}
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
	if stop := r.steps(); stop.Why != agent.Answered {
		t.Errorf("%+v", stop)
	}
}
