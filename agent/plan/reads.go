// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// reads folds the outputs of tools that read, for [State.ReadKey]. It finds the
// outputs that a later output repeats.
type reads struct {
	arguments map[int64]string   // edited arguments of calls, by the call's entry
	last      map[string]reading // by key
	due       []Collapsed        // not yet decided
}

// reading is the last output for a key.
type reading struct {
	seq    int64
	output item.Item
	sure   bool // the call is known to have succeeded
}

// apply folds an entry. It must be called before the state applies the entry, while
// the call is still open there.
func (rs *reads) apply(e session.Entry, s *State) {
	switch b := e.Body.(type) {
	case session.TurnStarted:
		rs.due = nil // without a decision by now, the outputs are sent unchanged
	case session.Collapsed:
		rs.decided(b)
	case session.CallStarted:
		if c, ok := s.view.Call(b.CallID, 0); ok && b.Arguments != "" {
			if rs.arguments == nil {
				rs.arguments = map[int64]string{}
			}
			rs.arguments[c.Seq] = b.Arguments
		}
	case session.CallOutput:
		if !b.Failed {
			rs.output(s, b.CallID, reading{e.Seq, b.Item, true})
		}
	case session.InputItem:
		if b.Item.IsOutput() {
			failed, known := FailedOutput(b.Item)
			if !failed {
				rs.output(s, b.Item.CallID(), reading{e.Seq, b.Item, known})
			}
		}
	}
}

// output records the output of a call.
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

// decided removes a recorded decision from due.
func (rs *reads) decided(b session.Collapsed) {
	for i, d := range rs.due {
		if d.By == b.By {
			rs.due = append(rs.due[:i:i], rs.due[i+1:]...)
			return
		}
	}
}

// FailedOutput reports whether an output reports a failure, and whether it states its status at all. Outputs of this program do
// if they failed, and no other output of it looks so: see Envelope of package tool/output. Others' may say anything.
func FailedOutput(it item.Item) (failed, known bool) {
	content, _ := ContentOf(it)
	status, _, _ := strings.Cut(strings.TrimPrefix(content.Display(), "status:\n"), "\n")
	return status == "error", status == "error" || status == "success"
}

// sameOutput reports whether two outputs are equal.
func sameOutput(a, b item.Item) bool {
	x, _ := a.Member("output")
	y, _ := b.Member("output")
	return x == y
}
