// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// This file gets a verdict on each call: from the rules of a policy, from an approver
// during the run, or later from anyone who has the log. Package plan applies the
// rules.

// Policy decides which calls may run. Patterns are tool names, or globs in the syntax
// of path.Match, such as "*". Patterns, Rules, the rules that the session remembers
// and the tool's declaration (see tool.Annotations.Approval) form one set: deny takes
// precedence over ask, and ask over allow, regardless of which rule is more specific.
// If no rule matches, tools that only read run, and all others ask. The zero Policy
// thus runs reading tools and refuses the rest. Denials also apply to subagents.
type Policy struct {
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
// because no approver is available.
func (p *Policy) decide(ctx context.Context, in string, t tool.Tool, call tool.Call, annotations tool.Annotations, j plan.Ruling) (a session.Approval, later, unasked bool) {
	a = session.Approval{Rule: j.Rule, From: j.From, Decided: session.DeciderRule}
	switch j.Verdict {
	case session.Deny:
		a.Reason = j.Denied(call.Name)
		return a, false, false
	case session.Allow:
		a.Allowed = true
		return a, false, false
	}
	d, err := Decision{}, ErrNobody
	if p.Approver != nil {
		d, err = p.Approver(ctx, ApprovalRequest{Session: in, Call: call, Annotations: annotations, Reason: j.WhyAsk(call.Name), Rules: suggest(t, call, annotations), Command: commandOf(t, call), Sandbox: sandboxOf(t, call), tool: t})
		a.Definition = definitionOf(t, call.Name, annotations.Origin)
		d.Remember = bind(d.Remember, call.Name, a.Definition)
	}
	switch { // the lack of an approver comes before the content of an answer
	case errors.Is(err, ErrNobody) && p.Pause:
		return a, true, false
	case errors.Is(err, ErrNobody):
		return p.unasked("The call was refused: %s needs an approval and there is nobody to give it. Nothing was done.", call.Name, j), false, true
	case err == nil && d.Remember != nil:
		err = plan.CheckRules(*d.Remember)
	}
	if err != nil {
		a.Decided = session.DeciderNobody
		a.Reason = fmt.Sprintf("The call was refused: no approval could be got: %v. Nothing was done.", err)
		return a, false, false
	}
	if d.By == "" && d.From == "" {
		d.From = "the approver"
	}
	definition := a.Definition
	if a = d.approval(); a.Allowed {
		a.Definition, a.Asked = definition, j.WhyAsk(call.Name)
	}
	return a, d.Later && !d.Allow, false
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

// judge applies the rules of the agent's policy and of the session to a call, and the
// denials of all parent runs and of the agents that spoke before.
func (r *Run) judge(call tool.Call, annotations tool.Annotations) plan.Ruling {
	t, _ := r.tools.Lookup(call.Name)
	for o := r.around; o != nil; o = o.run.around {
		for i := range o.rulers {
			if j, denied := o.rulers[i].denies(t, call, annotations); denied {
				return j
			}
		}
	}
	for i := range r.rulers {
		if j, denied := r.rulers[i].denies(t, call, annotations); denied {
			return j
		}
	}
	return r.agent.Policy.judge(t, call, annotations, r.state.Rules())
}

// approve gets a verdict on each call, one after another, and records it. A call of
// an unknown tool is allowed, because its output then names the known tools.
func (r *Run) approve(ctx context.Context, calls []plan.CallRef) error {
	for _, ref := range calls {
		c, ok := r.state.Call(ref)
		if !ok {
			continue
		}
		verdict := session.Approval{Allowed: true, Rule: "allow calls of unknown tools, which run nothing", From: plan.ByDefault, Decided: session.DeciderRule}
		judged, later, unasked := plan.Ruling{}, false, false
		announced := false
		call, err := r.callOf(&c)
		annotations, known := r.annotations(call.Name)
		if plan.Hosted(c.Item) {
			annotations.Origin = r.agent.originOf(c.Item)
		}
		switch {
		case err != nil:
			verdict = session.Approval{Reason: "The call cannot be read: " + err.Error(), Rule: "deny calls that cannot be read", From: plan.ByDefault, Decided: session.DeciderRule}
		case c.Paused != "" && !r.goesOn(&c, annotations): // even if the tool is unknown, because the call was started once
			verdict = deniedElsewhere
		case r.tooDeep(&c, annotations) != nil: // nobody is asked about it
			verdict = *r.tooDeep(&c, annotations)
		case known || plan.Hosted(c.Item):
			judged = r.judge(call, annotations)
			if announced = r.shares(&judged); announced {
				if err := r.question(&c, call, annotations, judged.WhyAsk(call.Name)); err != nil {
					return err
				}
			}
			if judged.Verdict == session.Ask { // a person is asked about what is in the log
				if err := r.barrier(); err != nil {
					return err
				}
			}
			ask := func(ctx context.Context) (session.Approval, bool, bool) {
				return r.decide(ctx, call, annotations, judged)
			}
			if !announced {
				verdict, later, unasked = ask(ctx)
				break
			}
			answered := false
			if verdict, later, unasked, answered, err = r.askAlong(ctx, ref, ask); err != nil {
				return err
			}
			if answered {
				continue
			}
			verdict.Number = c.Number // somebody who answers later is told of this one
		}
		if ctx.Err() != nil {
			return nil // the run is over, regardless of the answer
		}
		if later {
			if !announced {
				err = r.question(&c, call, annotations, judged.WhyAsk(call.Name))
			}
			if err == nil {
				r.wait(c, call, annotations)
			}
		} else {
			err = r.verdict(ctx, c, verdict, unasked)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decide asks the approver if necessary, one call at a time across all subagents.
func (r *Run) decide(ctx context.Context, call tool.Call, annotations tool.Annotations, judged plan.Ruling) (a session.Approval, later, unasked bool) {
	root := r.root()
	if judged.Verdict == session.Ask {
		root.asking.Lock()
		defer root.asking.Unlock()
		if ctx.Err() != nil { // somebody else has answered, or the run is over
			return session.Approval{Decided: session.DeciderNobody}, false, false
		}
	}
	t, _ := r.tools.Lookup(call.Name)
	a, later, unasked = r.agent.Policy.decide(ctx, r.session.ID(), t, call, annotations, judged)
	if later && root != r && !root.session.KeepsNested() {
		return r.agent.Policy.unasked(cannotWait, call.Name, judged), false, true
	}
	return a, later, unasked
}

// cannotWait is the text that the model of a subagent reads about a call that cannot
// wait, because the subagent's session is not kept.
const cannotWait = "The call was refused: %s needs an approval, and calls of subagents cannot wait for one here. Nothing was done."

// root returns the outermost run.
func (r *Run) root() *Run {
	for r.around != nil {
		r = r.around.run
	}
	return r
}

// verdict records the verdict on a call.
func (r *Run) verdict(ctx context.Context, c session.OpenCall, a session.Approval, unasked bool) error {
	a.CallID = c.CallID
	a.Reason, _ = output.Sanitize(a.Reason)
	if unasked {
		p := Progress{Kind: ProgressUnapproved, CallID: c.CallID, Tool: plan.ToolName(c.Item)}
		if a.From == plan.ByTool {
			p.Reason = a.Reason
		}
		r.progress(p)
	}
	if err := r.record(a); err != nil {
		return err
	}
	if a.Allowed {
		return nil
	}
	return r.refused(ctx, c, a)
}

// refused counts a refused call, and shows it to the hooks.
func (r *Run) refused(ctx context.Context, c session.OpenCall, a session.Approval) error {
	r.totals.RefusedCalls++
	if objection := r.showRefusal(ctx, c, a); objection != nil {
		return r.stopFor(objection)
	}
	return nil
}

// showRefusal calls the hooks for a refused call.
func (r *Run) showRefusal(ctx context.Context, c session.OpenCall, a session.Approval) error {
	if len(r.agent.Hooks) == 0 {
		return nil
	}
	now := time.Now()
	seen := ToolCall{Session: r.session.ID(), Depth: r.depth, Turn: r.state.Turn(), Started: now, Ended: now, Verdict: a, Failure: tool.NotRun, Error: a.Reason}
	seen.Call, _ = CallOf(c.Item)
	seen.Call.ID, seen.Call.Name = c.CallID, plan.ToolName(c.Item) // also of a call that cannot be read
	seen.Annotations, _ = r.annotations(seen.Call.Name)
	return after(ctx, "CallRefused", r.agent.Hooks, callRefused, &seen)
}

// question records that a call waits for an answer.
func (r *Run) question(c *session.OpenCall, call tool.Call, annotations tool.Annotations, why string) error {
	t, _ := r.tools.Lookup(call.Name)
	asked := session.ApprovalAsked{
		CallID: c.CallID, Number: c.Number, Tool: call.Name, Arguments: call.Arguments, Custom: call.Custom, Reason: why, Rules: suggest(t, call, annotations),
	}
	if c.Asked && asksTheSame(pendingOf(r.session, *c), asked) && !r.single {
		// The log already holds this question. A run that only checks for an answer
		// must not make the log longer each time. A single step must: the next one
		// reads in the log that the call waits in this run too.
		r.state.Wait(c.CallID, c.Number)
	} else if err := r.record(asked); err != nil {
		return err
	}
	c.Asked, c.Question = true, &asked
	return nil
}

// wait leaves a call whose question is recorded to those who answer later.
func (r *Run) wait(c session.OpenCall, call tool.Call, annotations tool.Annotations) {
	t, _ := r.tools.Lookup(call.Name)
	p := pendingOf(r.session, c)
	p.Command, p.Sandbox, p.Of = commandOf(t, call), sandboxOf(t, call), annotations.Origin.Of
	r.result.Pending = append(r.result.Pending, p)
	r.progress(Progress{Kind: ProgressWaiting, CallID: p.CallID, Tool: p.Tool, Pending: &p})
}

// asksTheSame reports whether two questions about a call are equal. A transcript does
// not store the reason and the rules.
func asksTheSame(before PendingApproval, now session.ApprovalAsked) bool {
	if before.Tool != now.Tool || before.Arguments != now.Arguments || before.Custom != now.Custom {
		return false
	}
	return before.Reason == "" && before.Rules == nil || before.Reason == now.Reason && reflect.DeepEqual(before.Rules, now.Rules)
}

// PendingApproval is a call that waits for an approval. It is a plain value that can be
// stored, shown and answered by anyone, at any time. See [Decide].
type PendingApproval struct {
	// Session is the id of the call's session, which may be a subagent's. Number
	// counts the calls of that session from 1.
	Session string `json:"session"`
	Number  int    `json:"number"`
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	// Arguments is the JSON text as the model sent it or, if Custom is set, free
	// text.
	Arguments string `json:"arguments"`
	Custom    bool   `json:"custom,omitempty"`
	// Reason says why it is asked about.
	Reason string `json:"reason"`
	// Rules are the rules that an answer could add to the session. See
	// [plan.Suggest].
	Rules []session.Rule `json:"rules,omitempty"`
	// Command is the command that would run, if the tool is a [Commander]. It comes
	// from the run, not from the log, so a log cannot forge it.
	Command []string `json:"command,omitempty"`
	// Sandbox is as in [ApprovalRequest], and comes from the run too.
	Sandbox string `json:"sandbox,omitempty"`
	// Of says whose tool it is: see [tool.Origin]. It comes from the run, like Command.
	Of string `json:"of,omitempty"`
}

// Decision is an answer about one call: the result of an [Approver], or an argument
// of [Decide] for a pending call.
type Decision struct {
	// Session, Number and CallID identify the call, as in its [PendingApproval].
	// Session "" means the session that is passed to Decide. Number 0 means any waiting
	// call with the id; a Number makes sure that an answer that arrives twice or late
	// does not apply to another call with the same id.
	Session string `json:"session,omitempty"`
	Number  int    `json:"number,omitempty"`
	CallID  string `json:"call_id"`
	Allow   bool   `json:"allow"`
	// Reason tells the model why not.
	Reason string `json:"reason,omitempty"`
	// Arguments replaces the arguments that the model sent; "" keeps them. The call
	// stays in the history unchanged; its output says that the arguments were
	// changed.
	Arguments string `json:"arguments,omitempty"`
	// Remember is a rule for later calls of the session, such as one of
	// [plan.Suggest]. Nil decides this call only. Deny takes precedence over ask, and
	// ask over allow, so a rule that allows does not override one that asks.
	Remember *session.Rule `json:"remember,omitempty"`
	// By names the person who decides, and From the means, such as "terminal"; ""
	// means [Decide]. Both are recorded.
	By   string `json:"by,omitempty"`
	From string `json:"from,omitempty"`
	// Decided says who decided, and is recorded. The zero value means a person for
	// [Decide], and the program for an [Approver], which asks nobody for all that is known:
	// one that asks a person sets it. [session.DeciderUnanswered] says that nobody has answered in
	// time: the call does not run, and the model reads so.
	Decided session.Decider `json:"decided,omitempty"`
	// Shown is the text that the person read before deciding, for an audit log. It is
	// not recorded in the session, and has no JSON form.
	Shown string `json:"-"`
	// Later lets the call wait, like Policy.Pause. Only an Approver may set it. It
	// has no JSON form.
	Later bool `json:"-"`
}

// Reasons of a [DecisionError].
var (
	// ErrNoSuchApproval means that no such call waits or waited for an approval.
	ErrNoSuchApproval = errors.New("no such call waits for an approval")
	// ErrDecided means that another decision was made, or that the call has its
	// output.
	ErrDecided = errors.New("the call is already decided")
	// ErrMeaningless means that the decision contradicts itself or the call.
	ErrMeaningless = errors.New("the decision is not valid")
)

// DecisionError reports an invalid decision. Nothing was recorded for the decisions
// about the same session.
type DecisionError struct {
	Decision Decision
	// Err is or wraps [ErrNoSuchApproval], [ErrDecided] or [ErrMeaningless].
	Err error
}

func (e *DecisionError) Error() string {
	return fmt.Sprintf("decision about call %q: %v", e.Decision.CallID, e.Err)
}
func (e *DecisionError) Unwrap() error { return e.Err }

// PendingApprovals returns the pending approvals in a session's log, including those of
// subagents.
func PendingApprovals(ctx context.Context, s *session.Session) ([]PendingApproval, error) {
	state := fold(s)
	var list []PendingApproval
	for _, c := range state.View().Open() {
		if nested := cmp.Or(c.Paused, subagentOf(s.Log(), c)); nested != "" {
			if nested != s.NestedID(c) {
				continue // it belongs to the session that s is a fork of
			}
			inner, err := s.Nested(ctx, nested)
			if err != nil {
				return nil, err
			}
			more, err := PendingApprovals(ctx, inner)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
			continue
		}
		if c.Asked && c.Verdict == nil && !c.Started {
			list = append(list, pendingOf(s, c))
		}
	}
	return list, nil
}

// subagentOf returns the session of the subagent that a call has started and that has not
// ended, or "". It may be asking somebody now.
func subagentOf(log []session.Entry, c session.OpenCall) string {
	if !c.Started {
		return ""
	}
	for _, e := range slices.Backward(log) {
		if b, ok := e.Body.(session.CallStarted); ok && b.CallID == c.CallID {
			return b.Session
		}
	}
	return ""
}

func fold(s *session.Session) *plan.State {
	state := new(plan.State)
	for _, e := range s.Log() {
		state.Apply(e)
	}
	return state
}

// pendingOf returns a pending approval from the last question about a call.
func pendingOf(s *session.Session, c session.OpenCall) PendingApproval {
	p := PendingApproval{Session: s.ID(), Number: c.Number, CallID: c.CallID}
	if a := c.Question; a != nil {
		p.Tool, p.Arguments, p.Custom, p.Reason, p.Rules = a.Tool, a.Arguments, a.Custom, a.Reason, a.Rules
	}
	return p
}

// Decide answers pending approvals. The decisions for one session are recorded all or
// none; the next run continues with them. A decision that is already recorded is not
// an error and is not recorded again. An invalid decision gives a [*DecisionError].
//
// Decide locks the session like a run. During a run, in this process or another, it
// leaves the decisions in the session's inbox, and the run takes them before its next
// effect; if another answer was recorded by then, the log says so. If the store keeps
// no inbox (see [session.Inbox]), the error wraps [session.ErrBusy].
func Decide(ctx context.Context, s *session.Session, decisions ...Decision) (err error) {
	answer := decideIn
	release, err := s.Hold(ctx)
	if errors.Is(err, session.ErrBusy) {
		busy := err
		answer = func(ctx context.Context, s *session.Session, decisions []Decision) error {
			err := deliverTo(ctx, s, decisions)
			if errors.Is(err, errors.ErrUnsupported) {
				return busy
			}
			return err
		}
		// The *Session may be the run's own, which is not safe for concurrent use.
		if s, err = s.Beside(ctx); err != nil {
			return err
		}
		release = func() error { return nil }
	}
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, release()) }()
	var ids []string
	bySession := map[string][]Decision{}
	for _, d := range decisions {
		if d.Session == "" {
			d.Session = s.ID()
		}
		if bySession[d.Session] == nil {
			ids = append(ids, d.Session)
		}
		bySession[d.Session] = append(bySession[d.Session], d)
	}
	for _, id := range ids {
		target := s
		if id != s.ID() {
			if !strings.HasPrefix(id, s.ID()+"/") {
				return &DecisionError{bySession[id][0], fmt.Errorf("%w: session %q does not belong to %q", ErrNoSuchApproval, id, s.ID())}
			}
			var err error
			if target, err = nestedIn(ctx, s, id); err != nil {
				return err
			}
		}
		if err := answer(ctx, target, bySession[id]); err != nil {
			return err
		}
	}
	return nil
}

// nestedIn opens a session that is nested in s at any depth, through each parent.
func nestedIn(ctx context.Context, s *session.Session, id string) (*session.Session, error) {
	if around, ok := session.ParentOf(id); ok && strings.HasPrefix(around, s.ID()+"/") {
		var err error
		if s, err = nestedIn(ctx, s, around); err != nil {
			return nil, err
		}
	}
	return s.Nested(ctx, id)
}

func decideIn(ctx context.Context, s *session.Session, decisions []Decision) error {
	state := fold(s)
	var bodies []session.Body
	for _, d := range decisions {
		approval, known, err := d.find(s, state.View())
		if err != nil {
			return &DecisionError{d, err}
		}
		if !known {
			bodies = append(bodies, approval)
			state.Apply(session.Entry{Body: approval})
		}
	}
	if len(bodies) == 0 {
		return nil
	}
	_, err := s.Append(ctx, bodies...)
	return err
}

// find returns the entry for a decision. Known reports whether the log already has
// it.
func (d Decision) find(log *session.Session, v *session.View) (a session.Approval, known bool, err error) {
	for _, c := range v.Open() {
		if c.CallID != d.CallID || d.Number != 0 && d.Number != c.Number {
			continue
		}
		if !c.Asked {
			return a, false, ErrNoSuchApproval
		}
		definition, why := "", ""
		if c.Question != nil && len(c.Question.Rules) > 0 { // the last one is about all calls of the tool
			definition = c.Question.Rules[len(c.Question.Rules)-1].Definition
			d.Remember, why = bind(d.Remember, c.Question.Tool, definition), c.Question.Reason
		}
		if a = d.entry(c.Number); a.Allowed {
			a.Definition, a.Asked = definition, why
		}
		switch {
		case c.Verdict != nil && same(*c.Verdict, a):
			return a, true, nil
		case c.Verdict != nil:
			return a, false, decidedBy(*c.Verdict)
		case c.Started:
			return a, false, ErrDecided
		}
		return a, false, d.check(c.Item)
	}
	return a, true, d.late(log)
}

// decidedBy says who decided about a call before.
func decidedBy(a session.Approval) error {
	return fmt.Errorf("%w%s", ErrDecided, session.DecidedBy(a.By, a.From, a.Rule))
}

// late checks a decision about a call that is no longer open.
func (d Decision) late(s *session.Session) error {
	log := s.Log()
	for i := len(log) - 1; i >= 0; i-- {
		switch b := log[i].Body.(type) {
		case session.Approval:
			if b.CallID != d.CallID || d.Number != 0 && b.Number != d.Number {
				continue
			}
			if same(b, d.entry(b.Number)) {
				return nil
			}
			return decidedBy(b)
		case session.CallOutput:
			if d.Number == 0 && b.CallID == d.CallID {
				return ErrDecided
			}
		}
	}
	if d.names(log) {
		return ErrDecided
	}
	return ErrNoSuchApproval
}

// names reports whether the call with the decision's number has its call id.
func (d Decision) names(log []session.Entry) bool {
	n := 0
	for _, e := range log {
		var it item.Item
		switch b := e.Body.(type) {
		case session.InputItem:
			it = b.Item
		case session.OutputItem:
			it = b.Item
		}
		if !it.IsCall() {
			continue
		}
		if n++; n == d.Number {
			return it.CallID() == d.CallID
		}
	}
	return false
}

// same reports whether two verdicts are equal, apart from From, the tool and the question. A remembered rule may not
// be bound to its tool yet.
func same(a, b session.Approval) bool {
	a.From, b.From, a.Definition, b.Definition, a.Asked, b.Asked = "", "", "", "", "", ""
	if a.Remember != nil && b.Remember != nil && b.Remember.Definition == "" {
		b.Remember = bind(b.Remember, b.Remember.Tool, a.Remember.Definition)
	}
	return reflect.DeepEqual(a, b)
}

// entry returns the approval entry for a call that waited.
func (d Decision) entry(number int) session.Approval {
	a := d.approval()
	a.CallID, a.Number, a.By, a.From = d.CallID, number, cmp.Or(d.By, someone), cmp.Or(d.From, "agent.Decide")
	if a.Decided = cmp.Or(d.Decided, session.DeciderPerson); a.Decided == session.DeciderUnanswered {
		a.By = ""
	}
	return a
}

// approval returns the approval for a decision, without the call. Arguments of a
// refusal are not kept.
func (d Decision) approval() session.Approval {
	a := session.Approval{Allowed: d.Allow, By: d.By, From: d.From, Decided: cmp.Or(d.Decided, session.DeciderProgram), Remember: d.Remember}
	if d.Allow {
		a.Edited = d.Arguments
		return a
	}
	a.Reason, _ = output.Sanitize(d.Reason)
	if strings.TrimSpace(a.Reason) == "" {
		a.Reason = refusedByPerson
		if a.Decided == session.DeciderUnanswered {
			a.Reason = nobodyAnswered
		}
	}
	return a
}

// someone names a person who decides without giving a name.
const someone = "someone"

// check returns an error for a decision that cannot be carried out.
func (d Decision) check(call item.Item) error {
	if d.Decided == session.DeciderUnanswered && (d.Allow || d.Remember != nil) {
		return fmt.Errorf("%w: nobody answered, so nobody has allowed it", ErrMeaningless)
	}
	if d.Later {
		return fmt.Errorf("%w: it sets Later, but the call already waits", ErrMeaningless)
	}
	if d.Arguments != "" {
		if plan.Hosted(call) {
			return fmt.Errorf("%w: the endpoint makes this call, so its arguments cannot be changed", ErrMeaningless)
		}
		if !d.Allow {
			return fmt.Errorf("%w: it changes the arguments of a call that it refuses", ErrMeaningless)
		}
		object := item.JSON(d.Arguments)
		if call.Type() != item.TypeCustomToolCall && (object.Valid() != nil || !strings.HasPrefix(strings.TrimSpace(d.Arguments), "{")) {
			return fmt.Errorf("%w: its arguments are not a JSON object", ErrMeaningless)
		}
	}
	if d.Remember != nil {
		if err := plan.CheckRules(*d.Remember); err != nil {
			return fmt.Errorf("%w: %w", ErrMeaningless, err)
		}
	}
	return nil
}
