// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// CheckLog reports states that no log of a session may have, however often its
// process was killed: a gap, a repeated item in a turn, a request to the model while
// a call has no output, an output without a call, a call that was started twice
// although its tool does not allow that, or a call that was started after its
// output. It does not use the code of the agent, so that it can check that code.
func CheckLog(log []session.Entry) error {
	h := readHistory(log)
	return errors.Join(h.problems...)
}

// CheckCalls compares a session's log with a ledger of its calls. It ignores the
// entries up to number from, which a fork shares with another session. A call may
// run only if the log says so, not more often than the log says, and not twice
// unless that is allowed; a call that did not run according to the log must not be
// in the ledger; and the ledger must not have calls that are not in the log. (J1)
func CheckCalls(id string, log []session.Entry, from int64, ran map[string]CallCounts) error {
	h := readHistory(log)
	var problems []error
	problem := func(c *loggedCall, format string, args ...any) {
		problems = append(problems, fmt.Errorf("call %s of turn %d: %s", c.id, c.turn, fmt.Sprintf(format, args...)))
	}
	known := map[string]bool{}
	for _, c := range h.calls {
		key := CallKey(id, c.turn, c.id)
		known[key] = true
		starts := 0
		for _, at := range c.starts {
			if at > from {
				starts++
			}
		}
		switch r := ran[key]; {
		case r.Began > starts:
			problem(c, "it was begun %d times, and the log says %d", r.Began, starts)
		case r.Began > 1 && !c.repeatable:
			problem(c, "it was begun %d times", r.Began)
		case r.Ended > r.Began:
			problem(c, "it ended %d times and began %d times", r.Ended, r.Began)
		}
	}
	for key := range ran {
		if sessionOfKey(key) == id && !known[key] {
			problems = append(problems, fmt.Errorf("%s: the ledger has it, and the log has no such call", key))
		}
	}
	return errors.Join(problems...)
}

func sessionOfKey(key string) string { return key[:max(strings.LastIndex(key, " turn "), 0)] }

// history is a log that is read without trusting it.
type history struct {
	calls    []*loggedCall
	turn     int
	inTurn   bool
	items    map[string]bool // of the turn, by id
	problems []error
}

// loggedCall is the state of a call according to a log.
type loggedCall struct {
	id         string
	turn       int
	typ        item.Type
	given      bool
	starts     []int64
	running    bool // it was started in this run
	repeatable bool
	nested     bool
	gone       bool // it was not started and must not be
	answered   int64
}

func (c *loggedCall) open() bool { return !c.gone && c.answered == 0 }

func readHistory(log []session.Entry) *history {
	h := new(history)
	for i, e := range log {
		if e.Seq != int64(i)+1 {
			h.problem(e, "it is number %d of the log", i+1)
		}
		h.add(e)
	}
	return h
}

func (h *history) problem(e session.Entry, format string, args ...any) {
	h.problems = append(h.problems, fmt.Errorf("entry %d (%s): %s", e.Seq, session.Kind(e.Body), fmt.Sprintf(format, args...)))
}

func (h *history) add(e session.Entry) {
	switch b := e.Body.(type) {
	case session.InputItem:
		h.given(e, b.Item)
	case session.RunStarted:
		h.brokeOff()
		for _, c := range h.calls {
			c.running = false
		}
	case session.TurnStarted:
		h.begin(e, b)
	case session.OutputItem:
		h.received(e, b)
	case session.TurnEnded:
		if b.BrokeOff() {
			h.brokeOff()
		}
		h.inTurn = false
	case session.CallStarted:
		h.start(e, b)
	case session.Paused:
		if c := h.find(b.CallID, ""); c != nil {
			c.running = false
		}
	case session.CallOutput:
		h.answer(e, b.CallID, b.Item)
	case session.CallDropped:
		h.answer(e, b.CallID, item.Item{})
	}
}

// brokeOff drops the calls of a reply that broke off, except for started ones.
func (h *history) brokeOff() {
	for _, c := range h.calls {
		if h.inTurn && c.turn == h.turn && c.open() && len(c.starts) == 0 {
			c.gone = true
		}
	}
	h.inTurn = false
}

func (h *history) given(e session.Entry, it item.Item) {
	switch {
	case it.IsCall():
		h.calls = append(h.calls, &loggedCall{id: it.CallID(), typ: it.Type(), given: true})
	case it.IsOutput():
		h.answer(e, it.CallID(), it)
	}
}

func (h *history) begin(e session.Entry, b session.TurnStarted) {
	for _, c := range h.calls {
		if c.open() {
			h.problem(e, "call %s of turn %d has no output", c.id, c.turn)
		}
	}
	if b.Turn <= h.turn {
		h.problem(e, "turn %d comes behind turn %d", b.Turn, h.turn)
	}
	h.turn, h.inTurn, h.items = b.Turn, true, map[string]bool{}
}

func (h *history) received(e session.Entry, b session.OutputItem) {
	if !h.inTurn || b.Turn != h.turn {
		h.problem(e, "an item of turn %d, and that is not under way", b.Turn)
	}
	if id := b.Item.ID(); id != "" {
		if h.items[id] {
			h.problem(e, "item %s of turn %d is there twice", id, b.Turn)
		}
		h.items[id] = true
	}
	if b.Item.IsCall() {
		h.calls = append(h.calls, &loggedCall{id: b.Item.CallID(), typ: b.Item.Type(), turn: b.Turn})
	}
}

func (h *history) start(e session.Entry, b session.CallStarted) {
	c := h.find(b.CallID, "")
	switch {
	case c == nil:
		h.problem(e, "no call %s waits to be started", b.CallID)
		return
	case c.running:
		h.problem(e, "call %s runs already", b.CallID)
	case len(c.starts) > 0 && !c.repeatable && !c.nested:
		h.problem(e, "call %s was started at entry %d, and must not be run again", b.CallID, c.starts[0])
	}
	c.starts = append(c.starts, e.Seq)
	c.running, c.repeatable, c.nested = true, b.Repeatable, b.Session != ""
}

func (h *history) answer(e session.Entry, callID string, out item.Item) {
	c := h.find(callID, out.Type())
	if c == nil {
		h.problem(e, "no call %s waits for an output", callID)
		return
	}
	c.answered = e.Seq
}

// find returns the first open call of an id.
func (h *history) find(id string, output item.Type) *loggedCall {
	for _, c := range h.calls {
		if !c.open() || c.id != id {
			continue
		}
		fits := output == "" || slices.Contains(answeredBy, [2]item.Type{c.typ, output})
		if fits {
			return c
		}
	}
	return nil
}
