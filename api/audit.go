// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// Auditor checks the events of one stream against each other: deltas against the
// texts of done events and items, done items against the last event, and sequence
// numbers for gaps. The clients use it for [WithNotes]. The zero value is ready to
// use. An Auditor is not safe for concurrent use.
//
// Texts of any length are compared, but it keeps only the first 64 KiB of each and a
// hash of the rest. It assigns events to items as an [Accumulator] does.
type Auditor struct {
	// Hide removes secrets from the text that notes quote, before the text is
	// shortened. If nil, nothing is removed.
	Hide func(string) string

	acc    Accumulator // only its slots are used
	texts  few[heardKey, *heardText]
	order  []*heardText // in order of arrival
	spare  []*heardText
	at     *heardText // the text of the last delta
	calls  few[string, calledBy]
	number int64 // of the last event
	steps  int   // events whose number was one more than the previous
	gaps   bool  // a gap has been reported
	again  bool  // a repeat has been reported
	take   func(Note)
}

// calledBy is an item that has a call id.
type calledBy struct {
	call  string
	id    string
	index int
}

// heardKey identifies a text: its item, its part, and whether it arrived after the
// item was done.
type heardKey struct {
	slot *slot
	kind EventType
	part int
	late bool
}

// heardText is one text, as its deltas built it or as a done event replaced it.
type heardText struct {
	heardKey
	id    string // item id and output index, as in its deltas
	index int
	half  bool // it ends in half a character
	met   bool // it has been compared with the whole text
	text  longText
	next  *heardText // next text of the same item
}

// longText is a text of any length. It keeps the beginning and a hash of the rest.
type longText struct {
	head []byte
	size int
	hash maphash.Hash // of the text after head
}

// maxHead is how many bytes of a text are kept.
const maxHead = 64 << 10

// Hashes are compared only within a process, so one random seed serves for all.
var seed = maphash.MakeSeed()

// add appends s to the text.
func (t *longText) add(s string) {
	t.size += len(s)
	if room := maxHead - len(t.head); room > 0 {
		n := min(room, len(s))
		t.head, s = append(t.head, s[:n]...), s[n:]
	}
	if s != "" {
		if t.size-len(s) <= maxHead {
			t.hash.SetSeed(seed) // also resets the hash
		}
		t.hash.WriteString(s)
	}
}

// set replaces the text by s.
func (t *longText) set(s string) {
	t.head, t.size = t.head[:0], 0
	t.add(s)
}

// begins reports whether s begins with this text.
func (t *longText) begins(s string) bool {
	if len(s) < t.size || s[:len(t.head)] != string(t.head) {
		return false
	}
	return t.size == len(t.head) || maphash.String(seed, s[len(t.head):t.size]) == t.hash.Sum64()
}

// sureSteps is how many consecutive numbers show that the server counts its events
// one by one.
const sureSteps = 2

// Reset prepares the auditor for another stream. Hide is reset too.
func (a *Auditor) Reset() {
	for _, t := range a.order {
		// Keep a few texts for their buffers.
		if len(a.spare) < 4 {
			a.spare = append(a.spare, t)
		}
	}
	clear(a.order)
	for _, t := range a.spare {
		t.heardKey, t.next = heardKey{}, nil
	}
	*a = Auditor{order: a.order[:0], spare: a.spare}
}

// Add takes the next event and calls take for each inconsistency that it shows. take
// is called before Add returns. A nil event shows nothing.
func (a *Auditor) Add(e *Event, take func(Note)) {
	if e == nil {
		return
	}
	a.take = take
	a.count(e)
	switch e.Type {
	case EventTextDelta, EventRefusalDelta, EventReasoningTextDelta:
		a.delta(e, e.ContentIndex)
	case EventSummaryTextDelta:
		a.delta(e, e.SummaryIndex)
	case EventArgumentsDelta, EventCustomInputDelta:
		a.delta(e, 0)
	default:
		a.at = nil
		a.other(e)
	}
	a.take = nil
}

// other takes an event that is not a text delta.
func (a *Auditor) other(e *Event) {
	switch e.Type {
	case EventTextDone:
		a.text(e, EventTextDelta, "text", e.ContentIndex)
	case EventRefusalDone:
		a.text(e, EventRefusalDelta, "refusal", e.ContentIndex)
	case EventReasoningTextDone:
		a.text(e, EventReasoningTextDelta, "text", e.ContentIndex)
	case EventSummaryTextDone:
		a.text(e, EventSummaryTextDelta, "text", e.SummaryIndex)
	case EventArgumentsDone:
		a.text(e, EventArgumentsDelta, "arguments", 0)
	case EventCustomInputDone:
		a.text(e, EventCustomInputDelta, "input", 0)
	case EventItemAdded:
		// Only the slot matters here. Whoever builds the response reports the error.
		_, _ = a.acc.add(e)
	case EventItemDone:
		a.itemDone(e)
	case EventCompleted, EventIncomplete, EventFailed, EventCancelled:
		a.final(e)
	case EventCreated, EventQueued, EventInProgress, EventError:
	default:
		// Other events make items known too, and so affect which item later events
		// are about.
		a.acc.hear(e)
	}
}

// count checks the event's sequence number. Many servers do not count, or count
// something else, so it reports nothing until the numbers have gone up one by one.
func (a *Auditor) count(e *Event) {
	n := e.SequenceNumber
	switch {
	case n < 0:
		return
	// The usual case of a server that counts.
	case n == a.number+1:
		a.steps++
	case a.steps >= sureSteps && n > a.number && !a.gaps:
		a.gaps = true
		a.take(Note{Kind: NoteGap, Event: e.Type, ItemID: e.ItemID, OutputIndex: e.OutputIndex,
			Text: fmt.Sprintf("events of the reply are missing: number %d is followed by %d", a.number, n)})
	case a.steps >= sureSteps && n <= a.number && !a.again:
		a.again = true
		a.take(Note{Kind: NoteRepeat, Event: e.Type, ItemID: e.ItemID, OutputIndex: e.OutputIndex,
			Text: fmt.Sprintf("events of the reply came again, or out of order: number %d is followed by %d", a.number, n)})
	}
	a.number = max(n, a.number)
}

// delta takes a delta of a text.
func (a *Auditor) delta(e *Event, part int) {
	// The event may come from ParseEvent, which does not join split characters. The
	// caller's event must not change, so join them in a copy.
	if !e.joined && (strings.HasSuffix(e.Delta, replacement) || len(a.acc.halves.open) > 0) {
		own := *e
		a.acc.halves.join(&own)
		e = &own
	}
	t := a.heard(e, max(part, 0))
	if e.Delta != "" || e.half {
		t.half = e.half
	}
	t.text.add(e.Delta)
}

// heard returns the text that a delta belongs to.
func (a *Auditor) heard(e *Event, part int) *heardText {
	// Most deltas continue the same text, which needs no search.
	if t := a.at; t != nil && t.kind == e.Type && t.part == part && t.index == e.OutputIndex && t.id == e.ItemID {
		return t
	}
	s := a.acc.about(e, speaks(e.Type))
	key := heardKey{s, e.Type, part, !s.done.IsZero()}
	p := a.texts.at(key)
	if *p == nil {
		*p = a.newText(key)
	}
	a.at = *p
	a.at.id, a.at.index = e.ItemID, e.OutputIndex
	return a.at
}

// newText adds an empty text for key. It reuses a spare one if there is any.
func (a *Auditor) newText(key heardKey) *heardText {
	var t *heardText
	if n := len(a.spare); n > 0 {
		t, a.spare = a.spare[n-1], a.spare[:n-1]
	} else {
		t = &heardText{text: longText{head: make([]byte, 0, firstText)}}
	}
	*t = heardText{heardKey: key, text: longText{head: t.text.head[:0]}}
	a.order = append(a.order, t)
	t.next, key.slot.heard = key.slot.heard, t
	return t
}

// text takes the event that ends a text.
func (a *Auditor) text(e *Event, kind EventType, member string, part int) {
	v, _ := e.Member(member)
	whole, ok := v.Unquote()
	if !ok {
		return
	}
	s := a.acc.about(e, speaks(kind))
	if t := a.texts.get(heardKey{s, kind, max(part, 0), !s.done.IsZero()}); t != nil {
		a.compare(t, whole, t.id)
	}
}

// itemDone compares a done item with the deltas that arrived for it.
func (a *Auditor) itemDone(e *Event) {
	it, n, err := e.named()
	if err != nil {
		return
	}
	s, again := a.acc.settle(it, n, e.OutputIndex)
	switch {
	case !again:
		a.call(it, n, e.OutputIndex)
		a.whole(s, it)
	case s.done != it:
		a.changed(s, it, "the item came again with %s, which does not count: ")
	}
}

// spoken is a text of an item, with the kind of its deltas.
type spoken struct {
	kind EventType
	text string
}

// whole compares a finished item with the deltas that arrived for it.
func (a *Auditor) whole(s *slot, it item.Item) {
	if s.heard == nil {
		return
	}
	id := cmp.Or(identify(it).id, s.names.id)
	var others []spoken // texts of the item whose part had no deltas
	eachSpoken(it, func(kind EventType, part int, text string) {
		if t := a.texts.get(heardKey{s, kind, part, false}); t != nil {
			a.compare(t, text, id)
			t.met = true
		} else if text != "" {
			others = append(others, spoken{kind, text})
		}
	})
	// Some servers number parts differently in deltas and items. Look for a text
	// that begins with the deltas before reporting it as missing.
	for t := s.heard; t != nil; t = t.next {
		if t.late || t.met || t.text.size == 0 {
			continue
		}
		at := slices.IndexFunc(others, func(o spoken) bool { return o.kind == t.kind && t.text.begins(o.text) })
		if at < 0 {
			a.differs(t, id, "the final item lacks "+whatOf(t.kind)+" that was shown: "+a.quote(string(t.text.head), maxLost))
			continue
		}
		a.compare(t, others[at].text, id)
		others = slices.Delete(others, at, at+1)
	}
}

// eachSpoken calls f with each text of an item, the kind of its deltas and its part.
func eachSpoken(it item.Item, f func(kind EventType, part int, text string)) {
	switch it.Type() {
	case item.TypeMessage:
		eachText(it, "content", func(part int, typ, said string) {
			switch typ {
			case `"output_text"`:
				f(EventTextDelta, part, said)
			case `"refusal"`:
				f(EventRefusalDelta, part, said)
			}
		})
	case item.TypeReasoning:
		eachText(it, "summary", func(part int, _, said string) { f(EventSummaryTextDelta, part, said) })
		eachText(it, "content", func(part int, _, said string) { f(EventReasoningTextDelta, part, said) })
	case item.TypeFunctionCall:
		if said, ok := textOf(it, "arguments"); ok {
			f(EventArgumentsDelta, 0, said)
		}
	case item.TypeCustomToolCall:
		if said, ok := textOf(it, "input"); ok {
			f(EventCustomInputDelta, 0, said)
		}
	}
}

func textOf(it item.Item, member string) (string, bool) {
	v, _ := it.Member(member)
	return v.Unquote()
}

// eachText calls f with each text in a list of parts, and its type as raw JSON. It
// does not decode the parts, because the texts nearly always agree with the deltas
// and nothing else is needed.
func eachText(it item.Item, member string, f func(part int, typ, said string)) {
	list, _ := it.Member(member)
	if list == "" || list[0] != '[' {
		return
	}
	part := 0
	jsonx.EachElement(string(list), func(p string) {
		typ, text := "", item.JSON("")
		if p[0] == '{' {
			jsonx.EachMember(p, func(name, value string) {
				switch name {
				case `"type"`:
					typ = value
				case `"text"`, `"refusal"`:
					text = item.JSON(value)
				}
			})
		}
		if said, ok := text.Unquote(); ok {
			f(part, typ, said)
		}
		part++
	})
}

// final compares the items of the last event with the done items, and those that
// were not done with their deltas.
func (a *Auditor) final(e *Event) {
	// Only after the last event is it certain that a text is in no item.
	defer a.unspoken()
	if len(a.acc.slots) == 0 || a.repeated(e.response) {
		return
	}
	r, err := e.Response()
	if err != nil || len(r.Output) == 0 {
		return
	}
	all := len(r.Output) == len(a.acc.slots)
	for i, s := range a.acc.meetFinal(r.Output) {
		it := r.Output[i]
		switch n := identify(it); {
		case s.done.IsZero():
			a.whole(s, it)
		case s.done == it, n.id == "" && n.call.id == "" && !all: // the index alone is weak evidence
		default:
			a.changed(s, it, "the last event of the reply has %s than the item, which counts: ")
		}
	}
}

// repeated reports whether every item is done and the response contains each of them
// unchanged, in order. This is true of nearly all responses, and cheap.
func (a *Auditor) repeated(response string) bool {
	for _, s := range a.acc.slots {
		if s.done.IsZero() {
			return false
		}
		_, rest, found := strings.Cut(response, s.done.JSON())
		if !found {
			return false
		}
		response = rest
	}
	return true
}

// changed reports the first text that differs from the text of the done item.
func (a *Auditor) changed(s *slot, it item.Item, format string) {
	was := map[textKey]string{}
	eachSpoken(s.done, func(kind EventType, part int, text string) { was[textKey{kind, part}] = text })
	noted := false
	eachSpoken(it, func(kind EventType, part int, is string) {
		text, ok := was[textKey{kind, part}]
		// One note per item is enough.
		if noted || !ok || is == text {
			return
		}
		noted = true
		a.take(Note{Kind: NoteFinalDiffers, Event: kind, ItemID: s.names.id, OutputIndex: s.index, ContentIndex: part,
			Text: fmt.Sprintf(format, otherOf(kind)) + a.difference(is, &longText{head: []byte(text), size: len(text)})})
	})
}

// unspoken reports text that will be in no item, because it arrived after the end of
// its item. It also ends texts that end in half a character.
func (a *Auditor) unspoken() {
	for _, t := range a.order {
		switch {
		case t.text.size == 0 && !t.half:
		case t.late:
			a.take(Note{Kind: NoteLost, Event: t.kind, ItemID: t.id, OutputIndex: t.index, ContentIndex: t.part,
				Text: whatOf(t.kind) + " came behind the end of its item, and is not kept: " + a.quote(string(t.text.head), maxLost)})
		case t.half && !t.met && t.slot.done.IsZero() && !t.slot.final:
			a.take(Note{Kind: NoteHalf, Event: t.kind, ItemID: t.id, OutputIndex: t.index, ContentIndex: t.part, Rest: replacement,
				Text: "the " + whatOf(t.kind) + " ends in half a character, which is U+FFFD now"})
		}
	}
}

// call reports a call with the same call id as another.
func (a *Auditor) call(it item.Item, n names, index int) {
	if n.call.id == "" || !it.IsCall() {
		return
	}
	now := calledBy{n.call.id, n.id, index} // its strings belong to the item, which is never overwritten
	at := a.calls.at(now.call)
	was := *at
	*at = now
	// This is the first call with the id, or the same call again.
	if was == (calledBy{}) || was == now {
		return
	}
	a.take(Note{Kind: NoteSameCallID, Event: EventItemDone, ItemID: n.id, OutputIndex: index, CallID: n.call.id,
		Text: "two calls of the reply have the call id " + a.quote(n.call.id, maxShown) + ": they are kept apart"})
}

// whatOf returns the word for a text in notes.
func whatOf(kind EventType) string {
	switch kind {
	case EventReasoningTextDelta, EventSummaryTextDelta:
		return "reasoning"
	case EventArgumentsDelta:
		return "arguments"
	case EventCustomInputDelta:
		return "input"
	}
	return "text"
}

// otherOf is whatOf with "other" or "another" in front.
func otherOf(kind EventType) string {
	switch what := whatOf(kind); what {
	case "arguments", "reasoning":
		return "other " + what
	default:
		return "another " + what
	}
}

// differs reports a text that differs from the item's. id is the item's final id,
// which may not be the id in the deltas.
func (a *Auditor) differs(t *heardText, id, text string) {
	a.take(Note{Kind: NoteDiffers, Event: t.kind, ItemID: cmp.Or(id, t.id), OutputIndex: t.index, ContentIndex: t.part, Text: text})
}

// compare compares the whole text with what was heard of it, and then stores it.
func (a *Auditor) compare(t *heardText, whole, id string) {
	t.half = false
	if !t.text.begins(whole) {
		a.differs(t, id, "the final "+whatOf(t.kind)+" differs from what was shown: "+a.difference(whole, &t.text))
	} else if rest := whole[t.text.size:]; rest != "" {
		a.take(Note{Kind: NoteExtends, Event: t.kind, ItemID: t.id, OutputIndex: t.index, ContentIndex: t.part, Rest: strings.Clone(rest),
			Text: fmt.Sprintf("the end of the %s came without deltas: %d bytes", whatOf(t.kind), len(rest))})
	} else {
		return
	}
	// Later events are compared with the whole text, so that a difference is
	// reported once.
	t.text.set(whole)
}

// difference describes where two texts begin to differ.
func (a *Auditor) difference(is string, was *longText) string {
	head := string(was.head)
	at := jsonx.Common(is, head)
	// They differ in the part of the text that was not kept.
	if at == len(head) && was.size > at {
		return fmt.Sprintf("they part behind the first %d bytes", at)
	}
	// Show a little of the text before the difference, and do not split a character.
	from := max(0, at-20)
	for from > 0 && !utf8.RuneStart(is[from]) {
		from--
	}
	return a.part(is, from) + ", and not " + a.part(head, from)
}

// part quotes a text from the given offset.
func (a *Auditor) part(s string, from int) string {
	if a.Hide != nil && a.Hide(s) != s {
		return a.quote(s, maxShown) // quote from the start: a part of a secret would not be recognized by Hide
	}
	if from > 0 {
		return a.quote("…"+s[from:], maxShown+len("…"))
	}
	return a.quote(s, maxShown)
}

// How many bytes of a text a note quotes: to show a difference, and of a text that
// is not kept elsewhere.
const (
	maxShown = 60
	maxLost  = 1000
)

// quote quotes the beginning of a text. It removes secrets before it cuts, because
// Hide might not recognize part of a secret.
func (a *Auditor) quote(s string, limit int) string {
	if a.Hide != nil {
		s = a.Hide(s)
	}
	return fmt.Sprintf("%q", shortened(s, limit))
}

// shortened returns the beginning of a text, cut between characters.
func shortened(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// Note reports something unusual about a stream that is not an error: the events
// disagree, or some are missing. The items are correct as far as can be told. See
// [WithNotes].
type Note struct {
	Kind NoteKind
	// Event is the type of the text's delta events, or of the event that the note is
	// about. It is "" if the note is not about an event.
	Event EventType
	// ItemID, OutputIndex and CallID identify the item, as far as the events did. An
	// unknown index is -1.
	ItemID      string
	OutputIndex int
	CallID      string
	// ContentIndex is the index of the text's part in the item or its summary.
	ContentIndex int
	// Text describes the problem in a sentence for people. It may quote the reply.
	Text string
	// Rest is the end of the text that no delta contained. It is set for NoteExtends
	// and NoteHalf.
	Rest string
}

// NoteKind is the kind of a [Note].
type NoteKind string

// The kinds of notes.
const (
	// NoteExtends: the whole text continues after the end of its deltas.
	NoteExtends NoteKind = "extends"
	// NoteDiffers: the whole text, from a done event, is not what the deltas said.
	// The whole text is used.
	NoteDiffers NoteKind = "differs"
	// NoteFinalDiffers: the response's last event, or another done event, has a
	// different text for an item than its done event. The text of the first done
	// event is used.
	NoteFinalDiffers NoteKind = "final_differs"
	// NoteLost: the reply contained text that is in no item. Text quotes it, or says
	// where it was.
	NoteLost NoteKind = "lost"
	// NoteHalf: a text ended in half a character, which became U+FFFD.
	NoteHalf NoteKind = "half"
	// NoteGap: sequence numbers are missing.
	NoteGap NoteKind = "gap"
	// NoteRepeat: an event has the sequence number of an earlier one.
	NoteRepeat NoteKind = "repeat"
	// NoteSameCallID: two calls have the same call id.
	NoteSameCallID NoteKind = "same_call_id"
	// NoteSkipped: part of the stream was not an event of the API, and was skipped.
	NoteSkipped NoteKind = "skipped"
	// NoteWholeHistory: a transport that normally sends only new items is sending
	// the whole history with each request.
	NoteWholeHistory NoteKind = "whole_history"
)

type notesKey struct{}

// WithNotes returns a context that makes streams report inconsistencies. The clients
// of this module call take on the goroutine that ranges over the stream, before they
// yield the event that shows the problem. A stream must not outlive anything that
// take uses. Without such a context, nothing is compared, and skipped input is not
// reported.
func WithNotes(ctx context.Context, take func(Note)) context.Context {
	return context.WithValue(ctx, notesKey{}, take)
}

// NotesOf returns the function that receives the notes of ctx, or nil. It is for
// implementing clients.
func NotesOf(ctx context.Context) func(Note) {
	take, _ := ctx.Value(notesKey{}).(func(Note))
	return take
}
