// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// common is how many bytes of history two requests begin with, up to the end of
// the first.
func common(t *testing.T, a, b agenttest.Request) int {
	t.Helper()
	text := func(r agenttest.Request) string {
		return strings.TrimSuffix(r.Parse(t).Input.JSON(), "]")[1:]
	}
	first, second := text(a), text(b)
	n := 0
	for n < len(first) && n < len(second) && first[n] == second[n] {
		n++
	}
	return n
}

// I12: the report says what the requests say: which bytes two in a row begin
// with, and which item broke it, by index, entry and reason.
func TestCacheReport(t *testing.T) {
	refused := refusal("invalid_value", "input[3].output")
	unread := agenttest.Failure(400, "invalid_encrypted_content", "The encrypted content could not be verified.")
	for _, c := range []struct {
		name  string
		third agenttest.Reply
		index int
		why   string
	}{
		{"nothing", agenttest.Completed(call("c3", "echo", "x")), -1, ""},
		{"quarantine", refused, 3, session.ByQuarantine},
		{"reasoning", unread, 1, session.ByDroppedReasoning},
	} {
		t.Run(c.name, func(t *testing.T) {
			rs := item.Must(&item.Reasoning{ID: "rs_1", Summary: []item.Part{}, EncryptedContent: "gAAA"})
			r := newRig(t,
				agenttest.Completed(rs, call("c1", "echo", "x")),
				agenttest.Completed(call("c2", "echo", "y")),
				c.third, agenttest.Completed(item.Assistant("done")))
			r.agent.Tools = []tool.Tool{echo()}
			res := r.run(item.User("go"))
			reqs := r.server.Requests()
			if len(res.Cache) != len(reqs)-1 {
				t.Fatalf("%d reports for %d requests", len(res.Cache), len(reqs))
			}
			for i, got := range res.Cache {
				if want := common(t, reqs[i], reqs[i+1]); got.Stable > want || got.Broken == nil && got.Stable != got.Previous {
					t.Errorf("request %d: %+v, both begin with %d bytes", i+2, got, want)
				}
				if size := reqs[i+1].Parse(t).Input.Size() - 2; got.Input != size {
					t.Errorf("request %d: %d bytes, not %d", i+2, got.Input, size)
				}
			}
			last := res.Cache[2]
			if c.why == "" {
				if last.Broken != nil || last.Expected == 0 {
					t.Errorf("%+v", last)
				}
				return
			}
			b := last.Broken
			if b == nil || b.Index != c.index || b.Why != c.why || b.Seq == 0 || last.Expected == 0 {
				t.Fatalf("%+v, broken %+v", last, b)
			}
			at := 0
			sent := reqs[2].Parse(t).Input
			for i := range c.index {
				at += len(sent.At(i).JSON()) + 1
			}
			if last.Stable != at {
				t.Errorf("%d bytes are stable, want %d", last.Stable, at)
			}
		})
	}
}

// The first request of a session is compared with nothing, of a later run with
// the last one of the run before.
func TestCacheReportOverRuns(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("one")), agenttest.Completed(item.Assistant("two")))
	if res := r.run(item.User("go")); len(res.Cache) != 0 {
		t.Errorf("first: %+v", res.Cache)
	}
	r.reopen()
	var c *agent.Cache
	for ev, err := range r.agent.Stream(t.Context(), r.session, item.User("on")) {
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := ev.(agent.Progress); ok && p.Kind == agent.ProgressCache {
			c = p.Cache
		}
	}
	if c == nil || c.Stable != c.Previous || c.Previous == 0 || c.Expected == 0 {
		t.Errorf("then: %+v", c)
	}
}

// What the endpoint could have cached ends where the request differs from the one before,
// also if the agent, and not the history, was changed between two runs. I12
func TestCacheBetweenRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*agent.Agent)
		why    string
	}{
		{"nothing", func(*agent.Agent) {}, ""},
		{"instructions", func(a *agent.Agent) { a.Request.Instructions = "Be long." }, plan.ByInstructions},
		{"tools", func(a *agent.Agent) { a.Tools = nil }, plan.ByTools},
		{"model", func(a *agent.Agent) { a.Request.Model = "other" }, plan.ByModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, agenttest.Completed(item.Assistant("one")), agenttest.Completed(item.Assistant("two")))
			r.agent.Tools, r.agent.Request.Instructions = []tool.Tool{echo()}, "Be brief."
			r.run(item.User("go"))
			c.change(r.agent)
			r.reopen()
			res := r.run(item.User("on"))
			if len(res.Cache) != 1 {
				t.Fatal(res.Cache)
			}
			got := res.Cache[0]
			if c.why == "" {
				if got.Broken != nil || got.Expected == 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Broken == nil || got.Broken.Why != c.why || got.Broken.Index != -1 || got.Stable != 0 || got.Expected != 0 {
				t.Errorf("%+v, broken %+v", got, got.Broken)
			}
		})
	}
}
