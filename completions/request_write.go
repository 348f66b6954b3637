// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
)

// AppendRequest appends the body of a request to Chat Completions to dst. Instructions become the
// first message. Members of Extra are written unchanged, so that a caller can set members that only
// Chat Completions has, such as stop.
//
// A request that continues from something stored (previous_response_id, conversation, prompt) gives
// an [*item.ShapeError], because the model would not see the history. The other errors are those of
// [FromItems]. On error it returns dst unchanged.
func AppendRequest(dst []byte, r *api.Request, o Options) ([]byte, []Loss, error) {
	if r == nil {
		return dst, nil, &item.ShapeError{Problem: "the request is nil"}
	}
	var losses []Loss
	at := place{to: &losses}
	messages := new(item.List)
	if err := o.write(messages, inputOf(r), 0, at.at("input")); err != nil {
		return dst, nil, err
	}
	head, tail, err := o.around(r, messages.Len(), at)
	if err != nil {
		return dst, nil, err
	}
	dst, err = item.ListBody(string(head), messages, string(tail)).Append(dst)
	return dst, losses, err
}

// inputOf returns the input as a list, even if it is a text.
func inputOf(r *api.Request) *item.List {
	if r.Input != nil {
		return r.Input
	}
	return item.NewList(r.InputItems()...)
}

// around returns the body before and after the n messages.
func (o Options) around(r *api.Request, n int, at place) (head, tail []byte, err error) {
	if err := stored(r); err != nil {
		return nil, nil, err
	}
	if n == 0 && r.Instructions == "" {
		return nil, nil, fmt.Errorf("input: %w", ErrNothing)
	}
	if i := slices.IndexFunc(r.Tools, func(t item.Tool) bool { return nils.Is(t) }); i >= 0 {
		return nil, nil, &item.ShapeError{Path: fmt.Sprintf("tools[%d]", i), Problem: "it is nil"}
	}
	w := appendTo(make([]byte, 0, 1024))
	w.open('{')
	w.optText("model", r.Model)
	w.name("messages")
	w.open('[')
	o.writeInstructions(w, r, at)
	if n > 0 && r.Instructions != "" {
		w.buf = append(w.buf, ',')
	}
	end := len(w.buf)
	w.close(']')
	o.writeToolMembers(w, r, at)
	o.writeTextMembers(w, r, at)
	o.writeSampling(w, r, at)
	o.writeStream(w, r)
	w.optBool("store", r.Store)
	w.optRaw("metadata", r.Metadata)
	w.optText("service_tier", r.ServiceTier)
	w.optText("user", r.User)
	w.optText("safety_identifier", r.SafetyIdentifier)
	w.optText("prompt_cache_key", r.PromptCacheKey)
	w.optText("prompt_cache_retention", r.PromptCacheRetention)
	for _, m := range r.Extra {
		if m.Name == "input" {
			continue // converted to messages
		}
		if err := m.Value.Valid(); m.Value != "" && err != nil {
			return nil, nil, shapeError(m.Name, err.Error())
		}
		w.extra(item.Extra{m})
	}
	w.close('}')
	unsent(r, at)
	return w.buf[:end], w.buf[end:], nil
}

// stored returns an error for a request whose history is at the endpoint.
func stored(r *api.Request) error {
	const problem = "Chat Completions stores nothing to go on from: send the whole history as input"
	switch {
	case r.PreviousResponseID != "":
		return shapeError("previous_response_id", problem)
	case r.Conversation != "" && r.Conversation != "null":
		return shapeError("conversation", problem)
	case r.Prompt != nil:
		return shapeError("prompt", "Chat Completions has no stored prompts: send the prompt's text")
	}
	return nil
}

// unsent reports the members that have no counterpart.
func unsent(r *api.Request, at place) {
	for _, member := range []struct {
		name string
		set  bool
	}{
		{"background", r.Background != nil && *r.Background},
		{"max_tool_calls", r.MaxToolCalls != nil},
		{"truncation", r.Truncation != ""},
		{"context_management", len(r.ContextManagement) > 0},
		{"moderation", r.Moderation != nil},
		{"prompt_cache_options", r.PromptCacheOptions != nil},
	} {
		if member.set {
			at.at(member.name).lose(noCounterpart)
		}
	}
	for i, name := range r.Include {
		if name != api.IncludeLogprobs {
			at.at("include").index(i).lose(name + " " + noCounterpart)
		}
	}
}

// writeInstructions writes the instructions as a message.
func (o Options) writeInstructions(w *writer, r *api.Request, at place) {
	if r.Instructions == "" {
		return
	}
	at.at("instructions").move("become the first message")
	w.open('{')
	w.text("role", o.role(item.RoleSystem))
	w.text("content", r.Instructions)
	w.close('}')
}

func (o Options) writeToolMembers(w *writer, r *api.Request, at place) {
	tools := newWriter()
	n, search := writeTools(tools, r.Tools, at.at("tools"))
	choice := writeChoice(r.ToolChoice, at.at("tool_choice"))
	if n > 0 {
		w.name("tools")
		w.buf = append(append(append(w.buf, '['), tools.buf...), ']')
		w.optRaw("tool_choice", choice)
		w.optBool("parallel_tool_calls", r.ParallelToolCalls)
	} else {
		for name, set := range map[string]bool{"tool_choice": choice != "", "parallel_tool_calls": r.ParallelToolCalls != nil} {
			if set {
				at.at(name).lose("is left out: there are no tools") // I9
			}
		}
	}
	if search != nil {
		writeSearch(w, search, at.at("tools"))
	}
}

func writeSearch(w *writer, t *item.WebSearchTool, at place) {
	w.name("web_search_options")
	w.open('{')
	w.optText("search_context_size", t.SearchContextSize)
	if l := t.UserLocation; l != nil {
		w.name("user_location")
		w.open('{')
		w.text("type", cmp.Or(l.Type, "approximate"))
		w.name("approximate")
		w.open('{')
		w.optText("country", l.Country)
		w.optText("region", l.Region)
		w.optText("city", l.City)
		w.optText("timezone", l.Timezone)
		w.close('}')
		w.close('}')
		at.extra(l.Extra)
	}
	w.close('}')
	at.extra(t.Extra)
	if t.Filters != nil {
		at.at("filters").lose(noCounterpart)
	}
	if t.ExternalWebAccess != nil {
		at.at("external_web_access").lose(noCounterpart)
	}
}

func (o Options) writeTextMembers(w *writer, r *api.Request, at place) {
	if r.Text == "" {
		return
	}
	at = at.at("text")
	t, err := api.ParseTextConfig(r.Text)
	if err != nil {
		at.lose("cannot be read: " + err.Error())
		return
	}
	w.optText("verbosity", t.Verbosity)
	at.extra(t.Extra)
	f := t.Format
	if f == nil {
		return
	}
	w.name("response_format")
	w.open('{')
	w.text("type", f.Type)
	if f.Type == api.TextJSONSchema {
		w.name("json_schema")
		w.open('{')
		w.text("name", f.Name)
		w.optText("description", f.Description)
		w.optRaw("schema", f.Schema)
		w.optBool("strict", f.Strict)
		w.close('}')
	}
	w.extra(f.Extra)
	w.close('}')
}

func (o Options) writeSampling(w *writer, r *api.Request, at place) {
	w.optNumber(cmp.Or(o.MaxTokens, "max_completion_tokens"), r.MaxOutputTokens)
	w.optFloat("temperature", r.Temperature)
	w.optFloat("top_p", r.TopP)
	if r.TopLogprobs != nil || slices.Contains(r.Include, api.IncludeLogprobs) {
		w.raw("logprobs", "true")
		w.optNumber("top_logprobs", r.TopLogprobs)
	}
	c := r.Reasoning
	if c == nil {
		return
	}
	at = at.at("reasoning")
	for name, v := range map[string]string{"context": c.Context, "mode": c.Mode, "generate_summary": c.GenerateSummary} {
		if v != "" {
			at.at(name).lose(noCounterpart)
		}
	}
	if len(c.Extra) == 0 {
		w.optText("reasoning_effort", c.Effort)
		if c.Summary != "" {
			at.at("summary").lose(noCounterpart)
		}
		return
	}
	w.name("reasoning") // OpenRouter's: no other server has the remaining members
	w.open('{')
	w.optText("effort", c.Effort)
	w.optText("summary", c.Summary)
	w.extra(c.Extra)
	w.close('}')
}

func (o Options) writeStream(w *writer, r *api.Request) {
	if r.Stream == nil {
		return
	}
	w.optBool("stream", r.Stream)
	var hide *bool
	if r.StreamOptions != nil {
		hide = r.StreamOptions.IncludeObfuscation
	}
	if !*r.Stream || o.NoUsage && hide == nil {
		return
	}
	w.name("stream_options")
	w.open('{')
	if !o.NoUsage {
		w.raw("include_usage", "true") // responses always report it
	}
	w.optBool("include_obfuscation", hide)
	w.close('}')
}
