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
	"github.com/antiphon-go/antiphon/tool/output"
)

// This file holds the calls that wait, and the answers to them from outside of a run.

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
	// Sandbox is as in [ApprovalRequest]. In a log that was imported it is "".
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
	// Rule is set when an Approver allows the call because of a rule, such as one of the request's
	// Rules, without asking a person. When the tool opens a path, the rule must also allow the
	// file or folder that the path leads to. Its text is recorded. It has no JSON form.
	Rule *session.Rule `json:"-"`
	// By names the person who decides, and From the means, such as "terminal"; ""
	// means [Decide]. Both are recorded.
	By   string `json:"by,omitempty"`
	From string `json:"from,omitempty"`
	// Decided says who decided, and is recorded. The zero value means a person in a call of
	// [Decide], and the program in the answer of an [Approver]; so an Approver that asks a person
	// must set [session.DeciderPerson]. With [session.DeciderUnanswered] the call does not run,
	// and the model reads that nobody answered in time.
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
	if s == nil {
		return nil, errNoSession
	}
	if !asks(s.Log()) {
		return nil, nil
	}
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

// AskedAt returns when approval of a call was first requested after its last verdict.
// Requesting it again, because the rules changed, does not reset this time. AskedAt returns
// the zero Time if approval was not requested or the store keeps no times.
func AskedAt(ctx context.Context, in session.Store, call PendingApproval) (at time.Time, err error) {
	s, err := session.Open(ctx, in, call.Session)
	if err != nil {
		return at, err
	}
	for e := range s.Entries() {
		switch b := e.Body.(type) {
		case session.ApprovalAsked:
			if b.CallID == call.CallID && b.Number == call.Number && at.IsZero() {
				at = e.Time
			}
		case session.Approval:
			if b.CallID == call.CallID && b.Number == call.Number {
				at = time.Time{}
			}
		}
	}
	return at, nil
}

// asks reports whether a call of a log may wait for an approval, or a subagent that a call has started.
func asks(log []session.Entry) bool {
	return slices.ContainsFunc(log, func(e session.Entry) bool {
		switch b := e.Body.(type) {
		case session.ApprovalAsked, session.Paused:
			return true
		case session.CallStarted:
			return b.Session != ""
		}
		return false
	})
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
		p.Tool, p.Arguments, p.Custom, p.Reason, p.Rules, p.Sandbox = a.Tool, a.Arguments, a.Custom, a.Reason, a.Rules, a.Sandbox
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
		if d.Rule != nil {
			a.Rule, a.Decided = d.Rule.String(), session.DeciderRule
		}
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
	if d.Rule != nil {
		return fmt.Errorf("%w: it sets Rule, which only an Approver may", ErrMeaningless)
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
