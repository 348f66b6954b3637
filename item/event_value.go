// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"fmt"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// EventValue is a decoded copy of a stream event: the struct of its type, such
// as [*TextDeltaEvent] or [*CompletedEvent], or [*UnknownEvent]. It stays when
// the event's memory is used again. Most programs read the [Event] view, which
// costs far less; a struct is for building events, and for members that are
// seldom read. Schemas: ResponseStreamEvent, ResponsesServerEvent.
type EventValue interface {
	// EventType returns the type member.
	EventType() EventType
	record
}

// EventHead is what every event has. A SequenceNumber of -1 is not written.
type EventHead struct {
	SequenceNumber int64
	// StreamID is there on a WebSocket that carries several responses. Schema:
	// ResponsesServerEvent.
	StreamID string
	Extra    Extra
}

// ItemEvent is an event about one output item. An OutputIndex of -1 is not
// written.
type ItemEvent struct {
	EventHead
	ItemID      string
	OutputIndex int
}

// PartEvent is an event about one part of an output item's content. A
// ContentIndex of -1 is not written.
type PartEvent struct {
	ItemEvent
	ContentIndex int
}

// SummaryEvent is an event about one part of a reasoning item's summary. A
// SummaryIndex of -1 is not written.
type SummaryEvent struct {
	ItemEvent
	SummaryIndex int
}

// UnknownEvent is an event of a type that this version does not know, kept byte
// for byte.
type UnknownEvent struct{ Raw JSON }

// EventType returns the type member, or "".
func (e *UnknownEvent) EventType() EventType {
	if e == nil {
		return ""
	}
	return EventType(typeOfRaw(e.Raw))
}

// fields is never reached: an unknown event is its raw text.
func (e *UnknownEvent) fields(*codec) {}

func (e *UnknownEvent) rawJSON() JSON { return e.Raw }

// Decode returns the event in the struct of its type, or
// [*UnknownEvent]. The error is a [*ShapeError] with the event's type: of an
// item or a response inside that cannot be read.
func (e Event) Decode() (EventValue, error) {
	raw := e.raw
	if raw == "" && e.Type == "" {
		return nil, &ShapeError{Problem: "it is the zero Event"}
	}
	v := newEvent(e.Type)
	if v == nil || raw == "" {
		return &UnknownEvent{Raw: JSON(raw)}, nil
	}
	if err := decodeRecord(raw, v); err != nil {
		return nil, withType(err, Type(e.Type), "")
	}
	return v, nil
}

// EventAs decodes the event into T, the struct of its type:
//
//	partial, err := item.EventAs[item.ImagePartialEvent](e)
//
// An event of another type gives an error that wraps [ErrType].
func EventAs[T any, P interface {
	*T
	EventValue
}](e Event) (*T, error) {
	v := P(new(T))
	raw := e.raw
	if u, ok := any(v).(*UnknownEvent); ok {
		u.Raw = JSON(raw)
		return (*T)(v), nil
	}
	if v.EventType() != e.Type {
		return nil, fmt.Errorf("%w: %s, not %s", ErrType, e.Type, v.EventType())
	}
	if err := decodeRecord(raw, v); err != nil {
		return nil, withType(err, Type(v.EventType()), "")
	}
	return (*T)(v), nil
}

// NewEvent encodes v as an event, as a server sends it. The error is a
// [*ShapeError] with the path of a text that is not UTF-8, or of an Extra member
// that is not JSON.
func NewEvent(v EventValue) (Event, error) {
	if isNil(v) {
		return Event{}, errNil
	}
	b, err := appendUnion(nil, v)
	b, err = wholeFrom(nil, b, err)
	if err != nil {
		return Event{}, withType(err, Type(v.EventType()), "")
	}
	return ParseEventString(jsonx.String(b)) // nobody else has b
}

// head is the members that every event has.
func (e *EventHead) head(c *codec, t EventType) {
	c.kind(string(t), &e.Extra)
	c.sequence("sequence_number", &e.SequenceNumber)
	c.optString("stream_id", &e.StreamID)
}

// place is the members of an event about an item.
func (e *ItemEvent) place(c *codec, t EventType) {
	e.head(c, t)
	c.optString("item_id", &e.ItemID)
	c.index("output_index", &e.OutputIndex)
}

// state is all of an event that tells of an item's state and nothing else.
func (e *ItemEvent) state(c *codec, t EventType) {
	e.place(c, t)
	c.end(&e.Extra)
}

func (e *PartEvent) place(c *codec, t EventType) {
	e.ItemEvent.place(c, t)
	c.index("content_index", &e.ContentIndex)
}

func (e *SummaryEvent) place(c *codec, t EventType) {
	e.ItemEvent.place(c, t)
	c.index("summary_index", &e.SummaryIndex)
}
