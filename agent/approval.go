// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Pending is a call that waits for an answer: a plain value, to be stored, shown
// and answered by anybody, at any time. See [Decide].
type Pending struct {
	// Session is the id of the session that the call is in, which may be that of
	// a nested run. Number counts the calls of that session from 1.
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
	// Rules are what an answer could leave behind. See [plan.Suggest].
	Rules []session.Rule `json:"rules,omitempty"`
	// Command is what would run, if the tool is a [Commander]. Only the run that
	// asks knows it: the log does not hold it, so that no log can claim another.
	Command []string `json:"command,omitempty"`
}

// Decision is the answer about one pending call.
type Decision struct {
	// Session, Number and CallID are those of the [Pending] call. Session may be ""
	// for the session that the decision is given to. Number may be 0 for whichever
	// call of that id waits; with it, an answer that arrives twice or late cannot
	// meet another call of the same id.
	Session string `json:"session,omitempty"`
	Number  int    `json:"number,omitempty"`
	CallID  string `json:"call_id"`
	Allow   bool   `json:"allow"`
	// Reason tells the model why not.
	Reason string `json:"reason,omitempty"`
	// Arguments is what the tool gets in place of what the model sent, "" for
	// that. The call stays in the history as it was made; its output says that
	// the arguments were changed.
	Arguments string `json:"arguments,omitempty"`
	// Remember is a rule for later calls of the session; nil for none, which
	// decides this call alone. Deny wins over ask, and ask over allow, so a rule
	// that allows does not silence one that asks.
	Remember *session.Rule `json:"remember,omitempty"`
	// By names who decides, and From says how: "" is by [Decide].
	By   string `json:"by,omitempty"`
	From string `json:"from,omitempty"`
}

// The ways in which a decision can be wrong.
var (
	// ErrNotWanted: no call waits for it, and none did.
	ErrNotWanted = errors.New("no such call waits for an approval")
	// ErrDecided: another decision was made, or the call has its output.
	ErrDecided = errors.New("the call is decided already")
	// ErrMeaningless: the decision says nothing that could be done.
	ErrMeaningless = errors.New("the decision makes no sense")
)

// DecisionError reports a decision that was not taken. Nothing was recorded of
// the decisions given with it for the same session.
type DecisionError struct {
	Decision Decision
	// Err is or wraps [ErrNotWanted], [ErrDecided] or [ErrMeaningless].
	Err error
}

func (e *DecisionError) Error() string {
	return fmt.Sprintf("decision about call %q: %v", e.Decision.CallID, e.Err)
}
func (e *DecisionError) Unwrap() error { return e.Err }

// Wanted returns the calls of a session that wait for an answer, those of
// nested runs included, as its log has them.
func Wanted(ctx context.Context, s *session.Session) ([]Pending, error) {
	state := fold(s)
	var list []Pending
	for _, c := range state.View().Open() {
		if c.Paused != "" {
			if c.Paused != s.NestedID(c) {
				continue // it is answered in the session that s is a fork of
			}
			inner, err := s.Nested(ctx, c.Paused)
			if err != nil {
				return nil, err
			}
			more, err := Wanted(ctx, inner)
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

func fold(s *session.Session) *plan.State {
	state := new(plan.State)
	for _, e := range s.Log() {
		state.Apply(e)
	}
	return state
}

// pendingOf is a call that was asked about, as the last entry about it says.
func pendingOf(s *session.Session, c session.OpenCall) Pending {
	p := Pending{Session: s.ID(), Number: c.Number, CallID: c.CallID}
	if a := c.Question; a != nil {
		p.Tool, p.Arguments, p.Custom, p.Reason, p.Rules = a.Tool, a.Arguments, a.Custom, a.Reason, a.Rules
	}
	return p
}

// Decide answers calls that wait. The decisions for one session are recorded all
// or none; the next run goes on with them. A decision that is recorded already
// is not an error and is not recorded again, others that do not fit give a
// [*DecisionError]. It takes the session's lock as a run does; while a run is
// under way the error wraps [session.ErrBusy].
func Decide(ctx context.Context, s *session.Session, decisions ...Decision) (err error) {
	release, err := s.Hold(ctx)
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
				return &DecisionError{bySession[id][0], fmt.Errorf("%w: session %q does not belong to %q", ErrNotWanted, id, s.ID())}
			}
			var err error
			if target, err = nestedIn(ctx, s, id); err != nil {
				return err
			}
		}
		if err := decideIn(ctx, target, bySession[id]); err != nil {
			return err
		}
	}
	return nil
}

// nestedIn opens a session that is nested in s at any depth, each in the one around
// it.
func nestedIn(ctx context.Context, s *session.Session, id string) (*session.Session, error) {
	if around, ok := session.NestedIn(id); ok && strings.HasPrefix(around, s.ID()+"/") {
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
		approval, known, err := d.entry(s, state.View())
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

// approval is the entry that a decision comes to. known says that it is in the
// log.
func (d Decision) entry(log *session.Session, v *session.View) (a session.Approval, known bool, err error) {
	for _, c := range v.Open() {
		if c.CallID != d.CallID || d.Number != 0 && d.Number != c.Number {
			continue
		}
		if !c.Asked {
			return a, false, ErrNotWanted
		}
		a = d.approval(c.Number)
		switch {
		case c.Verdict != nil && same(*c.Verdict, a):
			return a, true, nil
		case c.Verdict != nil || c.Started:
			return a, false, ErrDecided
		}
		return a, false, d.check(c.Item)
	}
	return a, true, d.late(log)
}

// late looks for a decision about a call that is not open any more.
func (d Decision) late(s *session.Session) error {
	log := s.Log()
	for i := len(log) - 1; i >= 0; i-- {
		switch b := log[i].Body.(type) {
		case session.Approval:
			if b.CallID != d.CallID || d.Number != 0 && b.Number != d.Number {
				continue
			}
			if same(b, d.approval(b.Number)) {
				return nil
			}
			return ErrDecided
		case session.Answered:
			if d.Number == 0 && b.CallID == d.CallID {
				return ErrDecided
			}
		}
	}
	if d.names(log) {
		return ErrDecided
	}
	return ErrNotWanted
}

// names reports whether there is the call that the decision gives the number
// of.
func (d Decision) names(log []session.Entry) bool {
	n := 0
	for _, e := range log {
		var it item.Item
		switch b := e.Body.(type) {
		case session.Given:
			it = b.Item
		case session.Received:
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

// same reports whether two verdicts say the same, however they came.
func same(a, b session.Approval) bool {
	a.From, b.From = "", ""
	return reflect.DeepEqual(a, b)
}

func (d Decision) approval(number int) session.Approval {
	a := session.Approval{CallID: d.CallID, Number: number, Allowed: d.Allow, By: d.By, From: cmp.Or(d.From, "agent.Decide"), Edited: d.Arguments, Remember: d.Remember}
	if a.By == "" {
		a.By = someone
	}
	if !d.Allow {
		a.Reason, _ = tool.Sanitize(d.Reason)
		if strings.TrimSpace(a.Reason) == "" {
			a.Reason = refusedByPerson
		}
	}
	return a
}

// someone stands for a person who decides without a name.
const someone = "someone"

// check reports a decision that cannot be carried out.
func (d Decision) check(call item.Item) error {
	if d.Arguments != "" {
		if plan.Hosted(call) {
			return fmt.Errorf("%w: the endpoint makes this call, with the arguments that it has; allow it or not", ErrMeaningless)
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
