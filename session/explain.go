// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Disposition says how the next request treats an item of the log.
type Disposition string

// The dispositions.
const (
	Sent      Disposition = "sent"      // unchanged
	Changed   Disposition = "changed"   // with another call id, or without the id that ties it to reasoning
	Replaced  Disposition = "replaced"  // by a marker: it is in quarantine or withheld, or a later output has the same content
	Shortened Disposition = "compacted" // a compaction replaces it
	TakenOut  Disposition = "withdrawn" // a guard objected to it; see [ItemsWithdrawn]
	LeftOut   Disposition = "left_out"
	Waiting   Disposition = "waiting" // its reply is not settled
	NotSent   Disposition = "note"    // it is never sent
	Undone    Disposition = "undone"  // an item of a compaction that was undone or replaced
)

// InputReport lists the items of the next request and the disposition of every item
// in the log.
type InputReport struct {
	// Log has every item of the log in order, including the items of a [Compacted].
	Log []LogItem `json:"log"`
	// Request is the input of the next request. If calls wait for outputs, it ends
	// before their reply.
	Request []SentItem `json:"request"`
	// Compactions are the compactions in the log.
	Compactions []CompactionReport `json:"compactions,omitempty"`
}

// LogItem is an item of the log and its disposition.
type LogItem struct {
	Seq int64 `json:"seq"`
	// Kind is the kind of the entry: given, received, answered, note or compacted. The
	// kind break is for the note after a message that broke off; see [IsBreakNote].
	Kind        string      `json:"kind"`
	Item        item.Item   `json:"item"`
	Disposition Disposition `json:"fate"`
	// Index is the position in the request of the item or of its own replacement, or
	// -1.
	Index int `json:"index"`
	// By is the entry that decided the disposition, or 0.
	By int64 `json:"by,omitempty"`
	// Reason is an explanation for people.
	Reason string `json:"reason,omitempty"`
	// CallID is the id that the item is sent with, if it differs from its own.
	CallID string `json:"call_id,omitempty"`
}

// SentItem is an item of the request and the entry it comes from.
type SentItem struct {
	Seq  int64     `json:"seq"`
	Item item.Item `json:"item"`
	// For is the number of items that it replaces.
	For int `json:"for,omitempty"`
}

// CompactionReport describes the effect of a [Compacted].
type CompactionReport struct {
	Seq int64  `json:"seq"`
	By  string `json:"by"`
	// State is in_force, replaced (by a later one), restored, failed, or void if there
	// was nothing to replace.
	State string `json:"state"`
	// Replaces counts the items that are not sent because of it.
	Replaces int    `json:"replaces"`
	Before   int64  `json:"before,omitempty"`
	After    int64  `json:"after,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// The states of a compaction.
const (
	InForce   = "in_force" // requests carry its items in place of those that it replaces
	Overtaken = "replaced" // by a later compaction
	TakenBack = "restored" // undone, so requests carry the original items again
	Failed    = "failed"   // it produced no items
	Void      = "void"     // there was nothing to replace
)

// Explain reads a log and accounts for each item in it. The request that it
// describes is the one that a run would send if it began now, before it makes any
// new decision.
func Explain(log iter.Seq[Entry]) *InputReport {
	x := explanation{decided: map[int64]decision{}, calls: map[int64]decision{}, withheld: map[int64]bool{}, states: map[int64]string{}, again: map[int64]int64{}}
	if log != nil {
		for e := range log {
			x.apply(e)
		}
	}
	// A run and a turn that begin now settle everything that the next request would
	// carry.
	x.view.Apply(Entry{Body: RunStarted{}})
	x.view.Apply(Entry{Body: TurnStarted{}})
	return x.account()
}

// explanation collects the data for a report.
type explanation struct {
	view     View
	log      []Entry
	decided  map[int64]decision // quarantines, collapses and withdrawals, by the item's entry
	calls    map[int64]decision // dropped calls, by the call's entry
	withheld map[int64]bool     // entries of items whose withdrawal is in decided
	unread   []decision         // reasoning that was dropped
	again    map[int64]int64    // repeated items, and the entry that decided it
	states   map[int64]string   // state of each compaction

	// State at the end of the log, by entry.
	places  map[int64][]int // in the request
	repairs map[int64]string
	hidden  map[int64]bool // items that the compaction in force replaces
}

type decision struct {
	by     int64
	reason string
}

func (x *explanation) apply(e Entry) {
	x.log = append(x.log, e)
	// The view keeps only the outcome of decisions. Some reasons must be noted
	// before the view applies the entry, the others after it.
	before := x.view.compactions
	switch b := e.Body.(type) {
	case CallDropped:
		if n := x.view.unanswered(b.CallID, ""); n != nil {
			x.calls[n.seq] = decision{e.Seq, b.Reason}
		}
	case Quarantined:
		if b.Member == "" {
			x.decided[b.Seq] = decision{e.Seq, "the endpoint refused it: " + b.Reason}
		}
	case ReasoningDropped:
		x.unread = append(x.unread, decision{e.Seq, "the endpoint cannot read it: " + b.Reason})
	}
	x.view.Apply(e)
	switch b := e.Body.(type) {
	case ItemsWithdrawn:
		x.withhold(decision{e.Seq, cmp.Or(b.Reason, "a guard objected to it")})
	case Collapsed:
		for _, seq := range b.Seqs {
			if _, refused := x.decided[seq]; !refused && x.view.collapsed[seq] == b.By {
				x.decided[seq] = decision{e.Seq, fmt.Sprintf("the output of entry %d holds what it did", b.By)}
			}
		}
	case Superseded:
		for _, seq := range b.Seqs {
			if x.again[seq] == 0 && x.view.repeated[seq] == b.By {
				x.again[seq] = e.Seq
			}
		}
	case Compacted:
		x.states[e.Seq] = Void
		if b.Failure != "" {
			x.states[e.Seq] = Failed
		} else if x.view.Compaction() == e.Seq {
			x.states[e.Seq] = InForce
			for _, c := range before {
				x.states[c.seq] = Overtaken
			}
		}
	case Restored:
		for _, c := range before[len(x.view.compactions):] {
			x.states[c.seq] = TakenBack
		}
		if seq := x.view.Compaction(); seq > 0 {
			x.states[seq] = InForce
		}
	}
}

// withhold records the items that a withdrawal removed: those that it names, and
// those withdrawn along with them.
func (x *explanation) withhold(d decision) {
	for seq := range x.view.withdrawn {
		if !x.withheld[seq] {
			x.withheld[seq] = true
			x.decided[seq] = d
		}
	}
}

// account builds the report.
func (x *explanation) account() *InputReport {
	x.sum()
	// The log is read once more, because the fate of an item is known only at its
	// end.
	a := new(InputReport)
	for i, from := range x.view.from {
		c := SentItem{Seq: from.seq, Item: x.view.list.At(i)}
		if from.line < 0 {
			c.For = len(x.hidden)
		}
		a.Request = append(a.Request, c)
	}
	for _, e := range x.log {
		switch b := e.Body.(type) {
		case InputItem:
			a.Log = x.withNote(append(a.Log, x.fate(LogItem{Seq: e.Seq, Kind: "given", Item: b.Item})))
		case OutputItem:
			a.Log = x.withNote(append(a.Log, x.fate(LogItem{Seq: e.Seq, Kind: "received", Item: b.Item})))
		case CallOutput:
			a.Log = append(a.Log, x.fate(LogItem{Seq: e.Seq, Kind: "answered", Item: b.Item}))
		case Note:
			a.Log = append(a.Log, LogItem{Seq: e.Seq, Kind: "note", Item: b.Item, Disposition: NotSent, Index: -1})
		case Compacted:
			a.Log = append(a.Log, x.standIns(e.Seq, b)...)
			c := CompactionReport{Seq: e.Seq, By: b.By, State: x.states[e.Seq], Before: b.Before, After: b.After, Reason: b.Failure}
			if c.State == InForce {
				c.Replaces = len(x.hidden)
			}
			a.Compactions = append(a.Compactions, c)
		}
	}
	return a
}

// sum indexes the final state of the view.
func (x *explanation) sum() {
	x.places, x.repairs, x.hidden = map[int64][]int{}, map[int64]string{}, map[int64]bool{}
	for i, from := range x.view.from {
		x.places[from.seq] = append(x.places[from.seq], i)
	}
	for _, r := range x.view.repairs {
		x.repairs[r.Seq] = r.Reason
	}
	c := x.view.compaction()
	if c == nil {
		return
	}
	for _, l := range x.view.lines[:c.at] {
		if !c.spares(l) && x.view.repeated[l.seq] == 0 {
			x.hidden[l.seq] = true
		}
	}
}

// withNote appends the note after the last item if the item has one; see
// [IsBreakNote].
func (x *explanation) withNote(log []LogItem) []LogItem {
	l := log[len(log)-1]
	for _, at := range x.places[l.Seq] {
		if it := x.view.list.At(at); it == brokeOff && l.Item != it {
			return append(log, LogItem{Seq: l.Seq, Kind: "break", Item: it, Disposition: Sent, Index: at, Reason: "it stands behind a reply that broke off"})
		}
	}
	return log
}

// standIns returns the log items for the items of a compaction.
func (x *explanation) standIns(seq int64, b Compacted) (list []LogItem) {
	inForce := x.states[seq] == InForce
	for i, it := range b.Items {
		l := LogItem{Seq: seq, Kind: "compacted", Item: it, Index: -1, Disposition: Undone, Reason: "the compaction is not in force: " + x.states[seq]}
		if inForce {
			l.Disposition, l.Reason = LeftOut, "it says nothing, or cannot be sent where it stands"
		}
		for _, at := range x.places[seq] {
			n := x.view.compaction().items[^x.view.from[at].line]
			if n.seq == int64(i)+1 {
				l = x.carried(l, at, n.item)
			}
		}
		list = append(list, l)
	}
	return list
}

// fate returns the log item with its disposition. If several reasons apply, the
// first one in the switch is the most specific.
func (x *explanation) fate(l LogItem) LogItem {
	if at := x.places[l.Seq]; len(at) > 0 {
		return x.carried(l, at[0], x.view.lines[x.view.from[at[0]].line].item)
	}
	l.Index = -1
	why, repaired := x.repairs[l.Seq]
	unread := repaired && l.Item.Type() == item.TypeReasoning
	r := x.replyOf(l.Seq)
	switch d, withdrawn := x.calls[l.Seq]; {
	case x.view.isGone(l.Seq):
		l.Disposition, l.By, l.Reason = TakenOut, x.decided[l.Seq].by, x.decided[l.Seq].reason
	case withdrawn:
		l.Disposition, l.By, l.Reason = LeftOut, d.by, cmp.Or(d.reason, "the call was withdrawn")
	case r != nil && !repaired:
		l.Disposition, l.Reason = Waiting, r.whatFor()
	case x.hidden[l.Seq] && !unread:
		l.Disposition, l.By = Shortened, x.view.Compaction()
		l.Reason = fmt.Sprintf("the compaction of entry %d stands for it", l.By)
	case repaired:
		l.Disposition, l.By, l.Reason = LeftOut, cmp.Or(x.again[l.Seq], x.unreadBy(l.Seq, why)), why
	default:
		l.Disposition, l.Reason = LeftOut, "it says nothing"
	}
	return l
}

// unreadBy returns the entry that left out reasoning for the given reason, or 0.
func (x *explanation) unreadBy(seq int64, reason string) int64 {
	for _, d := range x.unread {
		if d.by > seq && d.reason == reason {
			return d.by
		}
	}
	return 0
}

// carried describes how a sent item is sent. settled is the item's form before later
// decisions.
func (x *explanation) carried(l LogItem, at int, settled item.Item) LogItem {
	sent := x.view.list.At(at)
	l.Index, l.Disposition, l.Reason = at, Sent, ""
	if sent == l.Item {
		return l
	}
	if id := sent.CallID(); id != l.Item.CallID() {
		l.CallID = id
	}
	if d, ok := x.decided[l.Seq]; ok && x.view.sent(l.Seq, settled) != settled {
		l.Disposition, l.By, l.Reason = Replaced, d.by, d.reason
		return l
	}
	l.Disposition, l.Reason = Changed, "the reasoning that its id ties it to is left out"
	if l.CallID != "" {
		l.Reason = "its call id is blank, too long or in use"
	}
	return l
}

// replyOf returns the pending reply that an entry belongs to, or nil.
func (x *explanation) replyOf(seq int64) *reply {
	for _, r := range x.view.pending {
		for _, n := range r.nodes {
			if n.seq == seq || !n.output.item.IsZero() && n.output.seq == seq {
				return r
			}
		}
		for _, a := range r.after {
			if a.seq == seq {
				return r
			}
		}
	}
	return nil
}

// whatFor describes for people what a pending reply waits for.
func (r *reply) whatFor() string {
	var calls []string
	for _, n := range r.nodes {
		if n.open() {
			what := fmt.Sprintf("call %q of entry %d", n.call.CallID, n.seq)
			switch {
			case n.call.Lost:
				what += ", whose outcome is not known"
			case n.call.Paused != "":
				what += ", whose run is to go on"
			case !n.call.Until.IsZero():
				what += ", whose result was not there yet"
			case n.call.Asked:
				what += ", which waits for an approval"
			}
			calls = append(calls, what)
		}
	}
	if len(calls) == 0 {
		return "a reply before it waits for outputs"
	}
	return "outputs are wanted: " + strings.Join(calls, "; ")
}
