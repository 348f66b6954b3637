// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// talk is a log in the form for readers: rows in the order of events, with one row
// per call that contains everything about the call.
type talk struct {
	rows []*row
	sums sums

	open []*call          // calls without an output, in order
	said map[int64]*row   // rows by the number of their entry
	turn *turn            // the current turn
	runs int              // so far
	made session.Setup    // the current setup of turns
	by   []string         // the models that answered, as text, each once
	last map[string]*call // the last call of each id, answered or not
}

// row is an item, a call, or a mark: an event between items.
type row struct {
	seq   int64
	id    string // of a row without an entry
	time  time.Time
	item  item.Item // the zero Item for a mark
	given bool      // from outside the run
	note  bool      // for people, never sent
	again bool      // it broke off, and a later row repeats it
	notes []badge
	call  *call
	mark  *mark
}

// badge is a short label on a row. Its class is ok, bad, warn or "".
type badge struct{ Class, Text string }

// mark is a row without an item, or one about a decision.
type mark struct {
	kind  string // stop, turn, problem, context or run
	title string
	text  string
	items []item.Item // items that replace others
	facts []fact      // details, folded
}

// call is a call with all its events.
type call struct {
	row        *row
	id         string
	outputs    []callOutput
	events     []event
	arguments  string // the tool's arguments if they differ from those that the model sent
	session    []string
	begun      time.Time
	started    bool
	asked      bool
	allowed    bool
	refused    bool
	unanswered bool // nobody said in time whether it may run
	lost       bool
	paused     bool
	failed     bool
	never      bool
	withdrawn  bool
}

// callOutput is an item that answers a call.
type callOutput struct {
	row    *row
	edited bool
}

// event is something that happened to a call, other than its output.
type event struct {
	seq   int64
	class string
	title string
	text  string
}

// turn is the state of the current turn.
type turn struct {
	number    int
	continues int64 // the message that broke off before it
	begun     time.Time
	rows      []*row
}

// sums are the totals in the head of a page.
type sums struct {
	turns, calls, failed  int
	input, cached         int64
	output, reasoning     int64
	nestedTurns           int
	nestedTokens          int64
	cost                  float64
	first, last           time.Time
	broken, waiting, lost int
}

// nested adds the run of a subagent.
func (s *sums) nested(b session.SubagentUsage) {
	s.nestedTurns += b.Turns
	s.nestedTokens += b.Tokens
	s.cost += b.Cost
}

// fold reads a log.
func fold(entries []session.Entry, info session.Info) *talk {
	t := &talk{said: map[int64]*row{}, last: map[string]*call{}}
	for _, e := range entries {
		t.apply(e)
		if !e.Time.IsZero() {
			if t.sums.first.IsZero() {
				t.sums.first = e.Time
			}
			t.sums.last = e.Time
		}
		if info.Parent != "" && !info.Nested && e.Seq == info.At {
			t.mark(session.Entry{Time: e.Time}, "context", "Fork", "The entries above are shared with "+info.Parent+"; those below belong only to this session.").id = "fork"
		}
	}
	if t.turn != nil {
		t.breakOff(session.Entry{}, "The log ends within the turn.")
	}
	t.count()
	return t
}

func (t *talk) count() {
	for _, r := range t.rows {
		if r.call == nil {
			continue
		}
		t.sums.calls++
		switch r.call.state().Text {
		case stateFailed:
			t.sums.failed++
		case stateWaiting, statePaused:
			t.sums.waiting++
		case stateUnknown:
			t.sums.lost++
		}
	}
}

func (t *talk) apply(e session.Entry) {
	changed := t.made.Apply(e.Body)
	switch b := e.Body.(type) {
	case session.InputItem:
		t.item(e, b.Item).given = true
	case session.OutputItem:
		r := t.item(e, b.Item)
		if b.Partial {
			r.notes = append(r.notes, badge{"warn", "broken off here"})
		}
		if t.turn != nil {
			if t.turn.continues != 0 && b.Item.Type() == item.TypeMessage {
				r.notes = append(r.notes, badge{"", fmt.Sprintf("continues entry %d", t.turn.continues)})
				t.turn.continues = 0
			}
			t.turn.rows = append(t.turn.rows, r)
		}
	case session.CallOutput:
		t.answer(e, b.CallID, b.Item, b.Failed, b.Edited)
	case session.Note:
		t.add(&row{seq: e.Seq, time: e.Time, item: b.Item, note: true})
	case session.TurnStarted, session.TurnEnded, session.RunStarted, session.Delivered, session.StopAsked, session.Stopped:
		t.progress(e, changed)
	case session.ApprovalAsked, session.Approval, session.CallStarted, session.SubagentUsage, session.Paused, session.CallDropped:
		t.about(e)
	default:
		t.decision(e)
	}
}

func (t *talk) add(r *row) *row {
	t.rows = append(t.rows, r)
	if !r.item.IsZero() {
		t.said[r.seq] = r
	}
	return r
}

// item adds the row of an item. An output belongs to its call's row.
func (t *talk) item(e session.Entry, it item.Item) *row {
	r := &row{seq: e.Seq, time: e.Time, item: it}
	if it.IsOutput() {
		if c := t.waits(it.CallID()); c != nil {
			t.said[e.Seq] = r
			t.close(c, callOutput{row: r})
			return r
		}
	}
	t.add(r)
	if it.IsCall() {
		r.call = &call{row: r, id: it.CallID()}
		t.open = append(t.open, r.call)
		t.last[r.call.id] = r.call
	}
	return r
}

// waits returns the first call of that id without an output, or nil.
func (t *talk) waits(id string) *call {
	for _, c := range t.open {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (t *talk) close(c *call, o callOutput) {
	c.outputs = append(c.outputs, o)
	t.open = slices.DeleteFunc(t.open, func(one *call) bool { return one == c })
}

func (t *talk) answer(e session.Entry, id string, it item.Item, failed, edited bool) {
	c := t.waits(id)
	if c == nil {
		r := t.add(&row{seq: e.Seq, time: e.Time, item: it})
		r.notes = append(r.notes, badge{"warn", "no call waits for it"})
		return
	}
	r := &row{seq: e.Seq, time: e.Time, item: it}
	t.said[e.Seq] = r
	c.failed, c.paused = failed, false
	t.close(c, callOutput{r, edited})
}

// The states of calls.
const (
	stateOK         = "ok"
	stateAnswered   = "answered"
	stateFailed     = "failed"
	stateRefused    = "refused"
	stateUnanswered = "nobody answered"
	stateUnknown    = "outcome unknown"
	stateWaiting    = "waits for approval"
	statePaused     = "its run waits"
	stateNotStarted = "not started"
	stateWithdrawn  = "withdrawn"
)

// state returns the state of a call.
func (c *call) state() badge {
	switch {
	case c.withdrawn:
		return badge{"warn", stateWithdrawn}
	case c.unanswered && !c.started:
		return badge{"warn", stateUnanswered}
	case c.refused && !c.started:
		return badge{"bad", stateRefused}
	case c.lost:
		return badge{"warn", stateUnknown}
	case c.failed:
		return badge{"bad", stateFailed}
	case len(c.outputs) > 0 && c.outputs[0].row.given:
		return badge{"", stateAnswered}
	case len(c.outputs) > 0:
		return badge{"ok", stateOK}
	case c.paused:
		return badge{"warn", statePaused}
	case c.asked && !c.allowed && !c.started:
		return badge{"warn", stateWaiting}
	case c.never, !c.started && !c.row.given:
		return badge{"", stateNotStarted}
	}
	return badge{"warn", stateUnknown}
}

// about handles an entry about a call.
func (t *talk) about(e session.Entry) {
	id := callOf(e.Body)
	if b, ok := e.Body.(session.SubagentUsage); ok && id == "" {
		who := "An agent in a message answered"
		if t.runs > 0 {
			who = "Guards asked a model"
		}
		t.sums.nested(b)
		t.mark(e, "run", who, joined(plural(int64(b.Turns), "turn"), plural(b.Tokens, "token"), costOf(b.Cost)))
		return
	}
	c := t.waits(id)
	if c == nil {
		c = t.last[id]
	}
	if c == nil {
		t.mark(e, "problem", "About a call that is not in the log", id)
		return
	}
	switch b := e.Body.(type) {
	case session.ApprovalAsked:
		c.asked, c.allowed = true, false
		c.event(e, "warn", "Approval requested", b.Reason)
	case session.Approval:
		c.verdict(e, b)
	case session.CallStarted:
		c.started, c.lost, c.paused, c.begun = true, false, false, e.Time
		if b.Arguments != "" {
			c.arguments = b.Arguments
		}
		c.within(b.Session)
	case session.SubagentUsage:
		c.within(b.Session)
		t.sums.nested(b)
		c.event(e, "", "Subagent run", joined(plural(int64(b.Turns), "turn"), plural(b.Tokens, "token"), costOf(b.Cost)))
	case session.Paused:
		c.started, c.paused = false, true
		c.within(b.Session)
		if b.Reason != "" {
			c.event(e, "", "Not yet", b.Reason)
		}
	case session.CallDropped:
		c.withdrawn = true
		c.event(e, "warn", "Withdrawn", b.Reason)
	}
}

// callOf returns the id of the call that a body is about.
func callOf(b session.Body) string {
	switch b := b.(type) {
	case session.ApprovalAsked:
		return b.CallID
	case session.Approval:
		return b.CallID
	case session.CallStarted:
		return b.CallID
	case session.SubagentUsage:
		return b.CallID
	case session.Paused:
		return b.CallID
	case session.CallDropped:
		return b.CallID
	}
	return ""
}

func (c *call) event(e session.Entry, class, title, text string) {
	c.events = append(c.events, event{e.Seq, class, title, text})
}

// within records a session that the call started.
func (c *call) within(id string) {
	if id != "" && !slices.Contains(c.session, id) {
		c.session = append(c.session, id)
	}
}

// verdict records who allowed or refused the call. It does not mention that the
// policy allowed a call that needs no approval.
func (c *call) verdict(e session.Entry, b session.Approval) {
	c.allowed, c.refused = b.Allowed, !b.Allowed
	if b.Edited != "" {
		c.arguments = b.Edited
	}
	by := cmp.Or(b.By, "a rule")
	if b.Rule == "" && b.By == "" { // an older log, or an approver that did not give its name
		by = "the policy"
	}
	rule := b.Rule
	if b.From != "" {
		rule = strings.TrimSpace(rule + " (" + b.From + ")")
	}
	c.unanswered = b.Decided == session.DeciderUnanswered
	switch {
	case b.Allowed:
		c.event(e, "ok", "Allowed by "+by, joined(rule, b.Reason))
	case c.unanswered:
		c.event(e, "warn", "Nobody answered", joined(rule, b.Reason))
	default:
		c.event(e, "bad", "Refused by "+by, joined(rule, b.Reason))
	}
	if b.Edited != "" {
		c.event(e, "warn", "Arguments changed by "+by, "")
	}
	if b.Remember != nil {
		c.event(e, "", "Rule for later calls", b.Remember.String())
	}
}
