// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// newEvent returns an empty struct for events of the type, or nil where there
// is none.
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
	return newStateEvent(t)
}

// newTextEvent is newEvent for what the model says and thinks.
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

// newCallEvent is newEvent for calls and what they bring.
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

// newStateEvent is newEvent for the states of what the endpoint does.
func newStateEvent(t EventType) EventValue {
	switch t {
	case EventCodeInProgress:
		return new(CodeInProgressEvent)
	case EventCodeInterpreting:
		return new(CodeInterpretingEvent)
	case EventCodeCompleted:
		return new(CodeCompletedEvent)
	case EventFileSearchInProgress:
		return new(FileSearchInProgressEvent)
	case EventFileSearchSearching:
		return new(FileSearchSearchingEvent)
	case EventFileSearchCompleted:
		return new(FileSearchCompletedEvent)
	case EventWebSearchInProgress:
		return new(WebSearchInProgressEvent)
	case EventWebSearchSearching:
		return new(WebSearchSearchingEvent)
	case EventWebSearchCompleted:
		return new(WebSearchCompletedEvent)
	case EventImageInProgress:
		return new(ImageInProgressEvent)
	case EventImageGenerating:
		return new(ImageGeneratingEvent)
	case EventImageCompleted:
		return new(ImageCompletedEvent)
	case EventMCPInProgress:
		return new(MCPInProgressEvent)
	case EventMCPCompleted:
		return new(MCPCompletedEvent)
	case EventMCPFailed:
		return new(MCPFailedEvent)
	case EventMCPListInProgress:
		return new(MCPListInProgressEvent)
	case EventMCPListCompleted:
		return new(MCPListCompletedEvent)
	case EventMCPListFailed:
		return new(MCPListFailedEvent)
	}
	return nil
}
