// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// The events of tools that the endpoint runs, and of audio. With the types that
// the accumulator and the loop act on, these are the types of the schema.
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
