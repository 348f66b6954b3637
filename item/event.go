// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "strings"

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

// Event is a view of one stream event: the members that most events share are
// read, the rest is found by [Event.Member]. Members a server left out are ""
// or -1.
//
// A view shares the memory it was parsed from. An event out of a stream is good
// until the stream's next event; [Event.Keep] makes one that stays. Items and
// responses taken out of an event are copies and stay. Schema:
// ResponseStreamEvent.
type Event struct {
	Type           EventType
	SequenceNumber int64
	ItemID         string
	OutputIndex    int
	ContentIndex   int
	SummaryIndex   int
	// Delta is the text that a delta event adds.
	Delta string

	raw            string
	item, response string // the members of those names, which most readers want
}

// ParseEvent reads an event without copying data, which must not change while
// the event is in use. The error is a [*SyntaxError], or a [*ShapeError] when
// data is JSON but no object.
func ParseEvent(data []byte) (Event, error) {
	var e Event
	err := e.parse(scanner{s: text(data)}, e.member)
	return e, err
}

// parse reads the event in place, which spares copies of a view this size. The
// members go to visit.
func (e *Event) parse(sc scanner, visit func(name, value string)) error {
	*e = Event{SequenceNumber: -1, OutputIndex: -1, ContentIndex: -1, SummaryIndex: -1}
	if err := checkSize(sc.s); err != nil {
		return err
	}
	start := sc.space(0)
	if start >= len(sc.s) || sc.s[start] != '{' {
		if err := checkJSON(sc.s); err != nil {
			return err
		}
		return &ShapeError{Problem: "found " + kindOf(sc.s[start:]) + ", want an event"}
	}
	end, err := sc.object(start, visit)
	if err != nil {
		return err
	}
	if rest := sc.space(end); rest != len(sc.s) {
		_, err := sc.fail(rest, "text after the event")
		return err
	}
	e.raw = sc.s[start:end]
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
		if n, ok := integer(value); ok {
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
	if plain := string(Quote(unquote(name))); plain != name {
		e.member(plain, value)
	}
}

func setIndex(v *int, value string) {
	*v = -1 // of equal names the last counts, whatever it holds
	if n, ok := integer(value); ok && n >= 0 && n < 1<<31 {
		*v = int(n)
	}
}

// JSON returns the event's text.
func (e Event) JSON() string { return e.raw }

// Keep returns a copy that outlives the memory the event was read from.
func (e Event) Keep() Event {
	raw := strings.Clone(e.raw)
	e.Type = EventType(moved(string(e.Type), e.raw, raw))
	e.ItemID, e.Delta = moved(e.ItemID, e.raw, raw), moved(e.Delta, e.raw, raw)
	e.item, e.response = moved(e.item, e.raw, raw), moved(e.response, e.raw, raw)
	e.raw = raw
	return e
}

// moved returns part where it is in to, a copy of from, or else a copy.
func moved(part, from, to string) string {
	if at := within(from, part); at >= 0 {
		return to[at : at+len(part)]
	}
	return strings.Clone(part)
}

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

// Item returns a copy of the event's item. A [*ShapeError] says that there is
// none.
func (e Event) Item() (Item, error) {
	it, _, err := e.named()
	return it, err
}

// named is Item with the names that the item goes by.
func (e *Event) named() (Item, names, error) {
	if e.item == "" || e.item[0] != '{' {
		return Item{}, names{}, &ShapeError{Type: Type(strings.Clone(string(e.Type))), Path: "item", Problem: "found " + kindOf(e.item) + ", want an item"}
	}
	it, n, _ := leadingItem(strings.Clone(e.item))
	return it, n, nil
}

// Response returns a copy of the event's response. A [*ShapeError] says that
// there is none, or what is wrong with it.
func (e Event) Response() (*Response, error) { return e.responseWith(nil) }

// responseWith is Response where it is likely that the output consists of these
// items: then it is them.
func (e *Event) responseWith(likely []Item) (*Response, error) {
	if e.response == "" || e.response[0] != '{' {
		return nil, &ShapeError{Type: Type(strings.Clone(string(e.Type))), Path: "response", Problem: "found " + kindOf(e.response) + ", want a response"}
	}
	r := new(Response)
	c := newCodec(true)
	defer c.free()
	c.likely = likely
	c.open(strings.Clone(e.response))
	r.fields(c)
	err := c.err
	if err != nil {
		return nil, withType(err, Type(strings.Clone(string(e.Type))), "")
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

// Err returns a copy of the error that an event carries: an error event, whose
// members stand in the event or in an error object, a response that failed,
// whatever its event says, or an untyped object that is an error in one of the
// shapes that servers send. An error of null is none.
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
		if src = e.response; e.Type != EventFailed && !hasFailed(src) {
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
	_ = decodeRecord(strings.Clone(src), apiErr) // its fields take any shape
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

// hasFailed reports a response that says of itself that it failed.
func hasFailed(response string) bool {
	if !strings.Contains(response, `"failed"`) {
		return false // nearly all
	}
	status, _ := memberOf(response, "status")
	failure, ok := memberOf(response, "error")
	return status == `"failed"` && ok && failure != "null"
}
