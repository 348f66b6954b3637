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
	response *Response
	terminal EventType
}

// slot is one output item as far as it is known.
type slot struct {
	index int
	id    string
	added Item
	done  Item
	final bool // added is what the final response says
	said
	arrived int
}

// Add takes the next event and returns the items that are whole with it, each
// item once: one at its done event, or at the response's last event those that
// had none. An error tells of an event whose item or response cannot be read;
// the accumulator stays usable.
func (a *Accumulator) Add(e Event) ([]Item, error) {
	switch e.Type {
	case EventItemAdded:
		it, err := e.Item()
		if err != nil {
			return nil, err
		}
		s := a.slot(it.ID(), e.OutputIndex, true)
		s.added = it
	case EventItemDone:
		return a.itemDone(e)
	case EventCreated, EventInProgress, EventQueued:
		r, err := e.Response()
		if err == nil {
			a.response = r
		}
	case EventCompleted, EventFailed, EventIncomplete, EventCancelled:
		return a.finish(e)
	case EventError:
		a.terminal = EventError
	default:
		a.hear(e)
	}
	return nil, nil
}

// slot finds or makes the slot of an item.
func (a *Accumulator) slot(id string, index int, added bool) *slot {
	if s := a.find(id, index, added); s != nil {
		return s
	}
	s := &slot{index: index, id: strings.Clone(id), arrived: len(a.slots)}
	a.slots = append(a.slots, s)
	return s
}

// find returns the slot of an item, or nil. An id decides; an index decides
// where the id is missing on either side, or was changed under way.
func (a *Accumulator) find(id string, index int, added bool) *slot {
	if id != "" {
		for _, s := range a.slots {
			if s.id == id {
				return s
			}
		}
	}
	if index >= 0 {
		for _, s := range a.slots {
			if s.index == index && (s.id == "" || id == "" || !added && s.done.IsZero()) {
				return a.named(s, id)
			}
		}
	}
	if id == "" && index < 0 && !added {
		return a.open()
	}
	return nil
}

func (a *Accumulator) named(s *slot, id string) *slot {
	if s.id == "" {
		s.id = strings.Clone(id)
	}
	return s
}

// open returns the last item that is not done, which an event without id and
// index must mean.
func (a *Accumulator) open() *slot {
	for _, s := range slices.Backward(a.slots) {
		if s.done.IsZero() {
			return s
		}
	}
	return nil
}

func (a *Accumulator) itemDone(e Event) ([]Item, error) {
	it, err := e.Item()
	if err != nil {
		return nil, err
	}
	s := a.slot(it.ID(), e.OutputIndex, false)
	if !s.done.IsZero() {
		if s.done == it || it.ID() != "" {
			return nil, nil // said twice
		}
		s = &slot{index: e.OutputIndex, arrived: len(a.slots)}
		a.slots = append(a.slots, s)
	}
	s.done, s.said = it, said{}
	return []Item{it}, nil
}

// finish takes the last event: the response, and whatever items were not done.
func (a *Accumulator) finish(e Event) ([]Item, error) {
	a.terminal = EventType(strings.Clone(string(e.Type)))
	r, err := e.Response()
	if err != nil {
		return nil, err
	}
	if r.Status == "" {
		r.Status = strings.TrimPrefix(string(a.terminal), "response.")
	}
	a.response = r
	for i, it := range r.Output {
		a.fromFinal(i, it)
	}
	var rest []Item
	for _, s := range a.sorted() {
		if !s.done.IsZero() || len(r.Output) == 0 && e.Type != EventCompleted {
			continue
		}
		if it := s.assemble(StatusCompleted); !it.IsZero() {
			s.done, s.said = it, said{}
			rest = append(rest, it)
		}
	}
	r.Output = a.items()
	return rest, nil
}

// fromFinal matches item i of the final response with its slot. An item that
// was added and never done counts as the final response has it.
func (a *Accumulator) fromFinal(i int, it Item) {
	s := a.match(i, it)
	if s == nil {
		a.slots = append(a.slots, &slot{index: i, id: it.ID(), added: it, final: true, arrived: len(a.slots)})
		return
	}
	s.index = i
	if s.done.IsZero() {
		s.added, s.final, s.said = it, true, said{}
	}
}

// match finds the slot of the final response's item i: by id, else by place
// among items of its type.
func (a *Accumulator) match(i int, it Item) *slot {
	id := it.ID()
	for _, s := range a.slots {
		if id != "" && s.id == id {
			return s
		}
	}
	for _, s := range a.slots {
		if s.index == i && s.current().Type() == it.Type() {
			return s
		}
	}
	for _, s := range a.slots {
		if s.index < 0 && s.done == it {
			return s
		}
	}
	return nil
}

func (s *slot) current() Item {
	if !s.done.IsZero() {
		return s.done
	}
	return s.added
}

// sorted returns the slots in output order; those without an index come in the
// order of their arrival.
func (a *Accumulator) sorted() []*slot {
	out := slices.Clone(a.slots)
	slices.SortStableFunc(out, func(x, y *slot) int {
		if x.index >= 0 && y.index >= 0 {
			return cmp.Compare(x.index, y.index)
		}
		return cmp.Compare(x.arrived, y.arrived)
	})
	return out
}

func (a *Accumulator) items() []Item {
	items := []Item{}
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
	r := a.response
	if r == nil {
		r = new(Response)
	}
	r.Output = a.items()
	return r, a.terminal != ""
}

// Partial returns what was said of items that never became whole: messages and
// reasoning with the text so far and the status incomplete, in output order.
// Calls are left out, those that the endpoint runs itself too, since arguments
// that are cut off mean nothing.
func (a *Accumulator) Partial() []Item {
	var items []Item
	for _, s := range a.sorted() {
		if !s.done.IsZero() || s.said.empty() {
			continue
		}
		switch it := s.assemble(StatusIncomplete); it.Type() {
		case TypeMessage, TypeReasoning:
			items = append(items, it)
		}
	}
	return items
}
