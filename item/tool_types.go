// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// The types of [Tool], each with a struct of its own. Schema: Tool.
const (
	ToolFunction         = "function"
	ToolCustom           = "custom"
	ToolNamespace        = "namespace"
	ToolToolSearch       = "tool_search"
	ToolProgrammatic     = "programmatic_tool_calling"
	ToolShell            = "shell"
	ToolLocalShell       = "local_shell"
	ToolApplyPatch       = "apply_patch"
	ToolComputer         = "computer"
	ToolComputerPreview  = "computer_use_preview"
	ToolFileSearch       = "file_search"
	ToolWebSearch        = "web_search"
	ToolWebSearchPreview = "web_search_preview"
	ToolMCP              = "mcp"
	ToolCodeInterpreter  = "code_interpreter"
	ToolImageGeneration  = "image_generation"
)

// Dated versions of tools.
const (
	ToolWebSearch20250826        = "web_search_2025_08_26"
	ToolWebSearchPreview20250311 = "web_search_preview_2025_03_11"
)

// Who may call a tool, for a tool's AllowedCallers. Schema:
// CallableToolAllowedCaller.
const (
	AllowDirect       = "direct"
	AllowProgrammatic = "programmatic"
)

// newTool returns an empty definition of the type, or nil where there is no
// struct.
func newTool(typ string) Tool {
	switch typ {
	case ToolFunction:
		return new(FunctionTool)
	case ToolCustom:
		return new(CustomTool)
	case ToolNamespace:
		return new(NamespaceTool)
	case ToolToolSearch:
		return new(ToolSearchTool)
	case ToolProgrammatic:
		return new(ProgrammaticTool)
	case ToolShell:
		return new(ShellTool)
	case ToolLocalShell:
		return new(LocalShellTool)
	case ToolApplyPatch:
		return new(ApplyPatchTool)
	case ToolComputer:
		return new(ComputerTool)
	case ToolComputerPreview:
		return new(ComputerPreviewTool)
	case ToolFileSearch:
		return new(FileSearchTool)
	case ToolWebSearch, ToolWebSearch20250826:
		return new(WebSearchTool)
	case ToolWebSearchPreview, ToolWebSearchPreview20250311:
		return new(WebSearchPreviewTool)
	case ToolMCP:
		return new(MCPTool)
	case ToolCodeInterpreter:
		return new(CodeInterpreterTool)
	case ToolImageGeneration:
		return new(ImageGenerationTool)
	}
	return nil
}
