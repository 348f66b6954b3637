// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// This file holds the policy: the rules, and the approver who is asked. A verdict comes from
// one of them during the run (approve.go), or later from anyone who has the log (decide.go).
// Package plan applies the rules.

// Policy decides which calls may run. Patterns are tool names, or globs in the syntax
// of path.Match, such as "*". Patterns, Rules, the rules that the session remembers
// and the tool's declaration (see tool.Annotations.Approval) form one set: deny takes
// precedence over ask, and ask over allow, regardless of which rule is more specific.
// If no rule matches, tools that only read run, and all others ask. The zero Policy
// thus runs reading tools and refuses the rest. Denials also apply to subagents.
type Policy struct {
	// Allow, Ask and Deny are patterns of the tools whose calls run, need an approval,
	// and are refused.
	Allow, Ask, Deny []string
	// Rules can also match the arguments of calls.
	Rules []session.Rule
	// Approver decides the calls that ask. If it is nil, they are refused, unless
	// Pause is set.
	Approver Approver
	// Pause lets the calls that ask wait if there is no Approver: the other calls
	// run, and then the run stops with [StopApprovalPending]. See [Decide]. In a subagent
	// whose session is not kept (see [session.Session.KeepsNested]) they are refused,
	// because nobody could answer them later.
	Pause bool
	// Shared lets others answer a call while the Approver is asked about it, by [Decide].
	// The question is recorded before, and an answer that arrives first ends the context
	// of the Approver with an [*AnsweredError] as its cause. It needs a store that is a
	// [session.Inbox].
	Shared bool
	// Hint returns a text that is added to the reason of a refusal without an
	// approver: how the user can allow calls of the tool. Nil adds nothing.
	Hint func(tool string) string
}

// ApprovalRequest is a call that needs an approval.
type ApprovalRequest struct {
	// Session is the id of the call's session, which may be a subagent's.
	Session string
	Call    tool.Call
	// Annotations are those of its tool. An approver should show whose tool it is, by
	// Annotations.Origin.
	Annotations tool.Annotations
	// Reason says why it is asked about.
	Reason string
	// Rules are the rules that an answer could add to the session, the narrowest
	// first: the tool's suggestions if it is a [RuleSuggester], otherwise those of
	// [plan.Suggest]. The last one matches all calls of the tool.
	Rules []session.Rule
	// Command is the command that the call would run; nil if its tool is not a
	// [Commander]. An approver should show all of it: the arguments may contain only
	// a part.
	Command []string
	// Sandbox is the profile of the sandbox in which the call would start programs, as its
	// tool says it; "" if the tool is not [Confined]. An approver should show it, because it
	// is part of what is approved.
	Sandbox string

	tool tool.Tool
}

// Allows reports whether the given rules alone, remembered by a session, would allow the call. An approver that
// remembers answers can use it, even if a rule of the file always asks. It should remember rules
// from Rules, which are bound to the tool; others allow nothing, unless they are about a pattern of names.
func (q *ApprovalRequest) Allows(rules ...session.Rule) bool {
	if len(rules) == 0 {
		return false
	}
	var p plan.Policy
	return p.Judge(asked(q.tool, q.Call, tool.Annotations{Origin: q.Annotations.Origin, Folders: q.Annotations.Folders}), rules).Verdict == session.Allow
}

// Approver decides about one call at a time, including calls of subagents. It leaves
// Session, Number and CallID of its answer empty. An error refuses the call, and the
// model reads it. If ctx is done, the run ends with its error. With [ErrNobody] the
// run behaves as without an Approver.
type Approver func(ctx context.Context, q ApprovalRequest) (Decision, error)

// ErrNobody is returned by an [Approver], possibly wrapped, if nobody is available to
// decide.
var ErrNobody = errors.New("there is nobody to ask")

// AnsweredError is the cause for which the context of an [Approver] ends if somebody else
// has answered: see [Policy].Shared.
type AnsweredError struct {
	// Answer is what they said, as it will be recorded.
	Answer session.Approval
}

// Error says who answered.
func (e *AnsweredError) Error() string {
	return "the call was answered" + session.DecidedBy(e.Answer.By, e.Answer.From, "")
}

// judge applies the rules to a call.
func (p *Policy) judge(t tool.Tool, call tool.Call, annotations tool.Annotations, remembered []session.Rule) plan.Ruling {
	rules := plan.Policy{Allow: p.Allow, Ask: p.Ask, Deny: p.Deny, Rules: p.Rules}
	return rules.Judge(asked(t, call, annotations), remembered)
}

// asked describes a call to the rules.
func asked(t tool.Tool, call tool.Call, annotations tool.Annotations) plan.Question {
	q := plan.Question{Tool: call.Name, Arguments: call.Arguments, Custom: call.Custom, Declared: session.Verdict(annotations.Approval), ReadOnly: annotations.ReadOnly}
	q.Definition = func() string { return definitionOf(t, call.Name, annotations.Origin) }
	switch {
	case call.Imported:
		q.Warning = "it came with an imported conversation, so it may not be a model's"
	case call.Warnings != "":
		q.Warning = "the endpoint warns of this call: " + call.Warnings
	}
	if judge, ok := t.(ApprovalAdvisor); ok {
		q.Opinion = func(rules []session.Rule) (verdict session.Verdict, reason string) {
			return judge.Approval(call, rules)
		}
	}
	if annotations.Folders != nil {
		q.Within = annotations.Folders.Within
	}
	return q
}

// RuleSuggester is implemented by a tool that suggests rules for an answer about one
// of its calls. Nil means only the rule about all its calls.
type RuleSuggester interface {
	tool.Tool
	Suggest(call tool.Call) []session.Rule
}

// suggest returns the tool's suggestions, or the defaults.
func suggest(t tool.Tool, call tool.Call, annotations tool.Annotations) []session.Rule {
	s, ok := t.(RuleSuggester)
	if !ok {
		return plan.Suggest(asked(t, call, annotations))
	}
	definition := definitionOf(t, call.Name, annotations.Origin)
	list := append(slices.Clone(s.Suggest(call)), session.Rule{Verdict: session.Allow, Tool: call.Name})
	for i := range list {
		list[i] = *bind(&list[i], call.Name, definition)
	}
	return list
}

// Confined is implemented by a tool whose calls start programs in a sandbox.
type Confined interface {
	tool.Tool
	// Sandbox returns the name of the profile in which the call would start programs, with
	// the hosts that they may reach, or "" if the call cannot be parsed.
	Sandbox(call tool.Call) string
}

// Commander is implemented by a tool that runs a command that the arguments of its
// calls do not fully show, such as a tool that adds a fixed prefix.
type Commander interface {
	tool.Tool
	// Command returns the program and its arguments as the call would run them, or
	// nil if the call cannot be parsed.
	Command(call tool.Call) []string
}

func sandboxOf(t tool.Tool, call tool.Call) string {
	if c, ok := t.(Confined); ok {
		return c.Sandbox(call)
	}
	return ""
}

func commandOf(t tool.Tool, call tool.Call) []string {
	if c, ok := t.(Commander); ok {
		return c.Command(call)
	}
	return nil
}

// ApprovalAdvisor is implemented by a tool that interprets rules about its arguments,
// such as a tool that runs commands: a rule for the prefix `ls` does not cover a call
// that runs `env rm`. Approval gets the rules with a Prefix that name the tool, and
// returns the verdict of these rules and of the tool itself: session.Deny, Ask or
// Allow, or "" for no opinion. The verdict counts like one more rule. If it decides,
// the reason is shown to the person who is asked, and to the model.
type ApprovalAdvisor interface {
	tool.Tool
	Approval(call tool.Call, rules []session.Rule) (verdict session.Verdict, reason string)
}

// decide returns the verdict to record about a call of the session in. Later reports whether the call
// waits, so that nothing is recorded yet; unasked reports whether it is refused
// because no approver is available. The rule by is the one by which the approver allowed the call,
// or nil.
func (p *Policy) decide(ctx context.Context, in string, t tool.Tool, call tool.Call, annotations tool.Annotations, j plan.Ruling) (a session.Approval, by *session.Rule, later, unasked bool) {
	a = session.Approval{Rule: j.Rule, From: j.From, Decided: session.DeciderRule}
	switch j.Verdict {
	case session.Deny:
		a.Reason = j.Denied(call.Name)
		return a, nil, false, false
	case session.Allow:
		a.Allowed = true
		return a, nil, false, false
	}
	d, err := Decision{}, ErrNobody
	if p.Approver != nil {
		d, err = p.Approver(ctx, ApprovalRequest{Session: in, Call: call, Annotations: annotations, Reason: j.WhyAsk(call.Name), Rules: suggest(t, call, annotations), Command: commandOf(t, call), Sandbox: sandboxOf(t, call), tool: t})
		a.Definition = definitionOf(t, call.Name, annotations.Origin)
		d.Remember = bind(d.Remember, call.Name, a.Definition)
	}
	switch { // the lack of an approver comes before the content of an answer
	case errors.Is(err, ErrNobody) && p.Pause:
		return a, nil, true, false
	case errors.Is(err, ErrNobody):
		return p.unasked("The call was refused: %s needs an approval and there is nobody to give it. Nothing was done.", call.Name, j), nil, false, true
	case err == nil && d.Remember != nil:
		err = plan.CheckRules(*d.Remember)
	}
	if err != nil {
		a.Decided = session.DeciderNobody
		a.Reason = fmt.Sprintf("The call was refused: no approval could be got: %v. Nothing was done.", err)
		return a, nil, false, false
	}
	if d.By == "" && d.From == "" {
		d.From = "the approver"
	}
	definition := a.Definition
	if a = d.approval(); a.Allowed {
		a.Definition, a.Asked = definition, j.WhyAsk(call.Name)
	}
	return a, d.Rule, d.Later && !d.Allow, false
}

// unasked returns a refusal without an approver, with the hint if it would help.
func (p *Policy) unasked(reason, name string, j plan.Ruling) session.Approval {
	reason = fmt.Sprintf(reason, name)
	switch {
	case j.From == plan.ByTool && j.Reason != "":
		reason += " A rule that allows the tool does not cover this call: " + j.Reason + "."
	case p.Hint != nil:
		reason += " " + p.Hint(name)
	}
	return session.Approval{Reason: reason, Rule: j.Rule, From: j.From, Decided: session.DeciderNobody}
}

const nobodyAnswered = "Nobody answered whether this call may run, neither yes nor no. Nothing was done."

const refusedByPerson = "The call was refused by the person in charge. Nothing was done."

func (p *Policy) check() error {
	for _, patterns := range [][]string{p.Allow, p.Ask, p.Deny} {
		if err := plan.CheckPatterns(patterns...); err != nil {
			return fmt.Errorf("agent: policy: %w", err)
		}
	}
	if err := plan.CheckRules(p.Rules...); err != nil {
		return fmt.Errorf("agent: policy: %w", err)
	}
	return nil
}
