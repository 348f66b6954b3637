// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "strings"

// The statuses of a [Response]. Schema: Response.status.
const (
	StatusCompleted  = "completed"
	StatusFailed     = "failed"
	StatusInProgress = "in_progress"
	StatusCancelled  = "cancelled"
	StatusQueued     = "queued"
	StatusIncomplete = "incomplete"
)

// Further statuses of items, while the endpoint works at them. Schemas:
// WebSearchToolCall.status, CodeInterpreterToolCall.status,
// ImageGenToolCall.status, MCPToolCallStatus.
const (
	StatusSearching    = "searching"
	StatusInterpreting = "interpreting"
	StatusGenerating   = "generating"
	StatusCalling      = "calling"
)

// Response is the answer to a [Request]. What it repeats of the request stands
// in the fields after Usage, as JSON where a reader seldom looks. Schema:
// Response.
type Response struct {
	ID         string
	CreatedAt  *float64
	Status     string
	Model      string
	Error      *APIError
	Incomplete *IncompleteDetails
	// Output holds the items in order, ready to be sent back.
	Output []Item
	Usage  *Usage

	CompletedAt  *float64
	Background   *bool
	Conversation *ConversationRef
	// Instructions is a text or a list of items, see [ParseList].
	Instructions         JSON
	MaxOutputTokens      *int64
	MaxToolCalls         *int64
	Metadata             JSON
	Moderation           *Moderation
	ParallelToolCalls    *bool
	PreviousResponseID   string
	Prompt               *Prompt
	PromptCacheKey       string
	PromptCacheOptions   *PromptCacheOptions
	PromptCacheRetention string
	Reasoning            *ReasoningConfig
	SafetyIdentifier     string
	ServiceTier          string
	Temperature          *float64
	// TextConfig is the member text, see [ParseTextConfig].
	TextConfig JSON
	// ToolChoice is read by [ParseToolChoice].
	ToolChoice JSON
	// Tools is read by [Response.ToolList].
	Tools       JSON
	TopLogprobs *int64
	TopP        *float64
	Truncation  string
	User        string
	// OutputText is what client libraries add to a response that they store; see
	// [Response.Text] for the text itself.
	OutputText string
	Extra      Extra
	// Spelled holds numbers as they came that encoding would spell in another
	// way, such as 1.0 for 1. One of them is written while its field has the same
	// number.
	Spelled Extra
}

// IncompleteDetails says why a response stopped early, such as
// max_output_tokens or content_filter. Schema: Response.incomplete_details.
type IncompleteDetails struct {
	Reason string
	Extra  Extra
}

func (d *IncompleteDetails) fields(c *codec) {
	c.optString("reason", &d.Reason)
	c.rest(&d.Extra)
}

// fields are in the order in which endpoints write them.
func (r *Response) fields(c *codec) {
	c.spells(&r.Spelled)
	c.needText("id", &r.ID, &r.Extra)
	c.member("object", "response", &r.Extra) // a compaction has another
	c.optFloat("created_at", &r.CreatedAt)
	c.optString("status", &r.Status)
	c.optBool("background", &r.Background)
	c.optFloat("completed_at", &r.CompletedAt)
	optRecord(c, "conversation", &r.Conversation)
	optRecord(c, "error", &r.Error)
	optRecord(c, "incomplete_details", &r.Incomplete)
	c.raw("instructions", &r.Instructions)
	c.optInt("max_output_tokens", &r.MaxOutputTokens)
	c.optInt("max_tool_calls", &r.MaxToolCalls)
	c.optString("model", &r.Model)
	optRecord(c, "moderation", &r.Moderation)
	c.items("output", &r.Output)
	c.optString("output_text", &r.OutputText)
	r.echo(c)
	optRecord(c, "usage", &r.Usage)
	c.optString("user", &r.User)
	c.raw("metadata", &r.Metadata)
	c.end(&r.Extra)
}

// echo is most of what a response repeats of its request.
func (r *Response) echo(c *codec) {
	c.optBool("parallel_tool_calls", &r.ParallelToolCalls)
	c.optString("previous_response_id", &r.PreviousResponseID)
	optRecord(c, "prompt", &r.Prompt)
	c.optString("prompt_cache_key", &r.PromptCacheKey)
	optRecord(c, "prompt_cache_options", &r.PromptCacheOptions)
	c.optString("prompt_cache_retention", &r.PromptCacheRetention)
	optRecord(c, "reasoning", &r.Reasoning)
	c.optString("safety_identifier", &r.SafetyIdentifier)
	c.optString("service_tier", &r.ServiceTier)
	c.optFloat("temperature", &r.Temperature)
	c.raw("text", &r.TextConfig)
	c.raw("tool_choice", &r.ToolChoice)
	c.raw("tools", &r.Tools)
	c.optInt("top_logprobs", &r.TopLogprobs)
	c.optFloat("top_p", &r.TopP)
	c.optString("truncation", &r.Truncation)
}

// ParseResponse reads a response from a copy of data. Its items share that
// copy. The error is a [*SyntaxError] or a [*ShapeError].
func ParseResponse(data []byte) (*Response, error) { return ParseResponseString(string(data)) }

// ParseResponseString is [ParseResponse] without the copy: what it returns
// shares the memory of s.
func ParseResponseString(s string) (*Response, error) {
	r := new(Response)
	if err := parseRecord(s, r); err != nil {
		return nil, err
	}
	return r, nil
}

func responseOf(s string) (*Response, error) {
	r := new(Response)
	if err := decodeRecord(s, r); err != nil {
		return nil, err
	}
	return r, nil
}

// AppendJSON appends the response as JSON.
func (r *Response) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, r) }

// MarshalJSON returns the response as JSON.
func (r *Response) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// Text returns the text of the response's messages, joined by newlines.
func (r *Response) Text() string {
	if r == nil {
		return ""
	}
	var texts []string
	for _, it := range r.Output {
		if m, err := As[Message](it); err == nil {
			texts = append(texts, m.Content.Display())
		}
	}
	return strings.Join(texts, "\n")
}

// Usage counts the tokens of one response, as the endpoint reports them.
// Schema: ResponseUsage.
type Usage struct {
	InputTokens  int64
	InputDetails *InputTokensDetails
	// OutputTokens includes the reasoning tokens.
	OutputTokens  int64
	OutputDetails *OutputTokensDetails
	TotalTokens   int64
	Extra         Extra
	// Spelled holds numbers as they came that encoding would spell in another
	// way, such as 1.0 for 1. One of them is written while its field has the same
	// number.
	Spelled Extra
}

// InputTokensDetails splits the input tokens. Schema:
// ResponseUsage.input_tokens_details.
type InputTokensDetails struct {
	CachedTokens     int64
	CacheWriteTokens *int64 // nil where the endpoint does not say
	Extra            Extra
}

// OutputTokensDetails splits the output tokens. Schema:
// ResponseUsage.output_tokens_details.
type OutputTokensDetails struct {
	ReasoningTokens int64
	Extra           Extra
}

func (u *Usage) fields(c *codec) {
	c.spells(&u.Spelled)
	c.number("input_tokens", &u.InputTokens, &u.Extra)
	optRecord(c, "input_tokens_details", &u.InputDetails)
	c.number("output_tokens", &u.OutputTokens, &u.Extra)
	optRecord(c, "output_tokens_details", &u.OutputDetails)
	c.number("total_tokens", &u.TotalTokens, &u.Extra)
	c.end(&u.Extra)
}

func (d *InputTokensDetails) fields(c *codec) {
	c.number("cached_tokens", &d.CachedTokens, &d.Extra)
	c.optInt("cache_write_tokens", &d.CacheWriteTokens)
	c.end(&d.Extra)
}

func (d *OutputTokensDetails) fields(c *codec) {
	c.number("reasoning_tokens", &d.ReasoningTokens, &d.Extra)
	c.end(&d.Extra)
}

// ParseUsage reads a usage, such as [Usage.MarshalJSON] writes it.
func ParseUsage(j JSON) (*Usage, error) {
	u := new(Usage)
	if err := parseRecord(string(j), u); err != nil {
		return nil, err
	}
	return u, nil
}

// MarshalJSON returns the usage as JSON.
func (u *Usage) MarshalJSON() ([]byte, error) { return appendRecord(nil, u) }

// Cached returns the input tokens read from the prompt cache.
func (u *Usage) Cached() int64 {
	if u == nil || u.InputDetails == nil {
		return 0
	}
	return u.InputDetails.CachedTokens
}

// CacheWrite returns the input tokens written to the prompt cache.
func (u *Usage) CacheWrite() int64 {
	if u == nil || u.InputDetails == nil || u.InputDetails.CacheWriteTokens == nil {
		return 0
	}
	return *u.InputDetails.CacheWriteTokens
}

// Reasoning returns the output tokens spent on reasoning.
func (u *Usage) Reasoning() int64 {
	if u == nil || u.OutputDetails == nil {
		return 0
	}
	return u.OutputDetails.ReasoningTokens
}
