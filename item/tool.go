// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"slices"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/internal/record"
)

// Tool is a tool definition in a request: the struct for its type, such as
// [*FunctionTool], [*CustomTool] or [*MCPTool], or [*UnknownTool]. Schema: Tool.
type Tool interface {
	// ToolType returns the type member.
	ToolType() string
	fielder
}

// FunctionTool defines a function. Parameters is a JSON Schema for its arguments and
// OutputSchema one for its result; both are passed on unchanged. Strict is written
// if it is not nil. The schema requires it, so set it. Schemas: FunctionTool,
// FunctionToolParam.
type FunctionTool struct {
	Name         string
	Description  string
	Parameters   JSON
	OutputSchema JSON
	Strict       *bool
	// DeferLoading holds the definition back until the model finds the tool by a
	// search; see [ToolSearchTool].
	DeferLoading *bool
	// AllowedCallers is [AllowDirect], [AllowProgrammatic] or both.
	AllowedCallers []string
	Extra          Extra
}

// CustomTool defines a tool whose input is text. Format may contain a grammar; see
// [FormatGrammar]. Schema: CustomToolParam.
type CustomTool struct {
	Name           string
	Description    string
	Format         JSON
	DeferLoading   *bool
	AllowedCallers []string
	Extra          Extra
}

// UnknownTool is a definition of a type that this package does not know, kept byte
// for byte.
type UnknownTool struct {
	Raw JSON
}

// ToolType returns "function".
func (*FunctionTool) ToolType() string { return "function" }

// ToolType returns "custom".
func (*CustomTool) ToolType() string { return "custom" }

// ToolType returns the type member, or "".
func (t *UnknownTool) ToolType() string {
	if t == nil {
		return ""
	}
	return typeOfRaw(t.Raw)
}

func (t *FunctionTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type("function")
	c.NeedText("name", &t.Name)
	c.OptString("description", &t.Description)
	record.Raw(c, "parameters", &t.Parameters)
	c.OptBool("strict", &t.Strict)
	record.Raw(c, "output_schema", &t.OutputSchema)
	c.OptBool("defer_loading", &t.DeferLoading)
	c.OptStrings("allowed_callers", &t.AllowedCallers)
}

func (t *CustomTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type("custom")
	c.NeedText("name", &t.Name)
	c.OptString("description", &t.Description)
	record.Raw(c, "format", &t.Format)
	c.OptBool("defer_loading", &t.DeferLoading)
	c.OptStrings("allowed_callers", &t.AllowedCallers)
}

// fields is never called: an unknown tool is written as its raw text.
func (t *UnknownTool) fields(*codec) {}

// ParseTool reads one definition, such as a tool of the endpoint that a program has as
// JSON. A type without a struct is an [*UnknownTool]. The error is a [*SyntaxError] or
// a [*ShapeError].
func ParseTool(data []byte) (Tool, error) {
	value, err := checked(string(data))
	if err != nil {
		return nil, err
	}
	return parseTool(value)
}

// ToolJSON returns the JSON of a definition, as it is sent.
func ToolJSON(t Tool) (JSON, error) {
	if nils.Is(t) {
		return "", errNil
	}
	text, err := appendTool(nil, t)
	return JSON(text), err
}

// parseTool reads a tool definition from validated text.
func parseTool(s string) (Tool, error) {
	if s[0] != '{' {
		return nil, &ShapeError{Problem: "found " + jsonx.KindOf(s) + ", want a tool"}
	}
	known := newTool(typeOf(s))
	if _, function := known.(*FunctionTool); function {
		if _, named := memberOf(s, "name"); !named {
			known = nil // for example the nested form of Chat Completions
		}
	}
	if known == nil {
		return &UnknownTool{Raw: JSON(s)}, nil
	}
	if err := decodeRecord(s, known); err != nil {
		return nil, err
	}
	return known, nil
}

// appendTool appends a tool definition as JSON.
func appendTool(dst []byte, t Tool) ([]byte, error) {
	if u, ok := t.(*UnknownTool); ok {
		v, err := checked(string(u.Raw))
		return append(dst, v...), err
	}
	return appendRecord(dst, t)
}

// parseGrouped is parseTool for tools in a namespace. It does not decode a nested
// namespace, because unlimited nesting would mean unlimited recursion.
func parseGrouped(s string) (Tool, error) {
	if s[0] == '{' && typeOf(s) == ToolNamespace {
		return &UnknownTool{Raw: JSON(s)}, nil
	}
	return parseTool(s)
}

// toolValues reads and writes tools in a member of a record. groupedToolValues does
// the same for the tools of a namespace.
var (
	toolValues        = record.Values[Tool]{Read: parseTool, Append: appendTool}
	groupedToolValues = record.Values[Tool]{Read: parseGrouped, Append: appendTool}
)

// The types of [Tool]. Each has a struct of its own. Schema: Tool.
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

// Versions of tools with a date.
const (
	ToolWebSearch20250826        = "web_search_2025_08_26"
	ToolWebSearchPreview20250311 = "web_search_preview_2025_03_11"
)

// Values for a tool's AllowedCallers: who may call it. Schema:
// CallableToolAllowedCaller.
const (
	AllowDirect       = "direct"
	AllowProgrammatic = "programmatic"
)

// newTool returns an empty definition of the type, or nil if there is no struct for
// it.
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

// MissingOption returns the Go field and the JSON member that the API requires of a
// definition and that the definition lacks, or "" and "" if nothing is missing. If one
// of several would do, it names them all.
func MissingOption(def Tool) (field, member string) {
	if nils.Is(def) {
		return "", ""
	}
	switch d := def.(type) {
	case *FileSearchTool:
		if len(d.VectorStoreIDs) == 0 || slices.Contains(d.VectorStoreIDs, "") {
			return "VectorStoreIDs", "vector_store_ids"
		}
	case *MCPTool:
		switch {
		case d.ServerLabel == "":
			return "ServerLabel", "server_label"
		case d.ServerURL == "" && d.ConnectorID == "" && d.TunnelID == "":
			return "ServerURL, ConnectorID or TunnelID", "server_url, connector_id or tunnel_id"
		}
	case *CodeInterpreterTool:
		if !d.hasContainer() {
			return "Container", "container"
		}
	case *ComputerPreviewTool:
		switch {
		case d.Environment == "":
			return "Environment", "environment"
		case d.DisplayWidth <= 0:
			return "DisplayWidth", "display_width"
		case d.DisplayHeight <= 0:
			return "DisplayHeight", "display_height"
		}
	case *NamespaceTool:
		switch {
		case d.Name == "":
			return "Name", "name"
		case len(d.Tools) == 0:
			return "Tools", "tools"
		}
	case *UnknownTool:
		if d.ToolType() == "" {
			return "Raw", "type"
		}
	}
	return "", ""
}

// hasContainer reports whether the container is an id, or an object with a type.
func (t *CodeInterpreterTool) hasContainer() bool {
	text, err := checked(string(t.Container))
	switch {
	case err != nil:
		return false
	case text[0] == '"':
		return jsonx.Unquote(text) != ""
	}
	return text[0] == '{' && typeOf(text) != ""
}

// LocalShellTool lets the model run commands on the client's machine with
// [LocalShellCall]. Schema: LocalShellToolParam.
type LocalShellTool struct{ Extra Extra }

// ShellTool lets the model run shell commands with [ShellCall]. Schema:
// FunctionShellToolParam.
type ShellTool struct {
	Environment    *Environment
	AllowedCallers []string
	Extra          Extra
}

// ApplyPatchTool lets the model change files with [ApplyPatchCall]. Schema:
// ApplyPatchToolParam.
type ApplyPatchTool struct {
	AllowedCallers []string
	Extra          Extra
}

// ComputerTool lets the model use a computer with [ComputerCall]. Schema:
// ComputerTool.
type ComputerTool struct{ Extra Extra }

// ComputerPreviewTool is the older form of [ComputerTool]. Environment is windows,
// mac, linux, ubuntu or browser. The display size is in pixels. Schema:
// ComputerUsePreviewTool.
type ComputerPreviewTool struct {
	Environment   string
	DisplayWidth  int64
	DisplayHeight int64
	Extra         Extra
}

// NamespaceTool is a named group of function and custom tools. Schema:
// NamespaceToolParam.
type NamespaceTool struct {
	Name        string
	Description string
	// Tools is written as [] if nil. A nested namespace is read as an
	// [*UnknownTool].
	Tools []Tool
	Extra Extra
}

// ToolSearchTool lets the model search for tools with deferred definitions, with
// [ToolSearchCall]. Parameters is a JSON Schema for the arguments of a search that
// the client performs. Schema: ToolSearchToolParam.
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
	record.Keep(c, &t.Extra)
	c.Type(ToolLocalShell)
}

func (t *ShellTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolShell)
	record.Opt(c, "environment", &t.Environment, (*Environment).fields)
	c.OptStrings("allowed_callers", &t.AllowedCallers)
}

func (t *ApplyPatchTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolApplyPatch)
	c.OptStrings("allowed_callers", &t.AllowedCallers)
}

func (t *ComputerTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolComputer)
}

func (t *ComputerPreviewTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolComputerPreview)
	c.Number("display_height", &t.DisplayHeight)
	c.Number("display_width", &t.DisplayWidth)
	c.Text("environment", &t.Environment)
}

func (t *NamespaceTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolNamespace)
	c.Text("name", &t.Name)
	c.Text("description", &t.Description)
	c.OrEmpty("tools", "[]", t.Tools == nil)
	groupedToolValues.List(c, "tools", &t.Tools)
}

func (t *ToolSearchTool) fields(c *codec) {
	record.Keep(c, &t.Extra)
	c.Type(ToolToolSearch)
	c.OptString("description", &t.Description)
	c.OptString("execution", &t.Execution)
	record.Raw(c, "parameters", &t.Parameters)
}

// FormatText is the [CustomTool.Format] that allows any text. Schema:
// CustomTextFormatParam.
const FormatText JSON = `{"type":"text"}`

// The syntaxes of a grammar. Schema: GrammarSyntax1.
const (
	SyntaxLark  = "lark"
	SyntaxRegex = "regex"
)

// FormatGrammar returns the [CustomTool.Format] for text that follows a grammar.
// syntax is [SyntaxLark] or [SyntaxRegex]. Schema: CustomGrammarFormatParam.
func FormatGrammar(syntax, definition string) JSON {
	return `{"type":"grammar","syntax":` + Quote(syntax) + `,"definition":` + Quote(definition) + `}`
}

// CustomFormat is the decoded form of [CustomTool.Format]. Schemas:
// CustomTextFormatParam, CustomGrammarFormatParam.
type CustomFormat struct {
	// Type is "text" or "grammar".
	Type       string
	Syntax     string
	Definition string
	Extra      Extra
}

// ParseCustomFormat reads a [CustomTool.Format]. An unknown type is not an error.
func ParseCustomFormat(j JSON) (*CustomFormat, error) { return parseBody[CustomFormat]([]byte(j)) }

// JSON returns the format as a value for [CustomTool.Format].
func (v *CustomFormat) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

func (v *CustomFormat) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("syntax", &v.Syntax)
	c.OptString("definition", &v.Definition)
}
