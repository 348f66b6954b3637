// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// This file holds the policy: the rules, and the approver who is asked. A verdict comes from
// one of them during the run (approval_run.go), or later from anyone who has the log
// (decide.go). Package plan applies the rules.

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

// check returns an error for patterns and rules that are not valid.
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
	// Problem says why the tool will not run even if the call is allowed: its arguments do not fit. It is "" if
	// they do. An approver should show it, or may allow the call with other arguments.
	Problem string

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

// RuleSuggester is implemented by a tool that suggests rules for an answer about one
// of its calls. Nil means only the rule about all its calls.
type RuleSuggester interface {
	tool.Tool
	Suggest(call tool.Call) []session.Rule
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
