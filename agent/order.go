// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"

	"github.com/antiphon-go/antiphon/api"
)

// order yields the texts of a reply's messages one after another, part by part, as
// the session stores them. Most servers send them in this order. If a server
// interleaves them, a later text waits until the earlier one is complete. A program
// that prints all deltas thus prints what the session stores.
type order struct {
	run  *Run
	now  textPlace // the last yielded text
	busy bool      // the message of now is not complete
	held []heldEvent
}

// textPlace identifies a text: the number of its item, as [api.Accumulator.About]
// gives it, its part, and whether it is a refusal. Names are the identifiers in its
// events.
type textPlace struct {
	item, part int
	kind       api.EventType
	ended      bool // the part is complete
	names      textNames
}

// textNames identify a text in events.
type textNames struct {
	id          string
	index, part int
}

func namesOf(e *api.Event) textNames {
	return textNames{e.ItemID, e.OutputIndex, max(e.ContentIndex, 0)}
}

// is reports whether both identify the same text.
func (t *textPlace) is(o *textPlace) bool {
	return t.item == o.item && t.part == o.part && t.kind == o.kind
}

// heldEvent is a waiting event. An event that ends its message has no text.
type heldEvent struct {
	at   textPlace
	ev   Event
	ends bool
}

// text handles a delta of a text.
func (o *order) text(at textPlace, ev Delta) {
	switch {
	case !o.busy, o.now.is(&at), o.now.item == at.item && o.now.ended && !o.waits(at.item):
		at.ended = at.ended || o.busy && o.now.is(&at) && o.now.ended
		o.now, o.busy = at, true
		o.run.emit(ev)
	default:
		o.held = append(o.held, heldEvent{at: at, ev: ev})
	}
}

// waits reports whether a part of the item waits.
func (o *order) waits(number int) bool {
	return slices.ContainsFunc(o.held, func(h heldEvent) bool { return h.at.item == number })
}

// partEnded marks a text as complete, so that the next part of its message may
// follow.
func (o *order) partEnded(at textPlace) {
	if !o.busy || !o.now.is(&at) {
		return
	}
	o.now.ended = true
	for _, h := range o.held {
		if h.at.item == o.now.item && !h.ends {
			o.now = h.at
			o.tell(func(h *heldEvent) bool { return !h.ends && h.at.is(&o.now) })
			return
		}
	}
}

// ended handles the entry of a message, which ends the message.
func (o *order) ended(number int, ev Event) {
	if len(o.held) == 0 && (!o.busy || o.now.item == number) { // nothing has waited, as nearly always
		o.busy = false
		o.run.emit(ev)
		return
	}
	o.held = append(o.held, heldEvent{at: textPlace{item: number}, ev: ev, ends: true})
	if !o.busy || o.now.item == number {
		o.busy = false
		o.next(number)
	}
}

// next yields waiting events, beginning with an item that has ended, up to the first
// text of an incomplete message.
func (o *order) next(number int) {
	for {
		for { // its texts, part by part
			i := slices.IndexFunc(o.held, func(h heldEvent) bool { return h.at.item == number && !h.ends })
			if i < 0 {
				break
			}
			o.now = o.held[i].at
			ended := slices.ContainsFunc(o.held, func(h heldEvent) bool { return h.at.item == number && h.ends })
			o.tell(func(h *heldEvent) bool { return !h.ends && h.at.is(&o.now) })
			if !ended {
				o.busy = true
				return
			}
		}
		o.tell(func(h *heldEvent) bool { return h.at.item == number })
		if len(o.held) == 0 {
			return
		}
		number = o.held[0].at.item
	}
}

// tell emits the waiting events that are selected.
func (o *order) tell(meant func(*heldEvent) bool) {
	held := o.held
	o.held = nil
	for i := range held {
		if meant(&held[i]) {
			o.run.emit(held[i].ev)
		} else {
			o.held = append(o.held, held[i])
		}
	}
}

// rest handles text that arrived without a delta, at the end of the text with the
// given names. It reports false if a later text was already yielded.
func (o *order) rest(kind api.EventType, names textNames, ev Delta) bool {
	if o.busy && o.now.kind == kind && o.now.names == names {
		ev.Part = o.now.part
		o.run.emit(ev)
		return true
	}
	for _, h := range slices.Backward(o.held) {
		if !h.ends && h.at.kind == kind && h.at.names == names {
			ev.Part = h.at.part
			o.held = append(o.held, heldEvent{at: h.at, ev: ev})
			return true
		}
	}
	return false
}

// flush yields all waiting events at the end of the reply.
func (o *order) flush() {
	for o.busy = false; len(o.held) > 0; o.busy = false {
		o.next(o.held[0].at.item)
	}
}
