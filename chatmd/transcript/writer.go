// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package transcript writes the log of a session in ChatMarkdown. Items become
// elements, and marks record what items do not hold: where a run and a reply begin,
// how a reply ended, which calls were started. Package agentfile reads them.
package transcript

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// BrokeOff is what programs before [chatmd.TurnEndTag] wrote after a reply that
// broke off: the model must be asked again, and calls of the reply without a
// response were never started.
const BrokeOff = "<!-- the reply broke off here -->"

// Earlier programs wrote [AboutCall], a number and [Waits] about a call without a
// response that waits for an approval, and [Started] when it waits no more. The
// number is the call's number in the file.
const (
	AboutCall = "<!-- call "
	Waits     = " waits for an approval -->"
	Started   = " was started -->"
)

// Writer writes entries one after the other. It is a value: after an append that
// failed, or whose text could not be stored, the caller continues with the previous
// Writer. The zero Writer begins a log.
//
// The marks of a run and of a turn are written together with their first item, so
// that a run that adds nothing leaves the text unchanged. A run or turn without an
// end mark has broken off, so a text that a crash cut off is marked as such without
// further writing.
type Writer struct {
	// Agent is the path of the agent's file relative to the text. It is written in the
	// mark of the next run.
	Agent string

	run bool // its mark is not yet written
	// resumes means that this mark is for a run that continues.
	resumes bool
	turn    []chatmd.Attr  // the attributes of the mark that is not yet written; nil if there is none
	setup   *session.Setup // not yet written
	inTurn  bool           // the reply's beginning is written, but not its end
	wait    waiting
	items   []int64 // the numbers of the entries that are items
	// compacted are the entries of compactions. talk is the endpoint's conversation
	// that the run's mark names.
	compacted []int64
	talk      session.Conversation
}

// After returns the Writer that continues after the bodies, which are the log's
// entries from the first.
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

// Append appends the text of an entry, which may be empty, and returns the Writer
// for the next entry. Items are written by element, such as [chatmd.Append].
func (w Writer) Append(dst []byte, e session.Entry, element func(dst []byte, it item.Item) ([]byte, error)) (Writer, []byte, error) {
	if HoldsItem(e.Body) {
		w.items = append(w.items, e.Seq) // Writers may share memory, but only one of them is used again
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
	case session.InputItem:
		next, dst, err := w.item(dst, b.Item, false, element)
		if err == nil && b.Own {
			dst = chatmd.AppendMark(dst, chatmd.OwnTag)
		}
		return next, dst, err
	case session.OutputItem:
		return w.item(dst, b.Item, true, element)
	case session.CallOutput:
		next, dst, err := w.item(dst, b.Item, false, element)
		if err == nil {
			next.wait = next.wait.without(b.CallID)
		}
		return next, dst, err
	case session.ApprovalAsked, session.CallStarted, session.CallDropped:
		return w.callState(dst, b)
	case session.Noticed:
		w, dst = w.begin(dst, false)
		return w, chatmd.AppendMark(dst, chatmd.NoticeTag,
			chatmd.Attr{Name: "kind", Value: b.Kind}, number("turn", int64(b.Turn)), chatmd.Attr{Name: "item_id", Value: b.ItemID},
			chatmd.Attr{Name: "tool_call_id", Value: b.CallID}, chatmd.Attr{Name: "text", Value: b.Text}), nil
	case session.SubagentUsage:
		w, dst = w.begin(dst, false)
		return w, AppendNested(dst, b), nil
	}
	return w.decided(dst, e)
}

// turnStarted records a turn. Its mark is written with the turn's first item, except
// in a conversation: there it is written at once, because the conversation may hold
// the request whatever follows.
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
	if !w.inTurn && b.BrokeOff() && b.Usage == nil { // before any output
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

// callState appends the mark of an entry that changes the state of a call.
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
	case session.CallDropped:
		w.wait = w.wait.without(b.CallID)
		return w.call(dst, b.CallID, chatmd.CallWithdrawn)
	}
	return w, dst, nil
}

// decided appends the mark of a decision to send something else, if the entry is
// one.
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

// AppendNested appends the mark of a subagent's run.
func AppendNested(dst []byte, b session.SubagentUsage) []byte {
	return chatmd.AppendMark(dst, chatmd.NestedTag,
		chatmd.Attr{Name: "tool_call_id", Value: b.CallID}, number("turns", int64(b.Turns)), number("tokens", b.Tokens), money(b.Cost))
}

// compaction writes a compaction. Its items are in an attribute, because they are
// not part of the conversation.
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
			last-- // Through does not name an item: use the last item before it
		}
		attrs = append(attrs, chatmd.Attr{Name: "items", Value: strconv.Itoa(len(w.items) - last)})
	}
	kept, _ := w.back(b.Kept...)
	return w.decision(dst, chatmd.DecisionCompacted, "", append(attrs,
		chatmd.Attr{Name: "kept", Value: kept}, chatmd.Attr{Name: "content", Value: content}, chatmd.Attr{Name: "failure", Value: b.Failure},
		number("before", b.Before), number("after", b.After), usage, money(b.Cost))...)
}

// number returns an attribute that is omitted if n is 0.
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

func usageOf(u *api.Usage) (chatmd.Attr, error) {
	if u == nil {
		return chatmd.Attr{Name: "usage"}, nil
	}
	text, err := u.MarshalJSON()
	return chatmd.Attr{Name: "usage", Value: string(text)}, err
}

// HoldsItem reports whether an entry is an item of the conversation.
func HoldsItem(b session.Body) bool {
	switch b.(type) {
	case session.InputItem, session.OutputItem, session.CallOutput:
		return true
	}
	return false
}

// back returns the positions of items counted backwards from the last one, which is
// 1. It returns false unless all entries are items.
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

// instead writes a decision about items that another item repeats.
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

// begin writes the pending marks that must precede the next text.
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

// waiting holds the numbers of waiting calls by id. It is immutable; with and
// without return copies.
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
