// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"maps"

	"github.com/antiphon-go/antiphon/item"
)

// compaction is a [Compacted] that is in force.
type compaction struct {
	seq   int64
	at    int // the first line that it does not replace
	kept  map[int64]bool
	items []numbered // with their positions in the entry, from 1
}

// spares reports whether a line before the boundary is still sent.
func (c *compaction) spares(l line) bool {
	return l.item.Instructs() || c.kept[l.seq] && !said(l.item) && l.item != brokeOff
}

// dropReasoning leaves out the reasoning among the compaction's items.
func (c *compaction) dropReasoning(drop func(seq int64, it item.Item)) {
	var linked unlinking
	var items []numbered
	for _, n := range c.items {
		if n.item.Type() == item.TypeReasoning {
			drop(c.seq, n.item)
		}
		if n.item = linked.next(n.item); !n.item.IsZero() {
			items = append(items, n)
		}
	}
	c.items = items
}

// compaction returns the compaction whose items are sent, or nil.
func (v *View) compaction() *compaction {
	if len(v.compactions) == 0 {
		return nil
	}
	return &v.compactions[len(v.compactions)-1]
}

// compact replaces the lines up to the boundary with the items of the compaction,
// unless that would replace nothing.
func (v *View) compact(seq int64, b Compacted) {
	if b.Failure != "" {
		return
	}
	c := compaction{seq: seq, at: v.boundary(b.Through)}
	if len(b.Kept) > 0 {
		c.kept = make(map[int64]bool, len(b.Kept))
		for _, k := range b.Kept {
			c.kept[k] = true
		}
	}
	if !v.replacesAny(&c) {
		return
	}
	c.items = v.paired(b.Items, c.at)
	v.compactions = append(v.compactions, c)
	v.rewrite(ByCompaction)
}

// replacesAny reports whether the compaction would replace anything that is still
// sent. A compaction that ends before the last one replaces nothing, because those
// lines are replaced already.
func (v *View) replacesAny(c *compaction) bool {
	last := v.compaction()
	switch {
	case last == nil:
		last = new(compaction)
	case c.at < last.at:
		return false
	case len(last.items) > 0:
		return true
	}
	for i, l := range v.lines[:c.at] {
		if !c.spares(l) && v.repeated[l.seq] == 0 && (i >= last.at || last.spares(l)) {
			return true
		}
	}
	return false
}

// restore takes back a compaction that is in force, and all compactions after it.
func (v *View) restore(b Restored) {
	for i, c := range v.compactions {
		if c.seq == b.Seq {
			// Limit the capacity: a caller that holds the old slice must not see
			// later compactions in it.
			v.compactions = v.compactions[:i:i]
			v.rewrite(ByRestoring)
			return
		}
	}
}

// boundary returns the first line that a compaction through the given entry does not
// replace. The lines before it form whole units.
func (v *View) boundary(through int64) int {
	at := 0
	for i, l := range v.lines {
		if l.first {
			at = i
		}
		if l.seq > through {
			return at
		}
	}
	return len(v.lines)
}

// paired returns the items of a compaction in a form that can be sent before the
// lines from at on: calls with their outputs, and with ids that no other call has.
// Items without such a form are left out.
func (v *View) paired(items []item.Item, at int) []numbered {
	// A separate view pairs the items by the same rules as the log. It starts with
	// the ids that the remaining lines use.
	own := View{ids: callIDs{used: map[string]bool{}}}
	for _, l := range v.lines[at:] {
		if l.item.IsCall() {
			own.ids.used[l.item.CallID()] = true
		}
	}
	for _, r := range v.pending {
		for _, n := range r.nodes {
			if n.call != nil {
				own.ids.used[n.wireID] = true
			}
		}
	}
	for i, it := range items {
		own.given(int64(i)+1, it)
	}
	for _, c := range own.Open() {
		n := own.unanswered(c.CallID, c.Item.Type())
		n.closed, n.gone = true, true
	}
	// The start of a turn settles the last reply.
	own.Apply(Entry{Body: TurnStarted{}})
	if v.ids.used == nil {
		v.ids.used = map[string]bool{}
	}
	maps.Copy(v.ids.used, own.ids.used) // for calls to come
	var list []numbered
	for _, l := range own.lines {
		list = append(list, numbered{l.seq, l.item})
	}
	return list
}

// Compaction returns the number of the entry of the compaction whose items are sent,
// or 0.
func (v *View) Compaction() int64 {
	if c := v.compaction(); c != nil {
		return c.seq
	}
	return 0
}

// Compactions returns the entries of the compactions in force, in order. Each one
// replaces the items of the one before. A [Restored] can name any of them.
func (v *View) Compactions() (seqs []int64) {
	for _, c := range v.compactions {
		seqs = append(seqs, c.seq)
	}
	return seqs
}

// OpaqueCompaction returns the entry of the first compaction in force that an endpoint made in
// a form that only this endpoint can read, or 0.
func (v *View) OpaqueCompaction() int64 {
	for _, c := range v.compactions {
		for _, n := range c.items {
			if n.item.Type() == item.TypeCompaction {
				return c.seq
			}
		}
	}
	return 0
}

// Boundary returns the last place at or before index i of [View.Items] where a
// compaction can end without separating a reply from the outputs of its calls.
// through is the number of the last entry to replace, and first the index of the
// first item after it. If there is no such place after the compaction in force,
// through is 0, and first is the index of the first item that this compaction left
// unchanged.
func (v *View) Boundary(i int) (through int64, first int) {
	end := len(v.lines)
	i = max(i, 0)
	if i < v.list.Len() {
		end = max(v.from[i].line, -1)
	}
	start := 0
	if c := v.compaction(); c != nil {
		start = c.at
	}
	at := start
	most, before := int64(0), int64(0) // the largest entry so far, and the largest of the whole units
	for j, l := range v.lines[:min(end+1, len(v.lines))] {
		if l.first && j > start && v.unit(j) > most {
			at, before = j, most
		}
		most = max(most, l.seq)
	}
	if end == len(v.lines) && end > start {
		at, before = end, most
	}
	for first < min(i, len(v.from)) && v.from[first].line < at {
		first++
	}
	if at == start {
		before = 0
	}
	return before, first
}

// unit returns the largest entry of the unit that begins at the given line.
func (v *View) unit(at int) int64 {
	most := v.lines[at].seq
	for _, l := range v.lines[at+1:] {
		if l.first {
			break
		}
		most = max(most, l.seq)
	}
	return most
}

// Replaceable yields the items that a [Compacted] through the given entry would
// replace if it kept nothing, with their indexes in [View.Items].
func (v *View) Replaceable(through int64) iter.Seq2[int, item.Item] {
	at := v.boundary(through)
	return func(yield func(int, item.Item) bool) {
		for i, from := range v.from {
			switch {
			case from.line >= at:
				return
			case from.line >= 0 && v.lines[from.line].item.Instructs():
			case !yield(i, v.list.At(i)):
				return
			}
		}
	}
}
