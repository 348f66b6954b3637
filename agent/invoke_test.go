// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// TestInvoke: a call that a person makes is decided by the same rules as a model's, the hooks see it,
// and the session does not change. A1
func TestInvoke(t *testing.T) {
	deny := session.Rule{Verdict: session.Deny, Tool: "write"}
	allow := session.Rule{Verdict: session.Allow, Tool: "write"}
	answers := func(d agent.Decision, err error) agent.Approver {
		return func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
			if q.Call.Name != "write" || q.Rules != nil || q.Session == "" {
				t.Errorf("asked %+v", q)
			}
			return d, err
		}
	}
	yes := agent.Decision{Allow: true, Decided: session.DeciderPerson, Remember: &allow}
	for name, c := range map[string]struct {
		policy agent.Policy
		object error
		ran    int
		says   string
	}{
		"nobody is there": {says: "there is nobody to give it"},
		"allowed":         {policy: agent.Policy{Rules: []session.Rule{allow}}, ran: 1},
		"denied":          {policy: agent.Policy{Rules: []session.Rule{allow, deny}, Approver: answers(yes, nil)}, says: "a rule denies write"},
		"yes":             {policy: agent.Policy{Approver: answers(yes, nil)}, ran: 1},
		"no":              {policy: agent.Policy{Approver: answers(agent.Decision{Reason: "not now"}, nil)}, says: "not now"},
		"no answer":       {policy: agent.Policy{Approver: answers(agent.Decision{}, errors.New("the line is dead"))}, says: "the line is dead"},
		"a hook objects":  {policy: agent.Policy{Rules: []session.Rule{allow}}, object: errors.New("plans only"), says: "plans only"},
	} {
		t.Run(name, func(t *testing.T) {
			r, l := newRig(t), new(ledger)
			var began, ended, refused int
			r.agent.Policy = c.policy
			r.agent.Hooks = []agent.Hooks{
				{
					BeforeTool:  func(ctx context.Context, _ *agent.ToolCall) (context.Context, error) { began++; return ctx, nil },
					AfterTool:   func(context.Context, *agent.ToolCall) error { ended++; return nil },
					CallRefused: func(context.Context, *agent.ToolCall) error { refused++; return nil },
				},
				{BeforeTool: func(ctx context.Context, _ *agent.ToolCall) (context.Context, error) { return ctx, c.object }},
			}
			before := len(r.session.Log())
			out, err := r.agent.Invoke(t.Context(), r.session, l.tool("write"), tool.Call{ID: "typed", Name: "write", Arguments: `{"text":"typed"}`})
			if err != nil || l.ran["typed"] != c.ran || (out.Failure == tool.NotRun) != (c.ran == 0) || !strings.Contains(out.Error, c.says) || c.says == "" && out.Failed {
				t.Errorf("ran %v: %+v, %v", l.ran, out, err)
			}
			if began != ended || began+refused != 1 {
				t.Errorf("hooks: %d began, %d ended, %d refused", began, ended, refused)
			}
			if len(r.session.Log()) != before {
				t.Error("the session has changed")
			}
		})
	}
	if _, err := new(agent.Agent).Invoke(t.Context(), nil, nil, tool.Call{}); err == nil {
		t.Error("no tool and no session are no error")
	}
}

// TestInvokeEdited: an answer may change the arguments, and a denial of the changed ones holds. A1
func TestInvokeEdited(t *testing.T) {
	r := newRig(t)
	var got []string
	echo := tool.Must("write", "x", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		got = append(got, in.Text)
		return in.Text, nil
	})
	said := `{"text":"two"}`
	r.agent.Policy = agent.Policy{Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
		return agent.Decision{Allow: true, Arguments: said}, nil
	}}
	call := tool.Call{ID: "typed", Name: "write", Arguments: `{"text":"one"}`}
	out, err := r.agent.Invoke(t.Context(), r.session, echo, call)
	if err != nil || out.Content.Display() != "two" {
		t.Errorf("%+v, %v", out, err)
	}
	r.agent.Policy.Rules = []session.Rule{{Verdict: session.Deny, Tool: "write", Arguments: said}}
	if out, err = r.agent.Invoke(t.Context(), r.session, echo, call); err != nil || out.Failure != tool.NotRun || len(got) != 1 {
		t.Errorf("%+v, %v, %q", out, err, got)
	}
}

// TestInvokeInPlace: rules about folders are held against the place that the tool has opened, as in a run. A1
func TestInvokeInPlace(t *testing.T) {
	for led, runs := range map[string]bool{"out/b": true, "secret/b": false, "elsewhere/b": false} {
		writes := tool.Must("writes", "Writes.", func(ctx context.Context, in struct {
			Path string `json:"path"`
		}) (string, error) {
			return "written", tool.CheckPlace(ctx, in.Path, func(folder string) bool { return strings.HasPrefix(led, folder+"/") })
		}, tool.InFolders(byText{}, tool.Origin{}))
		a := &agent.Agent{Policy: agent.Policy{Rules: []session.Rule{
			{Verdict: session.Allow, Tool: "writes", Member: "path", Under: "out"}, {Verdict: session.Deny, Tool: "writes", Member: "path", Under: "secret"},
		}}}
		out, err := a.Invoke(t.Context(), session.New(), writes, tool.Call{ID: "c", Name: "writes", Arguments: `{"path":"out/b"}`})
		if err != nil || out.Failed == runs {
			t.Errorf("out/b leads to %s: %+v, %v", led, out, err)
		}
	}
}
