// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ClientEvent is what a client sends on a WebSocket: [*CreateEvent] or
// [*UnknownClientEvent]. What comes back are stream events, see [EventValue].
// Schema: ResponsesClientEvent.
type ClientEvent interface {
	// ClientEventType returns the type member.
	ClientEventType() string
	record
}

// ClientCreate is the type of [CreateEvent].
const ClientCreate = "response.create"

// CreateEvent asks for a response: the members of a [Request], whose Stream
// need not be set. A WebSocket may carry several responses at once, told apart
// by StreamID. Schema: ResponsesClientEventResponseCreate.
type CreateEvent struct {
	StreamID string
	// Request is the empty one when nil. Its Extra is the event's.
	Request *Request
}

// UnknownClientEvent is an event of a type that this version does not know, kept
// byte for byte.
type UnknownClientEvent struct{ Raw JSON }

// ClientEventType returns [ClientCreate].
func (*CreateEvent) ClientEventType() string { return ClientCreate }

// ClientEventType returns the type member, or "".
func (e *UnknownClientEvent) ClientEventType() string { return typeOfRaw(e.Raw) }

func (e *CreateEvent) fields(c *codec) {
	c.constant("type", ClientCreate)
	c.optString("stream_id", &e.StreamID)
	r := e.Request
	if r == nil {
		r = new(Request)
	}
	r.fields(c)
	if c.decoding {
		e.Request = r
	}
}

// fields is never reached: an unknown event is its raw text.
func (e *UnknownClientEvent) fields(*codec) {}

func (e *UnknownClientEvent) rawJSON() JSON { return e.Raw }

// ParseClientEvent reads an event from a copy of data.
func ParseClientEvent(data []byte) (ClientEvent, error) {
	value, err := trimValue(string(data))
	if err != nil {
		return nil, err
	}
	return parseUnion(value, "an event", newClientEvent, func(raw JSON) ClientEvent { return &UnknownClientEvent{Raw: raw} })
}

func newClientEvent(typ string) (ClientEvent, bool) {
	if typ == ClientCreate {
		return new(CreateEvent), true
	}
	return nil, false
}

// AppendClientEvent appends an event as JSON. Like a request's body it costs one
// copy of the input.
func AppendClientEvent(dst []byte, e ClientEvent) ([]byte, error) {
	out, err := appendUnion(dst, e)
	return wholeFrom(dst, out, err)
}
