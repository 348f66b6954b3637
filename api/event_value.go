// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// EventValue is a decoded copy of a stream event: the struct for its type, such as
// [*TextDeltaEvent] or [*CompletedEvent], or [*UnknownEvent]. It remains valid when
// the event's memory is reused. Most programs use [Event], which costs far less. Use
// a struct to build an event, or for members that are rarely read. Schemas:
// ResponseStreamEvent, ResponsesServerEvent.
type EventValue interface {
	// EventType returns the type member.
	EventType() EventType
	fielder
}

// EventHead is the part common to all events. A SequenceNumber of -1 is not written.
type EventHead struct {
	SequenceNumber int64
	// StreamID is set on a WebSocket that carries several responses. Schema:
	// ResponsesServerEvent.
	StreamID string
	Extra    item.Extra
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

// UnknownEvent is an event of a type that this package does not know, kept byte for
// byte.
type UnknownEvent struct{ Raw item.JSON }

// EventType returns the type member, or "".
func (e *UnknownEvent) EventType() EventType {
	if e == nil {
		return ""
	}
	return EventType(typeOfRaw(e.Raw))
}

// fields is never called: an unknown event is written as its raw text.
func (e *UnknownEvent) fields(*codec) {}

func (e *UnknownEvent) rawJSON() item.JSON { return e.Raw }

// Decode returns the event as the struct for its type, or as an [*UnknownEvent]. The
// error is an [*item.ShapeError] with the event's type. It reports an item or
// response in the event that cannot be decoded, or the zero Event.
func (e Event) Decode() (EventValue, error) {
	raw := e.raw
	if raw == "" && e.Type == "" {
		return nil, &item.ShapeError{Problem: "it is the zero Event"}
	}
	v := newEvent(e.Type)
	// An Event made by hand may have a type but no text.
	if v == nil || raw == "" {
		return &UnknownEvent{Raw: item.JSON(raw)}, nil
	}
	if err := decodeRecord(raw, v); err != nil {
		return nil, withType(err, item.Type(e.Type))
	}
	return v, nil
}

// EventAs decodes the event into T, the struct for its type:
//
//	partial, err := api.EventAs[api.ImagePartialEvent](e)
//
// If the event has another type, the error wraps [item.ErrType].
func EventAs[T any, P interface {
	*T
	EventValue
}](e Event) (*T, error) {
	v := P(new(T))
	raw := e.raw
	if u, ok := any(v).(*UnknownEvent); ok {
		u.Raw = item.JSON(raw)
		return (*T)(v), nil
	}
	// A ProgressEvent stands for several types, so give it the event's type.
	if p, ok := any(v).(*ProgressEvent); ok && isProgress(e.Type) {
		p.Type = e.Type
	}
	if v.EventType() != e.Type {
		return nil, fmt.Errorf("%w: %s, not %s", item.ErrType, e.Type, v.EventType())
	}
	if err := decodeRecord(raw, v); err != nil {
		return nil, withType(err, item.Type(v.EventType()))
	}
	return (*T)(v), nil
}

// NewEvent encodes v as an event, as a server would send it. The error is an
// [*item.ShapeError] with the path of a string that is not UTF-8, or of an Extra
// member that is not JSON.
func NewEvent(v EventValue) (Event, error) {
	if nils.Is(v) {
		return Event{}, errNil
	}
	text, err := encoded(v)
	if err != nil {
		return Event{}, withType(err, item.Type(v.EventType()))
	}
	return ParseEventString(text)
}

// encoded returns the text of an event without spare capacity, because the event keeps it.
// It is text that leaves the program: payloads are in it.
func encoded(v EventValue) (text string, err error) {
	if u, ok := v.(unknown); ok {
		text, err = checked(string(u.rawJSON()))
	} else {
		text, err = record.Text(v.fields)
		err = shaped(err)
	}
	if err != nil || !item.HasHeld(text) {
		return text, err
	}
	whole, err := item.JSON(text).MarshalJSON()
	return jsonx.String(whole), err
}

// head reads or writes the members of every event.
func (e *EventHead) head(c *codec, t EventType) {
	record.Keep(c, &e.Extra)
	c.Kind(string(t))
	c.Sequence("sequence_number", &e.SequenceNumber)
	c.OptString("stream_id", &e.StreamID)
}

// place reads or writes the members of an event about an item.
func (e *ItemEvent) place(c *codec, t EventType) {
	e.head(c, t)
	c.OptString("item_id", &e.ItemID)
	c.Index("output_index", &e.OutputIndex)
}

func (e *PartEvent) place(c *codec, t EventType) {
	e.ItemEvent.place(c, t)
	c.Index("content_index", &e.ContentIndex)
}

func (e *SummaryEvent) place(c *codec, t EventType) {
	e.ItemEvent.place(c, t)
	c.Index("summary_index", &e.SummaryIndex)
}

// newEvent returns an empty struct for events of type t, or nil if there is none.
func newEvent(t EventType) EventValue {
	switch t {
	case EventCreated:
		return new(CreatedEvent)
	case EventInProgress:
		return new(InProgressEvent)
	case EventQueued:
		return new(QueuedEvent)
	case EventCompleted:
		return new(CompletedEvent)
	case EventFailed:
		return new(FailedEvent)
	case EventIncomplete:
		return new(IncompleteEvent)
	case EventError:
		return new(ErrorEvent)
	case EventItemAdded:
		return new(ItemAddedEvent)
	case EventItemDone:
		return new(ItemDoneEvent)
	}
	if v := newTextEvent(t); v != nil {
		return v
	}
	if v := newCallEvent(t); v != nil {
		return v
	}
	if isProgress(t) {
		return &ProgressEvent{Type: t}
	}
	return nil
}

// newTextEvent is newEvent for text and audio of the model.
func newTextEvent(t EventType) EventValue {
	switch t {
	case EventPartAdded:
		return new(PartAddedEvent)
	case EventPartDone:
		return new(PartDoneEvent)
	case EventTextDelta:
		return new(TextDeltaEvent)
	case EventTextDone:
		return new(TextDoneEvent)
	case EventAnnotationAdded:
		return new(AnnotationAddedEvent)
	case EventRefusalDelta:
		return new(RefusalDeltaEvent)
	case EventRefusalDone:
		return new(RefusalDoneEvent)
	case EventReasoningTextDelta:
		return new(ReasoningTextDeltaEvent)
	case EventReasoningTextDone:
		return new(ReasoningTextDoneEvent)
	case EventSummaryPartAdded:
		return new(SummaryPartAddedEvent)
	case EventSummaryPartDone:
		return new(SummaryPartDoneEvent)
	case EventSummaryTextDelta:
		return new(SummaryTextDeltaEvent)
	case EventSummaryTextDone:
		return new(SummaryTextDoneEvent)
	case EventAudioDelta:
		return new(AudioDeltaEvent)
	case EventAudioDone:
		return new(AudioDoneEvent)
	case EventTranscriptDelta:
		return new(TranscriptDeltaEvent)
	case EventTranscriptDone:
		return new(TranscriptDoneEvent)
	}
	return nil
}

// newCallEvent is newEvent for calls and their results.
func newCallEvent(t EventType) EventValue {
	switch t {
	case EventArgumentsDelta:
		return new(ArgumentsDeltaEvent)
	case EventArgumentsDone:
		return new(ArgumentsDoneEvent)
	case EventCustomInputDelta:
		return new(CustomInputDeltaEvent)
	case EventCustomInputDone:
		return new(CustomInputDoneEvent)
	case EventCodeDelta:
		return new(CodeDeltaEvent)
	case EventCodeDone:
		return new(CodeDoneEvent)
	case EventImagePartial:
		return new(ImagePartialEvent)
	case EventMCPArgumentsDelta:
		return new(MCPArgumentsDeltaEvent)
	case EventMCPArgumentsDone:
		return new(MCPArgumentsDoneEvent)
	case EventShellCommandAdded:
		return new(ShellCommandAddedEvent)
	case EventShellCommandDelta:
		return new(ShellCommandDeltaEvent)
	case EventShellCommandDone:
		return new(ShellCommandDoneEvent)
	case EventShellOutputDelta:
		return new(ShellOutputDeltaEvent)
	case EventShellOutputDone:
		return new(ShellOutputDoneEvent)
	}
	return nil
}

// The events of tools that the endpoint runs, and of audio. Together with the types
// that the accumulator and the loop act on, these are all the types in the schema.
const (
	EventAudioDelta      EventType = "response.audio.delta"
	EventAudioDone       EventType = "response.audio.done"
	EventTranscriptDelta EventType = "response.audio.transcript.delta"
	EventTranscriptDone  EventType = "response.audio.transcript.done"

	EventCodeDelta        EventType = "response.code_interpreter_call_code.delta"
	EventCodeDone         EventType = "response.code_interpreter_call_code.done"
	EventCodeInProgress   EventType = "response.code_interpreter_call.in_progress"
	EventCodeInterpreting EventType = "response.code_interpreter_call.interpreting"
	EventCodeCompleted    EventType = "response.code_interpreter_call.completed"

	EventFileSearchInProgress EventType = "response.file_search_call.in_progress"
	EventFileSearchSearching  EventType = "response.file_search_call.searching"
	EventFileSearchCompleted  EventType = "response.file_search_call.completed"

	EventWebSearchInProgress EventType = "response.web_search_call.in_progress"
	EventWebSearchSearching  EventType = "response.web_search_call.searching"
	EventWebSearchCompleted  EventType = "response.web_search_call.completed"

	EventImageInProgress EventType = "response.image_generation_call.in_progress"
	EventImageGenerating EventType = "response.image_generation_call.generating"
	EventImagePartial    EventType = "response.image_generation_call.partial_image"
	EventImageCompleted  EventType = "response.image_generation_call.completed"

	EventMCPArgumentsDelta EventType = "response.mcp_call_arguments.delta"
	EventMCPArgumentsDone  EventType = "response.mcp_call_arguments.done"
	EventMCPInProgress     EventType = "response.mcp_call.in_progress"
	EventMCPCompleted      EventType = "response.mcp_call.completed"
	EventMCPFailed         EventType = "response.mcp_call.failed"

	EventMCPListInProgress EventType = "response.mcp_list_tools.in_progress"
	EventMCPListCompleted  EventType = "response.mcp_list_tools.completed"
	EventMCPListFailed     EventType = "response.mcp_list_tools.failed"

	EventShellCommandAdded EventType = "response.shell_call_command.added"
	EventShellCommandDelta EventType = "response.shell_call_command.delta"
	EventShellCommandDone  EventType = "response.shell_call_command.done"
	EventShellOutputDelta  EventType = "response.shell_call_output_content.delta"
	EventShellOutputDone   EventType = "response.shell_call_output_content.done"
)

// ProgressEvent reports the state of a call that the endpoint runs: started, working
// or ended. Type contains both the kind of call and the state, such as
// [EventWebSearchSearching]. Schemas: ResponseCodeInterpreterCall…Event,
// ResponseFileSearchCall…Event, ResponseWebSearchCall…Event,
// ResponseImageGenCall…Event, ResponseMCPCall…Event, ResponseMCPListTools…Event.
type ProgressEvent struct {
	ItemEvent
	Type EventType
}

// EventType returns e.Type, or "" if e is nil.
func (e *ProgressEvent) EventType() EventType {
	if e == nil {
		return ""
	}
	return e.Type
}

func (e *ProgressEvent) fields(c *codec) {
	if e.Type == "" {
		c.Fail("type", errors.New("it is empty: set the Type of the ProgressEvent"))
	}
	e.place(c, e.Type)
}

// isProgress reports whether events of the type are a [ProgressEvent].
func isProgress(t EventType) bool {
	switch t {
	case EventCodeInProgress, EventCodeInterpreting, EventCodeCompleted,
		EventFileSearchInProgress, EventFileSearchSearching, EventFileSearchCompleted,
		EventWebSearchInProgress, EventWebSearchSearching, EventWebSearchCompleted,
		EventImageInProgress, EventImageGenerating, EventImageCompleted,
		EventMCPInProgress, EventMCPCompleted, EventMCPFailed,
		EventMCPListInProgress, EventMCPListCompleted, EventMCPListFailed:
		return true
	}
	return false
}
