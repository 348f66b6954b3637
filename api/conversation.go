// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// Conversation is a list of items stored by the endpoint. Schema:
// ConversationResource.
type Conversation struct {
	ID        string
	CreatedAt int64 // Unix time in seconds
	// Metadata is written as {} if absent.
	Metadata item.JSON
	Extra    item.Extra
}

// CreateConversation is the body of POST /conversations. Schema:
// CreateConversationBody.
type CreateConversation struct {
	Items    *item.List
	Metadata item.JSON
	Extra    item.Extra
}

// UpdateConversation is the body of POST /conversations/{id}. Schema:
// UpdateConversationBody.
type UpdateConversation struct {
	// Metadata is written as null if absent.
	Metadata item.JSON
	Extra    item.Extra
}

// AddItems is the body of POST /conversations/{id}/items.
type AddItems struct {
	// Items is written as [] if nil.
	Items *item.List
	Extra item.Extra
}

// ItemPage is one page of a list of items: the input of a response, or the items of
// a conversation. Schemas: ResponseItemList, ConversationItemList.
type ItemPage struct {
	// Data is written as [] if nil.
	Data    []item.Item
	FirstID string
	LastID  string
	HasMore bool
	Extra   item.Extra
}

// Deleted confirms that something was deleted. Schema: DeletedConversationResource.
// The answer for a deleted response has the same members but no schema.
type Deleted struct {
	ID string
	// Object defaults to "conversation.deleted".
	Object  string
	Deleted bool
	Extra   item.Extra
}

func (v *Conversation) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
	c.Member("object", "conversation")
	c.Number("created_at", &v.CreatedAt)
	c.OrEmpty("metadata", "{}", v.Metadata == "")
	record.Raw(c, "metadata", &v.Metadata)
}

func (v *CreateConversation) fields(c *codec) {
	record.Keep(c, &v.Extra)
	listMember(c, "items", &v.Items)
	record.Raw(c, "metadata", &v.Metadata)
}

func (v *UpdateConversation) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OrEmpty("metadata", "null", v.Metadata == "")
	record.Raw(c, "metadata", &v.Metadata)
}

func (v *AddItems) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OrEmpty("items", "[]", v.Items == nil)
	listMember(c, "items", &v.Items)
}

func (v *ItemPage) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Member("object", "list")
	c.OrEmpty("data", "[]", v.Data == nil)
	itemValues.List(c, "data", &v.Data)
	c.Text("first_id", &v.FirstID)
	c.Text("last_id", &v.LastID)
	c.Flag("has_more", &v.HasMore)
}

func (v *Deleted) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
	if c.OptString("object", &v.Object); v.Object == "" {
		c.OrEmpty("object", `"conversation.deleted"`, true)
	}
	c.Flag("deleted", &v.Deleted)
}

// ParseConversation reads a conversation from a copy of data.
func ParseConversation(data []byte) (*Conversation, error) { return parseBody[Conversation](data) }

// ParseCreateConversation reads the body from a copy of data.
func ParseCreateConversation(data []byte) (*CreateConversation, error) {
	return parseBody[CreateConversation](data)
}

// ParseUpdateConversation reads the body from a copy of data.
func ParseUpdateConversation(data []byte) (*UpdateConversation, error) {
	return parseBody[UpdateConversation](data)
}

// ParseAddItems reads the body from a copy of data.
func ParseAddItems(data []byte) (*AddItems, error) { return parseBody[AddItems](data) }

// ParseItemPage reads a page from a copy of data. The items share the memory of that
// copy.
func ParseItemPage(data []byte) (*ItemPage, error) { return parseBody[ItemPage](data) }

// ParseDeleted reads a confirmation from a copy of data.
func ParseDeleted(data []byte) (*Deleted, error) { return parseBody[Deleted](data) }

// AppendJSON appends the conversation to dst as JSON. On error it returns dst unchanged.
func (v *Conversation) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, v) }

// AppendJSON appends the body to dst as JSON. On error it returns dst unchanged.
func (v *CreateConversation) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, v) }

// AppendJSON appends the body to dst as JSON. On error it returns dst unchanged.
func (v *UpdateConversation) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, v) }

// AppendJSON appends the body to dst as JSON. On error it returns dst unchanged.
func (v *AddItems) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, v) }

// AppendJSON appends the page to dst as JSON. On error it returns dst unchanged.
func (v *ItemPage) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, v) }

// AppendJSON appends the confirmation to dst as JSON. On error it returns dst unchanged.
func (v *Deleted) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, v) }

// CompactRequest is the body of POST /responses/compact. If the input is a plain
// text, it is in Extra. Schema: CompactResponseMethodPublicBody.
type CompactRequest struct {
	// Model is written as null if empty.
	Model                string
	Input                *item.List
	Instructions         string
	PreviousResponseID   string
	PromptCacheKey       string
	PromptCacheOptions   *PromptCacheOptions
	PromptCacheRetention string
	ServiceTier          string
	Extra                item.Extra
}

// Compacted is the answer to a [CompactRequest]: the items that replace the input.
// Schema: CompactResource.
type Compacted struct {
	ID        string
	CreatedAt int64 // Unix time in seconds
	// Output is written as [] if nil.
	Output []item.Item
	Usage  *Usage
	Extra  item.Extra
}

func (r *CompactRequest) fields(c *codec) {
	record.Keep(c, &r.Extra)
	c.NullText("model", &r.Model)
	listMember(c, "input", &r.Input)
	c.OptString("instructions", &r.Instructions)
	c.OptString("previous_response_id", &r.PreviousResponseID)
	c.OptString("prompt_cache_key", &r.PromptCacheKey)
	record.Opt(c, "prompt_cache_options", &r.PromptCacheOptions, (*PromptCacheOptions).fields)
	c.OptString("prompt_cache_retention", &r.PromptCacheRetention)
	c.OptString("service_tier", &r.ServiceTier)
}

func (r *Compacted) fields(c *codec) {
	record.Keep(c, &r.Extra)
	c.Text("id", &r.ID)
	c.Member("object", "response.compaction")
	c.Number("created_at", &r.CreatedAt)
	c.OrEmpty("output", "[]", r.Output == nil)
	itemValues.List(c, "output", &r.Output)
	record.Opt(c, "usage", &r.Usage, (*Usage).fields)
}

// ParseCompactRequest reads the body from a copy of data.
func ParseCompactRequest(data []byte) (*CompactRequest, error) {
	return parseBody[CompactRequest](data)
}

// ParseCompacted reads the answer from a copy of data. The items share the memory of
// that copy.
func ParseCompacted(data []byte) (*Compacted, error) { return parseBody[Compacted](data) }

// AppendJSON appends the body to dst as JSON. On error it returns dst unchanged.
func (r *CompactRequest) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, r) }

// AppendJSON appends the answer to dst as JSON. On error it returns dst unchanged.
func (r *Compacted) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, r) }

// TokenCountRequest is the body of POST /responses/input_tokens, which counts the
// tokens that a [Request] would send. If the input is a plain text, it is in Extra.
// Schema: TokenCountsBody.
type TokenCountRequest struct {
	Model              string
	Input              *item.List
	Instructions       string
	Tools              []item.Tool
	ToolChoice         item.JSON
	ParallelToolCalls  *bool
	Text               item.JSON
	Reasoning          *ReasoningConfig
	Truncation         string
	PreviousResponseID string
	Conversation       item.JSON
	// Personality is a word such as friendly or pragmatic.
	Personality string
	Extra       item.Extra
}

// TokenCount is the answer to a [TokenCountRequest]. Schema: TokenCountsResource.
type TokenCount struct {
	InputTokens int64
	Extra       item.Extra
}

// CountOf returns the request that counts the input of r. It shares memory with r. A
// nil r gives an empty request.
func CountOf(r *Request) *TokenCountRequest {
	if r == nil {
		return new(TokenCountRequest)
	}
	t := &TokenCountRequest{
		Model: r.Model, Input: r.Input, Instructions: r.Instructions,
		Tools: r.Tools, ToolChoice: r.ToolChoice, ParallelToolCalls: r.ParallelToolCalls,
		Text: r.Text, Reasoning: r.Reasoning, Truncation: r.Truncation,
		PreviousResponseID: r.PreviousResponseID, Conversation: r.Conversation,
	}
	// A plain text as the input is not in r.Input.
	if text, ok := r.Extra.Get("input"); ok && r.Input == nil {
		t.Extra.Set("input", text)
	}
	return t
}

func (r *TokenCountRequest) fields(c *codec) {
	record.Keep(c, &r.Extra)
	c.OptString("model", &r.Model)
	c.OptString("instructions", &r.Instructions)
	listMember(c, "input", &r.Input)
	toolValues.List(c, "tools", &r.Tools)
	record.Raw(c, "tool_choice", &r.ToolChoice)
	c.OptBool("parallel_tool_calls", &r.ParallelToolCalls)
	record.Opt(c, "reasoning", &r.Reasoning, (*ReasoningConfig).fields)
	record.Raw(c, "text", &r.Text)
	c.OptString("previous_response_id", &r.PreviousResponseID)
	record.Raw(c, "conversation", &r.Conversation)
	c.OptString("truncation", &r.Truncation)
	c.OptString("personality", &r.Personality)
}

func (r *TokenCount) fields(c *codec) {
	record.Keep(c, &r.Extra)
	c.Member("object", "response.input_tokens")
	c.Number("input_tokens", &r.InputTokens)
}

// ParseTokenCountRequest reads the body from a copy of data.
func ParseTokenCountRequest(data []byte) (*TokenCountRequest, error) {
	return parseBody[TokenCountRequest](data)
}

// ParseTokenCount reads the answer from a copy of data.
func ParseTokenCount(data []byte) (*TokenCount, error) { return parseBody[TokenCount](data) }

// AppendJSON appends the body to dst as JSON. On error it returns dst unchanged.
func (r *TokenCountRequest) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, r) }

// AppendJSON appends the answer to dst as JSON. On error it returns dst unchanged.
func (r *TokenCount) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, r) }
