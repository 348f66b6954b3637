// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// StreamOptions changes how events are sent. Schema: ResponseStreamOptions.
type StreamOptions struct {
	// IncludeObfuscation false leaves out the padding that hides the length of
	// deltas from those who watch the network.
	IncludeObfuscation *bool
	Extra              Extra
}

// PromptCacheOptions says what the endpoint caches of a prompt. Schemas:
// PromptCacheOptionsParam, PromptCacheOptions.
type PromptCacheOptions struct {
	// Mode is implicit, or explicit for a [CacheBreakpoint] and nothing else.
	Mode string
	// TTL is how long, such as 30m.
	TTL   string
	Extra Extra
}

// ContextManagement is a way to keep a conversation within the model's limit.
// Schema: ContextManagementParam.
type ContextManagement struct {
	// Type is "compaction".
	Type string
	// CompactThreshold is the number of tokens at which the endpoint compacts.
	CompactThreshold *int64
	Extra            Extra
}

// ModerationConfig has the endpoint judge input and output. Schema:
// ModerationParam.
type ModerationConfig struct {
	Model  string
	Policy *ModerationPolicy
	Extra  Extra
}

// ModerationPolicy says what follows for each side. Schema:
// ModerationPolicyParam.
type ModerationPolicy struct {
	Input  *ModerationMode
	Output *ModerationMode
	Extra  Extra
}

// ModerationMode is score or block. Schema: ModerationConfigParam.
type ModerationMode struct {
	Mode  string
	Extra Extra
}

// Prompt is a prompt that the endpoint has stored. Variables is an object whose
// members are texts or parts, such as an input image; it stays JSON because few
// use it. Schema: Prompt.
type Prompt struct {
	ID        string
	Version   string
	Variables JSON
	Extra     Extra
}

// ConversationByID returns the [Request.Conversation] of the conversation with
// the id. Schema: ConversationParam.
func ConversationByID(id string) JSON { return Quote(id) }

// ConversationID reads a [Request.Conversation], which is an id or an object
// with one. It reports false for anything else.
func ConversationID(j JSON) (string, bool) {
	if id, ok := j.Unquote(); ok {
		return id, true
	}
	ref, err := parseBody[ConversationRef]([]byte(j))
	if err != nil || ref.ID == "" {
		return "", false
	}
	return ref.ID, true
}

// Metadata returns the pairs as [Request.Metadata] takes them, in the order of
// their names. Schema: Metadata.
func Metadata(pairs map[string]string) (JSON, error) {
	b, err := appendStringMap(nil, pairs)
	return JSON(b), err
}

func (v *StreamOptions) fields(c *codec) {
	c.optBool("include_obfuscation", &v.IncludeObfuscation)
	c.rest(&v.Extra)
}

func (v *PromptCacheOptions) fields(c *codec) {
	c.optString("mode", &v.Mode)
	c.optString("ttl", &v.TTL)
	c.rest(&v.Extra)
}

func (v *ContextManagement) fields(c *codec) {
	c.text("type", &v.Type, &v.Extra)
	c.optInt("compact_threshold", &v.CompactThreshold)
	c.end(&v.Extra)
}

func (v *ModerationConfig) fields(c *codec) {
	c.text("model", &v.Model, &v.Extra)
	optRecord(c, "policy", &v.Policy)
	c.end(&v.Extra)
}

func (v *ModerationPolicy) fields(c *codec) {
	optRecord(c, "input", &v.Input)
	optRecord(c, "output", &v.Output)
	c.rest(&v.Extra)
}

func (v *ModerationMode) fields(c *codec) {
	c.text("mode", &v.Mode, &v.Extra)
	c.end(&v.Extra)
}

func (v *Prompt) fields(c *codec) {
	c.text("id", &v.ID, &v.Extra)
	c.optString("version", &v.Version)
	c.raw("variables", &v.Variables)
	c.end(&v.Extra)
}
