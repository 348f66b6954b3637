// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"slices"

	"github.com/antiphon-go/antiphon/item"
)

// fields clears a member of a request by its name on the wire.
var fields = map[string]func(*item.Request){
	"instructions":         func(r *item.Request) { r.Instructions = "" },
	"tool_choice":          func(r *item.Request) { r.ToolChoice = "" },
	"parallel_tool_calls":  func(r *item.Request) { r.ParallelToolCalls = nil },
	"store":                func(r *item.Request) { r.Store = nil },
	"background":           func(r *item.Request) { r.Background = nil },
	"include":              func(r *item.Request) { r.Include = nil },
	"max_output_tokens":    func(r *item.Request) { r.MaxOutputTokens = nil },
	"max_tool_calls":       func(r *item.Request) { r.MaxToolCalls = nil },
	"temperature":          func(r *item.Request) { r.Temperature = nil },
	"top_p":                func(r *item.Request) { r.TopP = nil },
	"reasoning":            func(r *item.Request) { r.Reasoning = nil },
	"text":                 func(r *item.Request) { r.Text = "" },
	"previous_response_id": func(r *item.Request) { r.PreviousResponseID = "" },
	"prompt_cache_key":     func(r *item.Request) { r.PromptCacheKey = "" },
	"safety_identifier":    func(r *item.Request) { r.SafetyIdentifier = "" },
	"service_tier":         func(r *item.Request) { r.ServiceTier = "" },
	"truncation":           func(r *item.Request) { r.Truncation = "" },
	"user":                 func(r *item.Request) { r.User = "" },
	"metadata":             func(r *item.Request) { r.Metadata = "" },

	"stream_options":         func(r *item.Request) { r.StreamOptions = nil },
	"top_logprobs":           func(r *item.Request) { r.TopLogprobs = nil },
	"conversation":           func(r *item.Request) { r.Conversation = "" },
	"context_management":     func(r *item.Request) { r.ContextManagement = nil },
	"prompt":                 func(r *item.Request) { r.Prompt = nil },
	"prompt_cache_options":   func(r *item.Request) { r.PromptCacheOptions = nil },
	"prompt_cache_retention": func(r *item.Request) { r.PromptCacheRetention = "" },
	"moderation":             func(r *item.Request) { r.Moderation = nil },
}

// leaveOut removes the named member from r, which is a shallow copy of the
// caller's request. What a request is about, its model, input, tools and
// stream, cannot be left out.
func leaveOut(r *item.Request, name string) {
	if clear := fields[name]; clear != nil {
		clear(r)
	}
	r.Extra = slices.DeleteFunc(slices.Clone(r.Extra), func(m item.Member) bool { return m.Name == name })
}
