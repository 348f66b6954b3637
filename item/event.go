// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// EventType is the type member of a stream event. Schema: ResponseStreamEvent.
type EventType string

// The stream events that this version acts on. Events of every other type are
// delivered all the same.
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

// Event is one stream event: the members that most events share are read, the
// rest is found by [Event.Member]. Members a server left out are "" or -1.
//
// An event is a value like any other: nothing that it holds, or that is taken out
// of it, ever changes. Its texts share one piece of memory, that of [Event.JSON];
// a program that keeps millions of short deltas saves memory by cloning them.
// Schema: ResponseStreamEvent.
type Event struct {
	Type           EventType
	SequenceNumber int64
	ItemID         string
	OutputIndex    int
	ContentIndex   int
	SummaryIndex   int
	// Delta is the text that a delta event adds. Where a server split a character in
	// two, [EventDecoder] puts it whole into the second event; [ParseEvent], which
	// knows one event alone, reads U+FFFD in both.
	Delta string

	half           bool // a part of a character was held back from the end of Delta
	joined         bool // Delta is not what it would be by itself
	raw            string
	item, response string // the members of those names, which most readers want
}

// ParseEvent reads an event from a copy of data. The error is a [*SyntaxError],
// or a [*ShapeError] when data is JSON but not an object.
func ParseEvent(data []byte) (Event, error) { return ParseEventString(string(data)) }

// ParseEventString is like [ParseEvent] without the copy.
func ParseEventString(s string) (Event, error) {
	var e Event
	err := e.parse(jsonx.Scanner{Text: s}, e.member)
	return e, err
}

// parse reads the event in place, which spares copies of a view this size. The
// members go to visit.
func (e *Event) parse(sc jsonx.Scanner, visit func(name, value string)) error {
	*e = Event{SequenceNumber: -1, OutputIndex: -1, ContentIndex: -1, SummaryIndex: -1}
	if err := checkSize(sc.Text); err != nil {
		return err
	}
	start := jsonx.SkipSpace(sc.Text, 0)
	if start >= len(sc.Text) || sc.Text[start] != '{' {
		if err := checkJSON(sc.Text); err != nil {
			return err
		}
		return &ShapeError{Problem: "found " + jsonx.KindOf(sc.Text[start:]) + ", want an event"}
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

func (e *Event) member(name, value string) {
	switch name {
	case `"type"`:
		t, _ := JSON(value).Unquote()
		e.Type = EventType(t)
	case `"item_id"`:
		e.ItemID, _ = JSON(value).Unquote()
	case `"delta"`:
		e.Delta, _ = JSON(value).Unquote()
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

// escaped takes a member whose name is spelled with escapes.
func (e *Event) escaped(name, value string) {
	if plain := string(Quote(jsonx.Unquote(name))); plain != name {
		e.member(plain, value)
	}
}

func setIndex(v *int, value string) {
	*v = -1 // of equal names the last counts, whatever it holds
	if n, ok := jsonx.Integer(value); ok && n >= 0 && n < 1<<31 {
		*v = int(n)
	}
}

// JSON returns the event's text.
func (e Event) JSON() string { return e.raw }

// Member returns the named member and whether there is one.
func (e Event) Member(name string) (JSON, bool) {
	switch name {
	case "item":
		return JSON(e.item), e.item != ""
	case "response":
		return JSON(e.response), e.response != ""
	}
	return memberOf(e.raw, name)
}

// Text returns the named member's text, or "": the text of a done event, its
// arguments, its input.
func (e Event) Text(name string) string {
	v, _ := e.Member(name)
	s, _ := v.Unquote()
	return s
}

// Item returns the event's item. A [*ShapeError] says that there is none.
func (e Event) Item() (Item, error) {
	it, _, err := e.named()
	return it, err
}

// named is Item with the names that the item goes by.
func (e *Event) named() (Item, names, error) {
	if e.item == "" || e.item[0] != '{' {
		return Item{}, names{}, &ShapeError{Type: Type(e.Type), Path: "item", Problem: "found " + jsonx.KindOf(e.item) + ", want an item"}
	}
	it, n, _ := leadingItem(e.item)
	return it, n, nil
}

// Response returns the event's response. A [*ShapeError] says that there is
// none, or what is wrong with it.
func (e Event) Response() (*Response, error) { return e.responseWith(nil) }

// responseWith is Response where it is likely that the output consists of these
// items: then it is them.
func (e *Event) responseWith(likely []Item) (*Response, error) {
	if e.response == "" || e.response[0] != '{' {
		return nil, &ShapeError{Type: Type(e.Type), Path: "response", Problem: "found " + jsonx.KindOf(e.response) + ", want a response"}
	}
	r := new(Response)
	c := newCodec(true)
	defer c.free()
	c.likely = likely
	c.open(e.response)
	r.fields(c)
	err := c.err
	if err != nil {
		return nil, withType(err, Type(e.Type), "")
	}
	return r, nil
}

// Terminal reports whether the event ends its response. Behind an error event
// some servers still send response.failed, which says the same again.
func (e Event) Terminal() bool {
	switch e.Type {
	case EventCompleted, EventFailed, EventIncomplete, EventCancelled, EventError:
		return true
	}
	return false
}

// Err returns the error that an event carries: an error event, whose
// members stand in the event or in an error object, a response that holds an
// error, whatever its status and its event say, or an untyped object that is an error in one of the
// shapes that servers send. An error of null is not an error.
func (e Event) Err() (*APIError, bool) {
	src := ""
	switch e.Type {
	case EventError:
		src = e.raw
	case "":
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
	if nested, ok := memberOf(src, "error"); ok && nested[0] == '{' {
		src = string(nested)
	} else if inResponse {
		return nil, false
	}
	apiErr := new(APIError)
	_ = decodeRecord(src, apiErr) // its fields take any shape
	if apiErr.Type == string(EventError) {
		apiErr.Type = ""
	}
	for _, name := range []string{"error", "detail"} { // some servers send a text
		if v, ok := memberOf(src, name); ok && apiErr.Message == "" {
			apiErr.Message, _ = v.Unquote()
		}
	}
	return apiErr, true
}

// isError reports an object without a type that is an error: one in "error", one
// that calls itself so, or a message with a code.
func isError(src string) bool {
	has := func(name string) bool {
		v, ok := memberOf(src, name)
		return ok && v != "null"
	}
	return has("error") || callsItselfError(src) || has("detail") || has("message") && has("code")
}

// callsItselfError reports an error object whose type is that of the error.
func callsItselfError(src string) bool {
	object, _ := memberOf(src, "object")
	return object == `"error"`
}

// hasError reports a response that holds an error, whatever its status is.
func hasError(response string) bool {
	for rest := response; ; {
		_, after, found := strings.Cut(rest, `"error"`)
		if !found {
			return false // nearly all, this or the other way
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
