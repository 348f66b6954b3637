// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Invoke runs a tool call that a person makes, such as a command typed into a chat. The tool
// need not belong to the agent. The Policy and the session's remembered rules apply as to a
// model's calls. If they ask, the Approver is asked, and its answer adds no rule. The hooks
// for tools see the call. If it is refused, its outcome has the Failure [tool.NotRun], and an
// Error that says why.
//
// Invoke records nothing in the session, and sends nothing: the caller decides what the model
// learns of it. It may run beside a run of the session (rule K1 in docs/rules.md).
func (a *Agent) Invoke(ctx context.Context, s *session.Session, t tool.Tool, call tool.Call) (tool.Outcome, error) {
	set, err := tool.NewSet(t)
	if err != nil {
		return tool.Outcome{}, err
	}
	if a == nil || s == nil {
		return tool.Outcome{}, errors.New("agent: Invoke needs an Agent and a session")
	}
	if err := a.Policy.check(); err != nil {
		return tool.Outcome{}, err
	}
	var state plan.State
	for e := range s.Entries() {
		state.Apply(e)
	}
	p := a.Policy
	if ask := p.Approver; ask != nil {
		p.Approver = func(ctx context.Context, q ApprovalRequest) (Decision, error) {
			q.Rules = nil
			d, err := ask(ctx, q)
			d.Remember = nil
			return d, err
		}
	}
	seen := ToolCall{tool: t, Session: s.ID(), Call: call, Annotations: tool.AnnotationsOf(t), Started: time.Now()}
	var by *session.Rule
	seen.Verdict, by, _, _ = p.decide(ctx, s.ID(), t, call, seen.Annotations, p.judge(t, call, seen.Annotations, state.Rules()), set)
	if !seen.Verdict.Allowed {
		seen.Ended, seen.Failure, seen.Error = time.Now(), tool.NotRun, cmp.Or(seen.Verdict.Reason, nobodyAnswered)
		return refusedOutcome(&seen), after(ctx, "CallRefused", a.Hooks, callRefused, &seen)
	}
	seen.Call.Arguments = cmp.Or(seen.Verdict.Edited, call.Arguments)
	inner, n, err := before(ctx, "BeforeTool", a.Hooks, beforeTool, &seen)
	now := p.judge(t, seen.Call, seen.Annotations, state.Rules()) // a hook may have changed the arguments
	switch {
	case err != nil:
		seen.Error = "The call was refused by a check: " + hookText(err) + " Nothing was done."
	case now.Verdict == session.Deny:
		seen.Error = now.Denied(call.Name)
	}
	var out tool.Outcome
	if seen.Error == "" {
		if seen.Annotations.Folders != nil {
			may := permitted{tool: t, call: seen.Call, annotations: seen.Annotations, policy: &p, remembered: state.Rules(), verdict: seen.Verdict, by: by}
			inner = tool.WithPlace(inner, may.places())
		}
		out = set.Invoke(inner, seen.Call, a.outputPolicy())
		seen.Output, seen.Failure, seen.Error = out.Content, out.Failure, out.Error
	} else {
		seen.Failure, out = tool.NotRun, refusedOutcome(&seen)
	}
	seen.Ended = time.Now()
	if err := after(inner, "AfterTool", a.Hooks[:n], afterTool, &seen); err != nil {
		return tool.Outcome{}, err
	}
	out.Content = seen.Output
	return out, nil
}

// refusedOutcome is the outcome of a call that does not run.
func refusedOutcome(seen *ToolCall) (out tool.Outcome) {
	seen.Output = item.Text(output.Envelope(true, seen.Call.Name, seen.Error, ""))
	out.Failed, out.Failure, out.Error, out.Content = true, tool.NotRun, seen.Error, seen.Output
	return out
}
