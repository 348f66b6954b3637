// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"strconv"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// ParseRequest reads the body of a request to Chat Completions. Members that only Chat Completions
// has, such as stop, are lost. Members unknown to both APIs are kept in Extra. The errors are those
// of [ToItems].
func ParseRequest(body []byte) (*api.Request, []Loss, error) {
	text := item.JSON(body)
	if err := text.Valid(); err != nil {
		return nil, nil, err
	}
	if text = trim(text); text[0] != '{' {
		return nil, nil, shapeError("", "found "+kindOf(text)+", want a request")
	}
	var losses []Loss
	o := place{to: &losses}.open(text)
	items, err := readMessages(o.take("messages"), o.at("messages"))
	if err != nil {
		return nil, nil, err
	}
	r := &api.Request{Model: o.text("model"), Input: item.NewList(items...)}
	if err := readToolMembers(r, o); err != nil {
		return nil, nil, err
	}
	if err := readTextMembers(r, o); err != nil {
		return nil, nil, err
	}
	readSampling(r, o)
	readStream(r, o)
	r.Store, r.Metadata = o.flag("store"), o.take("metadata")
	r.ServiceTier, r.User, r.SafetyIdentifier = o.text("service_tier"), o.text("user"), o.text("safety_identifier")
	r.PromptCacheKey, r.PromptCacheRetention = o.text("prompt_cache_key"), o.text("prompt_cache_retention")
	for _, name := range []string{"stop", "seed", "logit_bias", "frequency_penalty", "presence_penalty", "modalities", "audio", "prediction"} {
		if v := o.take(name); v != "" && !blank(v) && !usual(name, v) {
			o.at(name).lose(noCounterpart)
		}
	}
	if n := o.take("n"); n != "" && n != "1" {
		o.at("n").lose("a response has one choice")
	}
	r.Extra = o.keep()
	return r, losses, nil
}

// usual reports whether a member has its default value.
func usual(name string, v item.JSON) bool {
	all := v[0] == '['
	eachElement(v, func(_ int, e item.JSON) { all = all && e == `"text"` })
	return name == "modalities" && all
}

func readToolMembers(r *api.Request, o *object) error {
	var err error
	if r.Tools, err = readTools(o.take("tools"), o.at("tools")); err != nil {
		return err
	}
	r.Tools = append(r.Tools, readFunctions(o.take("functions"), o.at("functions"))...)
	r.ToolChoice = readChoice(o.take("tool_choice"), o.at("tool_choice"))
	if v := o.take("function_call"); r.ToolChoice == "" {
		r.ToolChoice = readFunctionChoice(v, o.at("function_call"))
	} else if !blank(v) {
		o.at("function_call").lose("is left out: there is a tool_choice")
	}
	r.ParallelToolCalls = o.flag("parallel_tool_calls")
	if v := o.takeAny("web_search_options"); v != "" && v[0] == '{' {
		r.Tools = append(r.Tools, readSearch(o.at("web_search_options").open(v)))
	}
	return nil
}

func readSearch(o *object) *item.WebSearchTool {
	t := &item.WebSearchTool{SearchContextSize: o.text("search_context_size")}
	if v := o.take("user_location"); v != "" && v[0] == '{' {
		outer := o.at("user_location").open(v)
		inner := outer.at("approximate").open(outer.take("approximate"))
		t.UserLocation = &item.Location{
			Type: outer.text("type"), Country: inner.text("country"), Region: inner.text("region"),
			City: inner.text("city"), Timezone: inner.text("timezone"),
		}
		inner.rest()
		outer.rest()
	}
	o.rest()
	return t
}

// readTextMembers reads the settings for text output.
func readTextMembers(r *api.Request, o *object) error {
	t := &api.TextConfig{Verbosity: o.text("verbosity")}
	if v := o.take("response_format"); v != "" && v[0] == '{' {
		f := o.at("response_format").open(v)
		t.Format = &api.TextFormat{Type: f.text("type")}
		if inner := f.take("json_schema"); inner != "" {
			s := f.at("json_schema").open(inner)
			t.Format.Name, t.Format.Description, t.Format.Schema = s.text("name"), s.text("description"), s.take("schema")
			t.Format.Strict = s.flag("strict")
			s.rest()
		}
		t.Format.Extra = f.keep()
	}
	if t.Format == nil && t.Verbosity == "" {
		return nil
	}
	j, err := t.JSON()
	r.Text = j
	return err
}

func readSampling(r *api.Request, o *object) {
	r.Temperature, r.TopP = o.float("temperature"), o.float("top_p")
	r.TopLogprobs = o.number("top_logprobs")
	if v := o.takeAny("logprobs"); v == "true" {
		r.Include = []string{api.IncludeLogprobs}
	}
	r.MaxOutputTokens = o.number("max_completion_tokens")
	older := o.number("max_tokens")
	switch {
	case older == nil:
	case r.MaxOutputTokens == nil:
		r.MaxOutputTokens = older
		o.at("max_tokens").move("the older form: becomes max_output_tokens") // see Options.MaxTokens
	case *older != *r.MaxOutputTokens:
		o.at("max_tokens").lose("differs from max_completion_tokens")
	}
	effort := o.text("reasoning_effort")
	if v := o.take("reasoning"); v != "" && v[0] == '{' { // OpenRouter's
		inner := o.at("reasoning").open(v)
		r.Reasoning = &api.ReasoningConfig{Effort: inner.text("effort"), Summary: inner.text("summary")}
		r.Reasoning.Extra = inner.keep()
	}
	if effort != "" {
		if r.Reasoning == nil {
			r.Reasoning = new(api.ReasoningConfig)
		}
		if old := r.Reasoning.Effort; old != "" && old != effort {
			o.at("reasoning.effort").lose("differs from reasoning_effort")
		}
		r.Reasoning.Effort = effort
	}
}

func readStream(r *api.Request, o *object) {
	r.Stream = o.flag("stream")
	v := o.take("stream_options")
	if v == "" || v[0] != '{' {
		return
	}
	inner := o.at("stream_options").open(v)
	inner.takeAny("include_usage") // responses always report it
	if hide := inner.flag("include_obfuscation"); hide != nil {
		r.StreamOptions = &api.StreamOptions{IncludeObfuscation: hide}
	}
	inner.rest()
}

// flag takes a boolean member.
func (o *object) flag(name string) *bool {
	switch v := o.take(name); v {
	case "true", "false":
		return new(v == "true")
	case "":
		return nil
	}
	o.at(name).lose("is neither true nor false")
	return nil
}

// float takes a number member.
func (o *object) float(name string) *float64 {
	v := o.take(name)
	if v == "" {
		return nil
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		o.at(name).lose("is not a number")
		return nil
	}
	return &f
}
