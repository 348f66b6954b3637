// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// job is a tool that says a number of times that its result is not there yet.
func job(times int, opts ...tool.Option) tool.Tool {
	var asked atomic.Int64 // calls run at once
	return textTool("job", func(context.Context, string) (string, error) {
		if asked.Add(1) <= int64(times) {
			return "", &tool.NotYet{After: time.Hour, Reason: "the build"}
		}
		return "built", nil
	}, append([]tool.Option{tool.Polling()}, opts...)...)
}

// L4: a run waits for the result of a polling tool without asking the model, and without
// holding other calls; a tool that is not polling has failed.
func TestRunWaitsForResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var quick time.Duration
		a := &agent.Agent{Parallel: 2, Policy: agent.Policy{Allow: []string{"*"}}, Limits: agent.Limits{MaxRepeats: 2}}
		a.Model = agenttest.Script(t, agenttest.Completed(call("c1", "job", "x"), call("c2", "job", "y"), call("q", "quick", "z")), saying("done"))
		a.Tools = []tool.Tool{job(5), textTool("quick", func(context.Context, string) (string, error) {
			quick = time.Since(begun)
			return "", nil
		})}
		s := session.New()
		events, err := drain(a.Stream(t.Context(), s, item.User("go")))
		if err != nil || stopOf(t, events).Why != string(agent.StopEndTurn) {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 3*time.Hour || quick != 0 {
			t.Errorf("took %v; the other call ran after %v", took, quick)
		}
		for _, p := range progressOf(events, agent.ProgressDelayed) {
			if p.Wait != time.Hour || p.Reason != "the build" || p.Retry {
				t.Errorf("%+v", p)
			}
		}
		if starts := bodiesOf[session.CallStarted](s.Log()); len(starts) != 3 {
			t.Errorf("%d starts", len(starts))
		}
	})
	a := &agent.Agent{Policy: agent.Policy{Allow: []string{"*"}}, Model: agenttest.Script(t, agenttest.Completed(call("c", "t", "x")), saying("done"))}
	a.Tools = []tool.Tool{textTool("t", func(context.Context, string) (string, error) { return "", &tool.NotYet{} })}
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
		t.Fatal(err)
	}
	if out := bodiesOf[session.CallOutput](s.Log()); len(out) != 1 || !out[0].Failed || !strings.Contains(out[0].Item.JSON(), "ask again in 1s") {
		t.Errorf("%+v", out)
	}
}

// bodiesOf returns the bodies of one kind.
func bodiesOf[B session.Body](log []session.Entry) (list []B) {
	for _, e := range log {
		if b, ok := e.Body.(B); ok {
			list = append(list, b)
		}
	}
	return list
}

// L4: with Park the run ends instead and says when it goes on; later runs make the same call
// again, as often as is needed, also if a process ended while the tool ran.
func TestRunParksForResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hooked []bool
		a := &agent.Agent{Park: time.Minute, Policy: agent.Policy{Allow: []string{"*"}}}
		a.Model = agenttest.Script(t, agenttest.Completed(call("c", "job", "x"), call("q", "quick", "z")), saying("done"), saying("done"))
		a.Tools = []tool.Tool{textTool("quick", func(context.Context, string) (string, error) { return "", nil }), job(5)}
		a.Hooks = []agent.Hooks{{AfterTool: func(_ context.Context, c *agent.ToolCall) error {
			if c.Call.Name == "job" {
				hooked = append(hooked, c.Paused)
			}
			return nil
		}}}
		s := session.New()
		input := []item.Item{item.User("go")}
		for range 5 {
			res, err := a.Run(t.Context(), s, input...)
			if err != nil || res.Why != agent.StopNotYet || res.Detail != "waiting for the result of job (the build)" || !res.Due.Equal(time.Now().Add(time.Hour)) {
				t.Fatalf("%+v, %v", res, err)
			}
			if open, err := agent.PendingApprovals(t.Context(), s); len(open) > 0 || err != nil {
				t.Errorf("approvals: %+v, %v", open, err)
			}
			input = nil
			time.Sleep(time.Hour)
		}
		// A process that ends while the tool runs leaves a log without what follows the start.
		log := s.Log()
		last := len(log)
		for i, e := range log {
			if b, ok := e.Body.(session.CallStarted); ok && b.CallID == "c" {
				last = i + 1
			}
		}
		mem := new(session.Memory)
		cut, err := session.Open(t.Context(), mem, "cut")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range log[:last] {
			if _, err := cut.Append(t.Context(), e.Body); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range []*session.Session{s, cut} {
			if res, err := a.Run(t.Context(), s); err != nil || res.Why != agent.StopEndTurn || !res.Due.IsZero() {
				t.Fatalf("%+v, %v", res, err)
			}
			outs := bodiesOf[session.CallOutput](s.Log())
			if len(outs) != 2 || outs[0].Failed || outs[1].Failed || !slices.ContainsFunc(outs, func(o session.CallOutput) bool { return strings.Contains(o.Item.JSON(), "built") }) {
				t.Errorf("outputs: %+v", outs)
			}
		}
		if !slices.Equal(hooked, []bool{true, true, true, true, true, false, false}) {
			t.Errorf("paused: %v", hooked)
		}
	})
}

// L4: a subagent that waits for a result makes its caller wait for it.
func TestSubagentParksForResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &agent.Agent{Policy: agent.Policy{Allow: []string{"*"}}, Model: agenttest.Script(t, agenttest.Completed(call("i", "job", "x")), saying("it is built")), Tools: []tool.Tool{job(1)}}
		helper, err := agent.AsTool("helper", "helps", inner)
		if err != nil {
			t.Fatal(err)
		}
		a := &agent.Agent{Park: -1, Tools: []tool.Tool{helper}}
		a.Model = agenttest.Script(t, agenttest.Completed(item.Call("c", "helper", `{"task":"build"}`)), saying("done"))
		s := session.New()
		res, err := a.Run(t.Context(), s, item.User("go"))
		if err != nil || res.Why != agent.StopNotYet || !res.Due.Equal(time.Now().Add(time.Hour)) || !strings.Contains(res.Detail, "job (the build)") {
			t.Fatalf("%+v, %v", res, err)
		}
		if res, err = a.Run(t.Context(), s); err != nil || res.Why != agent.StopEndTurn {
			t.Fatalf("%+v, %v", res, err)
		}
		if outs := bodiesOf[session.CallOutput](s.Log()); len(outs) != 1 || outs[0].Failed || !strings.Contains(outs[0].Item.JSON(), "it is built") {
			t.Errorf("outputs: %+v", outs)
		}
	})
}

// L4: a request to stop ends the wait, and the model is told that the tool has run.
func TestStopEndsWaitForResult(t *testing.T) {
	a := &agent.Agent{Park: -1, Policy: agent.Policy{Allow: []string{"*"}}, Tools: []tool.Tool{job(9)}}
	a.Model = agenttest.Script(t, agenttest.Completed(call("c", "job", "x")))
	s := session.New()
	if res, err := a.Run(t.Context(), s, item.User("go")); err != nil || res.Why != agent.StopNotYet {
		t.Fatalf("%+v, %v", res, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if res, err := a.Run(ctx, s); res.Why != agent.StopCancelled {
		t.Fatalf("%+v, %v", res, err)
	}
	if outs := bodiesOf[session.CallOutput](s.Log()); len(outs) != 1 || !outs[0].Failed || !strings.Contains(outs[0].Item.JSON(), "What it did until then is done") {
		t.Errorf("outputs: %+v", outs)
	}
}
