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
	room     []slot             // for those that come
	byID     few[string, *slot] // by each id that an item went by
	byCall   few[callName, *slot]
	byIndex  few[int, []*slot]
	spare    []byte // room for a text
	begun    []byte // the response as an event told it that was not read yet
	response *Response
	listed   bool // its output holds the items that are whole
	terminal EventType
}

// slot is one output item as far as it is known.
type slot struct {
	index int
	id    string
	typ   Type // what its events are about, before there is an item
	added Item
	done  Item
	final bool // added is what the final response says
	met   bool // the final response has it
	said
	arrived int
	alone   [1]*slot // at its index, as most are
	told    [1]Item  // done, for who added the event
}

// Add takes the next event and returns the items that are whole with it, each
// item once: one at its done event, or at the response's last event those that
// had none. An error tells of an event whose item or response cannot be read;
// the accumulator stays usable.
func (a *Accumulator) Add(e Event) ([]Item, error) {
	switch e.Type {
	case EventItemAdded:
		it, n, err := e.named()
		if err != nil {
			return nil, err
		}
		s := a.forItem(it, n, e.OutputIndex, true)
		s.added = it
		a.know(s, n)
	case EventItemDone:
		return a.itemDone(&e)
	case EventCreated, EventInProgress, EventQueued:
		if v := e.response; v != "" && v[0] == '{' {
			a.begun = append(a.begun[:0], v...) // to be read if no last event comes
		}
	case EventCompleted, EventFailed, EventIncomplete, EventCancelled:
		return a.finish(&e)
	case EventError:
		a.terminal = EventError
	default:
		a.hear(&e)
	}
	return nil, nil
}

// forItem finds or makes the slot of an added or done item. Its id decides, or
// its call_id, which no server changes; then its place, where the id is missing
// on either side or was changed under way.
func (a *Accumulator) forItem(it Item, n names, index int, added bool) *slot {
	s := a.known(n)
	if added && s != nil && !s.done.IsZero() && a.byID.get(n.id) != s {
		s = nil // another call with the call_id of one that is done
	}
	if s == nil && index >= 0 {
		for _, c := range a.byIndex.get(index) {
			if c.takes(it) && (c.done == it || c.done.IsZero() && (c.id == "" || n.id == "" || !added)) {
				s = c
				break
			}
		}
	}
	if s == nil && index < 0 && !added {
		s = a.firstOpen(it)
	}
	return a.placed(s, n.id, index)
}

// slot finds or makes the slot of an event that carries no item, and is about
// one of a type.
func (a *Accumulator) slot(id string, index int, t Type) *slot {
	return a.placed(a.find(id, index, t), id, index)
}

// find returns the slot of an event that carries no item, or nil. Where several
// items share a place, or the event names none, one that is not done and may be
// of the type is meant.
func (a *Accumulator) find(id string, index int, t Type) *slot {
	if s := a.byID.get(id); s != nil && id != "" {
		return s
	}
	if index >= 0 {
		list := a.byIndex.get(index)
		if s := lastOpen(list, t); s != nil {
			return s
		}
		if len(list) > 0 && id == "" && list[len(list)-1].mayBe(t) {
			return list[len(list)-1]
		}
		return nil
	}
	if id == "" {
		return lastOpen(a.slots, t)
	}
	return nil
}

// mayBe reports whether the slot's item may be of the type. "" is any type.
func (s *slot) mayBe(t Type) bool {
	own := s.typ
	if it := s.current(); !it.IsZero() {
		own = it.typ
	}
	return t == "" || own == "" || own == t
}

// names are what an item goes by.
type names struct {
	id   string
	call callName
}

// callName names a call or an output by its type and call_id.
type callName struct {
	typ Type
	id  string
}

// identify reads the names in one pass. What an item has not got is "".
func identify(it Item) names {
	n := names{call: callName{typ: it.typ}}
	eachMember(it.raw, func(name, value string) {
		switch unquote(name) {
		case "id":
			n.id, _ = JSON(value).Unquote()
		case "call_id":
			n.call.id, _ = JSON(value).Unquote()
		}
	})
	return n
}

// known returns the slot of an item that has been met by its id or call_id.
func (a *Accumulator) known(n names) *slot {
	if s := a.byID.get(n.id); s != nil {
		return s
	}
	return a.byCall.get(n.call)
}

// takes reports whether the item may be another state of the slot's.
func (s *slot) takes(it Item) bool {
	now := s.current()
	if now.IsZero() {
		return s.typ == "" || s.typ == it.typ
	}
	was, is := identify(now).call, identify(it).call
	return now.typ == it.typ && (was.id == "" || is.id == "" || was == is)
}

// roomForSlots is how many items there is room for at once: most replies have no
// more.
const roomForSlots = 2

// placed makes a slot if there is none, and notes what has been learnt of it.
func (a *Accumulator) placed(s *slot, id string, index int) *slot {
	if s == nil {
		switch {
		case a.slots == nil:
			a.room = a.first[:]
		case len(a.room) == 0:
			a.room = make([]slot, roomForSlots)
		}
		s, a.room = &a.room[0], a.room[1:]
		s.index, s.arrived = -1, len(a.slots)
		if a.slots == nil {
			a.slots = make([]*slot, 0, 2*roomForSlots)
		}
		a.slots = append(a.slots, s)
	}
	if s.id == "" && id != "" {
		s.id = strings.Clone(id)
		a.byID.set(s.id, s)
	}
	if s.index < 0 && index >= 0 {
		s.index, a.listed = index, false
		list := a.byIndex.get(index)
		if list == nil {
			list = s.alone[:0]
		}
		a.byIndex.set(index, append(list, s))
	}
	return s
}

// know notes the names of an item, which may have changed.
func (a *Accumulator) know(s *slot, n names) {
	if n.id != "" {
		a.byID.set(n.id, s)
	}
	if n.call.id != "" {
		a.byCall.set(n.call, s)
	}
}

// lastOpen returns the last item that is not done and may be of the type.
func lastOpen(slots []*slot, t Type) *slot {
	for _, s := range slices.Backward(slots) {
		if s.done.IsZero() && s.mayBe(t) {
			return s
		}
	}
	return nil
}

// firstOpen returns the first item that is not done and may be this one.
func (a *Accumulator) firstOpen(it Item) *slot {
	for _, s := range a.slots {
		if s.done.IsZero() && s.takes(it) {
			return s
		}
	}
	return nil
}

func (a *Accumulator) itemDone(e *Event) ([]Item, error) {
	it, n, err := e.named()
	if err != nil {
		return nil, err
	}
	s := a.forItem(it, n, e.OutputIndex, false)
	if !s.done.IsZero() {
		return nil, nil // said twice
	}
	if len(s.texts.list) > 0 {
		a.spare = s.texts.list[0].value
	}
	s.done, s.said = it, said{}
	a.know(s, n)
	a.listed = false
	s.told = [1]Item{it}
	return s.told[:], nil
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
		if !s.done.IsZero() || hearsay {
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

// meetFinal matches the items of the final response with the slots: first by
// what names them, then by place, then by their order. An item that was never
// done counts as the final response has it.
func (a *Accumulator) meetFinal(output []Item) {
	slots := make([]*slot, len(output))
	for i, it := range output {
		if s := a.known(identify(it)); s != nil && !s.met {
			slots[i], s.met = s, true
		}
	}
	for _, find := range []func(int, Item) *slot{a.unmetAt, a.unmetLike} {
		for i, it := range output {
			if slots[i] != nil {
				continue
			}
			if s := find(i, it); s != nil {
				slots[i], s.met = s, true
			}
		}
	}
	for i, it := range output {
		s := slots[i]
		if s == nil {
			s = a.placed(nil, it.ID(), i)
		}
		if s.index = i; s.done.IsZero() {
			s.added, s.final, s.met, s.said = it, true, true, said{}
		}
	}
}

// unmetAt returns a slot at the place that may be the item.
func (a *Accumulator) unmetAt(i int, it Item) *slot {
	for _, s := range a.byIndex.get(i) {
		if !s.met && s.takes(it) {
			return s
		}
	}
	return nil
}

// unmetLike returns a slot without a place that may be the item, or one that
// is done and equal to it.
func (a *Accumulator) unmetLike(_ int, it Item) *slot {
	for _, s := range a.slots {
		if !s.met && (s.index < 0 && s.takes(it) || s.done == it) {
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

// Partial returns what was said of items that never became whole: messages and
// reasoning with the text so far and the status incomplete, in output order.
// That goes for the end of a stream, and for a last event that cannot be read.
// Calls are left out, those that the endpoint runs itself too, since arguments
// that are cut off mean nothing.
func (a *Accumulator) Partial() []Item {
	var items []Item
	for _, s := range a.sorted() {
		if !s.done.IsZero() || s.said.empty() && !s.holds() {
			continue
		}
		switch it := s.assemble(StatusIncomplete); it.Type() {
		case TypeMessage, TypeReasoning:
			items = append(items, it)
		}
	}
	return items
}
