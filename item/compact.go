// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// CompactRequest is the body of POST /responses/compact. A text as its input
// stands in Extra. Schema: CompactResponseMethodPublicBody.
type CompactRequest struct {
	// Model is written as null when empty.
	Model                string
	Input                *List
	Instructions         string
	PreviousResponseID   string
	PromptCacheKey       string
	PromptCacheOptions   *PromptCacheOptions
	PromptCacheRetention string
	ServiceTier          string
	Extra                Extra
}

// Compacted is the answer: the items that take the place of the input. Schema:
// CompactResource.
type Compacted struct {
	ID        string
	CreatedAt int64 // seconds since 1970
	// Output is written as [] when nil.
	Output []Item
	Usage  *Usage
	Extra  Extra
}

func (r *CompactRequest) fields(c *codec) {
	c.nullText("model", &r.Model, &r.Extra)
	c.list("input", &r.Input)
	c.optString("instructions", &r.Instructions)
	c.optString("previous_response_id", &r.PreviousResponseID)
	c.optString("prompt_cache_key", &r.PromptCacheKey)
	optRecord(c, "prompt_cache_options", &r.PromptCacheOptions)
	c.optString("prompt_cache_retention", &r.PromptCacheRetention)
	c.optString("service_tier", &r.ServiceTier)
	c.end(&r.Extra)
}

func (r *Compacted) fields(c *codec) {
	c.text("id", &r.ID, &r.Extra)
	c.member("object", "response.compaction", &r.Extra)
	c.number("created_at", &r.CreatedAt, &r.Extra)
	c.orEmpty("output", "[]", r.Output == nil, &r.Extra)
	c.items("output", &r.Output)
	optRecord(c, "usage", &r.Usage)
	c.end(&r.Extra)
}

// ParseCompactRequest reads the body from a copy of data.
func ParseCompactRequest(data []byte) (*CompactRequest, error) {
	return parseBody[CompactRequest](data)
}

// ParseCompacted reads the answer from a copy of data. Its items share that
// copy.
func ParseCompacted(data []byte) (*Compacted, error) { return parseBody[Compacted](data) }

// AppendJSON appends the body.
func (r *CompactRequest) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, r) }

// AppendJSON appends the answer.
func (r *Compacted) AppendJSON(dst []byte) ([]byte, error) { return appendOutward(dst, r) }
