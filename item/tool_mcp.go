// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// MCPTool lets the model call the tools of an MCP server, which the endpoint
// reaches by ServerURL, ConnectorID or TunnelID. Schema: MCPTool.
type MCPTool struct {
	ServerLabel       string
	ServerURL         string
	ServerDescription string
	ConnectorID       string
	TunnelID          string
	// Authorization is a secret: the token that the endpoint shows the server.
	Authorization string
	Headers       map[string]string
	// AllowedTools is a list of names or a filter, see [MCPToolFilter].
	AllowedTools   JSON
	AllowedCallers []string
	// RequireApproval is [ApprovalAlways], [ApprovalNever], or an [MCPApproval].
	RequireApproval JSON
	DeferLoading    *bool
	Extra           Extra
}

// The policies of [MCPTool.RequireApproval] that are a word.
const (
	ApprovalAlways JSON = `"always"`
	ApprovalNever  JSON = `"never"`
)

// MCPToolFilter picks tools of an MCP server: by name, and by whether the
// server says that they only read. Schema: MCPToolFilter.
type MCPToolFilter struct {
	ToolNames []string
	ReadOnly  *bool
	Extra     Extra
}

// MCPApproval says which tools of an MCP server always or never need an
// approval. Schema: MCPTool.require_approval.
type MCPApproval struct {
	Always *MCPToolFilter
	Never  *MCPToolFilter
	Extra  Extra
}

// JSON returns the filter as [MCPTool.AllowedTools] takes it.
func (v *MCPToolFilter) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

// JSON returns the policy as [MCPTool.RequireApproval] takes it.
func (v *MCPApproval) JSON() (JSON, error) {
	b, err := appendRecord(nil, v)
	return JSON(b), err
}

// ToolType returns [ToolMCP].
func (*MCPTool) ToolType() string { return ToolMCP }

func (t *MCPTool) fields(c *codec) {
	c.typ(ToolMCP)
	c.text("server_label", &t.ServerLabel, &t.Extra)
	c.optString("server_url", &t.ServerURL)
	c.optString("server_description", &t.ServerDescription)
	c.optString("connector_id", &t.ConnectorID)
	c.optString("tunnel_id", &t.TunnelID)
	c.optString("authorization", &t.Authorization)
	c.stringMap("headers", &t.Headers)
	c.raw("allowed_tools", &t.AllowedTools)
	c.optStrings("allowed_callers", &t.AllowedCallers)
	c.raw("require_approval", &t.RequireApproval)
	c.optBool("defer_loading", &t.DeferLoading)
	c.end(&t.Extra)
}

func (v *MCPToolFilter) fields(c *codec) {
	c.optStrings("tool_names", &v.ToolNames)
	c.optBool("read_only", &v.ReadOnly)
	c.rest(&v.Extra)
}

func (v *MCPApproval) fields(c *codec) {
	optRecord(c, "always", &v.Always)
	optRecord(c, "never", &v.Never)
	c.rest(&v.Extra)
}
