// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// The statuses of a [Response]. Schema: Response.status.
const (
	StatusCompleted  = "completed"
	StatusFailed     = "failed"
	StatusInProgress = "in_progress"
	StatusCancelled  = "cancelled"
	StatusQueued     = "queued"
	StatusIncomplete = "incomplete"
)

// Response is the answer to a [Request]. Members without a field, the echo of
// the request among them, are in Extra. Schema: Response.
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
	Extra  Extra
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

func (r *Response) fields(c *codec) {
	c.str("id", &r.ID)
	if _, other := r.Extra.Get("object"); !other {
		c.constant("object", "response") // a compaction has another
	}
	c.optFloat("created_at", &r.CreatedAt)
	c.optString("status", &r.Status)
	optRecord(c, "error", &r.Error)
	optRecord(c, "incomplete_details", &r.Incomplete)
	c.optString("model", &r.Model)
	c.items("output", &r.Output)
	optRecord(c, "usage", &r.Usage)
	c.rest(&r.Extra)
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
func (r *Response) AppendJSON(dst []byte) ([]byte, error) { return appendRecord(dst, r) }

// MarshalJSON returns the response as JSON.
func (r *Response) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// Text returns the text of the response's messages, joined by newlines.
func (r *Response) Text() string {
	var s string
	for _, it := range r.Output {
		m, err := As[Message](it)
		if err != nil {
			continue
		}
		if s != "" {
			s += "\n"
		}
		s += m.Content.Display()
	}
	return s
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
}

// InputTokensDetails splits the input tokens. Schema:
// ResponseUsage.input_tokens_details.
type InputTokensDetails struct {
	CachedTokens     int64
	CacheWriteTokens *int64
	Extra            Extra
}

// OutputTokensDetails splits the output tokens. Schema:
// ResponseUsage.output_tokens_details.
type OutputTokensDetails struct {
	ReasoningTokens int64
	Extra           Extra
}

func (u *Usage) fields(c *codec) {
	c.count("input_tokens", &u.InputTokens)
	optRecord(c, "input_tokens_details", &u.InputDetails)
	c.count("output_tokens", &u.OutputTokens)
	optRecord(c, "output_tokens_details", &u.OutputDetails)
	c.count("total_tokens", &u.TotalTokens)
	c.rest(&u.Extra)
}

func (d *InputTokensDetails) fields(c *codec) {
	c.count("cached_tokens", &d.CachedTokens)
	c.optInt("cache_write_tokens", &d.CacheWriteTokens)
	c.rest(&d.Extra)
}

func (d *OutputTokensDetails) fields(c *codec) {
	c.count("reasoning_tokens", &d.ReasoningTokens)
	c.rest(&d.Extra)
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
