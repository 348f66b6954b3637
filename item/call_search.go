// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// FileSearchCall is a search in the caller's files that the endpoint did.
// Results come when [IncludeFileSearchResults] asks for them; a null stands in
// Extra. Schema: FileSearchToolCall.
type FileSearchCall struct {
	ID      string
	Status  string
	Queries []string
	Results []FileSearchResult
	Extra   Extra
}

// FileSearchResult is one passage found. Attributes is an object of texts,
// numbers and truth values. Schema: FileSearchToolCall.results.
type FileSearchResult struct {
	FileID     string
	Filename   string
	Text       string
	Score      *float64
	Attributes JSON
	Extra      Extra
}

// WebSearchCall is one step of a web search that the endpoint did. Schema:
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

// WebSearchAction is what was done: a search with its Query or Queries, a page
// opened at its URL, or a Pattern looked for in the page at URL. Schemas:
// WebSearchActionSearch, WebSearchActionOpenPage, WebSearchActionFind.
type WebSearchAction struct {
	// Type is [WebSearchQuery], [WebSearchOpenPage] or [WebSearchFind].
	Type    string
	Query   string
	Queries []string
	// Sources come when [IncludeWebSearchSources] asks for them.
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

// ToolSearchCall is the model's search for tools whose definitions were held
// back. With the Execution [ExecutionClient] it is a call that the client must
// answer. Schemas: ToolSearchCall, ToolSearchCallItemParam.
type ToolSearchCall struct {
	ID string
	// CallID is "" for a search that the endpoint does.
	CallID    string
	Execution string
	// Arguments is any JSON value, after the parameters of [ToolSearchTool].
	Arguments JSON
	Status    string
	CreatedBy string
	Extra     Extra
}

// ToolSearchOutput answers a [ToolSearchCall] with the tools that the model may
// use from here on. Schemas: ToolSearchOutput, ToolSearchOutputItemParam.
type ToolSearchOutput struct {
	ID        string
	CallID    string
	Execution string
	// Tools is written as [] when nil.
	Tools     []Tool
	Status    string
	CreatedBy string
	Extra     Extra
}

// Who runs a tool search. Schema: ToolSearchExecutionType.
const (
	ExecutionClient = "client"
	ExecutionServer = "server"
)

// AdditionalTools gives the model tools from here on. As input its Role is
// [RoleDeveloper]. Schemas: AdditionalTools, AdditionalToolsItemParam.
type AdditionalTools struct {
	ID   string
	Role Role
	// Tools is written as [] when nil.
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
	c.optString("id", &v.ID)
	c.typ(string(TypeFileSearchCall))
	c.optString("status", &v.Status)
	c.orEmpty("queries", "[]", v.Queries == nil, &v.Extra)
	c.optStrings("queries", &v.Queries)
	recordList(c, "results", &v.Results)
	c.end(&v.Extra)
}

func (v *FileSearchResult) fields(c *codec) {
	c.raw("attributes", &v.Attributes)
	c.optString("file_id", &v.FileID)
	c.optString("filename", &v.Filename)
	c.optFloat("score", &v.Score)
	c.optString("text", &v.Text)
	c.rest(&v.Extra)
}

func (v *WebSearchCall) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeWebSearchCall))
	c.optString("status", &v.Status)
	optRecord(c, "action", &v.Action)
	c.rest(&v.Extra)
}

func (v *WebSearchAction) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("query", &v.Query)
	c.optStrings("queries", &v.Queries)
	recordList(c, "sources", &v.Sources)
	c.optString("url", &v.URL)
	c.optString("pattern", &v.Pattern)
	c.rest(&v.Extra)
}

func (v *WebSearchSource) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("url", &v.URL)
	c.rest(&v.Extra)
}

func (v *ToolSearchCall) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeToolSearchCall))
	c.optString("status", &v.Status)
	c.raw("arguments", &v.Arguments)
	c.strictText("call_id", &v.CallID)
	c.optString("execution", &v.Execution)
	c.optString("created_by", &v.CreatedBy)
	c.rest(&v.Extra)
}

func (v *ToolSearchOutput) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeToolSearchOutput))
	c.optString("status", &v.Status)
	c.strictText("call_id", &v.CallID)
	c.optString("execution", &v.Execution)
	c.orEmpty("tools", "[]", v.Tools == nil, &v.Extra)
	c.tools("tools", &v.Tools, parseTool)
	c.optString("created_by", &v.CreatedBy)
	c.end(&v.Extra)
}

func (v *AdditionalTools) fields(c *codec) {
	c.optString("id", &v.ID)
	c.typ(string(TypeAdditionalTools))
	c.optString("role", (*string)(&v.Role))
	c.orEmpty("tools", "[]", v.Tools == nil, &v.Extra)
	c.tools("tools", &v.Tools, parseTool)
	c.end(&v.Extra)
}
