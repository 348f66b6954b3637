// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"cmp"
	"slices"
	"strings"
)

// Accumulator puts a response together from its stream events: the same items
// that the response without a stream would have, also where a server sends only
// done items, only added items and deltas, or a last event with no output. It
// finds an event's item by item_id and by output_index, since servers leave out
// the one or the other. Deltas of text, refusal, reasoning, arguments, input,
// code, commands and their output become part of their items, and so do
// annotations; partial images and audio belong to no item, see [ImagePartialEvent]
// and [AudioDeltaEvent]. The zero value is ready for one response; it is not safe
// for concurrent use.
type Accumulator struct {
	slots    []*slot
	first    [roomForSlots]slot
	room     []slot               // for those that come
	byID     few[string, []*slot] // by each id that an item went by
	byCall   few[callName, []*slot]
	byIndex  few[int, []*slot]
	last     *slot  // that the last event was about
	spare    []byte // room for a text
	begun    []byte // the response as an event told it that was not read yet
	response *Response
	listed   bool // its output holds the items that are whole
	terminal EventType
	halves   halves // of events that no decoder has put together
}

// slot is one output item as far as it is known.
type slot struct {
	index int
	id    string // the first one
	names names  // of the item as it was told last
	typ   Type   // what its events are about, before there is an item
	added Item
	done  Item
	final bool // added is what the final response says
	met   bool // the final response has it
	said
	arrived int
	alone   [3][1]*slot // by its index, its id and its call id, as most are
	told    [1]Item     // done, for the caller of Add
	heard   *heardText  // the last one, of an Auditor
}

// Add takes the next event and returns the items that are whole with it, each
// item once: one at its done event, or at the response's last event those that
// had none. An error reports an event whose item or response cannot be read;
// the accumulator stays usable.
func (a *Accumulator) Add(e Event) ([]Item, error) { return a.add(&e) }

// AddView is like [Accumulator.Add] for an event that is not there to stay: what
// the accumulator keeps of it, and returns, are copies.
func (a *Accumulator) AddView(v *EventView) ([]Item, error) {
	if v == nil {
		return nil, errNil
	}
	switch e := &v.event; e.Type {
	case EventItemAdded, EventItemDone, EventCompleted, EventFailed, EventIncomplete, EventCancelled:
		kept := v.Event() // these hold what stays
		return a.add(&kept)
	default:
		return a.add(e)
	}
}

// add takes an event, of which it keeps no texts unless it holds an item or a
// whole response.
func (a *Accumulator) add(e *Event) ([]Item, error) {
	a.last = nil
	switch e.Type {
	case EventItemAdded:
		it, n, err := e.named()
		if err != nil {
			return nil, err
		}
		s := a.forItem(it, n, e.OutputIndex, true)
		if s.added = it; s.done.IsZero() {
			a.know(s, n)
		}
	case EventItemDone:
		return a.itemDone(e)
	case EventCreated, EventInProgress, EventQueued:
		if v := e.response; v != "" && v[0] == '{' {
			a.begun = append(a.begun[:0], v...) // to be read if no last event comes
		}
	case EventCompleted, EventFailed, EventIncomplete, EventCancelled:
		return a.finish(e)
	case EventError:
		a.terminal = EventError
	default:
		a.halves.join(e)
		a.hear(e)
	}
	return nil, nil
}

// roomForSlots is how many items there is room for at once: most replies have no
// more.
const roomForSlots = 2

func (a *Accumulator) itemDone(e *Event) ([]Item, error) {
	it, n, err := e.named()
	if err != nil {
		return nil, err
	}
	s, again := a.settle(it, n, e.OutputIndex)
	if again {
		return nil, nil
	}
	a.listed = false
	s.told = [1]Item{it}
	return s.told[:], nil
}

// settle makes the item that of its slot, and reports whether there was one: then
// the first counts.
func (a *Accumulator) settle(it Item, n names, index int) (s *slot, again bool) {
	s = a.forItem(it, n, index, false)
	if !s.done.IsZero() {
		return s, true
	}
	a.moveTo(s, index)
	if len(s.texts.list) > 0 {
		a.spare = s.texts.list[0].value
	}
	s.done, s.said = it, said{}
	a.know(s, n)
	return s, false
}

// finish takes the last event: the response, and whatever items were not done.
func (a *Accumulator) finish(e *Event) ([]Item, error) {
	for _, t := range [...]EventType{EventCompleted, EventFailed, EventIncomplete, EventCancelled} {
		if t == e.Type {
			a.terminal = t // which holds when the event does not any more
		}
	}
	told := a.allDone()
	r, err := e.responseWith(told)
	if err != nil {
		return nil, err
	}
	if r.Status == "" {
		r.Status = strings.TrimPrefix(string(a.terminal), "response.")
	}
	a.response, a.begun = r, a.begun[:0]
	if len(told) > 0 && len(r.Output) == len(told) && &r.Output[0] == &told[0] {
		a.listed = true // nothing of it is new, as mostly
		return nil, nil
	}
	a.meetFinal(r.Output)
	var rest []Item
	for _, s := range a.sorted() {
		hearsay := !s.final && (len(r.Output) > 0 || e.Type != EventCompleted)
		if !s.done.IsZero() || hearsay || a.echoes(s) {
			continue // what is not whole is told by Partial
		}
		if it := s.assemble(StatusCompleted); !it.IsZero() {
			s.done, s.said = it, said{}
			rest = append(rest, it)
		}
	}
	r.Output, a.listed = a.items(r.Output[:0]), true
	return rest, nil
}

// allDone returns the items if all are whole.
func (a *Accumulator) allDone() []Item {
	items := a.items(make([]Item, 0, len(a.slots)))
	if len(items) < len(a.slots) {
		return nil
	}
	return items
}

func (s *slot) current() Item {
	if !s.done.IsZero() {
		return s.done
	}
	return s.added
}

// sorted returns the slots in output order; those without an index keep the
// place of their arrival.
func (a *Accumulator) sorted() []*slot {
	if a.inOrder() {
		return a.slots
	}
	var placed []*slot
	for _, s := range a.slots {
		if s.index >= 0 {
			placed = append(placed, s)
		}
	}
	slices.SortStableFunc(placed, func(x, y *slot) int { return cmp.Compare(x.index, y.index) })
	out := slices.Clone(a.slots)
	for i, s := range out {
		if s.index >= 0 {
			out[i], placed = placed[0], placed[1:]
		}
	}
	return out
}

// inOrder reports whether the items came in their order, as they mostly do.
func (a *Accumulator) inOrder() bool {
	last := 0
	for _, s := range a.slots {
		if s.index >= 0 && s.index < last {
			return false
		}
		last = max(last, s.index)
	}
	return true
}

// items appends the items that are whole.
func (a *Accumulator) items(items []Item) []Item {
	for _, s := range a.sorted() {
		if !s.done.IsZero() {
			items = append(items, s.done)
		}
	}
	return items
}

// Response returns the response as far as it is known, with the items that are
// whole as its output, and whether its last event was seen. Before any event of
// a response it is an empty one, never nil.
func (a *Accumulator) Response() (*Response, bool) {
	if len(a.begun) > 0 {
		if r, err := responseOf(string(a.begun)); err == nil {
			a.response, a.listed = r, false
		}
		a.begun = a.begun[:0]
	}
	if a.response == nil {
		a.response = new(Response)
	}
	if !a.listed {
		a.response.Output, a.listed = a.items(make([]Item, 0, len(a.slots))), true
	}
	return a.response, a.terminal != ""
}

// Left is what arrived of an item that never became whole. Number is that of
// [Accumulator.About].
type Left struct {
	Item   Item
	Number int
}

// Left returns what arrived of items that never became whole: not done, and not
// in the last event's response. They have the status incomplete; calls are among
// them, of which the name or the end of the arguments may be missing: see
// [Accumulator.Partial].
func (a *Accumulator) Left() []Left {
	var list []Left
	for _, s := range a.sorted() {
		if !s.done.IsZero() || a.echoes(s) {
			continue
		}
		call := s.added.IsCall() || s.typ == TypeFunctionCall || s.typ == TypeCustomToolCall
		if s.said.empty() && !s.holds() && !call {
			continue
		}
		it := s.assemble(StatusIncomplete)
		if it.IsZero() {
			it = s.added
		}
		if it.IsZero() && s.typ == TypeFunctionCall {
			it = Must(&FunctionCall{ID: clean(s.id), Arguments: s.joined(EventArgumentsDelta, ""), Status: StatusIncomplete})
		} else if it.IsZero() && s.typ == TypeCustomToolCall {
			it = Must(&CustomToolCall{ID: clean(s.id), Input: s.joined(EventCustomInputDelta, ""), Status: StatusIncomplete})
		}
		if !it.IsZero() {
			list = append(list, Left{it, s.arrived})
		}
	}
	return list
}

// Partial returns what was said of items that never became whole: messages and
// reasoning with the text so far and the status incomplete, in output order.
// That goes for the end of a stream, and for a last event that cannot be read.
// Calls are left out, those that the endpoint runs itself too, since arguments
// that are cut off mean nothing.
func (a *Accumulator) Partial() []Item {
	var items []Item
	for _, left := range a.Left() {
		switch left.Item.typ {
		case TypeMessage, TypeReasoning:
			items = append(items, left.Item)
		}
	}
	return items
}
