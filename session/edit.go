// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// put adds an item at the end of the list, or its marker if it is in quarantine. It
// reports whether anything was added. first says that the item begins a unit.
func (v *View) put(seq int64, it item.Item, first bool) bool {
	if it.IsZero() {
		return false
	}
	v.lines = append(v.lines, line{seq, it, first})
	v.tell(seq, it)
	if sent := v.sent(seq, it); !sent.IsZero() {
		v.send(origin{seq, len(v.lines) - 1}, sent)
	}
	return true
}

// send adds an item in its final form to the list, together with its origin.
func (v *View) send(from origin, it item.Item) {
	v.list.Append(it)
	v.from = append(v.from, from)
}

// sent returns the form in which an item is sent: the item itself, a marker, or the
// zero Item for nothing.
func (v *View) sent(seq int64, it item.Item) item.Item {
	if w, withdrawn := v.withdrawn[seq]; withdrawn {
		return w.instead
	}
	if v.repeated[seq] != 0 {
		return item.Item{}
	}
	if reason, refused := v.refused[seq]; refused {
		if marker, ok := Marker(it, reason); ok {
			return marker
		}
		return it
	}
	if members := v.without[seq]; members != nil {
		it = it.Without(members...)
	}
	if by, collapsed := v.collapsed[seq]; collapsed {
		// If the later output is quarantined, its content is not sent, so this
		// output must be.
		if _, gone := v.refused[by]; !gone {
			return collapsedOutput(it)
		}
	}
	return it
}

// tell records a repair for an item that is replaced because it is in quarantine.
func (v *View) tell(seq int64, it item.Item) {
	reason, refused := v.refused[seq]
	if !refused {
		return
	}
	if _, ok := Marker(it, reason); ok {
		v.repair(seq, it, "the endpoint refused it: "+reason)
	}
}

// Seq returns the number of the entry that the item at index i of [View.Items] comes
// from, and whether the item is in quarantine.
func (v *View) Seq(i int) (seq int64, quarantined bool) {
	if i < 0 || i >= len(v.from) {
		return 0, false
	}
	seq = v.from[i].seq
	_, quarantined = v.refused[seq]
	return seq, quarantined
}

// quarantine replaces the item of an entry, which may be in the list or still to
// come, or leaves out one member of it. If the entry is a [Compacted], it applies to
// all its items.
func (v *View) quarantine(q Quarantined) {
	if q.Member != "" {
		if v.without == nil {
			v.without = map[int64][]string{}
		}
		v.without[q.Seq] = append(v.without[q.Seq], q.Member)
		v.rewrite(ByQuarantine)
		return
	}
	// The first reason stays, so that the bytes of the marker do not change.
	if _, again := v.refused[q.Seq]; again {
		return
	}
	if v.refused == nil {
		v.refused = map[int64]string{}
	}
	v.refused[q.Seq] = q.Reason
	for _, l := range v.lines {
		if l.seq == q.Seq {
			v.tell(l.seq, l.item)
		}
	}
	for _, c := range v.compactions {
		for _, n := range c.items {
			if c.seq == q.Seq {
				v.tell(c.seq, n.item)
			}
		}
	}
	v.rewrite(ByQuarantine)
}

// dropReasoning leaves out all reasoning so far. Items that follow the reasoning in
// the same reply lose their ids, because an endpoint uses the id to find out which
// reasoning belongs to the item, and then asks for that reasoning.
func (v *View) dropReasoning(reason string) {
	drop := func(seq int64, it item.Item) { v.repair(seq, it, "the endpoint cannot read it: "+reason) }
	for _, l := range v.lines[v.dropped:] {
		if l.item.Type() == item.TypeReasoning {
			drop(l.seq, l.item)
		}
	}
	// Only the reasoning so far is left out. Later reasoning is sent.
	v.dropped = len(v.lines)
	for i := range v.compactions {
		v.compactions[i].dropReasoning(drop)
	}
	v.rewrite(ByDroppedReasoning)
	for _, r := range v.pending {
		linked := false
		for _, n := range r.nodes {
			switch {
			case n.item.Type() == item.TypeReasoning && !n.gone:
				n.gone, linked = true, true
				drop(n.seq, n.item)
			case linked:
				n.item = withoutID(n.item)
			}
		}
	}
}

// unlinking removes the reasoning from a sequence of items.
type unlinking bool

// next returns the form in which the next item is sent, or the zero Item for
// nothing.
func (linked *unlinking) next(it item.Item) item.Item {
	switch {
	case it.Type() == item.TypeReasoning:
		*linked = true
		return item.Item{}
	case it.IsOutput() || !said(it):
		*linked = false
	case bool(*linked):
		return withoutID(it)
	}
	return it
}

// Reasons why items that were sent before have changed; see [View.Changed].
const (
	ByQuarantine       = "quarantine"        // a marker or less than the whole item is sent: see [Quarantined]
	ByDroppedReasoning = "reasoning_dropped" // reasoning is left out: see [ReasoningDropped]
	ByCompaction       = "compaction"        // something shorter replaces items: see [Compacted]
	ByRestoring        = "restored"          // a compaction was undone: see [Restored]
	ByCollapsing       = "collapsed"         // a marker replaces outputs: see [Collapsed]
	ByRepetition       = "superseded"        // a text is left out that another one repeats: see [Superseded]
	ByWithdrawal       = "withdrawn"         // a guard objected to items: see [ItemsWithdrawn]
)

// change describes the first item of the list that differs from before.
type change struct {
	index int
	at    int // its offset in the list's bytes
	seq   int64
	why   string // "" if nothing changed
}

// Changed describes the first item that changed or was removed between the
// beginnings of the last two turns: its index in the previous list, the number of
// bytes of the list before it, its entry, and the reason. It returns false if all
// previous items are unchanged.
func (v *View) Changed() (index, bytes int, seq int64, why string, changed bool) {
	c := v.changed
	return c.index, c.at, c.seq, c.why, c.why != ""
}

// rewrite builds the list anew according to all decisions so far. Its cost is
// proportional to the length of the history, so it is done only for a recorded
// decision.
func (v *View) rewrite(why string) {
	was, from := v.list.Clone(), v.from
	// The old list may be shared with requests, so it is not changed in place.
	v.list, v.from = item.List{}, make([]origin, 0, len(from))
	v.each(v.send)
	at := 0
	for i, it := range was.All() {
		// at counts the bytes of the unchanged beginning, which an endpoint's cache
		// can reuse. The 1 is the comma after the item.
		if i < v.list.Len() && v.list.At(i) == it {
			at += it.Size() + 1
			continue
		}
		if c := v.changing; c.why == "" || i < c.index {
			v.changing = change{i, at, from[i].seq, why}
		}
		return
	}
}

// each calls visit with every item that is sent and its origin.
func (v *View) each(visit func(from origin, it item.Item)) {
	c := v.compaction()
	var linked unlinking
	for i, l := range v.lines {
		if c != nil && i == c.at {
			v.eachOf(c, visit)
		}
		sent := v.sent(l.seq, l.item)
		if i < v.dropped {
			sent = linked.next(sent)
		}
		if !sent.IsZero() && (c == nil || i >= c.at || c.spares(l)) {
			visit(origin{l.seq, i}, sent)
		}
	}
	if c != nil && c.at == len(v.lines) {
		v.eachOf(c, visit)
	}
}

// eachOf calls visit with the items of a compaction.
func (v *View) eachOf(c *compaction, visit func(from origin, it item.Item)) {
	for i, n := range c.items {
		visit(origin{c.seq, ^i}, v.sent(c.seq, n.item))
	}
}

// withoutID returns an item of the model in the form that an item from another
// source has. A message without an id has the short form.
func withoutID(it item.Item) item.Item {
	short, ok := it, false
	switch it.Type() {
	case item.TypeMessage:
		short, ok = edited(it, func(m *item.Message) {
			if m.ID != "" {
				*m = item.Message{Role: m.Role, Phase: m.Phase, Content: item.Text(m.Content.Display())}
			}
		})
	case item.TypeFunctionCall:
		short, ok = edited(it, func(v *item.FunctionCall) { v.ID = "" })
	case item.TypeCustomToolCall:
		short, ok = edited(it, func(v *item.CustomToolCall) { v.ID = "" })
	}
	if it.ID() == "" || !ok {
		return it
	}
	return short
}

// essential are the members without which an item of any type changes its meaning or
// loses it. Items of other types may have a member of the same name that they need:
// see [item.CallKind.Needs].
var essential = []string{"type", "role", "content", "call_id", "name", "namespace", "arguments", "input", "output", "summary", "encrypted_content", "operation", "server_label", "approve", "approval_request_id", "tools"}

// Spare reports whether an item can be sent without one of its members and keeps its
// meaning and its pairing.
func Spare(it item.Item, member string) bool {
	_, has := it.Member(member)
	kind, isCall := it.Type().CallKind()
	switch {
	case !has, slices.Contains(essential, member), isCall && kind.Needs(it.Type(), member):
		return false
	}
	return it.Type() != item.TypeItemReference || member != "id"
}

// Marker returns a replacement for an item that the endpoint refused. For the output
// of a function or custom tool it is an output of the same call that says so; for a
// message it is the message's texts, with a remark in place of each image and file.
// It returns false for other items, which have no such form.
func Marker(it item.Item, reason string) (item.Item, bool) {
	// The reason is text of the endpoint, and an item must be valid JSON.
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	text := item.Text("The original output of this call is left out: the endpoint refused it. " + reason)
	var v item.Value
	switch it.Type() {
	case item.TypeFunctionCallOutput:
		v = &item.FunctionCallOutput{CallID: it.CallID(), Output: text}
	case item.TypeCustomToolCallOutput:
		v = &item.CustomToolCallOutput{CallID: it.CallID(), Output: text}
	case item.TypeMessage:
		m, err := item.As[item.Message](it)
		if err != nil || !withoutMedia(m, reason) {
			return it, false
		}
		v = m
	default:
		return it, false
	}
	marker, err := item.New(v)
	return marker, err == nil
}

// withoutMedia replaces a message's images and files and reports whether there
// were any.
func withoutMedia(m *item.Message, reason string) (found bool) {
	for i, p := range m.Content.Parts {
		what := ""
		switch p.(type) {
		case *item.InputImage:
			what = "An image"
		case *item.InputFile:
			what = "A file"
		default:
			continue
		}
		found = true
		m.Content.Parts[i] = &item.InputText{Text: what + " is left out here: the endpoint refused it. " + reason}
	}
	return found
}
