// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// This file decides which events of a stream are about the same item; no other code
// does. Servers identify an item by its id, by its index in the output
// (output_index) and, for a call, by its call id. Each of the three is missing,
// constant or changed halfway on some server, so the code compares everything that
// both sides have; see [likeness.of]. An item that is sent twice must not be
// duplicated, and two items must stay separate even if they share a name.

// names holds the ids of an item.
type names struct {
	id   string
	call callName
}

// callName identifies a call or an output by its type and call_id.
type callName struct {
	typ item.Type
	id  string
}

// identify reads the names of an item in one pass. A missing name is "".
func identify(it item.Item) names {
	n := names{call: callName{typ: it.Type()}}
	jsonx.EachMember(it.JSON(), func(name, value string) {
		switch jsonx.Unquote(name) {
		case "id":
			n.id, _ = item.JSON(value).Unquote()
		case "call_id":
			n.call.id, _ = item.JSON(value).Unquote()
		}
	})
	return n
}

// agreement says whether a name indicates that two items are the same.
type agreement int

const (
	differ agreement = -1
	unsure agreement = 0 // missing on at least one side
	equal  agreement = 1
)

// agree compares two names, either of which may be missing.
func agree[T comparable](a, b, missing T) agreement {
	switch {
	case a == missing || b == missing:
		return unsure
	case a == b:
		return equal
	}
	return differ
}

// likeness compares an item from an added or done event with slots.
type likeness struct {
	item  item.Item
	names names
	index int
	added bool
}

// of returns a score for how well the slot matches the item; 0 means that it is
// another item. The highest score wins. Among equal scores the oldest slot wins.
func (l *likeness) of(s *slot) int {
	if !s.mayBe(l.item.Type()) {
		return 0
	}
	id, place := agree(l.names.id, s.names.id, ""), agree(l.index, s.index, -1)
	call := agree(l.names.call.id, s.names.call.id, "") // mayBe has checked that the types agree
	open := s.done.IsZero()
	if open && id != equal && l.names.id != "" && l.names.id == s.id {
		id = equal // the id in its deltas or in its added item
	} else if open && id == unsure && s.names.id == "" {
		id = agree(l.names.id, s.id, "")
	}
	switch {
	case call == differ: // no server changes a call id
		return 0
	case open && l.added:
		return l.begins(s, id, place, call)
	case open:
		return l.ends(id, place, call)
	case l.added:
		return l.late(s, id, place, call)
	}
	return l.again(s, id, place, call)
}

// ends scores a done item against a slot that is not done.
func (l *likeness) ends(id, place, call agreement) int {
	switch {
	case id == equal && place == equal:
		return 9
	case id == equal && place == unsure:
		return 8
	case id == equal:
		return 4
	case place == equal && call == equal:
		return 7
	case place == equal && id == unsure:
		return 6
	case place == equal:
		return 3 // the server changed the id halfway
	case place == unsure && call == equal && id == unsure:
		return 5
	case place == unsure && call == equal:
		return 4
	}
	return 0
}

// begins scores an added item against a slot that is not done. The slot is known
// from deltas or from an earlier added event.
func (l *likeness) begins(s *slot, id, place, call agreement) int {
	switch {
	case id == equal && place == equal:
		return 9
	case id == equal && place == unsure:
		return 8
	case id == equal && s.added.IsZero():
		return 4
	case place == equal && call == equal:
		return 7
	case place == equal && id == unsure:
		return 6
	case place == unsure && call == equal && id == unsure:
		return 5
	}
	return 0
}

// late scores an added item against a slot that is done. If the slot had an added
// event already, this is a new item that reuses the same names.
func (l *likeness) late(s *slot, id, place, call agreement) int {
	switch {
	case !s.added.IsZero():
		return 0
	case id == equal && place != differ:
		return 9
	case place == equal && call == equal && id == unsure:
		return 7
	}
	return 0
}

// again scores a done item against a slot that is done, as when an event is sent
// twice.
func (l *likeness) again(s *slot, id, place, call agreement) int {
	same := l.item == s.done
	switch {
	case place == differ:
		return 0
	case same && (id == equal || call == equal || place == equal):
		return 10
	case place == equal && id == equal:
		return 2 // changed since; any slot that is not done scores higher
	}
	return 0
}

// maxAlike limits how many items with the same name are compared. Without it, a
// server that gives all items one name would make reading quadratic.
const maxAlike = 64

// recent returns the last maxAlike slots of a list of slots that share a name.
func recent(list []*slot) []*slot { return list[max(0, len(list)-maxAlike):] }

// forItem finds or creates the slot of an added or done item.
func (a *Accumulator) forItem(it item.Item, n names, index int, added bool) *slot {
	l := likeness{it, n, index, added}
	var best *slot
	most := 0
	// Every candidate shares at least one name with the item.
	among := func(list []*slot) {
		for _, s := range recent(list) {
			if fit := l.of(s); fit > most || fit == most && fit > 0 && s.arrived < best.arrived {
				best, most = s, fit
			}
		}
	}
	if n.id != "" {
		among(a.byID.get(n.id))
	}
	if n.call.id != "" {
		among(a.byCall.get(n.call))
	}
	if index >= 0 {
		among(a.byIndex.get(index))
	}
	// A done item without an index that matches nothing by name is taken to be the
	// first unfinished item of its type.
	if best == nil && index < 0 && !added {
		best = a.firstOpen(it)
	}
	return a.placed(best, n.id, index)
}

// slot finds or creates the slot for an event without an item. The event is about an
// item of type t.
func (a *Accumulator) slot(id string, index int, t item.Type) *slot {
	return a.placed(a.find(id, index, t), id, index)
}

// about returns the slot of the event's item. If the type of the slot was unknown,
// it becomes t.
func (a *Accumulator) about(e *Event, t item.Type) *slot {
	s := a.slot(e.ItemID, e.OutputIndex, t)
	s.typ = cmp.Or(s.typ, t)
	return s
}

// About returns the number of the item that the most recently added event is about.
// Items are numbered from 0, in the order in which the stream first mentioned them.
// ok is false if the event is not about a single item, as is the case for events
// about the response.
func (a *Accumulator) About() (number int, ok bool) {
	if a.last == nil {
		return 0, false
	}
	return a.last.arrived, true
}

// Number returns the number of an item that Add returned, or -1 for another item.
// See [Accumulator.About].
func (a *Accumulator) Number(it item.Item) int {
	if s := a.last; s != nil && s.done == it {
		return s.arrived
	}
	for _, s := range a.slots {
		if s.done == it {
			return s.arrived
		}
	}
	return -1
}

// find returns the slot for an event without an item, or nil. If several items share
// an index, or the event identifies none, it picks the last one that is not done and
// may have type t.
func (a *Accumulator) find(id string, index int, t item.Type) *slot {
	if id != "" {
		// An id decides, even if the index disagrees with it.
		if s := byPlace(a.byID.get(id), index); s != nil {
			return s
		}
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

// byPlace returns the last slot at the index, or else the last slot of the list.
func byPlace(list []*slot, index int) *slot {
	for _, s := range slices.Backward(recent(list)) {
		if s.index == index {
			return s
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// mayBe reports whether the slot's item may have type t. "" stands for any type.
func (s *slot) mayBe(t item.Type) bool {
	own := s.typ
	if it := s.current(); !it.IsZero() {
		own = it.Type()
	}
	return t == "" || own == "" || own == t
}

// takes reports whether it may be another version of the slot's item.
func (s *slot) takes(it item.Item) bool {
	now := s.current()
	if now.IsZero() {
		return s.typ == "" || s.typ == it.Type()
	}
	was, is := identify(now).call, identify(it).call
	return now.Type() == it.Type() && (was.id == "" || is.id == "" || was == is)
}

// placed returns s, or a new slot if s is nil. It records the id and the index if
// the slot had none.
func (a *Accumulator) placed(s *slot, id string, index int) *slot {
	if s == nil {
		switch {
		case a.slots == nil:
			a.room = a.first[:]
		case len(a.room) == 0:
			// Allocate several slots at a time, because most streams need more than
			// one.
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
		enter(&a.byID, s.id, s, &s.alone[1])
	}
	if s.index < 0 && index >= 0 {
		s.index, a.listed = index, false
		enter(&a.byIndex, index, s, &s.alone[0])
	}
	a.last = s
	return s
}

// lastOpen returns the last slot that is not done and may have type t, or nil.
func lastOpen(slots []*slot, t item.Type) *slot {
	for _, s := range slices.Backward(slots) {
		if s.done.IsZero() && s.mayBe(t) {
			return s
		}
	}
	return nil
}

// firstOpen returns the first slot that is not done and may hold the item, or nil.
func (a *Accumulator) firstOpen(it item.Item) *slot {
	for _, s := range a.slots {
		if s.done.IsZero() && s.takes(it) {
			return s
		}
	}
	return nil
}

// know records the names of an item. They may differ from earlier ones.
func (a *Accumulator) know(s *slot, n names) {
	s.names = n
	if n.id != "" {
		enter(&a.byID, n.id, s, nil)
	}
	if n.call.id != "" {
		enter(&a.byCall, n.call, s, &s.alone[2])
	}
}

// moveTo records the index of an item, which may have had another index or none.
func (a *Accumulator) moveTo(s *slot, index int) {
	if index >= 0 && s.index != index {
		s.index, a.listed = index, false
		enter(&a.byIndex, index, s, nil)
	}
}

// enter adds a slot to the list for a name, unless it is the last element already.
// room, if not nil, is used as the backing array of a list with one element.
func enter[K comparable](by *few[K, []*slot], name K, s *slot, room *[1]*slot) {
	list := by.at(name)
	switch n := len(*list); {
	case n > 0 && (*list)[n-1] == s:
		return
	case n == 0 && room != nil && room[0] == nil:
		room[0] = s
		*list = room[:]
		return
	}
	*list = append(*list, s)
}

// echoes reports whether s was only added, is empty, and may be an item that is
// already done: the server sent the added event late, or twice.
func (a *Accumulator) echoes(s *slot) bool {
	if !s.said.empty() || s.added.IsZero() || s.final || s.holds() || s.added.Status() != item.StatusInProgress && !s.unsaid() {
		return false
	}
	for _, d := range a.slots {
		if d != s && !d.done.IsZero() && d.done.Type() == s.added.Type() && d.arrived < s.arrived &&
			agree(d.names.id, s.names.id, "") != differ && agree(d.names.call.id, s.names.call.id, "") != differ &&
			(d.index < 0 || s.index < 0 || d.index == s.index) {
			return true
		}
	}
	return false
}

// unsaid reports whether the added item has no arguments or input, or empty ones.
func (s *slot) unsaid() bool {
	for _, name := range [...]string{"arguments", "input"} {
		if v, ok := s.added.Member(name); ok && v != `""` && v != "null" {
			return false
		}
	}
	return true
}

// meetFinal matches the items of the final response with slots, and returns the slot
// of each. It tries, in this order: identical items, names and index together, id,
// call id, index, and finally order. An item that was not done is replaced by the
// version in the final response.
func (a *Accumulator) meetFinal(output []item.Item) []*slot {
	slots, known := make([]*slot, len(output)), make([]names, len(output))
	same := map[item.Item][]*slot{}
	for _, s := range a.slots {
		if !s.done.IsZero() {
			same[s.done] = append(same[s.done], s)
		}
	}
	for i, it := range output {
		known[i] = identify(it)
		if list := same[it]; len(list) > 0 {
			slots[i], same[it] = list[0], list[1:]
			slots[i].met = true
		}
	}
	// Each step handles all items before the next one starts, so that a weak match
	// of one item does not take the slot that another matches strongly.
	for _, find := range []func(int, item.Item, names) *slot{a.unmetHere, a.unmetID, a.unmetCall, a.unmetAt, a.unmetLike} {
		for i, it := range output {
			if slots[i] != nil {
				continue
			}
			if s := find(i, it, known[i]); s != nil {
				slots[i], s.met = s, true
			}
		}
	}
	for i, it := range output {
		s := slots[i]
		if s == nil {
			// No event was about this item.
			s = a.placed(nil, known[i].id, i)
		}
		// The final response determines the order, and the contents of items that
		// were not done.
		if s.index = i; s.done.IsZero() {
			s.added, s.final, s.met, s.said = it, true, true, said{}
		}
		slots[i] = s
	}
	return slots
}

// unmetHere returns an unmatched slot at the index with the same id or call id.
func (a *Accumulator) unmetHere(i int, it item.Item, n names) *slot {
	for _, s := range recent(a.byIndex.get(i)) {
		if !s.met && s.takes(it) && (n.id != "" && n.id == s.names.id || n.call.id != "" && n.call == s.names.call) {
			return s
		}
	}
	return nil
}

// unmetID returns an unmatched slot that has had the id.
func (a *Accumulator) unmetID(_ int, it item.Item, n names) *slot {
	if n.id == "" {
		return nil
	}
	return firstUnmet(&a.byID, n.id, it)
}

// unmetCall returns an unmatched slot with the call id.
func (a *Accumulator) unmetCall(_ int, it item.Item, n names) *slot {
	if n.call.id == "" {
		return nil
	}
	return firstUnmet(&a.byCall, n.call, it)
}

// firstUnmet returns the first unmatched slot in the list for a name that may hold
// the item.
func firstUnmet[K comparable](by *few[K, []*slot], name K, it item.Item) *slot {
	list := by.find(name)
	if list == nil {
		return nil
	}
	for len(*list) > 0 && (*list)[0].met {
		*list = (*list)[1:] // drop them, so that each is looked at once
	}
	for _, s := range (*list)[:min(len(*list), maxAlike)] {
		if !s.met && s.takes(it) {
			return s
		}
	}
	return nil
}

// unmetAt returns an unmatched slot at the index that may hold the item.
func (a *Accumulator) unmetAt(i int, it item.Item, _ names) *slot {
	for _, s := range recent(a.byIndex.get(i)) {
		if !s.met && s.index == i && s.takes(it) {
			return s
		}
	}
	return nil
}

// unmetLike returns an unmatched slot without an index that may hold the item.
func (a *Accumulator) unmetLike(_ int, it item.Item, _ names) *slot {
	for _, s := range a.slots {
		if !s.met && s.index < 0 && s.takes(it) {
			return s
		}
	}
	return nil
}
