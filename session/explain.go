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

// Disposition is what the next request does with an item of the log.
type Disposition string

// The fates.
const (
	Sent      Disposition = "sent"      // as it is
	Changed   Disposition = "changed"   // with another call id, or without the id that ties it to reasoning
	Replaced  Disposition = "replaced"  // by a marker: it is in quarantine or withheld, or a later output holds what it does
	Shortened Disposition = "compacted" // a compaction stands in its place
	TakenOut  Disposition = "withdrawn" // a guard objected to it; see [ItemsWithdrawn]
	LeftOut   Disposition = "left_out"
	Waiting   Disposition = "waiting" // its reply is not settled yet
	NotSent   Disposition = "note"    // it was never meant to be sent
	Undone    Disposition = "undone"  // an item of a compaction that was undone or replaced
)

// InputReport tells what the next request carries, and what becomes of all else
// that the log holds.
type InputReport struct {
	// Log has every item of the log in order; those of a [Compacted] too.
	Log []LogItem `json:"log"`
	// Request is the next request's input. Where calls wait for their outputs, it
	// is as far as they let it come.
	Request []SentItem `json:"request"`
	// Compactions are the compactions in the log.
	Compactions []CompactionAccount `json:"compactions,omitempty"`
}

// LogItem is an item of the log and its fate.
type LogItem struct {
	Seq int64 `json:"seq"`
	// Kind is given, received, answered, note or compacted: what the entry is; or
	// break for the note after a message that broke off; see [IsBreakNote].
	Kind        string      `json:"kind"`
	Item        item.Item   `json:"item"`
	Disposition Disposition `json:"fate"`
	// Index is its place in the request, or that of what is sent for it alone; -1
	// if there is none.
	Index int `json:"index"`
	// By is the entry that decided it, 0 if none did.
	By int64 `json:"by,omitempty"`
	// Reason says more, for people.
	Reason string `json:"reason,omitempty"`
	// CallID is the id that it is sent with, if that is another.
	CallID string `json:"call_id,omitempty"`
}

// SentItem is an item of the request and where it is from.
type SentItem struct {
	Seq  int64     `json:"seq"`
	Item item.Item `json:"item"`
	// For is how many others it replaces.
	For int `json:"for,omitempty"`
}

// CompactionAccount is what became of a [Compacted].
type CompactionAccount struct {
	Seq int64  `json:"seq"`
	By  string `json:"by"`
	// State is in_force, replaced by a later one, restored, failed, or void if
	// there was nothing that it could replace.
	State string `json:"state"`
	// Replaces counts the items that are not sent because of it.
	Replaces int    `json:"replaces"`
	Before   int64  `json:"before,omitempty"`
	After    int64  `json:"after,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// The states of a compaction.
const (
	InForce   = "in_force"
	Succeeded = "replaced"
	TakenBack = "restored"
	Failed    = "failed"
	Void      = "void"
)

// Explain reads a log and accounts for each item in it. The next request is what
// a run would send that begins now, before it decides anything new.
func Explain(log iter.Seq[Entry]) *InputReport {
	x := explanation{decided: map[int64]decision{}, calls: map[int64]decision{}, withheld: map[int64]bool{}, states: map[int64]string{}, again: map[int64]int64{}}
	if log != nil {
		for e := range log {
			x.apply(e)
		}
	}
	x.view.Apply(Entry{Body: RunStarted{}})
	x.view.Apply(Entry{Body: TurnStarted{}})
	return x.account()
}

// explanation folds what an account is made of.
type explanation struct {
	view     View
	log      []Entry
	decided  map[int64]decision // of items' entries: quarantines, collapses and withdrawals
	calls    map[int64]decision // of the entries of withdrawn calls
	withheld map[int64]bool     // items' entries whose withdrawal is in decided
	unread   []decision         // reasoning that was dropped
	again    map[int64]int64    // what was said again, and the entry that decided it
	states   map[int64]string   // of compactions

	// Of the end of the log, by entry.
	places  map[int64][]int // in the request
	repairs map[int64]string
	hidden  map[int64]bool // what the compaction in force replaces
}

type decision struct {
	by     int64
	reason string
}

func (x *explanation) apply(e Entry) {
	x.log = append(x.log, e)
	before := x.view.compactions
	switch b := e.Body.(type) {
	case Withdrawn:
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
				x.states[c.seq] = Succeeded
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

// withhold notes what a withdrawal took out: what it names, and what went along.
func (x *explanation) withhold(d decision) {
	for seq := range x.view.withdrawn {
		if !x.withheld[seq] {
			x.withheld[seq] = true
			x.decided[seq] = d
		}
	}
}

// account says what became of everything.
func (x *explanation) account() *InputReport {
	x.sum()
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
		case Given:
			a.Log = x.withNote(append(a.Log, x.fate(LogItem{Seq: e.Seq, Kind: "given", Item: b.Item})))
		case Received:
			a.Log = x.withNote(append(a.Log, x.fate(LogItem{Seq: e.Seq, Kind: "received", Item: b.Item})))
		case Answered:
			a.Log = append(a.Log, x.fate(LogItem{Seq: e.Seq, Kind: "answered", Item: b.Item}))
		case Note:
			a.Log = append(a.Log, LogItem{Seq: e.Seq, Kind: "note", Item: b.Item, Disposition: NotSent, Index: -1})
		case Compacted:
			a.Log = append(a.Log, x.standIns(e.Seq, b)...)
			c := CompactionAccount{Seq: e.Seq, By: b.By, State: x.states[e.Seq], Before: b.Before, After: b.After, Reason: b.Failure}
			if c.State == InForce {
				c.Replaces = len(x.hidden)
			}
			a.Compactions = append(a.Compactions, c)
		}
	}
	return a
}

// sum indexes what the view came to.
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

// withNote appends the note after the last item, if there is one; see
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

// standIns accounts for the items of a compaction.
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

// fate says what became of an item that was said.
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

// unreadBy returns the entry that left reasoning out for that reason, or 0.
func (x *explanation) unreadBy(seq int64, reason string) int64 {
	for _, d := range x.unread {
		if d.by > seq && d.reason == reason {
			return d.by
		}
	}
	return 0
}

// carried says how an item is sent that is sent, for all that was decided, as
// settled.
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

// replyOf returns the reply under way that an entry belongs to, or nil.
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

// whatFor says what an unsettled reply waits for.
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
