// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// MCPListTools is the list of tools that the endpoint got from an MCP server.
// Schema: MCPListTools.
type MCPListTools struct {
	ID          string
	ServerLabel string
	// Tools is written as [] when nil.
	Tools []MCPListedTool
	// Error says why there is no list.
	Error string
	Extra Extra
}

// MCPListedTool is one tool of an MCP server. InputSchema is a JSON Schema,
// Annotations an object with hints of the server's. Schema: MCPListToolsTool.
type MCPListedTool struct {
	Name        string
	Description string
	InputSchema JSON
	Annotations JSON
	Extra       Extra
}

// MCPCall is a call of an MCP server's tool that the endpoint made, with its
// output or its error. Schema: MCPToolCall.
type MCPCall struct {
	ID          string
	ServerLabel string
	Name        string
	// Arguments is the raw string the model wrote.
	Arguments string
	Output    string
	Error     *MCPCallError
	Status    string
	// ApprovalRequestID names the [MCPApprovalRequest] that the call waited for.
	ApprovalRequestID string
	Extra             Extra
}

// The types of an [MCPCallError].
const (
	MCPProtocolError  = "mcp_protocol_error"
	MCPExecutionError = "mcp_tool_execution_error"
	MCPHTTPError      = "http_error"
)

// MCPCallError is why a call failed: of the protocol or of HTTP, with Code and
// Message, or of the tool, with Content, which may be any JSON value. Schemas:
// MCPProtocolError, MCPToolExecutionError, HTTPError.
type MCPCallError struct {
	Type    string
	Code    *int64
	Message string
	Content JSON
	Extra   Extra
}

// MCPApprovalRequest asks the client whether the endpoint may make a call. It is
// paired with its answer by ID. Schema: MCPApprovalRequest.
type MCPApprovalRequest struct {
	ID          string
	ServerLabel string
	Name        string
	Arguments   string
	Extra       Extra
}

// MCPApprovalResponse answers an [MCPApprovalRequest]. Schemas:
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
	c.optString("id", &v.ID)
	c.typ(string(TypeMCPListTools))
	c.text("server_label", &v.ServerLabel, &v.Extra)
	c.orEmpty("tools", "[]", v.Tools == nil, &v.Extra)
	recordList(c, "tools", &v.Tools)
	c.optString("error", &v.Error)
	c.end(&v.Extra)
}

func (v *MCPListedTool) fields(c *codec) {
	c.text("name", &v.Name, &v.Extra)
	c.optString("description", &v.Description)
	c.raw("input_schema", &v.InputSchema)
	c.raw("annotations", &v.Annotations)
	c.end(&v.Extra)
}

func (v *MCPCall) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeMCPCall))
	c.optString("status", &v.Status)
	c.optString("approval_request_id", &v.ApprovalRequestID)
	c.text("arguments", &v.Arguments, &v.Extra)
	optRecord(c, "error", &v.Error)
	c.text("name", &v.Name, &v.Extra)
	c.optString("output", &v.Output)
	c.text("server_label", &v.ServerLabel, &v.Extra)
	c.end(&v.Extra)
}

func (v *MCPCallError) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optInt("code", &v.Code)
	c.optString("message", &v.Message)
	c.raw("content", &v.Content)
	c.rest(&v.Extra)
}

func (v *MCPApprovalRequest) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeMCPApprovalRequest))
	c.needText("arguments", &v.Arguments, &v.Extra)
	c.needText("name", &v.Name, &v.Extra)
	c.needText("server_label", &v.ServerLabel, &v.Extra)
	c.end(&v.Extra)
}

func (v *MCPApprovalResponse) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeMCPApprovalResponse))
	c.needText("approval_request_id", &v.ApprovalRequestID, &v.Extra)
	c.flag("approve", &v.Approve, &v.Extra)
	c.optString("reason", &v.Reason)
	c.end(&v.Extra)
}
