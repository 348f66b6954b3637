// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"cmp"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// Which events of a stream are about the same item is decided in this file, and
// nowhere else. Servers name an item by its id, by its place in the output
// (output_index) and, if it is a call, by its call id; and each of the three is
// missing, constant or changed under way somewhere. So what is known of both is
// compared: see [likeness.of]. An item that is told twice must not be doubled,
// and two items must not become one, even if they share a name.

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
	jsonx.EachMember(it.raw, func(name, value string) {
		switch jsonx.Unquote(name) {
		case "id":
			n.id, _ = JSON(value).Unquote()
		case "call_id":
			n.call.id, _ = JSON(value).Unquote()
		}
	})
	return n
}

// agreement is what a name says for or against two items being one.
type agreement int

const (
	differ agreement = -1
	unsure agreement = 0 // it is missing on one side
	equal  agreement = 1
)

func agree[T comparable](a, b, missing T) agreement {
	switch {
	case a == missing || b == missing:
		return unsure
	case a == b:
		return equal
	}
	return differ
}

// likeness compares an item that an event tells of, done or added, with slots.
type likeness struct {
	item  Item
	names names
	index int
	added bool
}

// of returns how well the slot fits the item: 0 if it is that of another. The
// highest number wins, then the slot that came first.
func (l *likeness) of(s *slot) int {
	if !s.mayBe(l.item.typ) {
		return 0
	}
	id, place := agree(l.names.id, s.names.id, ""), agree(l.index, s.index, -1)
	call := agree(l.names.call.id, s.names.call.id, "") // of items of one type
	open := s.done.IsZero()
	if open && id != equal && l.names.id != "" && l.names.id == s.id {
		id = equal // as its deltas called it, or the added item
	} else if open && id == unsure && s.names.id == "" {
		id = agree(l.names.id, s.id, "")
	}
	switch {
	case call == differ: // which no server changes
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

// ends is how well an item that is done fits one that is not yet.
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
		return 3 // the id was changed under way
	case place == unsure && call == equal && id == unsure:
		return 5
	case place == unsure && call == equal:
		return 4
	}
	return 0
}

// begins is how well an item that is added fits one that is known from its
// deltas, or was added before.
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

// late is how well an item that is added fits one that is done already: where it
// was added before too, the next one begins, by the same names.
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

// again is how well an item that is done fits one that is done already, as where
// an event comes twice.
func (l *likeness) again(s *slot, id, place, call agreement) int {
	same := l.item == s.done
	switch {
	case place == differ:
		return 0
	case same && (id == equal || call == equal || place == equal):
		return 10
	case place == equal && id == equal:
		return 2 // changed; any that is not done fits better
	}
	return 0
}

// maxAlike is how many items of one name are compared with another that has it:
// a server that gives all items one name must not make reading them slow.
const maxAlike = 64

// recent returns the end of a list of slots that share a name.
func recent(list []*slot) []*slot { return list[max(0, len(list)-maxAlike):] }

// forItem finds or makes the slot of an added or done item.
func (a *Accumulator) forItem(it Item, n names, index int, added bool) *slot {
	l := likeness{it, n, index, added}
	var best *slot
	most := 0
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
	if best == nil && index < 0 && !added {
		best = a.firstOpen(it)
	}
	return a.placed(best, n.id, index)
}

// slot finds or makes the slot of an event that carries no item, and is about
// one of a type.
func (a *Accumulator) slot(id string, index int, t Type) *slot {
	return a.placed(a.find(id, index, t), id, index)
}

// about returns the slot of the item that the event is about, which makes it
// one of that type.
func (a *Accumulator) about(e *Event, t Type) *slot {
	s := a.slot(e.ItemID, e.OutputIndex, t)
	s.typ = cmp.Or(s.typ, t)
	return s
}

// About says which item the event that was added last is about: items are numbered
// from 0, in the order in which the stream named them first. It reports false for an
// event about none, or about all, as those of the response are.
func (a *Accumulator) About() (number int, ok bool) {
	if a.last == nil {
		return 0, false
	}
	return a.last.arrived, true
}

// Number returns the number of an item that was returned by Add, -1 if it was not:
// see [Accumulator.About].
func (a *Accumulator) Number(it Item) int {
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

// find returns the slot of an event that carries no item, or nil. Where several
// items share a place, or the event names none, one that is not done and may be
// of the type is meant.
func (a *Accumulator) find(id string, index int, t Type) *slot {
	if id != "" {
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

// byPlace returns the last slot of the list, or the last one at the index if
// there is one.
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

// mayBe reports whether the slot's item may be of the type. "" is any type.
func (s *slot) mayBe(t Type) bool {
	own := s.typ
	if it := s.current(); !it.IsZero() {
		own = it.typ
	}
	return t == "" || own == "" || own == t
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
		enter(&a.byID, s.id, s, &s.alone[1])
	}
	if s.index < 0 && index >= 0 {
		s.index, a.listed = index, false
		enter(&a.byIndex, index, s, &s.alone[0])
	}
	a.last = s
	return s
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

// know notes the names of an item, which may have changed.
func (a *Accumulator) know(s *slot, n names) {
	s.names = n
	if n.id != "" {
		enter(&a.byID, n.id, s, nil)
	}
	if n.call.id != "" {
		enter(&a.byCall, n.call, s, &s.alone[2])
	}
}

// moveTo notes the place of an item that was told of at another one, or at none.
func (a *Accumulator) moveTo(s *slot, index int) {
	if index >= 0 && s.index != index {
		s.index, a.listed = index, false
		enter(&a.byIndex, index, s, nil)
	}
}

// enter adds a slot to those of a name, if it is not the last of them. Room, if
// it is given, is for a list of one.
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

// echoes reports an item that was only added, with nothing in it, and that one
// that is done may be: the server told of its beginning too late, or twice.
func (a *Accumulator) echoes(s *slot) bool {
	if !s.said.empty() || s.added.IsZero() || s.final || s.holds() || s.added.Status() != StatusInProgress && !s.unsaid() {
		return false
	}
	for _, d := range a.slots {
		if d != s && !d.done.IsZero() && d.done.typ == s.added.typ && d.arrived < s.arrived &&
			agree(d.names.id, s.names.id, "") != differ && agree(d.names.call.id, s.names.call.id, "") != differ &&
			(d.index < 0 || s.index < 0 || d.index == s.index) {
			return true
		}
	}
	return false
}

// unsaid reports an added item whose arguments or input are empty, or that has
// none.
func (s *slot) unsaid() bool {
	for _, name := range [...]string{"arguments", "input"} {
		if v, ok := s.added.Member(name); ok && v != `""` && v != "null" {
			return false
		}
	}
	return true
}

// meetFinal matches the items of the final response with the slots: first those
// that are the same, then by what names them, then by place, then by their order. An item that was never
// done counts as the final response has it. It returns the slot of each.
func (a *Accumulator) meetFinal(output []Item) []*slot {
	slots, known := make([]*slot, len(output)), make([]names, len(output))
	same := map[Item][]*slot{}
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
	for _, find := range []func(int, Item, names) *slot{a.unmetHere, a.unmetID, a.unmetCall, a.unmetAt, a.unmetLike} {
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
			s = a.placed(nil, known[i].id, i)
		}
		if s.index = i; s.done.IsZero() {
			s.added, s.final, s.met, s.said = it, true, true, said{}
		}
		slots[i] = s
	}
	return slots
}

// unmetHere returns a slot at the place with the same id or call id.
func (a *Accumulator) unmetHere(i int, it Item, n names) *slot {
	for _, s := range recent(a.byIndex.get(i)) {
		if !s.met && s.takes(it) && (n.id != "" && n.id == s.names.id || n.call.id != "" && n.call == s.names.call) {
			return s
		}
	}
	return nil
}

// unmetID returns a slot that went by the id.
func (a *Accumulator) unmetID(_ int, it Item, n names) *slot {
	if n.id == "" {
		return nil
	}
	return firstUnmet(&a.byID, n.id, it)
}

// unmetCall returns a slot with the call id.
func (a *Accumulator) unmetCall(_ int, it Item, n names) *slot {
	if n.call.id == "" {
		return nil
	}
	return firstUnmet(&a.byCall, n.call, it)
}

func firstUnmet[K comparable](by *few[K, []*slot], name K, it Item) *slot {
	list := by.find(name)
	if list == nil {
		return nil
	}
	for len(*list) > 0 && (*list)[0].met {
		*list = (*list)[1:] // they are looked at once
	}
	for _, s := range (*list)[:min(len(*list), maxAlike)] {
		if !s.met && s.takes(it) {
			return s
		}
	}
	return nil
}

// unmetAt returns a slot at the place that may be the item.
func (a *Accumulator) unmetAt(i int, it Item, _ names) *slot {
	for _, s := range recent(a.byIndex.get(i)) {
		if !s.met && s.index == i && s.takes(it) {
			return s
		}
	}
	return nil
}

// unmetLike returns a slot without a place that may be the item.
func (a *Accumulator) unmetLike(_ int, it Item, _ names) *slot {
	for _, s := range a.slots {
		if !s.met && s.index < 0 && s.takes(it) {
			return s
		}
	}
	return nil
}
