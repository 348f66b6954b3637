// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// reads folds what tools have read, for [State.ReadKey]: which outputs hold
// what a later one brought again.
type reads struct {
	arguments map[int64]string   // of calls, by their entries, that were edited
	last      map[string]reading // by key
	due       []Collapsed        // not decided yet
}

// reading is the last output that holds what a key names.
type reading struct {
	seq    int64
	output item.Item
	sure   bool // it is known that the call did not fail
}

// apply folds an entry. It comes before the state does, for which a call is open
// until then.
func (rs *reads) apply(e session.Entry, s *State) {
	switch b := e.Body.(type) {
	case session.TurnStarted:
		rs.due = nil // what was sent stays as it is, if nobody decided before
	case session.Collapsed:
		rs.decided(b)
	case session.CallStarted:
		if c, ok := s.view.Call(b.CallID, 0); ok && b.Arguments != "" {
			if rs.arguments == nil {
				rs.arguments = map[int64]string{}
			}
			rs.arguments[c.Seq] = b.Arguments
		}
	case session.Answered:
		if !b.Failed {
			rs.output(s, b.CallID, reading{e.Seq, b.Item, true})
		}
	case session.Given:
		if b.Item.IsOutput() {
			failed, known := failedOutput(b.Item)
			if !failed {
				rs.output(s, b.Item.CallID(), reading{e.Seq, b.Item, known})
			}
		}
	}
}

// output takes note of what a call brought.
func (rs *reads) output(s *State, callID string, now reading) {
	c, ok := s.view.Call(callID, 0)
	if !ok {
		return
	}
	key, ok := s.ReadKey(c.Item, rs.arguments[c.Seq])
	delete(rs.arguments, c.Seq)
	if !ok {
		return
	}
	if before, again := rs.last[key]; again && session.Collapses(before.output) && (before.sure && now.sure || sameOutput(before.output, now.output)) {
		rs.due = append(rs.due, Collapsed{Seqs: []int64{before.seq}, By: now.seq})
	}
	if rs.last == nil {
		rs.last = map[string]reading{}
	}
	rs.last[key] = now
}

// decided forgets what need not be decided any more.
func (rs *reads) decided(b session.Collapsed) {
	for i, d := range rs.due {
		if d.By == b.By {
			rs.due = append(rs.due[:i:i], rs.due[i+1:]...)
			return
		}
	}
}

// failedOutput reports whether an output from elsewhere reports a failure, and
// whether it says so at all.
func failedOutput(it item.Item) (failed, known bool) {
	content, _ := ContentOf(it)
	status, _, _ := strings.Cut(strings.TrimPrefix(content.Display(), "status:\n"), "\n")
	return status == "error", status == "error" || status == "success"
}

// sameOutput reports whether two outputs say the same.
func sameOutput(a, b item.Item) bool {
	x, _ := a.Member("output")
	y, _ := b.Member("output")
	return x == y
}
