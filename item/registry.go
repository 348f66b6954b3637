// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// newValue returns an empty struct for items of the type, or nil where there
// is none.
func newValue(t Type) Value {
	switch t {
	case TypeMessage:
		return new(Message)
	case TypeFunctionCall:
		return new(FunctionCall)
	case TypeFunctionCallOutput:
		return new(FunctionCallOutput)
	case TypeReasoning:
		return new(Reasoning)
	case TypeCustomToolCall:
		return new(CustomToolCall)
	case TypeCustomToolCallOutput:
		return new(CustomToolCallOutput)
	case TypeItemReference:
		return new(ItemReference)
	case TypeCompaction:
		return new(Compaction)
	case TypeCompactionTrigger:
		return new(CompactionTrigger)
	case TypeProgram:
		return new(Program)
	case TypeProgramOutput:
		return new(ProgramOutput)
	}
	if v := newClientCall(t); v != nil {
		return v
	}
	return newHosted(t)
}

// newClientCall is newValue for what a client answers and its answers.
func newClientCall(t Type) Value {
	switch t {
	case TypeComputerCall:
		return new(ComputerCall)
	case TypeComputerCallOutput:
		return new(ComputerCallOutput)
	case TypeLocalShellCall:
		return new(LocalShellCall)
	case TypeLocalShellCallOutput:
		return new(LocalShellCallOutput)
	case TypeShellCall:
		return new(ShellCall)
	case TypeShellCallOutput:
		return new(ShellCallOutput)
	case TypeApplyPatchCall:
		return new(ApplyPatchCall)
	case TypeApplyPatchCallOutput:
		return new(ApplyPatchCallOutput)
	case TypeMCPApprovalRequest:
		return new(MCPApprovalRequest)
	case TypeMCPApprovalResponse:
		return new(MCPApprovalResponse)
	}
	return nil
}

// newHosted is newValue for what endpoints do themselves.
func newHosted(t Type) Value {
	switch t {
	case TypeFileSearchCall:
		return new(FileSearchCall)
	case TypeWebSearchCall:
		return new(WebSearchCall)
	case TypeToolSearchCall:
		return new(ToolSearchCall)
	case TypeToolSearchOutput:
		return new(ToolSearchOutput)
	case TypeAdditionalTools:
		return new(AdditionalTools)
	case TypeImageGenerationCall:
		return new(ImageGenerationCall)
	case TypeCodeInterpreterCall:
		return new(CodeInterpreterCall)
	case TypeMCPListTools:
		return new(MCPListTools)
	case TypeMCPCall:
		return new(MCPCall)
	}
	return nil
}
