// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"strings"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// reads folds what tools have read, for [Agent.CollapseReads]: which outputs hold
// what a later one brought again.
type reads struct {
	arguments map[int64]string    // of calls, by their entries, that were edited
	last      map[string]reading  // by region
	due       []session.Collapsed // not decided yet
}

// reading is the last output that holds a region.
type reading struct {
	seq    int64
	output item.Item
	sure   bool // it is known that the call did not fail
}

// apply folds an entry. It comes before the state does, for which a call is open
// until then.
func (rs *reads) apply(e session.Entry, r *Run) {
	switch b := e.Body.(type) {
	case session.TurnStarted:
		rs.due = nil // what was sent stays as it is, if nobody decided before
	case session.Collapsed:
		rs.decided(b)
	case session.CallStarted:
		if c, ok := r.state.View().Call(b.CallID, 0); ok && b.Arguments != "" {
			if rs.arguments == nil {
				rs.arguments = map[int64]string{}
			}
			rs.arguments[c.Seq] = b.Arguments
		}
	case session.Answered:
		if !b.Failed {
			rs.output(r, b.CallID, reading{e.Seq, b.Item, true})
		}
	case session.Given:
		if b.Item.IsOutput() {
			failed, known := failedOutput(b.Item)
			if !failed {
				rs.output(r, b.Item.CallID(), reading{e.Seq, b.Item, known})
			}
		}
	}
}

// output takes note of what a call brought.
func (rs *reads) output(r *Run, callID string, now reading) {
	c, ok := r.state.View().Call(callID, 0)
	if !ok {
		return
	}
	region, ok := r.region(c.Item, rs.arguments[c.Seq])
	delete(rs.arguments, c.Seq)
	if !ok {
		return
	}
	if before, again := rs.last[region]; again && session.Collapses(before.output) && (before.sure && now.sure || sameOutput(before.output, now.output)) {
		rs.due = append(rs.due, session.Collapsed{Seqs: []int64{before.seq}, By: now.seq})
	}
	if rs.last == nil {
		rs.last = map[string]reading{}
	}
	rs.last[region] = now
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
	content, _ := plan.ContentOf(it)
	status, _, _ := strings.Cut(strings.TrimPrefix(content.Display(), "status:\n"), "\n")
	return status == "error", status == "error" || status == "success"
}

// sameOutput reports whether two outputs say the same.
func sameOutput(a, b item.Item) bool {
	x, _ := a.Member("output")
	y, _ := b.Member("output")
	return x == y
}

// region names what a call read.
func (r *Run) region(of item.Item, edited string) (region string, ok bool) {
	call, err := CallOf(of)
	if err != nil {
		return "", false
	}
	t, known := r.tools.Lookup(call.Name)
	if !known {
		return "", false
	}
	traits := tool.TraitsOf(t)
	if traits.Region == nil {
		return "", false
	}
	defer func() {
		if recover() != nil {
			region, ok = "", false
		}
	}()
	if edited != "" {
		call.Arguments = edited
	}
	region, ok = traits.Region.Region(call.Arguments)
	return call.Name + "\x00" + region, ok
}

// collapse decides what need not be sent again, before the next request is
// decided on.
func (r *Run) collapse(ctx context.Context) error {
	if len(r.reads.due) == 0 || len(r.state.View().Open()) > 0 {
		return nil
	}
	due := r.reads.due
	bodies := make([]session.Body, len(due))
	for i, d := range due {
		bodies[i] = d
	}
	if err := r.record(ctx, bodies...); err != nil {
		return err
	}
	for _, d := range due {
		r.emit(Collapsed{Seqs: d.Seqs, By: d.By})
	}
	return nil
}
