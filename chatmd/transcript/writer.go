// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package transcript writes the log of a session in ChatMarkdown: its items as
// elements, and in marks what items do not say: where a run and a reply begin,
// how a reply ended, which calls were started. Package agentfile reads them.
package transcript

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// BrokeOff is what programs before [chatmd.TurnEndTag] wrote after a reply that
// broke off: the model has to be asked again, and calls of the reply that have no
// response were never started.
const BrokeOff = "<!-- the reply broke off here -->"

// Earlier programs wrote [AboutCall], a number and [Waits] about a call without a
// response that waits for an approval, and with [Started] that it waits no more.
// Calls are named by their number in the file.
const (
	AboutCall = "<!-- call "
	Waits     = " waits for an approval -->"
	Started   = " was started -->"
)

// Writer writes entries one after the other. It is a value: one that an append
// failed with, or whose text could not be stored, is used again as it was. The
// zero Writer begins a log.
//
// The marks of a run and of a turn are written with the first thing that the run
// or the reply brings, so that a run which adds nothing leaves the text as it is.
// Whatever has no mark of its end has broken off: a text that a crash left unfinished
// says so by itself.
type Writer struct {
	// Agent is the path of the agent's file, as seen from the text. The mark of
	// the next run names it.
	Agent string

	run bool // its mark is not written yet
	// resumes says that this mark is of a run that goes on.
	resumes bool
	turn    []chatmd.Attr  // of the mark that is not written yet; nil if there is none
	setup   *session.Setup // that is not written yet
	inTurn  bool           // the reply's beginning is written and its end is not
	wait    waiting
	items   []int64 // the numbers of the entries that are items
	// compacted are those of compactions, talk is the endpoint's conversation that
	// the mark of the run names.
	compacted []int64
	talk      session.Conversation
}

// After returns the Writer of what follows the bodies, which are the log's entries
// from the first.
func After(bodies []session.Body) Writer {
	var v session.View
	w := Writer{wait: waiting{}}
	for i, b := range bodies {
		e := session.Entry{Seq: int64(i) + 1, Body: b}
		v.Apply(e)
		if HoldsItem(b) {
			w.items = append(w.items, e.Seq)
		}
		if _, ok := b.(session.Compacted); ok {
			w.compacted = append(w.compacted, e.Seq)
		}
	}
	for _, c := range v.Open() {
		if c.Asked && !c.Started {
			w.wait[c.CallID] = c.Number
		}
	}
	return w
}

// Append appends what there is to say of an entry, which may be nothing, and
// returns the Writer for the next one. The items are written by element, such as
// [chatmd.Append].
func (w Writer) Append(dst []byte, e session.Entry, element func(dst []byte, it item.Item) ([]byte, error)) (Writer, []byte, error) {
	if HoldsItem(e.Body) {
		w.items = append(w.items, e.Seq) // of two Writers that share memory, one is not used again
	}
	switch b := e.Body.(type) {
	case session.RunStarted:
		w.run, w.resumes, w.turn, w.inTurn = true, b.Resumes, nil, false
		w.setup, w.talk = cmp.Or(b.Setup, w.setup), b.Conversation
		return w, dst, nil
	case session.TurnStarted:
		w, dst = w.turnStarted(dst, b)
		return w, dst, nil
	case session.TurnEnded:
		return w.turnEnded(dst, b)
	case session.Given:
		return w.item(dst, b.Item, false, element)
	case session.Received:
		return w.item(dst, b.Item, true, element)
	case session.Answered:
		next, dst, err := w.item(dst, b.Item, false, element)
		if err == nil {
			next.wait = next.wait.without(b.CallID)
		}
		return next, dst, err
	case session.ApprovalAsked, session.CallStarted, session.Withdrawn:
		return w.callState(dst, b)
	case session.Noticed:
		w, dst = w.begin(dst, false)
		return w, chatmd.AppendMark(dst, chatmd.NoticeTag,
			chatmd.Attr{Name: "kind", Value: b.Kind}, number("turn", int64(b.Turn)), chatmd.Attr{Name: "item_id", Value: b.ItemID},
			chatmd.Attr{Name: "tool_call_id", Value: b.CallID}, chatmd.Attr{Name: "text", Value: b.Text}), nil
	case session.Nested:
		if b.CallID != "" { // else it answered in a message, before the run
			w, dst = w.begin(dst, false)
		}
		return w, AppendNested(dst, b), nil
	}
	return w.decided(dst, e)
}

// turnStarted takes note of a turn, whose mark is written with its first item. In a
// conversation it is written at once: that may hold the request, whatever follows.
func (w Writer) turnStarted(dst []byte, b session.TurnStarted) (Writer, []byte) {
	w.turn, w.inTurn = []chatmd.Attr{{Name: "number", Value: strconv.Itoa(b.Turn)}}, false
	if from, ok := w.back(b.Continues); ok {
		w.turn = append(w.turn, chatmd.Attr{Name: "continues", Value: from})
	}
	w.setup = cmp.Or(b.Setup, w.setup)
	if b.InConversation == "" {
		return w, dst
	}
	w.turn = append(w.turn, chatmd.Attr{Name: "conversation", Value: b.InConversation})
	return w.begin(dst, true)
}

func (w Writer) turnEnded(dst []byte, b session.TurnEnded) (Writer, []byte, error) {
	if !w.inTurn && b.BrokeOff() && b.Usage == nil { // before a word was said
		w.turn = nil
		return w, dst, nil
	}
	usage, err := usageOf(b.Usage)
	if err != nil {
		return w, dst, err
	}
	w, dst = w.begin(dst, true)
	w.inTurn = false
	return w, appendTurnEnd(dst, b, usage), nil
}

// callState appends the mark of an entry that changes what a call waits for.
func (w Writer) callState(dst []byte, body session.Body) (Writer, []byte, error) {
	switch b := body.(type) {
	case session.ApprovalAsked:
		if n, ok := w.wait[b.CallID]; ok && n == b.Number {
			return w, dst, nil
		}
		w.wait = w.wait.with(b.CallID, b.Number)
		return w.call(dst, b.CallID, chatmd.CallWaiting)
	case session.CallStarted:
		w.wait = w.wait.without(b.CallID)
		if b.Repeatable {
			return w.call(dst, b.CallID, chatmd.CallStarted, chatmd.Attr{Name: "repeatable", Bare: true})
		}
		return w.call(dst, b.CallID, chatmd.CallStarted)
	case session.Withdrawn:
		w.wait = w.wait.without(b.CallID)
		return w.call(dst, b.CallID, chatmd.CallWithdrawn)
	}
	return w, dst, nil
}

// decided appends the mark of a decision to send something else, if the entry is one.
func (w Writer) decided(dst []byte, e session.Entry) (Writer, []byte, error) {
	switch b := e.Body.(type) {
	case session.Collapsed:
		return w.instead(dst, chatmd.DecisionCollapsed, b.Seqs, b.By)
	case session.Superseded:
		return w.instead(dst, chatmd.DecisionSuperseded, b.Seqs, b.By)
	case session.Quarantined:
		if items, ok := w.back(b.Seq); ok {
			return w.decision(dst, chatmd.DecisionQuarantined, b.Reason, chatmd.Attr{Name: "items", Value: items}, chatmd.Attr{Name: "member", Value: b.Member})
		}
	case session.ItemsWithdrawn:
		if items, ok := w.back(b.Seqs...); ok {
			return w.decision(dst, chatmd.DecisionWithdrawn, b.Reason, chatmd.Attr{Name: "items", Value: items}, chatmd.Attr{Name: "by", Value: b.By})
		}
	case session.ReasoningDropped:
		return w.decision(dst, chatmd.DecisionReasoning, b.Reason)
	case session.Compacted:
		w.compacted = append(w.compacted, e.Seq)
		return w.compaction(dst, b)
	case session.Restored:
		if at, found := slices.BinarySearch(w.compacted, b.Seq); found {
			return w.decision(dst, chatmd.DecisionRestored, "", chatmd.Attr{Name: "items", Value: strconv.Itoa(len(w.compacted) - at)})
		}
	}
	return w, dst, nil
}

// AppendNested appends the mark of a run that was nested in another.
func AppendNested(dst []byte, b session.Nested) []byte {
	return chatmd.AppendMark(dst, chatmd.NestedTag,
		chatmd.Attr{Name: "tool_call_id", Value: b.CallID}, number("turns", int64(b.Turns)), number("tokens", b.Tokens), money(b.Cost))
}

// compaction writes a compaction, its items in an attribute: they are not part of
// what was said.
func (w Writer) compaction(dst []byte, b session.Compacted) (Writer, []byte, error) {
	usage, err := usageOf(b.Usage)
	if err != nil {
		return w, dst, err
	}
	content := item.NewList(b.Items...).JSON()
	if len(b.Items) == 0 {
		content = ""
	}
	attrs := []chatmd.Attr{{Name: "by", Value: b.By}}
	if last, found := slices.BinarySearch(w.items, b.Through); found || last > 0 {
		if !found {
			last-- // what Through names is not an item: the last one before it
		}
		attrs = append(attrs, chatmd.Attr{Name: "items", Value: strconv.Itoa(len(w.items) - last)})
	}
	kept, _ := w.back(b.Kept...)
	return w.decision(dst, chatmd.DecisionCompacted, "", append(attrs,
		chatmd.Attr{Name: "kept", Value: kept}, chatmd.Attr{Name: "content", Value: content}, chatmd.Attr{Name: "failure", Value: b.Failure},
		number("before", b.Before), number("after", b.After), usage, money(b.Cost))...)
}

// number is an attribute that is left out when it is 0.
func number(name string, n int64) chatmd.Attr {
	if n == 0 {
		return chatmd.Attr{Name: name}
	}
	return chatmd.Attr{Name: name, Value: strconv.FormatInt(n, 10)}
}

func money(cost float64) chatmd.Attr {
	if cost == 0 {
		return chatmd.Attr{Name: "cost"}
	}
	return chatmd.Attr{Name: "cost", Value: strconv.FormatFloat(cost, 'g', -1, 64)}
}

func usageOf(u *item.Usage) (chatmd.Attr, error) {
	if u == nil {
		return chatmd.Attr{Name: "usage"}, nil
	}
	text, err := u.MarshalJSON()
	return chatmd.Attr{Name: "usage", Value: string(text)}, err
}

// HoldsItem reports whether an entry is an item of the conversation.
func HoldsItem(b session.Body) bool {
	switch b.(type) {
	case session.Given, session.Received, session.Answered:
		return true
	}
	return false
}

// back counts items backwards from the last, which is 1. It reports whether all
// of the entries are items.
func (w Writer) back(seqs ...int64) (numbers string, ok bool) {
	for i, seq := range seqs {
		at, found := slices.BinarySearch(w.items, seq)
		if !found {
			return "", false
		}
		if i > 0 {
			numbers += " "
		}
		numbers += strconv.Itoa(len(w.items) - at)
	}
	return numbers, numbers != ""
}

// instead writes a decision about items that another says again.
func (w Writer) instead(dst []byte, kind string, seqs []int64, by int64) (Writer, []byte, error) {
	items, ok := w.back(seqs...)
	again, known := w.back(by)
	if !ok || !known {
		return w, dst, nil
	}
	return w.decision(dst, kind, "", chatmd.Attr{Name: "items", Value: items}, chatmd.Attr{Name: "by", Value: again})
}

func (w Writer) decision(dst []byte, kind, reason string, more ...chatmd.Attr) (Writer, []byte, error) {
	w, dst = w.begin(dst, false)
	attrs := append([]chatmd.Attr{{Name: "kind", Value: kind}}, more...)
	return w, chatmd.AppendMark(dst, chatmd.DecisionTag, append(attrs, chatmd.Attr{Name: "reason", Value: reason})...), nil
}

// begin writes the marks that have to stand before what comes next.
func (w Writer) begin(dst []byte, inTurn bool) (Writer, []byte) {
	if w.run {
		attrs := append([]chatmd.Attr{{Name: "agent", Value: w.Agent}, {Name: "resumes", Bare: w.resumes}}, setupAttrs(w.setup)...)
		attrs = append(attrs, chatmd.Attr{Name: "conversation", Value: w.talk.ID}, chatmd.Attr{Name: "of_session", Value: w.talk.Session})
		dst = chatmd.AppendMark(dst, chatmd.RunTag, attrs...)
		w.Agent, w.run, w.setup, w.talk = "", false, nil, session.Conversation{}
	}
	if inTurn && !w.inTurn {
		dst = chatmd.AppendMark(dst, chatmd.TurnTag, slices.Concat(w.turn, setupAttrs(w.setup))...)
		w.turn, w.inTurn, w.setup = nil, true, nil
	}
	return w, dst
}

func (w Writer) item(dst []byte, it item.Item, inTurn bool, element func(dst []byte, it item.Item) ([]byte, error)) (Writer, []byte, error) {
	next, dst := w.begin(dst, inTurn)
	dst, err := element(dst, it)
	if err != nil {
		return w, dst, err
	}
	return next, dst, nil
}

func (w Writer) call(dst []byte, id, state string, more ...chatmd.Attr) (Writer, []byte, error) {
	w, dst = w.begin(dst, false)
	attrs := append([]chatmd.Attr{{Name: "tool_call_id", Value: id}, {Name: "state", Value: state}}, more...)
	return w, chatmd.AppendMark(dst, chatmd.CallTag, attrs...), nil
}

func appendTurnEnd(dst []byte, b session.TurnEnded, usage chatmd.Attr) []byte {
	return chatmd.AppendMark(dst, chatmd.TurnEndTag,
		chatmd.Attr{Name: "number", Value: strconv.Itoa(b.Turn)},
		chatmd.Attr{Name: "status", Value: b.Status},
		chatmd.Attr{Name: "reason", Value: b.Reason},
		chatmd.Attr{Name: "class", Value: b.Class},
		chatmd.Attr{Name: "response_id", Value: b.ResponseID},
		chatmd.Attr{Name: "model", Value: b.Model},
		chatmd.Attr{Name: "service_tier", Value: b.ServiceTier},
		chatmd.Attr{Name: "request_id", Value: b.RequestID},
		chatmd.Attr{Name: "conversation", Value: b.InConversation},
		chatmd.Attr{Name: "profile", Value: b.Profile},
		number("window", b.Window), usage, money(b.Cost),
	)
}

// waiting is what is known of calls that wait: their numbers by id. It does not
// change; with and without return copies.
type waiting map[string]int

func (w waiting) with(id string, number int) waiting {
	if w = maps.Clone(w); w == nil {
		w = waiting{}
	}
	w[id] = number
	return w
}

func (w waiting) without(id string) waiting {
	if _, ok := w[id]; ok {
		w = maps.Clone(w)
		delete(w, id)
	}
	return w
}
