// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// newValue returns an empty struct for items of the type, or nil where there
// is none.
func newValue(t Type) Value {
	switch t {
	case TypeMessage:
		return new(Message)
	case TypeReasoning:
		return new(Reasoning)
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
	case TypeFileSearchCall:
		return new(FileSearchCall)
	case TypeWebSearchCall:
		return new(WebSearchCall)
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
	if k := kindOf(t); k != nil {
		return k.newValue(t)
	}
	return nil
}
