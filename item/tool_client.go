// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// LocalShellTool lets the model run commands on the client's machine, as
// [LocalShellCall]. Schema: LocalShellToolParam.
type LocalShellTool struct{ Extra Extra }

// ShellTool lets the model run shell commands, as [ShellCall]. Schema:
// FunctionShellToolParam.
type ShellTool struct {
	Environment    *Environment
	AllowedCallers []string
	Extra          Extra
}

// ApplyPatchTool lets the model change files, as [ApplyPatchCall]. Schema:
// ApplyPatchToolParam.
type ApplyPatchTool struct {
	AllowedCallers []string
	Extra          Extra
}

// ComputerTool lets the model use a computer, as [ComputerCall]. Schema:
// ComputerTool.
type ComputerTool struct{ Extra Extra }

// ComputerPreviewTool is the older form of [ComputerTool]. Environment is
// windows, mac, linux, ubuntu or browser; the size is in pixels. Schema:
// ComputerUsePreviewTool.
type ComputerPreviewTool struct {
	Environment   string
	DisplayWidth  int64
	DisplayHeight int64
	Extra         Extra
}

// NamespaceTool is a group of function and custom tools with a name. Schema:
// NamespaceToolParam.
type NamespaceTool struct {
	Name        string
	Description string
	// Tools is written as [] when nil. A namespace inside is read as [*UnknownTool].
	Tools []Tool
	Extra Extra
}

// ToolSearchTool lets the model search for tools whose definitions are held
// back, as [ToolSearchCall]. Parameters is a JSON Schema for a search that the
// client does. Schema: ToolSearchToolParam.
type ToolSearchTool struct {
	// Execution is [ExecutionServer] or [ExecutionClient].
	Execution   string
	Description string
	Parameters  JSON
	Extra       Extra
}

// ToolType returns [ToolLocalShell].
func (*LocalShellTool) ToolType() string { return ToolLocalShell }

// ToolType returns [ToolShell].
func (*ShellTool) ToolType() string { return ToolShell }

// ToolType returns [ToolApplyPatch].
func (*ApplyPatchTool) ToolType() string { return ToolApplyPatch }

// ToolType returns [ToolComputer].
func (*ComputerTool) ToolType() string { return ToolComputer }

// ToolType returns [ToolComputerPreview].
func (*ComputerPreviewTool) ToolType() string { return ToolComputerPreview }

// ToolType returns [ToolNamespace].
func (*NamespaceTool) ToolType() string { return ToolNamespace }

// ToolType returns [ToolToolSearch].
func (*ToolSearchTool) ToolType() string { return ToolToolSearch }

func (t *LocalShellTool) fields(c *codec) {
	c.typ(ToolLocalShell)
	c.rest(&t.Extra)
}

func (t *ShellTool) fields(c *codec) {
	c.typ(ToolShell)
	optRecord(c, "environment", &t.Environment)
	c.optStrings("allowed_callers", &t.AllowedCallers)
	c.rest(&t.Extra)
}

func (t *ApplyPatchTool) fields(c *codec) {
	c.typ(ToolApplyPatch)
	c.optStrings("allowed_callers", &t.AllowedCallers)
	c.rest(&t.Extra)
}

func (t *ComputerTool) fields(c *codec) {
	c.typ(ToolComputer)
	c.rest(&t.Extra)
}

func (t *ComputerPreviewTool) fields(c *codec) {
	c.typ(ToolComputerPreview)
	c.number("display_height", &t.DisplayHeight, &t.Extra)
	c.number("display_width", &t.DisplayWidth, &t.Extra)
	c.text("environment", &t.Environment, &t.Extra)
	c.end(&t.Extra)
}

func (t *NamespaceTool) fields(c *codec) {
	c.typ(ToolNamespace)
	c.text("name", &t.Name, &t.Extra)
	c.text("description", &t.Description, &t.Extra)
	c.orEmpty("tools", "[]", t.Tools == nil, &t.Extra)
	c.tools("tools", &t.Tools, parseGrouped)
	c.end(&t.Extra)
}

func (t *ToolSearchTool) fields(c *codec) {
	c.typ(ToolToolSearch)
	c.optString("description", &t.Description)
	c.optString("execution", &t.Execution)
	c.raw("parameters", &t.Parameters)
	c.rest(&t.Extra)
}
