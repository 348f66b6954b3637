// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// EventView is one event of an [EventDecoder], read where it stands. It is for
// programs that pass many events on, or drop them, and must not copy each: its
// texts are bytes, which are the decoder's or those it was given, must not be
// changed, and are other bytes after the decoder's next call. [EventView.Event]
// copies it. A program that does not count nanoseconds has no use for it.
type EventView struct {
	// event holds strings that change with the next call. They must not leave this
	// package but as bytes or copies. Its Type and ItemID are strings of their own.
	event Event
}

// Event returns the event as a value that stays. Its texts are one copy, and the
// type and the item id none.
func (v *EventView) Event() Event {
	e := v.event
	from := e.raw
	at := within(from, e.Delta)
	switch {
	case e.Delta == "":
		e.raw = strings.Clone(from)
	case at >= 0:
		e.raw = strings.Clone(from)
		e.Delta = e.raw[at : at+len(e.Delta)]
	default: // it was written with escapes
		both := from + e.Delta
		e.raw, e.Delta = both[:len(from)], both[len(from):]
	}
	e.item, e.response = moved(e.item, from, e.raw), moved(e.response, from, e.raw)
	return e
}

// moved returns part where it is in to, a copy of from; part is in from or empty.
func moved(part, from, to string) string {
	if at := within(from, part); at >= 0 {
		return to[at : at+len(part)]
	}
	return strings.Clone(part)
}

// Type returns the event's type, an ordinary string.
func (v *EventView) Type() EventType { return v.event.Type }

// ItemID returns the id of the item that the event is about, or "". It is an
// ordinary string.
func (v *EventView) ItemID() string { return v.event.ItemID }

// OutputIndex returns the place of that item, or -1.
func (v *EventView) OutputIndex() int { return v.event.OutputIndex }

// SequenceNumber returns the event's number, or -1.
func (v *EventView) SequenceNumber() int64 { return v.event.SequenceNumber }

// Delta returns the text that a delta event adds.
func (v *EventView) Delta() []byte { return jsonx.Bytes(v.event.Delta) }

// JSON returns the event's text.
func (v *EventView) JSON() []byte { return jsonx.Bytes(v.event.raw) }
