// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// ResponseEvent is an event with the current state of the response.
type ResponseEvent struct {
	EventHead
	Response *Response
}

func (e *ResponseEvent) whole(c *codec, t EventType) {
	e.head(c, t)
	record.Opt(c, "response", &e.Response, (*Response).fields)
}

// CreatedEvent reports that the response was created. Schema: ResponseCreatedEvent.
type CreatedEvent struct{ ResponseEvent }

// QueuedEvent reports that the response is queued. Schema: ResponseQueuedEvent.
type QueuedEvent struct{ ResponseEvent }

// InProgressEvent reports that the model is working. Schema:
// ResponseInProgressEvent.
type InProgressEvent struct{ ResponseEvent }

// CompletedEvent is the last event of a response that completed. Schema:
// ResponseCompletedEvent.
type CompletedEvent struct{ ResponseEvent }

// FailedEvent is the last event of a response that failed. Schema:
// ResponseFailedEvent.
type FailedEvent struct{ ResponseEvent }

// IncompleteEvent is the last event of a response that stopped early. Schema:
// ResponseIncompleteEvent.
type IncompleteEvent struct{ ResponseEvent }

// ItemAddedEvent contains an output item at its start. Schema:
// ResponseOutputItemAddedEvent.
type ItemAddedEvent struct {
	EventHead
	OutputIndex int
	Item        item.Item
}

// ItemDoneEvent contains a finished output item. Schema:
// ResponseOutputItemDoneEvent.
type ItemDoneEvent struct {
	EventHead
	OutputIndex int
	Item        item.Item
}

// EventType returns [EventCreated].
func (*CreatedEvent) EventType() EventType { return EventCreated }

// EventType returns [EventQueued].
func (*QueuedEvent) EventType() EventType { return EventQueued }

// EventType returns [EventInProgress].
func (*InProgressEvent) EventType() EventType { return EventInProgress }

// EventType returns [EventCompleted].
func (*CompletedEvent) EventType() EventType { return EventCompleted }

// EventType returns [EventFailed].
func (*FailedEvent) EventType() EventType { return EventFailed }

// EventType returns [EventIncomplete].
func (*IncompleteEvent) EventType() EventType { return EventIncomplete }

// EventType returns [EventItemAdded].
func (*ItemAddedEvent) EventType() EventType { return EventItemAdded }

// EventType returns [EventItemDone].
func (*ItemDoneEvent) EventType() EventType { return EventItemDone }

func (e *CreatedEvent) fields(c *codec) { e.whole(c, EventCreated) }

func (e *QueuedEvent) fields(c *codec) { e.whole(c, EventQueued) }

func (e *InProgressEvent) fields(c *codec) { e.whole(c, EventInProgress) }

func (e *CompletedEvent) fields(c *codec) { e.whole(c, EventCompleted) }

func (e *FailedEvent) fields(c *codec) { e.whole(c, EventFailed) }

func (e *IncompleteEvent) fields(c *codec) { e.whole(c, EventIncomplete) }

func (e *ItemAddedEvent) fields(c *codec) {
	e.head(c, EventItemAdded)
	c.Index("output_index", &e.OutputIndex)
	itemValues.One(c, "item", &e.Item, !e.Item.IsZero())
}

func (e *ItemDoneEvent) fields(c *codec) {
	e.head(c, EventItemDone)
	c.Index("output_index", &e.OutputIndex)
	itemValues.One(c, "item", &e.Item, !e.Item.IsZero())
}

// PartAddedEvent contains a part of a message or of reasoning at its start. Schema:
// ResponseContentPartAddedEvent.
type PartAddedEvent struct {
	PartEvent
	Part item.Part
}

// PartDoneEvent contains a finished part. Schema: ResponseContentPartDoneEvent.
type PartDoneEvent struct {
	PartEvent
	Part item.Part
}

// TextDeltaEvent adds to the text of a part. Schema: ResponseTextDeltaEvent.
type TextDeltaEvent struct {
	PartEvent
	Delta string
	// Logprobs is sent if [IncludeLogprobs] asks for it. It is written as [] if nil.
	Logprobs []item.TokenLogprob
	// Obfuscation is meaningless padding.
	Obfuscation string
}

// TextDoneEvent contains the whole text of a part. Schema: ResponseTextDoneEvent.
type TextDoneEvent struct {
	PartEvent
	Text string
	// Logprobs is sent if [IncludeLogprobs] asks for it. It is written as [] if nil.
	Logprobs []item.TokenLogprob
}

// AnnotationAddedEvent adds an annotation to the text of a part. An AnnotationIndex
// of -1 is not written. Schema: ResponseOutputTextAnnotationAddedEvent.
type AnnotationAddedEvent struct {
	PartEvent
	AnnotationIndex int
	Annotation      item.Annotation
}

// RefusalDeltaEvent adds to a refusal. Schema: ResponseRefusalDeltaEvent.
type RefusalDeltaEvent struct {
	PartEvent
	Delta string
	// Obfuscation is meaningless padding.
	Obfuscation string
}

// RefusalDoneEvent contains the whole refusal. Schema: ResponseRefusalDoneEvent.
type RefusalDoneEvent struct {
	PartEvent
	Refusal string
}

// EventType returns [EventPartAdded].
func (*PartAddedEvent) EventType() EventType { return EventPartAdded }

// EventType returns [EventPartDone].
func (*PartDoneEvent) EventType() EventType { return EventPartDone }

// EventType returns [EventTextDelta].
func (*TextDeltaEvent) EventType() EventType { return EventTextDelta }

// EventType returns [EventTextDone].
func (*TextDoneEvent) EventType() EventType { return EventTextDone }

// EventType returns [EventAnnotationAdded].
func (*AnnotationAddedEvent) EventType() EventType { return EventAnnotationAdded }

// EventType returns [EventRefusalDelta].
func (*RefusalDeltaEvent) EventType() EventType { return EventRefusalDelta }

// EventType returns [EventRefusalDone].
func (*RefusalDoneEvent) EventType() EventType { return EventRefusalDone }

func (e *PartAddedEvent) fields(c *codec) {
	e.place(c, EventPartAdded)
	partValues.One(c, "part", &e.Part, e.Part != nil)
}

func (e *PartDoneEvent) fields(c *codec) {
	e.place(c, EventPartDone)
	partValues.One(c, "part", &e.Part, e.Part != nil)
}

func (e *TextDeltaEvent) fields(c *codec) {
	e.place(c, EventTextDelta)
	c.Text("delta", &e.Delta)
	c.OrEmpty("logprobs", "[]", e.Logprobs == nil)
	logprobValues.Objects(c, "logprobs", &e.Logprobs)
	c.OptString("obfuscation", &e.Obfuscation)
}

func (e *TextDoneEvent) fields(c *codec) {
	e.place(c, EventTextDone)
	c.Text("text", &e.Text)
	c.OrEmpty("logprobs", "[]", e.Logprobs == nil)
	logprobValues.Objects(c, "logprobs", &e.Logprobs)
}

func (e *AnnotationAddedEvent) fields(c *codec) {
	e.place(c, EventAnnotationAdded)
	c.Index("annotation_index", &e.AnnotationIndex)
	c.OrEmpty("annotation", "null", e.Annotation == nil)
	annotationValues.One(c, "annotation", &e.Annotation, e.Annotation != nil)
}

func (e *RefusalDeltaEvent) fields(c *codec) {
	e.place(c, EventRefusalDelta)
	c.Text("delta", &e.Delta)
	c.OptString("obfuscation", &e.Obfuscation)
}

func (e *RefusalDoneEvent) fields(c *codec) {
	e.place(c, EventRefusalDone)
	c.Text("refusal", &e.Refusal)
}

// ReasoningTextDeltaEvent adds to the text of a part of reasoning. Schema:
// ResponseReasoningTextDeltaEvent.
type ReasoningTextDeltaEvent struct {
	PartEvent
	Delta string
	// Obfuscation is meaningless padding.
	Obfuscation string
}

// ReasoningTextDoneEvent contains the whole text of a part of reasoning. Schema:
// ResponseReasoningTextDoneEvent.
type ReasoningTextDoneEvent struct {
	PartEvent
	Text string
}

// SummaryPartAddedEvent contains a part of a summary at its start. Schema:
// ResponseReasoningSummaryPartAddedEvent.
type SummaryPartAddedEvent struct {
	SummaryEvent
	Part item.Part
}

// SummaryPartDoneEvent contains a finished part of a summary. Schema:
// ResponseReasoningSummaryPartDoneEvent.
type SummaryPartDoneEvent struct {
	SummaryEvent
	Part item.Part
	// Status is incomplete if the part was cut off.
	Status string
}

// SummaryTextDeltaEvent adds to the text of a part of a summary. Schema:
// ResponseReasoningSummaryTextDeltaEvent.
type SummaryTextDeltaEvent struct {
	SummaryEvent
	Delta string
	// Obfuscation is meaningless padding.
	Obfuscation string
}

// SummaryTextDoneEvent contains the whole text of a part of a summary. Schema:
// ResponseReasoningSummaryTextDoneEvent.
type SummaryTextDoneEvent struct {
	SummaryEvent
	Text string
}

// EventType returns [EventReasoningTextDelta].
func (*ReasoningTextDeltaEvent) EventType() EventType { return EventReasoningTextDelta }

// EventType returns [EventReasoningTextDone].
func (*ReasoningTextDoneEvent) EventType() EventType { return EventReasoningTextDone }

// EventType returns [EventSummaryPartAdded].
func (*SummaryPartAddedEvent) EventType() EventType { return EventSummaryPartAdded }

// EventType returns [EventSummaryPartDone].
func (*SummaryPartDoneEvent) EventType() EventType { return EventSummaryPartDone }

// EventType returns [EventSummaryTextDelta].
func (*SummaryTextDeltaEvent) EventType() EventType { return EventSummaryTextDelta }

// EventType returns [EventSummaryTextDone].
func (*SummaryTextDoneEvent) EventType() EventType { return EventSummaryTextDone }

func (e *ReasoningTextDeltaEvent) fields(c *codec) {
	e.place(c, EventReasoningTextDelta)
	c.Text("delta", &e.Delta)
	c.OptString("obfuscation", &e.Obfuscation)
}

func (e *ReasoningTextDoneEvent) fields(c *codec) {
	e.place(c, EventReasoningTextDone)
	c.Text("text", &e.Text)
}

func (e *SummaryPartAddedEvent) fields(c *codec) {
	e.place(c, EventSummaryPartAdded)
	partValues.One(c, "part", &e.Part, e.Part != nil)
}

func (e *SummaryPartDoneEvent) fields(c *codec) {
	e.place(c, EventSummaryPartDone)
	partValues.One(c, "part", &e.Part, e.Part != nil)
	c.OptString("status", &e.Status)
}

func (e *SummaryTextDeltaEvent) fields(c *codec) {
	e.place(c, EventSummaryTextDelta)
	c.Text("delta", &e.Delta)
	c.OptString("obfuscation", &e.Obfuscation)
}

func (e *SummaryTextDoneEvent) fields(c *codec) {
	e.place(c, EventSummaryTextDone)
	c.Text("text", &e.Text)
}

// ArgumentsDeltaEvent adds to the arguments of a function call. Schema:
// ResponseFunctionCallArgumentsDeltaEvent.
type ArgumentsDeltaEvent struct {
	ItemEvent
	Delta string
	// Obfuscation is meaningless padding.
	Obfuscation string
}

// ArgumentsDoneEvent contains all arguments of a function call. Schema:
// ResponseFunctionCallArgumentsDoneEvent.
type ArgumentsDoneEvent struct {
	ItemEvent
	Name      string
	Arguments string
}

// CustomInputDeltaEvent adds to the input of a custom tool call. Schema:
// ResponseCustomToolCallInputDeltaEvent.
type CustomInputDeltaEvent struct {
	ItemEvent
	Delta string
	// Obfuscation is meaningless padding.
	Obfuscation string
}

// CustomInputDoneEvent contains the whole input of a custom tool call. Schema:
// ResponseCustomToolCallInputDoneEvent.
type CustomInputDoneEvent struct {
	ItemEvent
	Input string
}

// MCPArgumentsDeltaEvent adds to the arguments of an MCP call. Schema:
// ResponseMCPCallArgumentsDeltaEvent.
type MCPArgumentsDeltaEvent struct {
	ItemEvent
	Delta string
	// Obfuscation is meaningless padding.
	Obfuscation string
}

// MCPArgumentsDoneEvent contains all arguments of an MCP call. Schema:
// ResponseMCPCallArgumentsDoneEvent.
type MCPArgumentsDoneEvent struct {
	ItemEvent
	Arguments string
}

// CodeDeltaEvent adds to the code of a code interpreter call. Schema:
// ResponseCodeInterpreterCallCodeDeltaEvent.
type CodeDeltaEvent struct {
	ItemEvent
	Delta string
	// Obfuscation is meaningless padding.
	Obfuscation string
}

// CodeDoneEvent contains the whole code of a code interpreter call. Schema:
// ResponseCodeInterpreterCallCodeDoneEvent.
type CodeDoneEvent struct {
	ItemEvent
	Code string
}

// EventType returns [EventArgumentsDelta].
func (*ArgumentsDeltaEvent) EventType() EventType { return EventArgumentsDelta }

// EventType returns [EventArgumentsDone].
func (*ArgumentsDoneEvent) EventType() EventType { return EventArgumentsDone }

// EventType returns [EventCustomInputDelta].
func (*CustomInputDeltaEvent) EventType() EventType { return EventCustomInputDelta }

// EventType returns [EventCustomInputDone].
func (*CustomInputDoneEvent) EventType() EventType { return EventCustomInputDone }

// EventType returns [EventMCPArgumentsDelta].
func (*MCPArgumentsDeltaEvent) EventType() EventType { return EventMCPArgumentsDelta }

// EventType returns [EventMCPArgumentsDone].
func (*MCPArgumentsDoneEvent) EventType() EventType { return EventMCPArgumentsDone }

// EventType returns [EventCodeDelta].
func (*CodeDeltaEvent) EventType() EventType { return EventCodeDelta }

// EventType returns [EventCodeDone].
func (*CodeDoneEvent) EventType() EventType { return EventCodeDone }

func (e *ArgumentsDeltaEvent) fields(c *codec) {
	e.place(c, EventArgumentsDelta)
	c.Text("delta", &e.Delta)
	c.OptString("obfuscation", &e.Obfuscation)
}

func (e *ArgumentsDoneEvent) fields(c *codec) {
	e.place(c, EventArgumentsDone)
	c.Text("name", &e.Name)
	c.Text("arguments", &e.Arguments)
}

func (e *CustomInputDeltaEvent) fields(c *codec) {
	e.place(c, EventCustomInputDelta)
	c.Text("delta", &e.Delta)
	c.OptString("obfuscation", &e.Obfuscation)
}

func (e *CustomInputDoneEvent) fields(c *codec) {
	e.place(c, EventCustomInputDone)
	c.Text("input", &e.Input)
}

func (e *MCPArgumentsDeltaEvent) fields(c *codec) {
	e.place(c, EventMCPArgumentsDelta)
	c.Text("delta", &e.Delta)
	c.OptString("obfuscation", &e.Obfuscation)
}

func (e *MCPArgumentsDoneEvent) fields(c *codec) {
	e.place(c, EventMCPArgumentsDone)
	c.Text("arguments", &e.Arguments)
}

func (e *CodeDeltaEvent) fields(c *codec) {
	e.place(c, EventCodeDelta)
	c.Text("delta", &e.Delta)
	c.OptString("obfuscation", &e.Obfuscation)
}

func (e *CodeDoneEvent) fields(c *codec) {
	e.place(c, EventCodeDone)
	c.Text("code", &e.Code)
}

// ShellOutputDelta is the output of a command since the previous delta. Schema:
// ShellCallOutputDelta.
type ShellOutputDelta struct {
	Stdout string
	Stderr string
	Extra  item.Extra
}

func (v *ShellOutputDelta) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("stdout", &v.Stdout)
	c.OptString("stderr", &v.Stderr)
}

// ShellCommandAddedEvent contains a command of a shell call at its start. Its schema
// does not include the item id. Schema: ResponseShellCallCommandAddedStreamingEvent.
type ShellCommandAddedEvent struct {
	ItemEvent
	CommandIndex int
	Command      string
}

// ShellCommandDeltaEvent adds to a command of a shell call. Schema:
// ResponseShellCallCommandDeltaStreamingEvent.
type ShellCommandDeltaEvent struct {
	ItemEvent
	CommandIndex int
	Delta        string
	// Obfuscation is meaningless padding.
	Obfuscation string
}

// ShellCommandDoneEvent contains a whole command of a shell call. Schema:
// ResponseShellCallCommandDoneStreamingEvent.
type ShellCommandDoneEvent struct {
	ItemEvent
	CommandIndex int
	Command      string
}

// ShellOutputDeltaEvent adds to the output of a command that the endpoint runs.
// Schema: ResponseShellCallOutputContentDeltaStreamingEvent.
type ShellOutputDeltaEvent struct {
	ItemEvent
	CommandIndex int
	Delta        *ShellOutputDelta
}

// ShellOutputDoneEvent contains the whole output of a command that the endpoint ran.
// Schema: ResponseShellCallOutputContentDoneStreamingEvent.
type ShellOutputDoneEvent struct {
	ItemEvent
	CommandIndex int
	// Output is written as [] if nil.
	Output []item.ShellOutput
}

// EventType returns [EventShellCommandAdded].
func (*ShellCommandAddedEvent) EventType() EventType { return EventShellCommandAdded }

// EventType returns [EventShellCommandDelta].
func (*ShellCommandDeltaEvent) EventType() EventType { return EventShellCommandDelta }

// EventType returns [EventShellCommandDone].
func (*ShellCommandDoneEvent) EventType() EventType { return EventShellCommandDone }

// EventType returns [EventShellOutputDelta].
func (*ShellOutputDeltaEvent) EventType() EventType { return EventShellOutputDelta }

// EventType returns [EventShellOutputDone].
func (*ShellOutputDoneEvent) EventType() EventType { return EventShellOutputDone }

func (e *ShellCommandAddedEvent) fields(c *codec) {
	e.place(c, EventShellCommandAdded)
	c.Index("command_index", &e.CommandIndex)
	c.Text("command", &e.Command)
}

func (e *ShellCommandDeltaEvent) fields(c *codec) {
	e.place(c, EventShellCommandDelta)
	c.Index("command_index", &e.CommandIndex)
	c.Text("delta", &e.Delta)
	c.OptString("obfuscation", &e.Obfuscation)
}

func (e *ShellCommandDoneEvent) fields(c *codec) {
	e.place(c, EventShellCommandDone)
	c.Index("command_index", &e.CommandIndex)
	c.Text("command", &e.Command)
}

func (e *ShellOutputDeltaEvent) fields(c *codec) {
	e.place(c, EventShellOutputDelta)
	c.Index("command_index", &e.CommandIndex)
	record.Opt(c, "delta", &e.Delta, (*ShellOutputDelta).fields)
}

func (e *ShellOutputDoneEvent) fields(c *codec) {
	e.place(c, EventShellOutputDone)
	c.Index("command_index", &e.CommandIndex)
	c.OrEmpty("output", "[]", e.Output == nil)
	shellOutputValues.Objects(c, "output", &e.Output)
}

// ImagePartialEvent contains an unfinished image in base64. Schema:
// ResponseImageGenCallPartialImageEvent.
type ImagePartialEvent struct {
	ItemEvent
	// Index counts the images from 0. An Index of -1 is not written.
	Index        int
	Image        string
	Background   string
	OutputFormat string
	Quality      string
	Size         string
}

// AudioDeltaEvent adds to the audio, in base64. Schema: ResponseAudioDeltaEvent.
type AudioDeltaEvent struct {
	EventHead
	ResponseID string
	Delta      string
}

// AudioDoneEvent reports the end of the audio. Schema: ResponseAudioDoneEvent.
type AudioDoneEvent struct {
	EventHead
	// ResponseID is required by the schema, which does not declare it.
	ResponseID string
}

// TranscriptDeltaEvent adds to the transcript of the audio. Schema:
// ResponseAudioTranscriptDeltaEvent.
type TranscriptDeltaEvent struct {
	EventHead
	ResponseID string
	Delta      string
}

// TranscriptDoneEvent reports the end of the transcript. Schema:
// ResponseAudioTranscriptDoneEvent.
type TranscriptDoneEvent struct {
	EventHead
	ResponseID string
}

// EventType returns [EventImagePartial].
func (*ImagePartialEvent) EventType() EventType { return EventImagePartial }

// EventType returns [EventAudioDelta].
func (*AudioDeltaEvent) EventType() EventType { return EventAudioDelta }

// EventType returns [EventAudioDone].
func (*AudioDoneEvent) EventType() EventType { return EventAudioDone }

// EventType returns [EventTranscriptDelta].
func (*TranscriptDeltaEvent) EventType() EventType { return EventTranscriptDelta }

// EventType returns [EventTranscriptDone].
func (*TranscriptDoneEvent) EventType() EventType { return EventTranscriptDone }

func (e *ImagePartialEvent) fields(c *codec) {
	e.place(c, EventImagePartial)
	c.Index("partial_image_index", &e.Index)
	c.Text("partial_image_b64", &e.Image)
	c.OptString("background", &e.Background)
	c.OptString("output_format", &e.OutputFormat)
	c.OptString("quality", &e.Quality)
	c.OptString("size", &e.Size)
}

func (e *AudioDeltaEvent) fields(c *codec) {
	e.head(c, EventAudioDelta)
	c.OptString("response_id", &e.ResponseID)
	c.Text("delta", &e.Delta)
}

func (e *AudioDoneEvent) fields(c *codec) {
	e.head(c, EventAudioDone)
	c.OptString("response_id", &e.ResponseID)
}

func (e *TranscriptDeltaEvent) fields(c *codec) {
	e.head(c, EventTranscriptDelta)
	c.OptString("response_id", &e.ResponseID)
	c.Text("delta", &e.Delta)
}

func (e *TranscriptDoneEvent) fields(c *codec) {
	e.head(c, EventTranscriptDone)
	c.OptString("response_id", &e.ResponseID)
}

// ErrorEvent ends a stream that failed. The error is in the members of the event
// itself or, on a WebSocket, in Error; [Event.Err] reads both. If Error is nil, an
// empty Code or Param is written as null. Schemas: ResponseErrorEvent,
// ResponseWsError.
type ErrorEvent struct {
	EventHead
	Code    string
	Message string
	Param   string
	// Status is the HTTP status that the error would have had in an HTTP response.
	Status *int64
	Error  *APIError
}

// EventType returns [EventError].
func (*ErrorEvent) EventType() EventType { return EventError }

func (e *ErrorEvent) fields(c *codec) {
	e.head(c, EventError)
	c.OptInt("status", &e.Status)
	record.Opt(c, "error", &e.Error, (*APIError).fields)
	if e.Error != nil {
		c.OptString("code", &e.Code)
		c.OptString("message", &e.Message)
		c.OptString("param", &e.Param)
	} else {
		c.NullText("code", &e.Code)
		c.Text("message", &e.Message)
		c.NullText("param", &e.Param)
	}
}
