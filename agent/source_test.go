// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// X3: the tools of a source are asked for before each request; an error ends the
// run before the model is asked, with a history that can be resumed.
func TestToolSource(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "a")), agenttest.Completed(call("c2", "late", "b")), agenttest.Completed(item.Assistant("done")))
	late := textTool("late", func(_ context.Context, s string) (string, error) { return "late " + s, nil })
	asked := 0
	gone := errors.New("the server is gone")
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.ToolSource = func(context.Context) ([]tool.Tool, error) {
		switch asked++; asked {
		case 1, 2: // when the run begins, and before the first request
			return nil, nil
		case 4:
			return nil, gone
		}
		return []tool.Tool{late}, nil
	}
	res, err := r.agent.Run(t.Context(), r.session, item.User("go"))
	if !errors.Is(err, gone) || res.Why != agent.StopVetoed {
		t.Fatal(res, err)
	}
	if got := outputs(history(r.session)); got["c1"] != "a" || got["c2"] != "late b" {
		t.Error(got)
	}
	r.reopen()
	if res := r.run(); res.Text != "done" {
		t.Error(res)
	}
	if c := res.Cache; len(c) != 1 || c[0].Broken == nil || c[0].Broken.Why != plan.ByTools || c[0].Stable != 0 {
		t.Errorf("%+v", c)
	}
	var tools []string
	for _, req := range r.server.Requests() {
		var names []string
		for _, d := range req.Parse(t).Tools {
			names = append(names, d.(*item.FunctionTool).Name)
		}
		tools = append(tools, strings.Join(names, " "))
	}
	if got := strings.Join(tools, ", "); got != "echo, echo late, echo late" {
		t.Error(got)
	}
	if set, err := r.agent.ToolSet(t.Context()); err != nil || set.Len() != 2 {
		t.Error(set, err)
	}
}

// I10: what a source has is checked like any other tool.
func TestToolSourceClash(t *testing.T) {
	r := newRig(t)
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.ToolSource = func(context.Context) ([]tool.Tool, error) { return []tool.Tool{echo()}, nil }
	if _, err := r.agent.Run(t.Context(), r.session, item.User("go")); err == nil || !strings.Contains(err.Error(), "echo is declared twice") || len(r.server.Requests()) > 0 {
		t.Error(err)
	}
}

// A5: what a tool's declaration says is one rule beside the others.
func TestDeclaredApproval(t *testing.T) {
	for _, c := range []struct {
		declared string
		policy   agent.Policy
		runs     bool
	}{
		{"allow", agent.Policy{}, true},
		{"allow", agent.Policy{Ask: []string{"echo"}}, false},
		{"ask", agent.Policy{Allow: []string{"*"}}, false},
		{"deny", agent.Policy{Allow: []string{"*"}}, false},
		{"", agent.Policy{}, false},
	} {
		r := newRig(t, agenttest.Completed(call("c1", "echo", "a")), agenttest.Completed(item.Assistant("done")))
		r.agent.Tools = []tool.Tool{echo(tool.Approval(c.declared))}
		r.agent.Policy = c.policy
		if res := r.run(item.User("go")); (res.Calls == 1) != c.runs {
			t.Errorf("%+v: %+v", c, res.Totals)
		}
	}
}

// A5: a nested agent's tool is denied to it by what the run around declares of
// the tool of that name.
func TestDeclaredDenialReachesIn(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Call("c1", "helper", `{"task":"x"}`)), agenttest.Completed(call("n1", "echo", "a")),
		agenttest.Completed(item.Assistant("inner done")), agenttest.Completed(item.Assistant("done")))
	inner := &agent.Agent{Model: r.agent.Model, Tools: []tool.Tool{echo(tool.Approval("allow"))}}
	inner.Request.Model = "m"
	helper, err := agent.AsTool("helper", "Helps.", inner)
	if err != nil {
		t.Fatal(err)
	}
	r.agent.Policy = agent.Policy{}
	r.agent.Tools = []tool.Tool{helper, echo(tool.Approval("deny"))}
	r.run(item.User("go"))
	if body := string(r.server.Requests()[2].Body); !strings.Contains(body, "a rule denies echo") {
		t.Error(body)
	}
}

// A5: an approver can ask what rules alone would say of the call before it.
func TestAllowed(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "a")), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.Policy = agent.Policy{Ask: []string{"*"}}
	r.agent.Policy.Approver = func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
		allow, other := q.Rules[len(q.Rules)-1], session.Rule{Verdict: session.Allow, Tool: "other"}
		deny := session.Rule{Verdict: session.Deny, Tool: "e*"}
		if q.Allows() || q.Allows(other) || q.Allows(allow, deny) || q.Allows(session.Rule{Verdict: session.Allow, Tool: "echo"}) || !q.Allows(other, allow) {
			t.Error("the rules are read wrongly")
		}
		return agent.Decision{Allow: true}, nil
	}
	r.run(item.User("go"))
	if none := new(agent.ApprovalRequest); none.Allows(session.Rule{Verdict: session.Allow, Tool: "*"}) != true {
		t.Error("a rule about all calls does not cover one without a name")
	}
}
