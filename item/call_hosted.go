// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"github.com/antiphon-go/antiphon/internal/record"
)

// FileSearchCall is a search in the caller's files, performed by the endpoint.
// Results is sent if api.IncludeFileSearchResults asks for it; a null is kept in
// Extra. Schema: FileSearchToolCall.
type FileSearchCall struct {
	ID      string
	Status  string
	Queries []string
	Results []FileSearchResult
	Extra   Extra
}

// FileSearchResult is one passage that was found. Attributes is an object whose
// values are strings, numbers and booleans. Schema: FileSearchToolCall.results.
type FileSearchResult struct {
	FileID     string
	Filename   string
	Text       string
	Score      *float64
	Attributes JSON
	Extra      Extra
}

// WebSearchCall is one step of a web search, performed by the endpoint. Schema:
// WebSearchToolCall.
type WebSearchCall struct {
	ID     string
	Status string
	Action *WebSearchAction
	Extra  Extra
}

// The types of a [WebSearchAction].
const (
	WebSearchQuery    = "search"
	WebSearchOpenPage = "open_page"
	WebSearchFind     = "find_in_page"
)

// WebSearchAction is one step of a search: a search with Query or Queries, opening
// the page at URL, or finding Pattern in the page at URL. Schemas:
// WebSearchActionSearch, WebSearchActionOpenPage, WebSearchActionFind.
type WebSearchAction struct {
	// Type is [WebSearchQuery], [WebSearchOpenPage] or [WebSearchFind].
	Type    string
	Query   string
	Queries []string
	// Sources is sent if api.IncludeWebSearchSources asks for it.
	Sources []WebSearchSource
	URL     string
	Pattern string
	Extra   Extra
}

// WebSearchSource is a page that a search used. Schema:
// WebSearchActionSearch.sources.
type WebSearchSource struct {
	// Type is "url".
	Type  string
	URL   string
	Extra Extra
}

// ToolSearchCall is a search by the model for tools with deferred definitions. If
// Execution is [ExecutionClient], the client must answer the call. Schemas:
// ToolSearchCall, ToolSearchCallItemParam.
type ToolSearchCall struct {
	ID string
	// CallID is "" if the endpoint performs the search.
	CallID    string
	Execution string
	// Arguments is any JSON value that follows the Parameters of [ToolSearchTool].
	Arguments JSON
	Status    string
	CreatedBy string
	Extra     Extra
}

// ToolSearchOutput is the answer to a [ToolSearchCall], with the tools that the
// model may use from then on. Schemas: ToolSearchOutput, ToolSearchOutputItemParam.
type ToolSearchOutput struct {
	ID        string
	CallID    string
	Execution string
	// Tools is written as [] if nil.
	Tools     []Tool
	Status    string
	CreatedBy string
	Extra     Extra
}

// Values for the Execution of a tool search: who performs it. Schema:
// ToolSearchExecutionType.
const (
	ExecutionClient = "client"
	ExecutionServer = "server"
)

// AdditionalTools gives the model more tools from this point on. In input, Role must
// be [RoleDeveloper]. Schemas: AdditionalTools, AdditionalToolsItemParam.
type AdditionalTools struct {
	ID   string
	Role Role
	// Tools is written as [] if nil.
	Tools []Tool
	Extra Extra
}

// ItemType returns [TypeFileSearchCall].
func (*FileSearchCall) ItemType() Type { return TypeFileSearchCall }

// ItemType returns [TypeWebSearchCall].
func (*WebSearchCall) ItemType() Type { return TypeWebSearchCall }

// ItemType returns [TypeToolSearchCall].
func (*ToolSearchCall) ItemType() Type { return TypeToolSearchCall }

// ItemType returns [TypeToolSearchOutput].
func (*ToolSearchOutput) ItemType() Type { return TypeToolSearchOutput }

// ItemType returns [TypeAdditionalTools].
func (*AdditionalTools) ItemType() Type { return TypeAdditionalTools }

func (v *FileSearchCall) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeFileSearchCall))
	c.OptString("status", &v.Status)
	c.OrEmpty("queries", "[]", v.Queries == nil)
	c.OptStrings("queries", &v.Queries)
	record.List(c, "results", &v.Results, (*FileSearchResult).fields)
}

func (v *FileSearchResult) fields(c *codec) {
	record.Keep(c, &v.Extra)
	record.Raw(c, "attributes", &v.Attributes)
	c.OptString("file_id", &v.FileID)
	c.OptString("filename", &v.Filename)
	c.OptFloat("score", &v.Score)
	c.OptString("text", &v.Text)
}

func (v *WebSearchCall) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeWebSearchCall))
	c.OptString("status", &v.Status)
	record.Opt(c, "action", &v.Action, (*WebSearchAction).fields)
}

func (v *WebSearchAction) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("query", &v.Query)
	c.OptStrings("queries", &v.Queries)
	record.List(c, "sources", &v.Sources, (*WebSearchSource).fields)
	c.OptString("url", &v.URL)
	c.OptString("pattern", &v.Pattern)
}

func (v *WebSearchSource) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("url", &v.URL)
}

func (v *ToolSearchCall) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeToolSearchCall))
	c.OptString("status", &v.Status)
	record.Raw(c, "arguments", &v.Arguments)
	c.StrictText("call_id", &v.CallID)
	c.OptString("execution", &v.Execution)
	c.OptString("created_by", &v.CreatedBy)
}

func (v *ToolSearchOutput) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeToolSearchOutput))
	c.OptString("status", &v.Status)
	c.StrictText("call_id", &v.CallID)
	c.OptString("execution", &v.Execution)
	c.OrEmpty("tools", "[]", v.Tools == nil)
	toolValues.List(c, "tools", &v.Tools)
	c.OptString("created_by", &v.CreatedBy)
}

func (v *AdditionalTools) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeAdditionalTools))
	c.OptString("role", (*string)(&v.Role))
	c.OrEmpty("tools", "[]", v.Tools == nil)
	toolValues.List(c, "tools", &v.Tools)
}

// MCPListTools is the list of tools that the endpoint received from an MCP server.
// Schema: MCPListTools.
type MCPListTools struct {
	ID          string
	ServerLabel string
	// Tools is written as [] if nil.
	Tools []MCPListedTool
	// Error says why the list could not be fetched.
	Error string
	Extra Extra
}

// MCPListedTool is one tool of an MCP server. InputSchema is a JSON Schema.
// Annotations is an object with hints from the server. Schema: MCPListToolsTool.
type MCPListedTool struct {
	Name        string
	Description string
	InputSchema JSON
	Annotations JSON
	Extra       Extra
}

// MCPCall is a call of an MCP server's tool, made by the endpoint, with its output
// or error. Schema: MCPToolCall.
type MCPCall struct {
	ID          string
	ServerLabel string
	Name        string
	// Arguments is the string exactly as the model wrote it.
	Arguments string
	Output    string
	Error     *MCPCallError
	Status    string
	// ApprovalRequestID is the ID of the [MCPApprovalRequest] that preceded the
	// call.
	ApprovalRequestID string
	Extra             Extra
}

// The types of an [MCPCallError].
const (
	MCPProtocolError  = "mcp_protocol_error"
	MCPExecutionError = "mcp_tool_execution_error"
	MCPHTTPError      = "http_error"
)

// MCPCallError says why a call failed. An error of the protocol or of HTTP has Code
// and Message. An error of the tool has Content, which may be any JSON value.
// Schemas: MCPProtocolError, MCPToolExecutionError, HTTPError.
type MCPCallError struct {
	Type    string
	Code    *int64
	Message string
	Content JSON
	Extra   Extra
}

// MCPApprovalRequest asks the client whether the endpoint may make a call. The
// answer refers to it by ID. Schema: MCPApprovalRequest.
type MCPApprovalRequest struct {
	ID          string
	ServerLabel string
	Name        string
	Arguments   string
	Extra       Extra
}

// MCPApprovalResponse is the answer to an [MCPApprovalRequest]. Schemas:
// MCPApprovalResponse, MCPApprovalResponseResource.
type MCPApprovalResponse struct {
	ID                string
	ApprovalRequestID string
	Approve           bool
	Reason            string
	Extra             Extra
}

// ItemType returns [TypeMCPListTools].
func (*MCPListTools) ItemType() Type { return TypeMCPListTools }

// ItemType returns [TypeMCPCall].
func (*MCPCall) ItemType() Type { return TypeMCPCall }

// ItemType returns [TypeMCPApprovalRequest].
func (*MCPApprovalRequest) ItemType() Type { return TypeMCPApprovalRequest }

// ItemType returns [TypeMCPApprovalResponse].
func (*MCPApprovalResponse) ItemType() Type { return TypeMCPApprovalResponse }

func (v *MCPListTools) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeMCPListTools))
	c.Text("server_label", &v.ServerLabel)
	c.OrEmpty("tools", "[]", v.Tools == nil)
	record.List(c, "tools", &v.Tools, (*MCPListedTool).fields)
	c.OptString("error", &v.Error)
}

func (v *MCPListedTool) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("name", &v.Name)
	c.OptString("description", &v.Description)
	record.Raw(c, "input_schema", &v.InputSchema)
	record.Raw(c, "annotations", &v.Annotations)
}

func (v *MCPCall) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeMCPCall))
	c.OptString("status", &v.Status)
	c.OptString("approval_request_id", &v.ApprovalRequestID)
	c.Text("arguments", &v.Arguments)
	record.Opt(c, "error", &v.Error, (*MCPCallError).fields)
	c.Text("name", &v.Name)
	c.OptString("output", &v.Output)
	c.Text("server_label", &v.ServerLabel)
}

func (v *MCPCallError) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptInt("code", &v.Code)
	c.OptString("message", &v.Message)
	record.Raw(c, "content", &v.Content)
}

func (v *MCPApprovalRequest) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeMCPApprovalRequest))
	c.NeedText("arguments", &v.Arguments)
	c.NeedText("name", &v.Name)
	c.NeedText("server_label", &v.ServerLabel)
}

func (v *MCPApprovalResponse) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeMCPApprovalResponse))
	c.NeedText("approval_request_id", &v.ApprovalRequestID)
	c.Flag("approve", &v.Approve)
	c.OptString("reason", &v.Reason)
}

// CodeInterpreterCall is code written by the model and run by the endpoint. Schema:
// CodeInterpreterToolCall.
type CodeInterpreterCall struct {
	ID          string
	Status      string
	ContainerID string
	// Code is written as null if empty.
	Code string
	// Outputs is sent if api.IncludeCodeInterpreterOutputs asks for it. It is
	// written as null if nil.
	Outputs []CodeOutput
	Extra   Extra
}

// CodeOutput is an output of code: logs, with the type "logs", or an image, with the
// type "image" and its URL. Schemas: CodeInterpreterOutputLogs,
// CodeInterpreterOutputImage.
type CodeOutput struct {
	Type  string
	Logs  string
	URL   string
	Extra Extra
}

// ImageGenerationCall is an image generated by the endpoint. Schema:
// ImageGenToolCall.
type ImageGenerationCall struct {
	ID     string
	Status string
	// Result is the image in base64. It is written as null if empty.
	Result string
	Extra  Extra
}

// Program is code with which the model calls tools. The endpoint runs it. Calls made
// by the program refer to it in their [Caller]. Schemas: Program, ProgramItemParam.
type Program struct {
	ID     string
	CallID string
	Code   string
	// Fingerprint lets the endpoint find the program again.
	Fingerprint string
	Extra       Extra
}

// ProgramOutput is the result of a [Program]. Schemas: ProgramOutput,
// ProgramOutputItemParam.
type ProgramOutput struct {
	ID     string
	CallID string
	Result string
	Status string
	Extra  Extra
}

// ItemType returns [TypeCodeInterpreterCall].
func (*CodeInterpreterCall) ItemType() Type { return TypeCodeInterpreterCall }

// ItemType returns [TypeImageGenerationCall].
func (*ImageGenerationCall) ItemType() Type { return TypeImageGenerationCall }

// ItemType returns [TypeProgram].
func (*Program) ItemType() Type { return TypeProgram }

// ItemType returns [TypeProgramOutput].
func (*ProgramOutput) ItemType() Type { return TypeProgramOutput }

func (v *CodeInterpreterCall) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeCodeInterpreterCall))
	c.OptString("status", &v.Status)
	c.NullText("code", &v.Code)
	c.OptString("container_id", &v.ContainerID)
	c.OrEmpty("outputs", "null", v.Outputs == nil)
	record.List(c, "outputs", &v.Outputs, (*CodeOutput).fields)
}

func (v *CodeOutput) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("logs", &v.Logs)
	c.OptString("url", &v.URL)
}

func (v *ImageGenerationCall) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeImageGenerationCall))
	c.OptString("status", &v.Status)
	c.NullText("result", &v.Result)
}

func (v *Program) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeProgram))
	c.Text("call_id", &v.CallID)
	c.Text("code", &v.Code)
	c.Text("fingerprint", &v.Fingerprint)
}

func (v *ProgramOutput) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("id", &v.ID)
	c.Type(string(TypeProgramOutput))
	c.OptString("status", &v.Status)
	c.Text("call_id", &v.CallID)
	c.Text("result", &v.Result)
}
