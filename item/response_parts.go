// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

// ConversationRef names the conversation that a response belongs to. Schemas:
// ResponseConversation, ConversationParam-2.
type ConversationRef struct {
	ID    string
	Extra Extra
}

// Moderation is what the endpoint's judgement of input and output came to.
// Schema: Moderation.
type Moderation struct {
	Input  *ModerationResult
	Output *ModerationResult
	Extra  Extra
}

// ModerationResult is one judgement, with the type "moderation_result", or why
// there is none, with the type "error", Code and Message. The objects that go
// by category stay JSON, for their members are names of categories. Schemas:
// ModerationResultBody, ModerationErrorBody.
type ModerationResult struct {
	Type                      string
	Model                     string
	Flagged                   *bool
	Categories                JSON
	CategoryScores            JSON
	CategoryAppliedInputTypes JSON
	Code                      string
	Message                   string
	Extra                     Extra
}

// ToolList reads [Response.Tools].
func (r *Response) ToolList() ([]Tool, error) { return parseListOf(r.Tools, parseTool) }

func (v *ConversationRef) fields(c *codec) {
	c.text("id", &v.ID, &v.Extra)
	c.end(&v.Extra)
}

func (v *Moderation) fields(c *codec) {
	optRecord(c, "input", &v.Input)
	optRecord(c, "output", &v.Output)
	c.rest(&v.Extra)
}

func (v *ModerationResult) fields(c *codec) {
	c.optString("type", &v.Type)
	c.optString("model", &v.Model)
	c.optBool("flagged", &v.Flagged)
	c.raw("categories", &v.Categories)
	c.raw("category_scores", &v.CategoryScores)
	c.raw("category_applied_input_types", &v.CategoryAppliedInputTypes)
	c.optString("code", &v.Code)
	c.optString("message", &v.Message)
	c.rest(&v.Extra)
}
