// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Auditor compares the events of one stream with each other: deltas with the
// texts of done events and items, items that are done with the last event, and
// the numbers of events. It is what the clients use for [WithNotes]. The zero
// value is ready; an Auditor is not safe for concurrent use. Texts of any length
// are compared, of which it keeps the first 64 KiB and a hash of the rest. Which
// events are about the same item is what an [Accumulator] would say.
type Auditor struct {
	// Hide takes secrets out of what notes quote, before it is cut; nil leaves all.
	Hide func(string) string

	acc    Accumulator // of which the slots are used
	texts  few[heardKey, *heardText]
	order  []*heardText // as they came
	spare  []*heardText
	at     *heardText // the one that the last delta was about
	calls  few[string, calledBy]
	number int64 // of the last event
	steps  int   // events whose number was one more than that before
	gaps   bool  // it has been noted
	again  bool  // the same for numbers that come again
	take   func(Note)
}

// calledBy is an item that has a call id.
type calledBy struct {
	call  string
	id    string
	index int
}

// heardKey names a text: of which item and part, and whether it came when the item
// was done.
type heardKey struct {
	slot *slot
	kind EventType
	part int
	late bool
}

// heardText is one text as deltas said it, or as a done event did after them.
type heardText struct {
	heardKey
	id    string // of its item and the place, as its deltas say
	index int
	half  bool // it ends in half a character
	met   bool // the whole text has been compared with it
	text  longText
	next  *heardText // of the same item
}

// longText is a text of which the beginning is kept, and a hash of all.
type longText struct {
	head []byte
	size int
	hash maphash.Hash // of what is after the head
}

// maxHead is how much of a text is kept.
const maxHead = 64 << 10

var seed = maphash.MakeSeed()

func (t *longText) add(s string) {
	t.size += len(s)
	if room := maxHead - len(t.head); room > 0 {
		n := min(room, len(s))
		t.head, s = append(t.head, s[:n]...), s[n:]
	}
	if s != "" {
		if t.size-len(s) <= maxHead {
			t.hash.SetSeed(seed) // which forgets what was hashed
		}
		t.hash.WriteString(s)
	}
}

func (t *longText) set(s string) {
	t.head, t.size = t.head[:0], 0
	t.add(s)
}

// begins reports whether a text begins with this one.
func (t *longText) begins(s string) bool {
	if len(s) < t.size || s[:len(t.head)] != string(t.head) {
		return false
	}
	return t.size == len(t.head) || maphash.String(seed, s[len(t.head):t.size]) == t.hash.Sum64()
}

// sureSteps is after how many of them a server counts its events one by one.
const sureSteps = 2

// Reset forgets the stream.
func (a *Auditor) Reset() {
	for _, t := range a.order {
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

// Add takes the next event, and calls take for what is odd about it.
func (a *Auditor) Add(e *Event, take func(Note)) {
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

// other takes an event that is not a delta of a text.
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
		_, _ = a.acc.add(e)
	case EventItemDone:
		a.itemDone(e)
	case EventCompleted, EventIncomplete, EventFailed, EventCancelled:
		a.final(e)
	case EventCreated, EventQueued, EventInProgress, EventError:
	default:
		a.acc.hear(e)
	}
}

// count looks at the event's number. Many servers do not count, or count
// something else: it says something where events were counted one by one.
func (a *Auditor) count(e *Event) {
	n := e.SequenceNumber
	switch {
	case n < 0:
		return
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

func (a *Auditor) delta(e *Event, part int) {
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

// heard returns the text that a delta is part of.
func (a *Auditor) heard(e *Event, part int) *heardText {
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

// itemDone compares an item with what was heard of it.
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

// whole compares an item that is whole with what was heard of it.
func (a *Auditor) whole(s *slot, it Item) {
	if s.heard == nil {
		return
	}
	id := cmp.Or(identify(it).id, s.names.id)
	var others []spoken // texts of the item of which nothing was heard at their place
	eachSpoken(it, func(kind EventType, part int, text string) {
		if t := a.texts.get(heardKey{s, kind, part, false}); t != nil {
			a.compare(t, text, id)
			t.met = true
		} else if text != "" {
			others = append(others, spoken{kind, text})
		}
	})
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

// eachSpoken calls f with the texts of an item, the kinds of their deltas and their
// parts.
func eachSpoken(it Item, f func(kind EventType, part int, text string)) {
	switch it.typ {
	case TypeMessage:
		eachText(it, "content", func(part int, typ, said string) {
			switch typ {
			case `"output_text"`:
				f(EventTextDelta, part, said)
			case `"refusal"`:
				f(EventRefusalDelta, part, said)
			}
		})
	case TypeReasoning:
		eachText(it, "summary", func(part int, _, said string) { f(EventSummaryTextDelta, part, said) })
		eachText(it, "content", func(part int, _, said string) { f(EventReasoningTextDelta, part, said) })
	case TypeFunctionCall:
		if said, ok := textOf(it, "arguments"); ok {
			f(EventArgumentsDelta, 0, said)
		}
	case TypeCustomToolCall:
		if said, ok := textOf(it, "input"); ok {
			f(EventCustomInputDelta, 0, said)
		}
	}
}

func textOf(it Item, member string) (string, bool) {
	v, _ := it.Member(member)
	return v.Unquote()
}

// eachText calls f with the texts of a list of parts, and their types as they are
// written. It makes no values of the parts: nearly always the texts are those that
// were heard.
func eachText(it Item, member string, f func(part int, typ, said string)) {
	list, _ := it.Member(member)
	if list == "" || list[0] != '[' {
		return
	}
	part := 0
	jsonx.EachElement(string(list), func(p string) {
		typ, text := "", JSON("")
		if p[0] == '{' {
			jsonx.EachMember(p, func(name, value string) {
				switch name {
				case `"type"`:
					typ = value
				case `"text"`, `"refusal"`:
					text = JSON(value)
				}
			})
		}
		if said, ok := text.Unquote(); ok {
			f(part, typ, said)
		}
		part++
	})
}

// final compares the items of the last event with those that were done, and with
// what was heard of those that were not.
func (a *Auditor) final(e *Event) {
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
		case s.done == it, n.id == "" && n.call.id == "" && !all: // its place alone says too little
		default:
			a.changed(s, it, "the last event of the reply has %s than the item, which counts: ")
		}
	}
}

// repeated reports a response that has the items that were done as they were, as
// nearly all have, and none that was not done.
func (a *Auditor) repeated(response string) bool {
	for _, s := range a.acc.slots {
		if s.done.IsZero() {
			return false
		}
		_, rest, found := strings.Cut(response, s.done.raw)
		if !found {
			return false
		}
		response = rest
	}
	return true
}

// changed notes a text that is another one than the item has that was done.
func (a *Auditor) changed(s *slot, it Item, format string) {
	was := map[textKey]string{}
	eachSpoken(s.done, func(kind EventType, part int, text string) { was[textKey{kind, part}] = text })
	noted := false
	eachSpoken(it, func(kind EventType, part int, is string) {
		text, ok := was[textKey{kind, part}]
		if noted || !ok || is == text {
			return
		}
		noted = true
		a.take(Note{Kind: NoteFinalDiffers, Event: kind, ItemID: s.names.id, OutputIndex: s.index, ContentIndex: part,
			Text: fmt.Sprintf(format, otherOf(kind)) + a.difference(is, &longText{head: []byte(text), size: len(text)})})
	})
}

// unspoken notes what was heard and will be in no item: what came after the end of
// one. And it ends texts that end in half a character.
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

// call notes a call whose call id another one has.
func (a *Auditor) call(it Item, n names, index int) {
	if n.call.id == "" || !it.IsCall() {
		return
	}
	now := calledBy{n.call.id, n.id, index} // whose texts are the item's, which stays
	at := a.calls.at(now.call)
	was := *at
	*at = now
	if was == (calledBy{}) || was == now {
		return
	}
	a.take(Note{Kind: NoteSameCallID, Event: EventItemDone, ItemID: n.id, OutputIndex: index, CallID: n.call.id,
		Text: "two calls of the reply have the call id " + a.quote(n.call.id, maxShown) + ": they are kept apart"})
}

// whatOf names the texts in notes.
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

// otherOf names a text that is not the one that counts.
func otherOf(kind EventType) string {
	switch what := whatOf(kind); what {
	case "arguments", "reasoning":
		return "other " + what
	default:
		return "another " + what
	}
}

// differs notes another text than the item has, which may go by another id than its
// deltas said.
func (a *Auditor) differs(t *heardText, id, text string) {
	a.take(Note{Kind: NoteDiffers, Event: t.kind, ItemID: cmp.Or(id, t.id), OutputIndex: t.index, ContentIndex: t.part, Text: text})
}

// compare holds the whole text against what was heard of it, and remembers it.
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
	t.text.set(whole)
}

// difference shows where two texts part.
func (a *Auditor) difference(is string, was *longText) string {
	head := string(was.head)
	at := jsonx.Common(is, head)
	if at == len(head) && was.size > at {
		return fmt.Sprintf("they part behind the first %d bytes", at)
	}
	from := max(0, at-20)
	for from > 0 && !utf8.RuneStart(is[from]) {
		from--
	}
	return a.part(is, from) + ", and not " + a.part(head, from)
}

// part quotes a text from a place on.
func (a *Auditor) part(s string, from int) string {
	if a.Hide != nil && a.Hide(s) != s {
		return a.quote(s, maxShown) // from its beginning, for a place within a secret would show a part of it
	}
	if from > 0 {
		return a.quote("…"+s[from:], maxShown+len("…"))
	}
	return a.quote(s, maxShown)
}

// How much of a text a note quotes: to show a difference, and of one that is not
// kept elsewhere.
const (
	maxShown = 60
	maxLost  = 1000
)

// quote quotes the beginning of a text. Secrets go before it is cut.
func (a *Auditor) quote(s string, limit int) string {
	if a.Hide != nil {
		s = a.Hide(s)
	}
	return fmt.Sprintf("%q", shortened(s, limit))
}

// shortened is the beginning of a text.
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
