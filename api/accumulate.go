// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Accumulator builds a response from its stream events. The result has the same
// items as the response without streaming, even if the server sends only done items,
// only added items and deltas, or a last event without output. Servers may leave out
// item_id or output_index, so it uses both to find the item of an event.
//
// Deltas of text, refusal, reasoning, arguments, input, code, commands and command
// output become part of their items, and so do annotations. Partial images and audio
// do not belong to an item; see [ImagePartialEvent] and [AudioDeltaEvent].
//
// The zero value is ready to use, for one response. An Accumulator is not safe for
// concurrent use.
type Accumulator struct {
	slots    []*slot
	first    [roomForSlots]slot
	room     []slot               // slots not used yet
	byID     few[string, []*slot] // by every id that the item has had
	byCall   few[callName, []*slot]
	byIndex  few[int, []*slot]
	last     *slot  // the slot of the last event
	spare    []byte // buffer to reuse for the next text
	begun    []byte // the response from an early event, not parsed yet
	response *Response
	listed   bool // response.Output holds all finished items
	terminal EventType
	halves   halves // split characters in events that no decoder has joined
}

// slot is one output item, as far as it is known.
type slot struct {
	index int
	id    string    // the first id it had
	names names     // from the most recent version of the item
	typ   item.Type // type implied by its events, before there is an item
	added item.Item
	done  item.Item
	final bool // added was taken from the final response
	met   bool // the final response contains it
	said
	arrived int
	alone   [3][1]*slot  // backing for the one-element lists of byIndex, byID and byCall
	told    [1]item.Item // done, as the slice that Add returns
	heard   *heardText   // the most recent text, used by Auditor
}

// Add takes the next event and returns the items that it finishes. Each item is
// returned once: with its done event, or with the response's last event if it had no
// done event. The error reports an event whose item or response cannot be decoded;
// the accumulator remains usable.
func (a *Accumulator) Add(e Event) ([]item.Item, error) { return a.add(&e) }

// AddView is like [Accumulator.Add] for an event whose memory will be reused. It
// copies whatever it keeps or returns.
func (a *Accumulator) AddView(v *EventView) ([]item.Item, error) {
	if v == nil {
		return nil, errNil
	}
	switch e := &v.event; e.Type {
	case EventItemAdded, EventItemDone, EventCompleted, EventFailed, EventIncomplete, EventCancelled:
		kept := v.Event() // the accumulator keeps the item or response of these events
		return a.add(&kept)
	default:
		// add does not keep the strings of any other event.
		return a.add(e)
	}
}

// add takes an event. It does not retain the event's strings unless the event holds
// an item or a whole response.
func (a *Accumulator) add(e *Event) ([]item.Item, error) {
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
			a.begun = append(a.begun[:0], v...) // parsed only if no last event arrives
		}
	case EventCompleted, EventFailed, EventIncomplete, EventCancelled:
		return a.finish(e)
	case EventError:
		a.terminal = EventError
	default:
		a.halves.join(e)
		a.hear(e)
		if a.last == nil && e.ItemID != "" { // it says nothing about the contents of its item
			a.last = a.find(e.ItemID, e.OutputIndex, "")
		}
	}
	return nil, nil
}

// roomForSlots is how many slots are allocated at a time. Most replies do not have
// more items.
const roomForSlots = 2

// itemDone takes the event of a done item. If the item was done already, the event
// is ignored.
func (a *Accumulator) itemDone(e *Event) ([]item.Item, error) {
	it, n, err := e.named()
	if err != nil {
		return nil, err
	}
	s, again := a.settle(it, n, e.OutputIndex)
	if again {
		return nil, nil
	}
	a.listed = false
	// The slice returned is part of the slot, which saves an allocation per item.
	s.told = [1]item.Item{it}
	return s.told[:], nil
}

// settle stores it as the done item of its slot. again reports that the slot already
// had one; then the first one is kept.
func (a *Accumulator) settle(it item.Item, n names, index int) (s *slot, again bool) {
	s = a.forItem(it, n, index, false)
	if !s.done.IsZero() {
		return s, true
	}
	a.moveTo(s, index)
	// The deltas are not needed any more. Reuse the first text's buffer.
	if len(s.texts.list) > 0 {
		a.spare = s.texts.list[0].value
	}
	s.done, s.said = it, said{}
	a.know(s, n)
	return s, false
}

// finish takes the last event: it reads the response and finishes the items that had
// no done event.
func (a *Accumulator) finish(e *Event) ([]item.Item, error) {
	for _, t := range [...]EventType{EventCompleted, EventFailed, EventIncomplete, EventCancelled} {
		if t == e.Type {
			a.terminal = t // the constant, because e.Type may share memory that is reused
		}
	}
	// If all items are done, the response most likely repeats them and need not be
	// decoded again.
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
		a.listed = true // the usual case: the output repeats the done items
		return nil, nil
	}
	// The response is not just a repetition, so match its items with the slots.
	a.meetFinal(r.Output)
	var rest []item.Item
	for _, s := range a.sorted() {
		// Without a done event, the item is known only from its parts. If the final
		// response lists its output without the item, or did not complete, the item
		// cannot be taken as finished.
		hearsay := !s.final && (len(r.Output) > 0 || e.Type != EventCompleted)
		if !s.done.IsZero() || hearsay || a.echoes(s) {
			continue // Partial returns unfinished items
		}
		if it := s.assemble(item.StatusCompleted); !it.IsZero() {
			s.done, s.said = it, said{}
			rest = append(rest, it)
		}
	}
	// Done events take precedence, so the output consists of the slots' items rather
	// than those of the event.
	r.Output, a.listed = a.items(r.Output[:0]), true
	return rest, nil
}

// allDone returns the items if all of them are done, and nil otherwise.
func (a *Accumulator) allDone() []item.Item {
	items := a.items(make([]item.Item, 0, len(a.slots)))
	if len(items) < len(a.slots) {
		return nil
	}
	return items
}

// current returns the done item, or the added one if it is not done.
func (s *slot) current() item.Item {
	if !s.done.IsZero() {
		return s.done
	}
	return s.added
}

// sorted returns the slots in output order. A slot without an index keeps its place
// in the order of arrival.
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
	// Put the sorted slots into the positions of slots with an index.
	out := slices.Clone(a.slots)
	for i, s := range out {
		if s.index >= 0 {
			out[i], placed = placed[0], placed[1:]
		}
	}
	return out
}

// inOrder reports whether the items arrived in output order, which is the usual
// case.
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

// items appends the done items to items, in output order.
func (a *Accumulator) items(items []item.Item) []item.Item {
	for _, s := range a.sorted() {
		if !s.done.IsZero() {
			items = append(items, s.done)
		}
	}
	return items
}

// Response returns the response as far as it is known, with the finished items as
// its output, and whether its last event has arrived. Before any event it returns an
// empty response, never nil.
func (a *Accumulator) Response() (*Response, bool) {
	// The response of an early event has not been parsed yet. Most streams never
	// need it, because the last event replaces it.
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
		a.response.Output, a.listed = a.items(make([]item.Item, 0, len(a.slots))), true
	}
	return a.response, a.terminal != ""
}

// Left is what arrived of an item that was never finished. Number is the item's
// number as returned by [Accumulator.About].
type Left struct {
	Item   item.Item
	Number int
}

// Left returns what arrived of items that were never finished: they had no done
// event and are not in the last event's response. Their status is incomplete. Unlike
// [Accumulator.Partial], it includes calls, which may lack their name or the end of
// their arguments.
func (a *Accumulator) Left() []Left {
	var list []Left
	for _, s := range a.sorted() {
		if !s.done.IsZero() || a.echoes(s) {
			continue
		}
		// A call counts even if it is empty: the caller may have shown its
		// beginning.
		call := s.added.IsCall() || s.typ == item.TypeFunctionCall || s.typ == item.TypeCustomToolCall
		if s.said.empty() && !s.holds() && !call {
			continue
		}
		it := s.assemble(item.StatusIncomplete)
		if it.IsZero() {
			it = s.added
		}
		// There was no added event, so the name of the call is unknown. Return the
		// rest.
		if it.IsZero() && s.typ == item.TypeFunctionCall {
			it = item.Must(&item.FunctionCall{ID: clean(s.id), Arguments: s.joined(EventArgumentsDelta, ""), Status: item.StatusIncomplete})
		} else if it.IsZero() && s.typ == item.TypeCustomToolCall {
			it = item.Must(&item.CustomToolCall{ID: clean(s.id), Input: s.joined(EventCustomInputDelta, ""), Status: item.StatusIncomplete})
		}
		if !it.IsZero() {
			list = append(list, Left{it, s.arrived})
		}
	}
	return list
}

// Partial returns the messages and reasoning that were never finished, with the text
// received so far and the status incomplete, in output order. Use it when a stream
// breaks off, or when its last event cannot be read. It leaves out calls, including
// those that the endpoint runs, because incomplete arguments are useless.
func (a *Accumulator) Partial() []item.Item {
	var items []item.Item
	for _, left := range a.Left() {
		switch left.Item.Type() {
		case item.TypeMessage, item.TypeReasoning:
			items = append(items, left.Item)
		}
	}
	return items
}

// few is a map that is a list while it is short. Most replies have few items and few
// texts, and a short list costs less to create than a map. It must not be copied
// once it is in use, since list may point to first.
type few[K comparable, V any] struct {
	list  []entry[K, V] // used until many is set
	many  map[K]*V
	first [2]entry[K, V] // first backing array of list
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

const maxFew = 16

// get returns the value for key, or the zero value.
func (f *few[K, V]) get(key K) (v V) {
	if p := f.find(key); p != nil {
		return *p
	}
	return v
}

// find returns a pointer to the value for key, or nil.
func (f *few[K, V]) find(key K) *V {
	if f.many != nil {
		return f.many[key]
	}
	for i := range f.list {
		if f.list[i].key == key {
			return &f.list[i].value
		}
	}
	return nil
}

// at returns a pointer to the value for key, which it adds if necessary. The pointer
// is valid until the next call of at.
func (f *few[K, V]) at(key K) *V {
	if p := f.find(key); p != nil {
		return p
	}
	if f.list == nil && f.many == nil {
		f.list = f.first[:0]
	}
	// The map's values point into the old list, so nothing is copied.
	if len(f.list) == maxFew {
		f.many = make(map[K]*V, 2*maxFew)
		for i := range f.list {
			f.many[f.list[i].key] = &f.list[i].value
		}
		f.list = nil
	}
	if f.many != nil {
		v := new(V)
		f.many[key] = v
		return v
	}
	f.list = append(f.list, entry[K, V]{key: key})
	return &f.list[len(f.list)-1].value
}

func (f *few[K, V]) len() int { return len(f.list) + len(f.many) }

// keys returns an iterator over the keys. Their order is undefined once there is a
// map.
func (f *few[K, V]) keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for i := range f.list {
			if !yield(f.list[i].key) {
				return
			}
		}
		for key := range f.many {
			if !yield(key) {
				return
			}
		}
	}
}
