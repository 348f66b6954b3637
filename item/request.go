// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// Request is the body of POST /responses. What is not set is not sent: there
// are no hidden defaults. Members without a field go into Extra. Fields of the
// type [JSON] hold what has several forms, or what a client mostly passes on;
// each names the functions that build and read it. Schema: CreateResponse.
type Request struct {
	Model        string
	Instructions string
	// Input is the history. A request that is parsed with a plain text as its
	// input keeps that in Extra; see [Request.InputItems].
	Input *List
	Tools []Tool
	// ToolChoice is such as [ChoiceAuto] or [ChooseFunction]; see
	// [ParseToolChoice].
	ToolChoice        JSON
	ParallelToolCalls *bool
	Stream            *bool
	StreamOptions     *StreamOptions
	Store             *bool
	Background        *bool
	// Include is such as [IncludeEncryptedReasoning].
	Include         []string
	MaxOutputTokens *int64
	MaxToolCalls    *int64
	Temperature     *float64
	TopP            *float64
	TopLogprobs     *int64
	Reasoning       *ReasoningConfig
	// Text is such as [TextAsSchema]; see [ParseTextConfig].
	Text               JSON
	PreviousResponseID string
	// Conversation is such as [ConversationByID]; see [ConversationID].
	Conversation         JSON
	ContextManagement    []ContextManagement
	Prompt               *Prompt
	PromptCacheKey       string
	PromptCacheOptions   *PromptCacheOptions
	PromptCacheRetention string
	Moderation           *ModerationConfig
	SafetyIdentifier     string
	ServiceTier          string
	Truncation           string
	User                 string
	// Metadata is an object of texts, such as [Metadata].
	Metadata JSON
	Extra    Extra
	// Spelled holds numbers as they came that encoding would spell in another
	// way, such as 1.0 for 1. One of them is written while its field has the same
	// number.
	Spelled Extra
}

func (r *Request) fields(c *codec) {
	c.spells(&r.Spelled)
	c.optString("model", &r.Model)
	c.optString("instructions", &r.Instructions)
	c.list("input", &r.Input)
	c.tools("tools", &r.Tools, parseTool)
	c.raw("tool_choice", &r.ToolChoice)
	c.optBool("parallel_tool_calls", &r.ParallelToolCalls)
	c.optBool("stream", &r.Stream)
	c.optBool("store", &r.Store)
	c.optBool("background", &r.Background)
	c.optStrings("include", &r.Include)
	c.optInt("max_output_tokens", &r.MaxOutputTokens)
	c.optInt("max_tool_calls", &r.MaxToolCalls)
	c.optFloat("temperature", &r.Temperature)
	c.optFloat("top_p", &r.TopP)
	optRecord(c, "reasoning", &r.Reasoning)
	c.raw("text", &r.Text)
	c.optString("previous_response_id", &r.PreviousResponseID)
	c.optString("prompt_cache_key", &r.PromptCacheKey)
	c.optString("safety_identifier", &r.SafetyIdentifier)
	c.optString("service_tier", &r.ServiceTier)
	c.optString("truncation", &r.Truncation)
	c.optString("user", &r.User)
	c.raw("metadata", &r.Metadata)
	optRecord(c, "stream_options", &r.StreamOptions)
	c.optInt("top_logprobs", &r.TopLogprobs)
	c.raw("conversation", &r.Conversation)
	recordList(c, "context_management", &r.ContextManagement)
	optRecord(c, "prompt", &r.Prompt)
	optRecord(c, "prompt_cache_options", &r.PromptCacheOptions)
	c.optString("prompt_cache_retention", &r.PromptCacheRetention)
	optRecord(c, "moderation", &r.Moderation)
	c.rest(&r.Extra)
}

// AppendJSON appends the request's body. The input is one copy of the list's
// bytes.
func (r *Request) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, r) }

// MarshalJSON returns the request's body.
func (r *Request) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil // as package json has it for a nil pointer
	}
	return r.AppendJSON(make([]byte, 0, r.Input.Size()+4096))
}

// ParseRequest reads a request's body from a copy of data.
func ParseRequest(data []byte) (*Request, error) {
	r := new(Request)
	if err := parseRecord(string(data), r); err != nil {
		return nil, err
	}
	return r, nil
}

// InputItems returns the input as items, also where it is a plain text, which
// means one user message.
func (r *Request) InputItems() []Item {
	if r == nil {
		return nil
	}
	if r.Input == nil {
		v, _ := r.Extra.Get("input")
		if s, ok := v.Unquote(); ok {
			return []Item{User(s)}
		}
		return nil
	}
	items := make([]Item, 0, r.Input.Len())
	for _, it := range r.Input.All() {
		items = append(items, it)
	}
	return items
}
