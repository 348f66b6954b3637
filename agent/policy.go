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

// Policy says which calls may run. Patterns are tool names, or globs over them
// as path.Match reads them, such as "*". Patterns, Rules and what was remembered
// in the session are one set, together with what the tool's declaration says (see
// tool.Annotations.Approval): deny wins over ask, ask over allow, whichever is more
// exact. Without one that fits, tools that only read run and all others
// ask. The zero Policy so lets reading tools run and refuses the rest. What it
// denies is denied to nested runs as well.
type Policy struct {
	Allow, Ask, Deny []string
	// Rules are rules about calls, by their arguments too.
	Rules []session.Rule
	// Approver decides the calls that ask. Without one they are refused, unless
	// Pause is set.
	Approver Approver
	// Pause lets the calls that ask wait if there is no Approver: the others
	// run, and then the run stops with [ApprovalWanted]. See [Decide]. In a nested
	// run whose session is not kept (see [session.Session.KeepsNested]) they are
	// refused, for nobody could answer them later.
	Pause bool
	// Hint is added to the reason of a refusal for want of an approver: what
	// the person who starts the run can do about calls of the tool. Nil adds nothing.
	Hint func(tool string) string
}

// ApprovalRequest is a call that somebody is asked about.
type ApprovalRequest struct {
	Call        tool.Call
	Annotations tool.Annotations
	// Reason says why it is asked about.
	Reason string
	// Rules are what an answer could leave behind, the narrowest first: those of the
	// tool if it is a [RuleSuggester], else those of [plan.Suggest]. The last one is about all
	// calls of the tool.
	Rules []session.Rule
	// Command is what would run if the call were allowed, nil if its tool is not a
	// [Commander]. An approver should show it: nobody can judge a call by half of its
	// command.
	Command []string

	tool tool.Tool
}

// Allows reports whether the rules alone would let the call run. It is for an
// approver that remembers what it was told, also where a rule of the file asks
// every time.
func (q *ApprovalRequest) Allows(rules ...session.Rule) bool {
	if len(rules) == 0 {
		return false
	}
	p := plan.Policy{Rules: rules}
	return p.Judge(asked(q.tool, q.Call, tool.Annotations{}), nil).Verdict == session.Allow
}

// Approver is asked about one call at a time, those of nested runs included. An
// error refuses the call, and the model reads it; an error of ctx ends the run
// with it, and with [ErrNobody] it is as if there were no Approver.
type Approver func(ctx context.Context, q ApprovalRequest) (Verdict, error)

// ErrNobody is what an [Approver] returns, by itself or wrapped, when there is
// nobody to ask.
var ErrNobody = errors.New("there is nobody to ask")

// judge says what the rules say of a call.
func (p *Policy) judge(t tool.Tool, call tool.Call, annotations tool.Annotations, remembered []session.Rule) plan.Judgement {
	rules := plan.Policy{Allow: p.Allow, Ask: p.Ask, Deny: p.Deny, Rules: p.Rules}
	return rules.Judge(asked(t, call, annotations), remembered)
}

// asked is a call as rules see it.
func asked(t tool.Tool, call tool.Call, annotations tool.Annotations) plan.Question {
	q := plan.Question{Tool: call.Name, Arguments: call.Arguments, Custom: call.Custom, Declared: annotations.Approval, ReadOnly: annotations.ReadOnly}
	if judge, ok := t.(ApprovalAdvisor); ok {
		q.Opinion = func(rules []session.Rule) (verdict, reason string) { return judge.Approval(call, rules) }
	}
	return q
}

// RuleSuggester is implemented by a tool that knows which rules an answer about one
// of its calls could leave behind; nil for none but the one about all its calls.
type RuleSuggester interface {
	tool.Tool
	Suggest(call tool.Call) []session.Rule
}

// suggest asks the tool, if it knows.
func suggest(t tool.Tool, call tool.Call) []session.Rule {
	s, ok := t.(RuleSuggester)
	if !ok {
		return plan.Suggest(asked(t, call, tool.Annotations{}))
	}
	return append(slices.Clip(s.Suggest(call)), session.Rule{Verdict: session.Allow, Tool: call.Name})
}

// Commander is implemented by a tool whose calls run a command that their
// arguments do not show whole, such as one that puts its own words first.
type Commander interface {
	tool.Tool
	// Command returns the program and its arguments as the call would run them, nil
	// if the call cannot be read.
	Command(call tool.Call) []string
}

func commandOf(t tool.Tool, call tool.Call) []string {
	if c, ok := t.(Commander); ok {
		return c.Command(call)
	}
	return nil
}

// Verdict is an answer about a call.
type Verdict struct {
	Allowed bool
	// Reason tells the model why not.
	Reason string
	// By names who answers, and From says how, such as "terminal". Both are
	// recorded.
	By, From string
	// Arguments is what the tool gets in place of what the model sent, "" for
	// that. The model is told.
	Arguments string
	// Remember is a rule for later calls of the session, or nil. See [plan.Suggest].
	Remember *session.Rule
	// Later lets the call wait, as Policy.Pause does.
	Later bool

	rule string // that decided, if no person was asked
}

// ApprovalAdvisor is implemented by a tool that knows what a rule about its arguments
// covers, such as one that runs commands: a rule for the prefix `ls` does not
// cover a call that runs `env rm`. Approval gets the rules with a Prefix that
// name the tool, and returns what they and the tool itself say of a call:
// session.Deny, Ask or Allow, or "" for nothing. It counts as one more rule;
// where it is the one that counts, the reason is for the person who is asked and
// for the model.
type ApprovalAdvisor interface {
	tool.Tool
	Approval(call tool.Call, rules []session.Rule) (verdict, reason string)
}

// decide returns the verdict on a call, and whether it is a refusal for want of
// an approver.
func (p *Policy) decide(ctx context.Context, t tool.Tool, call tool.Call, annotations tool.Annotations, j plan.Judgement) (v Verdict, unasked bool) {
	switch j.Verdict {
	case session.Deny:
		return Verdict{Reason: j.Denied(call.Name), rule: j.Rule, From: j.From}, false
	case session.Allow:
		return Verdict{Allowed: true, rule: j.Rule, From: j.From}, false
	}
	err := ErrNobody
	if p.Approver != nil {
		v, err = p.Approver(ctx, ApprovalRequest{Call: call, Annotations: annotations, Reason: j.WhyAsk(call.Name), Rules: suggest(t, call), Command: commandOf(t, call), tool: t})
	}
	switch {
	case errors.Is(err, ErrNobody) && p.Pause:
		return Verdict{Later: true}, false
	case errors.Is(err, ErrNobody):
		return p.unasked("The call was refused: %s needs an approval and there is nobody to give it. Nothing was done.", call.Name, j), true
	case err == nil && v.Remember != nil:
		err = plan.CheckRules(*v.Remember)
	}
	if err != nil {
		return Verdict{Reason: fmt.Sprintf("The call was refused: no approval could be got: %v. Nothing was done.", err), rule: j.Rule, From: j.From}, false
	}
	if v.By == "" && v.From == "" {
		v.From = "the approver"
	}
	if !v.Allowed && !v.Later && v.Reason == "" {
		v.Reason = refusedByPerson
	}
	return v, false
}

// unasked is a refusal for want of an approver, with the hint.
func (p *Policy) unasked(reason, name string, j plan.Judgement) Verdict {
	reason = fmt.Sprintf(reason, name)
	if p.Hint != nil {
		reason += " " + p.Hint(name)
	}
	return Verdict{Reason: reason, rule: j.Rule, From: j.From}
}

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
