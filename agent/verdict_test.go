// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// J12: the log says of each call who or which rule allowed or refused it.
func TestWhoDecided(t *testing.T) {
	answer := agenttest.Completed(item.Assistant("done"))
	remember := session.Rule{Verdict: session.Allow, Tool: "echo"}
	person := func(v agent.Decision) agent.Approver {
		return func(context.Context, agent.ApprovalRequest) (agent.Decision, error) { return v, nil }
	}
	for name, c := range map[string]struct {
		tool   tool.Tool
		policy agent.Policy
		want   session.Approval
	}{
		"a pattern": {echo(), agent.Policy{Allow: []string{"e*"}}, session.Approval{Allowed: true, Rule: "allow e*", From: "the policy"}},
		"a rule": {echo(), agent.Policy{Rules: []session.Rule{{Verdict: session.Allow, Tool: "echo", From: "--allow"}}},
			session.Approval{Allowed: true, Rule: "allow echo", From: "--allow"}},
		"deny wins": {echo(), agent.Policy{Allow: []string{"*"}, Rules: []session.Rule{{Verdict: session.Deny, Tool: "echo", From: "agent.md:3"}}},
			session.Approval{Rule: "deny echo", From: "agent.md:3"}},
		"the declaration": {echo(tool.Approval("allow")), agent.Policy{}, session.Approval{Allowed: true, Rule: "allow echo", From: "the tool's declaration"}},
		"it only reads":   {echo(tool.ReadOnly()), agent.Policy{}, session.Approval{Allowed: true, Rule: "allow what only reads", From: "default"}},
		"nobody there":    {echo(), agent.Policy{}, session.Approval{Rule: "ask about all that does more than read", From: "default"}},
		"a person": {echo(), agent.Policy{Approver: person(agent.Decision{Allow: true, By: "Ada", From: "terminal"})},
			session.Approval{Allowed: true, By: "Ada", From: "terminal"}},
		"a person who remembers": {echo(), agent.Policy{Approver: person(agent.Decision{Allow: true, By: "Ada", From: "terminal", Remember: &remember})},
			session.Approval{Allowed: true, By: "Ada", From: "terminal", Remember: &remember}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, agenttest.Completed(call("c", "echo", "x")), answer)
			r.agent.Tools, r.agent.Policy = []tool.Tool{c.tool}, c.policy
			events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("go")))
			if err != nil {
				t.Fatal(err)
			}
			got := approvals(r.session)
			if len(got) != 1 {
				t.Fatalf("%+v", got)
			}
			a := got[0]
			if a.Allowed != c.want.Allowed || a.By != c.want.By || a.From != c.want.From || a.Rule != c.want.Rule {
				t.Errorf("got %+v\nwant %+v", a, c.want)
			}
			var known agent.KnownCalls
			started := 0
			for _, ev := range events {
				e, ok := ev.(agent.Recorded)
				if !ok {
					continue
				}
				call := known.Add(e.Entry)
				if _, ok := e.Body.(session.CallStarted); ok {
					started++
					if v := call.Verdict; v == nil || v.By != a.By || v.From != a.From || v.Rule != a.Rule {
						t.Errorf("the events say %+v", call)
					}
				}
			}
			if e := told[session.Approval](events); cmp.Diff([]session.Approval{a}, e) != "" || (started == 1) != a.Allowed {
				t.Errorf("the events say %+v, and that %d calls started", e, started)
			}
		})
	}
}

func approvals(s *session.Session) (list []session.Approval) {
	for e := range s.Entries() {
		if a, ok := e.Body.(session.Approval); ok {
			list = append(list, a)
		}
	}
	return list
}

// J12: a rule that an answer left behind is named by the entry of that answer.
func TestWhoDecidedBefore(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "x")), agenttest.Completed(call("c2", "echo", "y")), agenttest.Completed(item.Assistant("done")))
	rule := session.Rule{Verdict: session.Allow, Tool: "echo"}
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.Policy = agent.Policy{Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
		return agent.Decision{Allow: true, By: "Ada", From: "terminal", Remember: &rule}, nil
	}}
	r.run(item.User("go"))
	got := approvals(r.session)
	if len(got) != 2 || got[1].Rule != "allow echo" || !strings.HasPrefix(got[1].From, "the answer of entry ") || got[1].By != "" {
		t.Errorf("%+v", got)
	}
}

// J12: what a tool judges itself is told by the rule that it went by.
func TestWhoDecidedByJudge(t *testing.T) {
	rules := []session.Rule{
		{Verdict: session.Allow, Tool: "judging", Member: "argv", Prefix: []string{"no"}, From: "a"},
		{Verdict: session.Allow, Tool: "judging", Member: "argv", Prefix: []string{"yes"}, From: "b"},
	}
	j := &wordJudge{Tool: textTool("judging", func(context.Context, string) (string, error) { return "", nil })}
	r := newRig(t, agenttest.Completed(call("c1", "judging", "yes")), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools, r.agent.Policy = []tool.Tool{j}, agent.Policy{Rules: rules}
	r.run(item.User("go"))
	if got := approvals(r.session); len(got) != 1 || got[0].Rule != "allow judging where argv is like yes" || got[0].From != "b" {
		t.Errorf("%+v", got)
	}
}

// wordJudge allows a call whose text is a rule's first word.
type wordJudge struct{ tool.Tool }

func (*wordJudge) Approval(call tool.Call, rules []session.Rule) (verdict session.Verdict, reason string) {
	for _, r := range rules {
		if strings.Contains(call.Arguments, r.Prefix[0]) {
			return r.Verdict, "it is allowed"
		}
	}
	return "", ""
}
