// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// TokenCountRequest is the body of POST /responses/input_tokens, which counts
// what a [Request] would send. A text as its input stands in Extra. Schema:
// TokenCountsBody.
type TokenCountRequest struct {
	Model              string
	Input              *List
	Instructions       string
	Tools              []Tool
	ToolChoice         JSON
	ParallelToolCalls  *bool
	Text               JSON
	Reasoning          *ReasoningConfig
	Truncation         string
	PreviousResponseID string
	Conversation       JSON
	// Personality is such as friendly or pragmatic.
	Personality string
	Extra       Extra
}

// TokenCount is the answer. Schema: TokenCountsResource.
type TokenCount struct {
	InputTokens int64
	Extra       Extra
}

// CountOf returns the request that counts the input of r. It shares r's values.
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
	if text, ok := r.Extra.Get("input"); ok && r.Input == nil {
		t.Extra.Set("input", text)
	}
	return t
}

func (r *TokenCountRequest) fields(c *codec) {
	c.optString("model", &r.Model)
	c.optString("instructions", &r.Instructions)
	c.list("input", &r.Input)
	c.tools("tools", &r.Tools, parseTool)
	c.raw("tool_choice", &r.ToolChoice)
	c.optBool("parallel_tool_calls", &r.ParallelToolCalls)
	optRecord(c, "reasoning", &r.Reasoning)
	c.raw("text", &r.Text)
	c.optString("previous_response_id", &r.PreviousResponseID)
	c.raw("conversation", &r.Conversation)
	c.optString("truncation", &r.Truncation)
	c.optString("personality", &r.Personality)
	c.rest(&r.Extra)
}

func (r *TokenCount) fields(c *codec) {
	c.member("object", "response.input_tokens", &r.Extra)
	c.number("input_tokens", &r.InputTokens, &r.Extra)
	c.end(&r.Extra)
}

// ParseTokenCountRequest reads the body from a copy of data.
func ParseTokenCountRequest(data []byte) (*TokenCountRequest, error) {
	return parseBody[TokenCountRequest](data)
}

// ParseTokenCount reads the answer from a copy of data.
func ParseTokenCount(data []byte) (*TokenCount, error) { return parseBody[TokenCount](data) }

// AppendJSON appends the body.
func (r *TokenCountRequest) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, r) }

// AppendJSON appends the answer.
func (r *TokenCount) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, r) }
