// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// EventType is the type member of a stream event, such as [EventTextDelta], which has a piece
// of the answer's text. The others stand beside [EventCreated]. Schema: ResponseStreamEvent.
type EventType string

// Known reports whether [Event.Decode] has a struct for events of the type.
func (t EventType) Known() bool { return newEvent(t) != nil }

// The types of stream events that this package acts on. Events of other types are
// delivered too.
const (
	EventCreated    EventType = "response.created"
	EventInProgress EventType = "response.in_progress"
	EventQueued     EventType = "response.queued"
	EventCompleted  EventType = "response.completed"
	EventFailed     EventType = "response.failed"
	EventIncomplete EventType = "response.incomplete"
	EventCancelled  EventType = "response.cancelled" // not in the schema; some servers send it
	EventError      EventType = "error"

	EventItemAdded EventType = "response.output_item.added"
	EventItemDone  EventType = "response.output_item.done"
	EventPartAdded EventType = "response.content_part.added"
	EventPartDone  EventType = "response.content_part.done"

	EventTextDelta        EventType = "response.output_text.delta"
	EventTextDone         EventType = "response.output_text.done"
	EventAnnotationAdded  EventType = "response.output_text.annotation.added"
	EventRefusalDelta     EventType = "response.refusal.delta"
	EventRefusalDone      EventType = "response.refusal.done"
	EventArgumentsDelta   EventType = "response.function_call_arguments.delta"
	EventArgumentsDone    EventType = "response.function_call_arguments.done"
	EventCustomInputDelta EventType = "response.custom_tool_call_input.delta"
	EventCustomInputDone  EventType = "response.custom_tool_call_input.done"

	EventReasoningTextDelta EventType = "response.reasoning_text.delta"
	EventReasoningTextDone  EventType = "response.reasoning_text.done"
	EventSummaryPartAdded   EventType = "response.reasoning_summary_part.added"
	EventSummaryPartDone    EventType = "response.reasoning_summary_part.done"
	EventSummaryTextDelta   EventType = "response.reasoning_summary_text.delta"
	EventSummaryTextDone    EventType = "response.reasoning_summary_text.done"
)

// Event is one stream event. The members that most events have are fields; use
// [Event.Member] for the others. A member that the server left out is "" or -1. The text of
// the answer is the Delta of the events of type [EventTextDelta].
//
// An Event is an immutable value: the strings in it, and those taken from it, never
// change. They share the memory of [Event.JSON], so a program that keeps millions of
// short deltas can save memory by cloning them. Schema: ResponseStreamEvent.
type Event struct {
	Type           EventType
	SequenceNumber int64
	ItemID         string
	OutputIndex    int
	ContentIndex   int
	SummaryIndex   int
	// Delta is the text that a delta event adds. If a server split a character
	// between two events, [EventDecoder] puts the whole character into the second
	// one. [ParseEvent] sees only one event and reads U+FFFD in both.
	Delta string

	half           bool // half a character was held back from the end of Delta
	joined         bool // Delta was joined with half a character from another event
	raw            string
	item, response string // the members of these names, which most readers need
}

// ParseEvent reads an event from a copy of data. The error is an
// [*item.SyntaxError], or an [*item.ShapeError] if data is JSON but not an object.
func ParseEvent(data []byte) (Event, error) { return ParseEventString(string(data)) }

// ParseEventString is like [ParseEvent] but does not copy s.
func ParseEventString(s string) (Event, error) {
	var e Event
	err := e.parse(jsonx.Scanner{Text: s}, e.member)
	return e, err
}

// parse reads the event in place, because Event is too large to return by value. It
// calls visit for each member.
func (e *Event) parse(sc jsonx.Scanner, visit func(name, value string)) error {
	*e = Event{SequenceNumber: -1, OutputIndex: -1, ContentIndex: -1, SummaryIndex: -1}
	if err := syntaxError(jsonx.CheckSize(sc.Text)); err != nil {
		return err
	}
	start := jsonx.SkipSpace(sc.Text, 0)
	if start >= len(sc.Text) || sc.Text[start] != '{' {
		if _, err := checked(sc.Text); err != nil {
			return err
		}
		return &item.ShapeError{Problem: "found " + jsonx.KindOf(sc.Text[start:]) + ", want an event"}
	}
	end, err := sc.Object(start, visit)
	if err == nil {
		err = sc.End(end)
	}
	if err != nil {
		return syntaxError(err)
	}
	e.raw = sc.Text[start:end]
	return nil
}

// member stores a member of the event in its field, if there is one.
func (e *Event) member(name, value string) {
	switch name {
	case `"type"`:
		t, _ := item.JSON(value).Unquote()
		e.Type = EventType(t)
	case `"item_id"`:
		e.ItemID, _ = item.JSON(value).Unquote()
	case `"delta"`:
		e.Delta, _ = item.JSON(value).Unquote()
	case `"sequence_number"`:
		e.SequenceNumber = -1
		if n, ok := jsonx.Integer(value); ok {
			e.SequenceNumber = n
		}
	case `"output_index"`:
		setIndex(&e.OutputIndex, value)
	case `"content_index"`:
		setIndex(&e.ContentIndex, value)
	case `"summary_index"`:
		setIndex(&e.SummaryIndex, value)
	case `"item"`:
		e.item = value
	case `"response"`:
		e.response = value
	default:
		if strings.IndexByte(name, '\\') >= 0 {
			e.escaped(name, value)
		}
	}
}

// escaped handles a member whose name is written with escapes.
func (e *Event) escaped(name, value string) {
	if plain := string(item.Quote(jsonx.Unquote(name))); plain != name {
		e.member(plain, value)
	}
}

// setIndex sets v to the index in value, or to -1 if value is not an index.
func setIndex(v *int, value string) {
	*v = -1 // the last of equal names wins, even if its value is not an index
	if n, ok := jsonx.Integer(value); ok && n >= 0 && n < 1<<31 {
		*v = int(n)
	}
}

// JSON returns the event as JSON.
func (e Event) JSON() string { return e.raw }

// Member returns the value of the named member, and whether there is one.
func (e Event) Member(name string) (item.JSON, bool) {
	switch name {
	case "item":
		return item.JSON(e.item), e.item != ""
	case "response":
		return item.JSON(e.response), e.response != ""
	}
	return memberOf(e.raw, name)
}

// Text returns the named member if it is a string, and "" otherwise. Use it for the
// text, arguments or input of a done event.
func (e Event) Text(name string) string {
	v, _ := e.Member(name)
	s, _ := v.Unquote()
	return s
}

// Item returns the event's item. If there is none, the error is an
// [*item.ShapeError].
func (e Event) Item() (item.Item, error) {
	it, _, err := e.named()
	return it, err
}

// named is like Item, and also returns the names of the item.
func (e *Event) named() (item.Item, names, error) {
	if e.item == "" || e.item[0] != '{' {
		return item.Item{}, names{}, &item.ShapeError{Type: item.Type(e.Type), Path: "item", Problem: "found " + jsonx.KindOf(e.item) + ", want an item"}
	}
	it, id, callID := namedItem(e.item)
	return it, names{id, callName{it.Type(), callID}}, nil
}

// Response returns the event's response. The error is an [*item.ShapeError] if there
// is none or it cannot be decoded.
func (e Event) Response() (*Response, error) { return e.responseWith(nil) }

// responseWith is like Response. If the output consists of the likely items, it uses
// them instead of decoding the output again.
func (e *Event) responseWith(likely []item.Item) (*Response, error) {
	if e.response == "" || e.response[0] != '{' {
		return nil, &item.ShapeError{Type: item.Type(e.Type), Path: "response", Problem: "found " + jsonx.KindOf(e.response) + ", want a response"}
	}
	r := new(Response)
	if err := record.Decode(e.response, func(c *codec) { r.fieldsWith(c, likely) }); err != nil {
		return nil, withType(shaped(err), item.Type(e.Type))
	}
	return r, nil
}

// Terminal reports whether the event ends its response. Some servers still send
// response.failed after an error event; it repeats the same error.
func (e Event) Terminal() bool {
	switch e.Type {
	case EventCompleted, EventFailed, EventIncomplete, EventCancelled, EventError:
		return true
	}
	return false
}

// Err returns the error that the event carries, and whether there is one. It accepts
// an error event, with the error's members in the event or in an error object; a
// response with an error, even if its status or event type does not say so; and an
// object without a type in one of the shapes that servers use for errors. A null
// error does not count.
func (e Event) Err() (*APIError, bool) {
	src := ""
	switch e.Type {
	case EventError:
		src = e.raw
	case "":
		// Some servers send errors as an object without a type.
		if src = e.raw; !isError(src) {
			return nil, false
		}
	case EventFailed, EventCompleted, EventIncomplete:
		if src = e.response; e.Type != EventFailed && !hasError(src) {
			return nil, false
		}
	default:
		if src = e.raw; strings.HasPrefix(string(e.Type), "response.") || !callsItselfError(src) {
			return nil, false
		}
	}
	inResponse := strings.HasPrefix(string(e.Type), "response.")
	// The error may be an object inside the event or response.
	if nested, ok := memberOf(src, "error"); ok && nested[0] == '{' {
		src = string(nested)
	} else if inResponse {
		return nil, false
	}
	apiErr := new(APIError)
	_ = decodeRecord(src, apiErr) // cannot fail: the fields accept any value
	// This was the type of the event rather than of the error.
	if apiErr.Type == string(EventError) {
		apiErr.Type = ""
	}
	for _, name := range []string{"error", "detail"} { // some servers send a string
		if v, ok := memberOf(src, name); ok && apiErr.Message == "" {
			apiErr.Message, _ = v.Unquote()
		}
	}
	return apiErr, true
}

// isError reports whether an object without a type is an error: it has a member
// error or detail, its object member is "error", or it has a message and a code.
func isError(src string) bool {
	has := func(name string) bool {
		v, ok := memberOf(src, name)
		return ok && v != "null"
	}
	return has("error") || callsItselfError(src) || has("detail") || has("message") && has("code")
}

// callsItselfError reports whether the object member is "error".
func callsItselfError(src string) bool {
	object, _ := memberOf(src, "object")
	return object == `"error"`
}

// hasError reports whether a response contains an error, whatever its status. It
// searches the text first, because parsing every response would be slow.
func hasError(response string) bool {
	for rest := response; ; {
		_, after, found := strings.Cut(rest, `"error"`)
		if !found {
			return false // true of nearly all responses, here or because of a null
		}
		if rest = strings.TrimLeft(after, " \t\r\n"); !strings.HasPrefix(rest, ":") {
			continue
		}
		if rest = strings.TrimLeft(rest[1:], " \t\r\n"); strings.HasPrefix(rest, "null") {
			continue
		}
		failure, ok := memberOf(response, "error")
		return ok && failure != "null"
	}
}

// EventView is one event of an [EventDecoder], read in place. It is for programs
// that forward or drop many events and cannot afford a copy of each; other programs
// should use [Event]. Its byte slices belong to the decoder or to the caller's data.
// They must not be modified, and they change with the decoder's next call.
// [EventView.Event] returns a copy.
type EventView struct {
	// event holds strings that change with the next call. They must leave this
	// package only as bytes or as copies. Type and ItemID are ordinary strings.
	event Event
}

// Event returns a copy of the event that remains valid. It copies the text once;
// Type and ItemID need no copy.
func (v *EventView) Event() Event {
	var e Event
	v.CopyTo(&e)
	return e
}

// CopyTo is like Event for a variable that the caller reuses, because an Event is large. It does
// nothing if e is nil.
func (v *EventView) CopyTo(e *Event) {
	if e == nil {
		return
	}
	*e = v.event
	from := v.event.raw
	at := within(from, e.Delta)
	switch {
	case e.Delta == "":
		e.raw = strings.Clone(from)
	case at >= 0:
		e.raw = strings.Clone(from)
		e.Delta = e.raw[at : at+len(e.Delta)]
	default: // the delta had escapes, so it is not in raw
		// Use one allocation for both strings.
		both := from + e.Delta
		e.raw, e.Delta = both[:len(from)], both[len(from):]
	}
	if e.item != "" {
		e.item = moved(e.item, from, e.raw)
	}
	if e.response != "" {
		e.response = moved(e.response, from, e.raw)
	}
}

// moved returns the copy of part inside to, which is a copy of from. part must point
// into from or be empty. If it does not, moved clones it.
func moved(part, from, to string) string {
	if at := within(from, part); at >= 0 {
		return to[at : at+len(part)]
	}
	return strings.Clone(part)
}

// Type returns the event's type, which is an ordinary string.
func (v *EventView) Type() EventType { return v.event.Type }

// ItemID returns the id of the event's item, or "". It is an ordinary string.
func (v *EventView) ItemID() string { return v.event.ItemID }

// OutputIndex returns the index of the event's item in the output, or -1.
func (v *EventView) OutputIndex() int { return v.event.OutputIndex }

// SequenceNumber returns the event's sequence number, or -1.
func (v *EventView) SequenceNumber() int64 { return v.event.SequenceNumber }

// Delta returns the text that a delta event adds.
func (v *EventView) Delta() []byte { return jsonx.Bytes(v.event.Delta) }

// JSON returns the event as JSON.
func (v *EventView) JSON() []byte { return jsonx.Bytes(v.event.raw) }
