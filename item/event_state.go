// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// CodeInProgressEvent says that a code interpreter call began. Schema:
// ResponseCodeInterpreterCallInProgressEvent.
type CodeInProgressEvent struct{ ItemEvent }

// CodeInterpretingEvent says that a code interpreter call runs its code.
// Schema: ResponseCodeInterpreterCallInterpretingEvent.
type CodeInterpretingEvent struct{ ItemEvent }

// CodeCompletedEvent says that a code interpreter call is done. Schema:
// ResponseCodeInterpreterCallCompletedEvent.
type CodeCompletedEvent struct{ ItemEvent }

// FileSearchInProgressEvent says that a file search began. Schema:
// ResponseFileSearchCallInProgressEvent.
type FileSearchInProgressEvent struct{ ItemEvent }

// FileSearchSearchingEvent says that a file search is looking. Schema:
// ResponseFileSearchCallSearchingEvent.
type FileSearchSearchingEvent struct{ ItemEvent }

// FileSearchCompletedEvent says that a file search is done. Schema:
// ResponseFileSearchCallCompletedEvent.
type FileSearchCompletedEvent struct{ ItemEvent }

// WebSearchInProgressEvent says that a web search began. Schema:
// ResponseWebSearchCallInProgressEvent.
type WebSearchInProgressEvent struct{ ItemEvent }

// WebSearchSearchingEvent says that a web search is looking. Schema:
// ResponseWebSearchCallSearchingEvent.
type WebSearchSearchingEvent struct{ ItemEvent }

// WebSearchCompletedEvent says that a web search is done. Schema:
// ResponseWebSearchCallCompletedEvent.
type WebSearchCompletedEvent struct{ ItemEvent }

// ImageInProgressEvent says that an image generation began. Schema:
// ResponseImageGenCallInProgressEvent.
type ImageInProgressEvent struct{ ItemEvent }

// ImageGeneratingEvent says that an image generation is at work. Schema:
// ResponseImageGenCallGeneratingEvent.
type ImageGeneratingEvent struct{ ItemEvent }

// ImageCompletedEvent says that an image generation is done. Schema:
// ResponseImageGenCallCompletedEvent.
type ImageCompletedEvent struct{ ItemEvent }

// MCPInProgressEvent says that an MCP call began. Schema:
// ResponseMCPCallInProgressEvent.
type MCPInProgressEvent struct{ ItemEvent }

// MCPCompletedEvent says that an MCP call is done. Schema:
// ResponseMCPCallCompletedEvent.
type MCPCompletedEvent struct{ ItemEvent }

// MCPFailedEvent says that an MCP call failed. Schema:
// ResponseMCPCallFailedEvent.
type MCPFailedEvent struct{ ItemEvent }

// MCPListInProgressEvent says that the list of an MCP server's tools is asked
// for. Schema: ResponseMCPListToolsInProgressEvent.
type MCPListInProgressEvent struct{ ItemEvent }

// MCPListCompletedEvent says that the list of an MCP server's tools is there.
// Schema: ResponseMCPListToolsCompletedEvent.
type MCPListCompletedEvent struct{ ItemEvent }

// MCPListFailedEvent says that the list of an MCP server's tools could not be
// had. Schema: ResponseMCPListToolsFailedEvent.
type MCPListFailedEvent struct{ ItemEvent }

// EventType returns [EventCodeInProgress].
func (*CodeInProgressEvent) EventType() EventType { return EventCodeInProgress }

// EventType returns [EventCodeInterpreting].
func (*CodeInterpretingEvent) EventType() EventType { return EventCodeInterpreting }

// EventType returns [EventCodeCompleted].
func (*CodeCompletedEvent) EventType() EventType { return EventCodeCompleted }

// EventType returns [EventFileSearchInProgress].
func (*FileSearchInProgressEvent) EventType() EventType { return EventFileSearchInProgress }

// EventType returns [EventFileSearchSearching].
func (*FileSearchSearchingEvent) EventType() EventType { return EventFileSearchSearching }

// EventType returns [EventFileSearchCompleted].
func (*FileSearchCompletedEvent) EventType() EventType { return EventFileSearchCompleted }

// EventType returns [EventWebSearchInProgress].
func (*WebSearchInProgressEvent) EventType() EventType { return EventWebSearchInProgress }

// EventType returns [EventWebSearchSearching].
func (*WebSearchSearchingEvent) EventType() EventType { return EventWebSearchSearching }

// EventType returns [EventWebSearchCompleted].
func (*WebSearchCompletedEvent) EventType() EventType { return EventWebSearchCompleted }

// EventType returns [EventImageInProgress].
func (*ImageInProgressEvent) EventType() EventType { return EventImageInProgress }

// EventType returns [EventImageGenerating].
func (*ImageGeneratingEvent) EventType() EventType { return EventImageGenerating }

// EventType returns [EventImageCompleted].
func (*ImageCompletedEvent) EventType() EventType { return EventImageCompleted }

// EventType returns [EventMCPInProgress].
func (*MCPInProgressEvent) EventType() EventType { return EventMCPInProgress }

// EventType returns [EventMCPCompleted].
func (*MCPCompletedEvent) EventType() EventType { return EventMCPCompleted }

// EventType returns [EventMCPFailed].
func (*MCPFailedEvent) EventType() EventType { return EventMCPFailed }

// EventType returns [EventMCPListInProgress].
func (*MCPListInProgressEvent) EventType() EventType { return EventMCPListInProgress }

// EventType returns [EventMCPListCompleted].
func (*MCPListCompletedEvent) EventType() EventType { return EventMCPListCompleted }

// EventType returns [EventMCPListFailed].
func (*MCPListFailedEvent) EventType() EventType { return EventMCPListFailed }

func (e *CodeInProgressEvent) fields(c *codec) { e.state(c, EventCodeInProgress) }

func (e *CodeInterpretingEvent) fields(c *codec) { e.state(c, EventCodeInterpreting) }

func (e *CodeCompletedEvent) fields(c *codec) { e.state(c, EventCodeCompleted) }

func (e *FileSearchInProgressEvent) fields(c *codec) { e.state(c, EventFileSearchInProgress) }

func (e *FileSearchSearchingEvent) fields(c *codec) { e.state(c, EventFileSearchSearching) }

func (e *FileSearchCompletedEvent) fields(c *codec) { e.state(c, EventFileSearchCompleted) }

func (e *WebSearchInProgressEvent) fields(c *codec) { e.state(c, EventWebSearchInProgress) }

func (e *WebSearchSearchingEvent) fields(c *codec) { e.state(c, EventWebSearchSearching) }

func (e *WebSearchCompletedEvent) fields(c *codec) { e.state(c, EventWebSearchCompleted) }

func (e *ImageInProgressEvent) fields(c *codec) { e.state(c, EventImageInProgress) }

func (e *ImageGeneratingEvent) fields(c *codec) { e.state(c, EventImageGenerating) }

func (e *ImageCompletedEvent) fields(c *codec) { e.state(c, EventImageCompleted) }

func (e *MCPInProgressEvent) fields(c *codec) { e.state(c, EventMCPInProgress) }

func (e *MCPCompletedEvent) fields(c *codec) { e.state(c, EventMCPCompleted) }

func (e *MCPFailedEvent) fields(c *codec) { e.state(c, EventMCPFailed) }

func (e *MCPListInProgressEvent) fields(c *codec) { e.state(c, EventMCPListInProgress) }

func (e *MCPListCompletedEvent) fields(c *codec) { e.state(c, EventMCPListCompleted) }

func (e *MCPListFailedEvent) fields(c *codec) { e.state(c, EventMCPListFailed) }
