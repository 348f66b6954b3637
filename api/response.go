// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/record"
	"github.com/antiphon-go/antiphon/item"
)

// Response is the answer to a [Request]. Most fields after Usage repeat values of
// the request. Those that are rarely read are kept as JSON. Schema: Response.
type Response struct {
	ID         string
	CreatedAt  *float64
	Status     string
	Model      string
	Error      *APIError
	Incomplete *IncompleteDetails
	// Output holds the items in order. They can be sent back as input unchanged.
	Output []item.Item
	Usage  *Usage

	CompletedAt  *float64
	Background   *bool
	Conversation *ConversationRef
	// Instructions is a string or a list of items; see [item.ParseList].
	Instructions         item.JSON
	MaxOutputTokens      *int64
	MaxToolCalls         *int64
	Metadata             item.JSON
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
	// TextConfig is the member text. Read it with [ParseTextConfig].
	TextConfig item.JSON
	// ToolChoice can be read with [ParseToolChoice].
	ToolChoice item.JSON
	// Tools can be read with [Response.ToolList].
	Tools       item.JSON
	TopLogprobs *int64
	TopP        *float64
	Truncation  string
	User        string
	// OutputText is a member that client libraries add to responses that they store.
	// Use [Response.Text] to get the text.
	OutputText string
	Extra      item.Extra
	// Spelled holds the original text of numbers that encoding would write
	// differently, such as 1.0 for 1. It is used as long as the field still has the
	// same value.
	Spelled item.Extra
}

// IncompleteDetails is the reason why a response stopped early, such as
// max_output_tokens or content_filter. Schema: Response.incomplete_details.
type IncompleteDetails struct {
	Reason string
	Extra  item.Extra
}

func (d *IncompleteDetails) fields(c *codec) {
	record.Keep(c, &d.Extra)
	c.OptString("reason", &d.Reason)
}

// fields lists the members in the order in which endpoints write them.
func (r *Response) fields(c *codec) { r.fieldsWith(c, nil) }

// fieldsWith is like fields. If the output consists of the likely items, it uses
// them instead of decoding the output again.
func (r *Response) fieldsWith(c *codec, likely []item.Item) {
	record.Keep(c, &r.Extra)
	record.Spell(c, &r.Spelled)
	c.NeedText("id", &r.ID)
	c.Member("object", "response") // a compaction has another value
	c.OptFloat("created_at", &r.CreatedAt)
	c.OptString("status", &r.Status)
	c.OptBool("background", &r.Background)
	c.OptFloat("completed_at", &r.CompletedAt)
	record.Opt(c, "conversation", &r.Conversation, (*ConversationRef).fields)
	record.Opt(c, "error", &r.Error, (*APIError).fields)
	record.Opt(c, "incomplete_details", &r.Incomplete, (*IncompleteDetails).fields)
	record.Raw(c, "instructions", &r.Instructions)
	c.OptInt("max_output_tokens", &r.MaxOutputTokens)
	c.OptInt("max_tool_calls", &r.MaxToolCalls)
	c.OptString("model", &r.Model)
	record.Opt(c, "moderation", &r.Moderation, (*Moderation).fields)
	// Comparing the text costs far less than decoding the items again.
	if m := c.Find("output"); c.Decoding && m != nil && len(likely) > 0 && consistsOf(m.Value, likely) {
		r.Output, m.Taken = likely, true
	} else {
		itemValues.List(c, "output", &r.Output)
	}
	c.OptString("output_text", &r.OutputText)
	r.echo(c)
	record.Opt(c, "usage", &r.Usage, (*Usage).fields)
	c.OptString("user", &r.User)
	record.Raw(c, "metadata", &r.Metadata)
}

// echo lists most of the members that repeat the request.
func (r *Response) echo(c *codec) {
	c.OptBool("parallel_tool_calls", &r.ParallelToolCalls)
	c.OptString("previous_response_id", &r.PreviousResponseID)
	record.Opt(c, "prompt", &r.Prompt, (*Prompt).fields)
	c.OptString("prompt_cache_key", &r.PromptCacheKey)
	record.Opt(c, "prompt_cache_options", &r.PromptCacheOptions, (*PromptCacheOptions).fields)
	c.OptString("prompt_cache_retention", &r.PromptCacheRetention)
	record.Opt(c, "reasoning", &r.Reasoning, (*ReasoningConfig).fields)
	c.OptString("safety_identifier", &r.SafetyIdentifier)
	c.OptString("service_tier", &r.ServiceTier)
	c.OptFloat("temperature", &r.Temperature)
	record.Raw(c, "text", &r.TextConfig)
	record.Raw(c, "tool_choice", &r.ToolChoice)
	record.Raw(c, "tools", &r.Tools)
	c.OptInt("top_logprobs", &r.TopLogprobs)
	c.OptFloat("top_p", &r.TopP)
	c.OptString("truncation", &r.Truncation)
}

// ParseResponse reads a response from a copy of data. The items share the memory of
// that copy. The error is an [*item.SyntaxError] or an [*item.ShapeError].
func ParseResponse(data []byte) (*Response, error) { return ParseResponseString(string(data)) }

// ParseResponseString is like [ParseResponse] but does not copy: the result shares
// the memory of s.
func ParseResponseString(s string) (*Response, error) {
	r := new(Response)
	if err := parseRecord(s, r); err != nil {
		return nil, err
	}
	return r, nil
}

// responseOf is like ParseResponseString for text that has been validated.
func responseOf(s string) (*Response, error) {
	r := new(Response)
	if err := decodeRecord(s, r); err != nil {
		return nil, err
	}
	return r, nil
}

// AppendJSON appends the response to dst as JSON. On error it returns dst unchanged.
func (r *Response) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, r) }

// UnmarshalJSON replaces the response by that of [ParseResponse].
func (r *Response) UnmarshalJSON(data []byte) error {
	if r == nil {
		return errNil
	}
	if string(data) == "null" {
		return nil
	}
	read, err := ParseResponse(data)
	if err == nil {
		*r = *read
	}
	return err
}

// MarshalJSON returns the response as JSON.
func (r *Response) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// Text returns the text of the response's messages, separated by newlines, without those
// of other agents at the endpoint: see [item.Item.FromSubagent].
func (r *Response) Text() string {
	if r == nil {
		return ""
	}
	var texts []string
	for _, it := range r.Output {
		if m, err := item.As[item.Message](it); err == nil && !it.FromSubagent() {
			texts = append(texts, m.Content.Display())
		}
	}
	return strings.Join(texts, "\n")
}

// Usage holds the token counts of one response, as reported by the endpoint. The
// counts of a nil Usage are 0. Schema: ResponseUsage.
type Usage struct {
	InputTokens  int64
	InputDetails *InputTokensDetails
	// OutputTokens includes reasoning tokens.
	OutputTokens  int64
	OutputDetails *OutputTokensDetails
	TotalTokens   int64
	Extra         item.Extra
	// Spelled holds the original text of numbers that encoding would write
	// differently, such as 1.0 for 1. It is used as long as the field still has the
	// same value.
	Spelled item.Extra
}

// InputTokensDetails breaks down the input tokens. Schema:
// ResponseUsage.input_tokens_details.
type InputTokensDetails struct {
	CachedTokens     int64
	CacheWriteTokens *int64 // nil if the endpoint does not report it
	Extra            item.Extra
}

// OutputTokensDetails breaks down the output tokens. Schema:
// ResponseUsage.output_tokens_details.
type OutputTokensDetails struct {
	ReasoningTokens int64
	Extra           item.Extra
}

func (u *Usage) fields(c *codec) {
	record.Keep(c, &u.Extra)
	record.Spell(c, &u.Spelled)
	c.Number("input_tokens", &u.InputTokens)
	record.Opt(c, "input_tokens_details", &u.InputDetails, (*InputTokensDetails).fields)
	c.Number("output_tokens", &u.OutputTokens)
	record.Opt(c, "output_tokens_details", &u.OutputDetails, (*OutputTokensDetails).fields)
	c.Number("total_tokens", &u.TotalTokens)
}

func (d *InputTokensDetails) fields(c *codec) {
	record.Keep(c, &d.Extra)
	c.Number("cached_tokens", &d.CachedTokens)
	c.OptInt("cache_write_tokens", &d.CacheWriteTokens)
}

func (d *OutputTokensDetails) fields(c *codec) {
	record.Keep(c, &d.Extra)
	c.Number("reasoning_tokens", &d.ReasoningTokens)
}

// ParseUsage reads a usage as written by [Usage.MarshalJSON].
func ParseUsage(j item.JSON) (*Usage, error) {
	u := new(Usage)
	if err := parseRecord(string(j), u); err != nil {
		return nil, err
	}
	return u, nil
}

// UnmarshalJSON replaces the usage by that of [ParseUsage].
func (u *Usage) UnmarshalJSON(data []byte) error {
	if u == nil {
		return errNil
	}
	if string(data) == "null" {
		return nil
	}
	read, err := ParseUsage(item.JSON(data))
	if err == nil {
		*u = *read
	}
	return err
}

// MarshalJSON returns the usage as JSON.
func (u *Usage) MarshalJSON() ([]byte, error) { return appendRecord(nil, u) }

// Cached returns the number of input tokens read from the prompt cache.
func (u *Usage) Cached() int64 {
	if u == nil || u.InputDetails == nil {
		return 0
	}
	return u.InputDetails.CachedTokens
}

// CacheWrite returns the number of input tokens written to the prompt cache.
func (u *Usage) CacheWrite() int64 {
	if u == nil || u.InputDetails == nil || u.InputDetails.CacheWriteTokens == nil {
		return 0
	}
	return *u.InputDetails.CacheWriteTokens
}

// Reasoning returns the number of output tokens spent on reasoning.
func (u *Usage) Reasoning() int64 {
	if u == nil || u.OutputDetails == nil {
		return 0
	}
	return u.OutputDetails.ReasoningTokens
}

// consistsOf reports whether the JSON list s contains exactly these items, with only
// commas between them.
func consistsOf(s string, items []item.Item) bool {
	before := byte('[')
	for _, it := range items {
		if s[0] != before || !strings.HasPrefix(s[1:], it.JSON()) {
			return false
		}
		s, before = s[1+len(it.JSON()):], ','
	}
	return s == "]"
}

// ConversationRef identifies the conversation of a response. Schemas:
// ResponseConversation, ConversationParam-2.
type ConversationRef struct {
	ID    string
	Extra item.Extra
}

// Moderation is the result of moderating input and output. Schema: Moderation.
type Moderation struct {
	Input  *ModerationResult
	Output *ModerationResult
	Extra  item.Extra
}

// ModerationResult is the result for one side. Its type is "moderation_result", or
// "error" if moderation failed; then Code and Message say why. The objects with
// results by category are kept as JSON, because their member names are the
// categories. Schemas: ModerationResultBody, ModerationErrorBody.
type ModerationResult struct {
	Type                      string
	Model                     string
	Flagged                   *bool
	Categories                item.JSON
	CategoryScores            item.JSON
	CategoryAppliedInputTypes item.JSON
	Code                      string
	Message                   string
	Extra                     item.Extra
}

// ToolList decodes [Response.Tools]. It returns nil if there are none.
func (r *Response) ToolList() ([]item.Tool, error) {
	if r.Tools == "" {
		return nil, nil
	}
	value, err := checked(string(r.Tools))
	if err != nil || value == "null" {
		return nil, err
	}
	if value[0] != '[' {
		return nil, &item.ShapeError{Problem: "found " + jsonx.KindOf(value) + ", want a list"}
	}
	list, err := toolValues.ReadList(value)
	return list, shaped(err)
}

func (v *ConversationRef) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.Text("id", &v.ID)
}

func (v *Moderation) fields(c *codec) {
	record.Keep(c, &v.Extra)
	record.Opt(c, "input", &v.Input, (*ModerationResult).fields)
	record.Opt(c, "output", &v.Output, (*ModerationResult).fields)
}

func (v *ModerationResult) fields(c *codec) {
	record.Keep(c, &v.Extra)
	c.OptString("type", &v.Type)
	c.OptString("model", &v.Model)
	c.OptBool("flagged", &v.Flagged)
	record.Raw(c, "categories", &v.Categories)
	record.Raw(c, "category_scores", &v.CategoryScores)
	record.Raw(c, "category_applied_input_types", &v.CategoryAppliedInputTypes)
	c.OptString("code", &v.Code)
	c.OptString("message", &v.Message)
}

// ErrorBody is the body of an HTTP error as defined by the API. Servers use other
// forms too; package endpoint reads those. Schema: ErrorResponse.
type ErrorBody struct {
	Error *APIError
	Extra item.Extra
}

func (v *ErrorBody) fields(c *codec) {
	record.Keep(c, &v.Extra)
	record.Opt(c, "error", &v.Error, (*APIError).fields)
}

// ParseErrorBody reads the body from a copy of data.
func ParseErrorBody(data []byte) (*ErrorBody, error) { return parseBody[ErrorBody](data) }

// AppendJSON appends the body. The schema requires null for an empty code or param;
// to write it, put the null into the error's Extra.
func (v *ErrorBody) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, v) }

// APIError is an error as defined by the API: the error member of a failed response,
// the contents of an error event, or the error in the body of an HTTP response.
// Schemas: ResponseError, ResponseErrorEvent, Error, ErrorPayload.
type APIError struct {
	// Code is usually a word. If the server sent a number, Code is its text and the
	// number itself is in Extra.
	Code    string
	Type    string
	Message string
	Param   string
	// Headers holds the headers that an HTTP response would have had. They are sent
	// only on WebSockets.
	Headers map[string]string
	Extra   item.Extra
}

// Error returns the code and the message.
func (e *APIError) Error() string {
	msg := e.Message
	if msg == "" {
		msg = "no message"
	}
	if code := e.Code; code != "" {
		return code + ": " + msg
	}
	return msg
}

func (e *APIError) fields(c *codec) {
	record.Keep(c, &e.Extra)
	c.Code("code", &e.Code)
	c.OptString("type", &e.Type)
	c.OptString("message", &e.Message)
	c.OptString("param", &e.Param)
	c.StringMap("headers", &e.Headers)
}
