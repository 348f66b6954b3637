// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// This file gets a verdict on each call of a reply, from the rules or from the Approver, and
// records it.

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

// places returns the function for [tool.WithPlace]. It holds what it needs of the run, because tools call
// it in goroutines of their own.
func (r *Run) places(f *finished) func(path string, within func(folder string) bool) error {
	var rulers []ruler
	for o := r.around; o != nil; o = o.run.around {
		rulers = append(rulers, o.rulers...)
	}
	rulers = append(rulers, r.rulers...)
	p := permitted{tool: f.seen.tool, call: f.given, annotations: f.seen.Annotations, rulers: rulers, policy: &r.agent.Policy, remembered: slices.Clone(r.state.Rules()), verdict: f.seen.Verdict}
	if by, ruled := r.ruled.Load(f.given.Number); ruled {
		rule := by.(session.Rule)
		p.by = &rule
	}
	return p.places()
}

// permitted is a call that may start, and why.
type permitted struct {
	tool        tool.Tool
	call        tool.Call
	annotations tool.Annotations
	rulers      []ruler // whose denials hold too
	policy      *Policy
	remembered  []session.Rule
	verdict     session.Approval
	by          *session.Rule // the rule by which the approver allowed it, or nil
}

// places returns the function for [tool.WithPlace]. No call may use a place for which rules deny
// it. A call that rules allowed may use the places for which they would allow it; one that the approver
// allowed by a rule, those for which this rule would; and one that
// a person allowed with a rule about a folder, those in the folder; without one, a person may
// mean a link. If no argument names the path, as in a patch, or the tool says so by an empty one, rules about
// folders that deny or ask hold whichever argument they are about.
func (p *permitted) places() func(path string, within func(folder string) bool) error {
	answered := answeredFor(&p.verdict, p.call)
	return func(path string, within func(folder string) bool) error {
		at := p.annotations
		here := placed{p.annotations.Folders, path, within}
		if path != "" {
			at.Folders = here
		}
		for i := range p.rulers {
			if j, denied := p.rulers[i].denies(p.tool, p.call, at); denied {
				return errors.New(j.Denied(p.call.Name))
			}
		}
		j := p.policy.judge(p.tool, p.call, at, p.remembered)
		switch {
		case j.Verdict == session.Deny:
			return errors.New(j.Denied(p.call.Name))
		case p.verdict.Decided == session.DeciderRule && j.Verdict != session.Allow && !(p.by != nil && allows(*p.by, asked(p.tool, p.call, at))):
			return errMoved
		case answered != nil && !inFolder(answered, p.call, at.Folders):
			return errMoved
		}
		if p.names(path) {
			return nil
		}
		return p.unnamed(path, here)
	}
}

// names reports whether an argument that the tool has is the path. Of others, which the model may add, the
// tool takes none for a path.
func (p *permitted) names(path string) bool {
	var members map[string]any
	if path == "" || p.call.Custom || json.Unmarshal([]byte(p.call.Arguments), &members) != nil {
		return false
	}
	var schema struct {
		Properties map[string]jsontext.Value `json:"properties"`
	}
	if def, ok := p.tool.Definition().(*item.FunctionTool); !ok || json.Unmarshal([]byte(def.Parameters), &schema) != nil {
		return false
	}
	for name := range schema.Properties {
		if members[name] == path {
			return true
		}
	}
	return false
}

// unnamed holds the rules about folders against a path that no argument of the call names.
func (p *permitted) unnamed(path string, folders tool.Folders) error {
	rules := slices.Concat(p.policy.Rules, p.remembered)
	for i := range p.rulers {
		rules = slices.Concat(rules, p.rulers[i].policy.Rules, p.rulers[i].rules)
	}
	for _, r := range rules {
		if r.Under == "" || r.Verdict == session.Allow {
			continue
		}
		named, err := json.Marshal(map[string]string{r.Member: path})
		if err != nil {
			return err
		}
		only := plan.Policy{Rules: []session.Rule{r}}
		j := only.Judge(plan.Question{Tool: p.call.Name, Arguments: string(named), Within: folders.Within}, nil)
		switch {
		case j.Ruled && j.Verdict == session.Deny:
			return errors.New(j.Denied(p.call.Name))
		case j.Ruled && j.Verdict == session.Ask && p.verdict.Decided == session.DeciderRule:
			return errUnasked
		}
	}
	return nil
}

// errUnasked is the error of a call that uses a place about which a rule asks, although nobody was asked.
var errUnasked = errors.New("a rule asks about this place, and the call could not be asked about, because none of its arguments is the path. Nothing was done. Use a tool whose call names the path")

// allows reports whether a rule alone, remembered by a session, allows a call.
func allows(rule session.Rule, q plan.Question) bool {
	var p plan.Policy
	return p.Judge(q, []session.Rule{rule}).Verdict == session.Allow
}

// answeredFor returns the rule about a folder that a person was told of when they allowed a call, or
// nil. By a rule that cannot be about the call they mean other calls.
func answeredFor(a *session.Approval, call tool.Call) *session.Rule {
	if a.Remember == nil || a.Remember.Verdict != session.Allow || a.Remember.Under == "" || a.Edited != "" {
		return nil
	}
	rule := *a.Remember
	rule.Verdict = session.Deny // which also covers what may be in the folder
	p := plan.Policy{Rules: []session.Rule{rule}}
	if p.Judge(plan.Question{Tool: call.Name, Arguments: call.Arguments, Custom: call.Custom}, nil).Verdict != session.Deny {
		return nil
	}
	rule.Verdict, rule.Definition = session.Allow, "" // the call's tool is the one that was asked about
	return &rule
}

// inFolder reports whether the path of a call is in the folder of a rule.
func inFolder(rule *session.Rule, call tool.Call, folders tool.Folders) bool {
	p := plan.Policy{Rules: []session.Rule{*rule}}
	return p.Judge(plan.Question{Tool: call.Name, Arguments: call.Arguments, Custom: call.Custom, Within: folders.Within}, nil).Verdict == session.Allow
}

// errMoved is the error of a call whose path leads to another place than when it was allowed.
var errMoved = errors.New("the path leads to a place for which nobody has allowed this call: a link on the way was changed, or is new. Nothing was done. Name the place itself")

// placed holds rules about folders against the place of one path, which does not change any more.
type placed struct {
	tool.Folders // for other paths of the call
	path         string
	within       func(folder string) bool
}

// Within looks at the place, whatever the path leads to now.
func (p placed) Within(folder, path string) (within, known bool) {
	if path != p.path {
		return p.Folders.Within(folder, path)
	}
	return p.within(folder), true
}

// inquiry is what came of judging a call, and of asking about it.
type inquiry struct {
	call        tool.Call
	annotations tool.Annotations
	ruling      plan.Ruling
	verdict     session.Approval
	announced   bool // the log has the question already
	later       bool // the answer comes later, so the call waits
	unasked     bool // nobody could be asked
	answered    bool // somebody else has answered, and the log has the verdict
}

// approve gets a verdict on each call, one after another, and records it.
func (r *Run) approve(ctx context.Context, calls []plan.CallRef) error {
	for _, ref := range calls {
		c, ok := r.state.Call(ref)
		if !ok {
			continue
		}
		q, err := r.inquire(ctx, ref, &c)
		switch {
		case err != nil:
			return err
		case q.answered:
			continue
		case ctx.Err() != nil:
			return nil // the run is over, regardless of the answer
		case !q.later:
			err = r.verdict(ctx, c, q.verdict, q.unasked)
		default:
			if !q.announced {
				err = r.question(&c, q.call, q.annotations, q.ruling.WhyAsk(q.call.Name))
			}
			if err == nil {
				r.wait(c, q.call, q.annotations)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inquire judges a call, and asks about it if the rules say so.
func (r *Run) inquire(ctx context.Context, ref plan.CallRef, c *session.OpenCall) (q inquiry, err error) {
	call, unreadable := r.callOf(c)
	annotations, known := r.annotations(call.Name)
	if _, other := r.toolOf(c.Item, call.Name); other != "" {
		annotations, known = tool.Annotations{}, false
	}
	if plan.Hosted(c.Item) {
		annotations.Origin = r.agent.originOf(c.Item)
	}
	q = inquiry{call: call, annotations: annotations}
	settled := false
	if q.verdict, settled = r.settled(c, unreadable, annotations, known); settled {
		return q, nil
	}
	q.ruling = r.judge(call, annotations)
	if q.announced = r.shares(&q.ruling); q.announced {
		if err := r.question(c, call, annotations, q.ruling.WhyAsk(call.Name)); err != nil {
			return q, err
		}
	}
	if q.ruling.Verdict == session.Ask { // a person is asked about what is in the log
		if err := r.barrier(); err != nil {
			return q, err
		}
	}
	if !q.announced {
		q.verdict, q.later, q.unasked = r.decide(ctx, call, annotations, q.ruling)
		return q, nil
	}
	q.verdict, q.later, q.unasked, q.answered, err = r.askAlong(ctx, ref, func(ctx context.Context) (session.Approval, bool, bool) {
		return r.decide(ctx, call, annotations, q.ruling)
	})
	q.verdict.Number = c.Number // somebody who answers later is told of this one
	return q, err
}

// settled returns the verdict on a call about which neither rules nor people are asked, if there is one. A call of
// an unknown tool is allowed, because its output then names the known tools.
func (r *Run) settled(c *session.OpenCall, unreadable error, annotations tool.Annotations, known bool) (session.Approval, bool) {
	switch {
	case unreadable != nil:
		return session.Approval{Reason: "The call cannot be read: " + unreadable.Error(), Rule: "deny calls that cannot be read", From: plan.ByDefault, Decided: session.DeciderRule}, true
	case c.Paused != "" && !r.goesOn(c, annotations): // even if the tool is unknown, because the call was started once
		return deniedElsewhere, true
	}
	if refusal := r.tooDeep(c, annotations); refusal != nil {
		return *refusal, true
	}
	unknown := !known && !plan.Hosted(c.Item)
	return session.Approval{Allowed: true, Rule: allowUnknown, From: plan.ByDefault, Decided: session.DeciderRule}, unknown
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
	a, by, later, unasked := r.agent.Policy.decide(ctx, r.session.ID(), t, call, annotations, judged, r.tools)
	if by != nil {
		r.ruled.Store(call.Number, *by)
	}
	if later && root != r && !root.session.KeepsNested() {
		return r.agent.Policy.unasked(cannotWait, call.Name, judged), false, true
	}
	return a, later, unasked
}

// misfit says why the arguments of a call do not fit its tool, or "".
func misfit(set *tool.Set, call tool.Call) string {
	if e := new(tool.ArgumentsError); errors.As(set.CheckArguments(call), &e) {
		return e.Problem
	}
	return ""
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
	seen := ToolCall{Session: r.session.ID(), Depth: r.depth, Turn: r.state.Turn(), Speaker: r.speaker(), Started: now, Ended: now, Verdict: a, Failure: tool.NotRun, Error: a.Reason}
	seen.Call, _ = CallOf(c.Item)
	seen.Call.ID, seen.Call.Name = c.CallID, plan.ToolName(c.Item) // also of a call that cannot be read
	seen.Annotations, _ = r.annotations(seen.Call.Name)
	return after(ctx, "CallRefused", r.agent.Hooks, callRefused, &seen)
}

// question records that a call waits for an answer.
func (r *Run) question(c *session.OpenCall, call tool.Call, annotations tool.Annotations, why string) error {
	t, _ := r.tools.Lookup(call.Name)
	asked := session.ApprovalAsked{
		CallID: c.CallID, Number: c.Number, Tool: call.Name, Arguments: call.Arguments, Custom: call.Custom, Reason: why, Rules: suggest(t, call, annotations), Sandbox: sandboxOf(t, call),
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
// not store the reason, the rules and the sandbox.
func asksTheSame(before PendingApproval, now session.ApprovalAsked) bool {
	if before.Tool != now.Tool || before.Arguments != now.Arguments || before.Custom != now.Custom {
		return false
	}
	return before.Reason == "" && before.Rules == nil || before.Reason == now.Reason && before.Sandbox == now.Sandbox && reflect.DeepEqual(before.Rules, now.Rules)
}

// judge applies the rules to a call.
func (p *Policy) judge(t tool.Tool, call tool.Call, annotations tool.Annotations, remembered []session.Rule) plan.Ruling {
	rules := plan.Policy{Allow: p.Allow, Ask: p.Ask, Deny: p.Deny, Rules: p.Rules}
	return rules.Judge(asked(t, call, annotations), remembered)
}

// asked describes a call to the rules.
func asked(t tool.Tool, call tool.Call, annotations tool.Annotations) plan.Question {
	q := plan.Question{Tool: call.Name, Arguments: call.Arguments, Custom: call.Custom, Declared: session.Verdict(annotations.Approval), ReadOnly: annotations.ReadOnly}
	name, origin := call.Name, annotations.Origin // the function holds these and not the whole call
	q.Definition = func() string { return definitionOf(t, name, origin) }
	switch {
	case call.Imported:
		q.Warning = "it came with an imported conversation, so it may not be a model's"
	case call.Warnings != "":
		q.Warning = "the endpoint warns of this call: " + call.Warnings
	}
	if judge, ok := t.(ApprovalAdvisor); ok {
		q.Opinion = opinion(judge, call)
	}
	if annotations.Folders != nil {
		q.Within = annotations.Folders.Within
	}
	return q
}

func opinion(judge ApprovalAdvisor, call tool.Call) func(rules []session.Rule) (session.Verdict, string) {
	return func(rules []session.Rule) (verdict session.Verdict, reason string) {
		return judge.Approval(call, rules)
	}
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

// decide returns the verdict to record about a call of the session in. Later reports whether the call
// waits, so that nothing is recorded yet; unasked reports whether it is refused
// because no approver is available. The rule by is the one by which the approver allowed the call,
// or nil.
func (p *Policy) decide(ctx context.Context, in string, t tool.Tool, call tool.Call, annotations tool.Annotations, j plan.Ruling, set *tool.Set) (a session.Approval, by *session.Rule, later, unasked bool) {
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
		d, err = p.Approver(ctx, ApprovalRequest{Session: in, Call: call, Annotations: annotations, Reason: j.WhyAsk(call.Name), Rules: suggest(t, call, annotations), Command: commandOf(t, call), Sandbox: sandboxOf(t, call), Problem: misfit(set, call), tool: t})
		err = nils.Err(err)
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
