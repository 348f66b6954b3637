// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package transcript writes the log of a session in ChatMarkdown: its items as
// elements, and in remarks what elements cannot say. Package agentfile reads
// them.
package transcript

import (
	"maps"
	"slices"
	"strconv"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// BrokeOff stands behind a reply that broke off. It is a remark for people and
// tells the next run two things that the elements before it do not: that the
// model has to be asked again, and that calls of the reply that have no response
// were never started.
const BrokeOff = "<!-- the reply broke off here -->"

// A call without a response may have run, for all that the elements say. The
// first remark, [AboutCall], a number and [Waits], says that it has not: it waits
// for somebody's answer, and can be answered when the transcript is read again.
// The second one, with [Started], takes that back. Calls are named by their
// number in the file.
const (
	AboutCall = "<!-- call "
	Waits     = " waits for an approval -->"
	Started   = " was started -->"
)

// Writer writes entries one after the other. It is a value: one that an append
// failed with, or whose text could not be stored, is used again as it was. The
// zero Writer begins a log.
type Writer struct {
	turn turn
	wait waiting
}

// After returns the Writer of what follows the bodies.
func After(bodies []session.Body) Writer {
	var v session.View
	for i, b := range bodies {
		v.Apply(session.Entry{Seq: int64(i) + 1, Body: b})
	}
	w := Writer{wait: waiting{}}
	for _, c := range v.Open() {
		if c.Asked {
			w.wait[c.CallID] = c.Number
		}
	}
	return w
}

// Append appends what there is to say of an entry, which may be nothing, and
// returns the Writer for the next one. The items are written by element, such as
// [chatmd.Append].
func (w Writer) Append(dst []byte, b session.Body, element func(dst []byte, it item.Item) ([]byte, error)) (Writer, []byte, error) {
	if it, ok := said(b); ok {
		var err error
		if dst, err = element(dst, it); err != nil {
			return w, dst, err
		}
	}
	remark := ""
	if w.wait, remark = w.wait.after(b); remark != "" {
		dst = append(dst, remark+"\n"...)
	}
	if w.turn = w.turn.after(b); w.turn.remark() {
		dst, w.turn = append(dst, BrokeOff+"\n"...), turn{}
	}
	return w, dst, nil
}

// said returns the item that an entry adds to the conversation.
func said(b session.Body) (item.Item, bool) {
	switch b := b.(type) {
	case session.Given:
		return b.Item, true
	case session.Received:
		return b.Item, true
	case session.Answered:
		return b.Item, true
	}
	return item.Item{}, false
}

// turn is what has to be known of the turn under way to say that it broke off.
type turn struct {
	said  bool     // something of it is in the file
	broke bool     // the reply broke off
	early []string // calls that were started before its end and have no output
}

// after returns the turn as it is when another entry is written.
func (t turn) after(b session.Body) turn {
	switch b := b.(type) {
	case session.TurnStarted:
		return turn{}
	case session.Received:
		t.said = true
	case session.CallStarted:
		t.early = append(without(t.early, b.CallID), b.CallID)
	case session.Answered:
		t.early = without(t.early, b.CallID)
	case session.Withdrawn:
		t.early = without(t.early, b.CallID)
	case session.TurnEnded:
		t.broke = t.said && b.BrokeOff()
		t.said = t.broke
	case session.RunStarted: // what is under way has ended with the last run
		t.broke = t.said
	}
	return t
}

// without returns a copy of a list that lacks an id.
func without(ids []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(one string) bool { return one == id })
}

// remark reports whether it is to be said that the reply broke off. Calls that
// may have run get their responses first: a call without one, before the remark,
// was not started.
func (t turn) remark() bool { return t.broke && len(t.early) == 0 }

// waiting is what is known of calls that wait: their numbers by id.
type waiting map[string]int

// after returns what is known when another entry is written, and the remark
// that goes with it, or "".
func (w waiting) after(b session.Body) (waiting, string) {
	switch b := b.(type) {
	case session.ApprovalAsked:
		if n, ok := w[b.CallID]; ok && n == b.Number {
			return w, ""
		}
		if w = maps.Clone(w); w == nil {
			w = waiting{}
		}
		w[b.CallID] = b.Number
		return w, AboutCall + strconv.Itoa(b.Number) + Waits
	case session.CallStarted:
		if n, ok := w[b.CallID]; ok {
			return w.without(b.CallID), AboutCall + strconv.Itoa(n) + Started
		}
	case session.Answered:
		return w.without(b.CallID), ""
	case session.Withdrawn:
		return w.without(b.CallID), ""
	}
	return w, ""
}

func (w waiting) without(id string) waiting {
	if _, ok := w[id]; ok {
		w = maps.Clone(w)
		delete(w, id)
	}
	return w
}
