// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
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
				if p.Took <= 0 || p.Tool != "slow" || p.Error == "" {
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
		if p := progressOf(events, agent.ProgressDelayed); err != nil || len(p) != 1 || p[0].Error != "busy" || outputs(history(s))["c1"] != "x" {
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
