// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// Fit returns the request in the form that the profile's endpoint accepts, or an
// [*endpoint.RefusedError]. It does not change req. The result shares with req everything that
// stays the same.
func (c *Config) Fit(req *api.Request, p *endpoint.Profile) (*api.Request, error) {
	r := *req
	f := &fitting{r: &r, p: p}
	f.model, _ = c.Table.Model(r.Model)
	for _, step := range []func() error{f.members, f.limits, f.thinking, f.sampling, f.features, f.tools, f.instructions, f.input} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &r, nil
}

// fitting is the state of adapting one request.
type fitting struct {
	r     *api.Request
	p     *endpoint.Profile
	model endpoint.Model
}

func (f *fitting) refuse(param, hint, format string, args ...any) error {
	return &endpoint.RefusedError{By: f.p.Name, Param: param, Problem: fmt.Sprintf(format, args...), Hint: hint}
}

// members applies the profile's rules for single members.
func (f *fitting) members() error {
	for _, name := range f.p.Refuse {
		if has(f.r, name) {
			return f.refuse(name, "leave it out", "this endpoint does not accept it")
		}
	}
	for _, name := range f.p.Omit {
		leaveOut(f.r, name)
	}
	for name, value := range f.p.Set {
		set(f.r, name, item.JSON(value))
	}
	return nil
}

// limits handles values that are out of bounds.
func (f *fitting) limits() error {
	least := f.p.MinOutputTokens
	if n := f.r.MaxOutputTokens; n != nil && *n < int64(least) {
		return f.refuse("max_output_tokens", "", "%d is below the minimum of %d", *n, least)
	}
	if key := f.r.PromptCacheKey; f.p.MaxCacheKey > 0 && len(key) > f.p.MaxCacheKey {
		f.r.PromptCacheKey = endpoint.CacheKey(key, f.p.MaxCacheKey)
	}
	return nil
}

// thinking handles the settings for reasoning.
func (f *fitting) thinking() error {
	cfg := f.r.Reasoning
	if cfg != nil && cfg.Effort != "" {
		if f.model.Reasoning == endpoint.No && cfg.Effort != "none" {
			return f.refuse("reasoning.effort", "leave it out", "the model %s does not reason", f.r.Model)
		}
		if !f.model.TakesEffort(cfg.Effort) && f.model.Reasoning != endpoint.No {
			return f.refuse("reasoning.effort", "", "the model %s accepts %s, not %q", f.r.Model, strings.Join(f.model.Efforts, ", "), cfg.Effort)
		}
		if near := endpoint.NearestEffort(cfg.Effort, f.p.Efforts); near != cfg.Effort && near != "" {
			own := *cfg
			own.Effort = near
			f.r.Reasoning = &own
		}
	}
	// If the response is not stored, the model gets its own reasoning back only if the request asks
	// for it.
	if f.stored() == "false" && f.reasons() && f.p.Reasoning == endpoint.ReasoningAll &&
		!slices.Contains(f.r.Include, api.IncludeEncryptedReasoning) && !slices.Contains(f.p.Omit, "include") {
		f.r.Include = append(slices.Clip(f.r.Include), api.IncludeEncryptedReasoning)
	}
	return nil
}

// stored returns the member store, or "" if it is absent.
func (f *fitting) stored() string {
	if v, ok := f.r.Extra.Get("store"); ok {
		return string(v)
	}
	if f.r.Store == nil {
		return ""
	}
	return fmt.Sprint(*f.r.Store)
}

func (f *fitting) reasons() bool {
	return f.model.Reasoning == endpoint.Yes || f.model.Reasoning == endpoint.Unknown && f.r.Reasoning != nil
}

// sampling handles temperature and top_p.
func (f *fitting) sampling() error {
	effort := ""
	if f.r.Reasoning != nil {
		effort = f.r.Reasoning.Effort
	}
	if f.model.TakesSampling(effort) {
		return nil
	}
	for _, name := range []string{"temperature", "top_p"} {
		if has(f.r, name) {
			return f.refuse(name, "leave it out", "the model %s does not accept it", f.r.Model)
		}
	}
	return nil
}

// features refuses parts of the API that the endpoint does not have.
func (f *fitting) features() error {
	for _, feature := range []struct {
		param string
		there endpoint.Support
		used  bool
		hint  string
	}{
		{"previous_response_id", f.p.PreviousResponse, f.r.PreviousResponseID != "", "send the whole history instead"},
		{"conversation", f.p.Conversations, f.r.Conversation != "", "send the whole history instead"},
		{"background", f.p.Background, f.r.Background != nil && *f.r.Background, "leave it out and stay connected"},
	} {
		if feature.used && feature.there == endpoint.No {
			return f.refuse(feature.param, feature.hint, "this endpoint does not support it")
		}
	}
	return nil
}

// tools handles types of tools, and refuses a choice that is not JSON and tools that lack
// what every endpoint requires.
func (f *fitting) tools() error {
	if _, err := api.ParseToolChoice(f.r.ToolChoice); err != nil {
		return f.refuse("tool_choice", "", "%v", err)
	}
	for i, t := range f.r.Tools {
		if field, member := item.MissingOption(t); field != "" {
			return f.refuse(fmt.Sprintf("tools[%d]", i), fmt.Sprintf("set %s of the %T", field, t), "a tool of type %s needs %s", t.ToolType(), member)
		}
	}
	if f.p.Tools == nil || f.p.OtherTools == endpoint.Keep {
		return nil
	}
	var kept []item.Tool
	for i, t := range f.r.Tools {
		if slices.Contains(f.p.Tools, t.ToolType()) {
			kept = append(kept, t)
		} else if f.p.OtherTools == endpoint.Refuse {
			return f.refuse(fmt.Sprintf("tools[%d]", i), "", "this endpoint does not accept tools of type %s", t.ToolType())
		}
	}
	if f.r.Tools = kept; len(kept) == 0 {
		f.r.ToolChoice, f.r.ParallelToolCalls = "", nil
	}
	return nil
}

// instructions moves leading system and developer messages into the instructions. [fitting.input]
// removes them from the input.
func (f *fitting) instructions() error {
	if f.p.Instructions == endpoint.Leading {
		var texts []string
		if f.r.Instructions != "" {
			texts = append(texts, f.r.Instructions)
		}
		for i := range leading(f.r.Input) {
			m, err := item.As[item.Message](f.r.Input.At(i))
			if err != nil {
				return err
			}
			if text := m.Content.Display(); strings.TrimSpace(text) != "" {
				texts = append(texts, text)
			}
		}
		f.r.Instructions = strings.Join(texts, "\n\n")
	}
	if f.p.NeedsInstructions && strings.TrimSpace(f.r.Instructions) == "" {
		return f.refuse("instructions", "begin with a system message", "this endpoint requires instructions")
	}
	return nil
}

// Nothing returns an error for a request without input and without anything to continue from.
func Nothing(r *api.Request, p *endpoint.Profile) error {
	_, text := r.Extra.Get("input")
	if r.Input.Len() > 0 || text || r.PreviousResponseID != "" || r.Conversation != "" || r.Prompt != nil {
		return nil
	}
	return &endpoint.RefusedError{By: p.Name, Param: "input", Problem: "the request has no input"}
}

// leading returns the number of system and developer messages at the beginning of a list.
func leading(l *item.List) int {
	for i, it := range l.All() {
		if role := it.Role(); it.Type() != item.TypeMessage || role != item.RoleSystem && role != item.RoleDeveloper {
			return i
		}
	}
	return l.Len()
}

// members maps the name of a request's member to its field. The model and the input are missing,
// because no request can do without them.
var members = map[string]func(*api.Request) any{
	"instructions":           func(r *api.Request) any { return &r.Instructions },
	"tool_choice":            func(r *api.Request) any { return &r.ToolChoice },
	"parallel_tool_calls":    func(r *api.Request) any { return &r.ParallelToolCalls },
	"store":                  func(r *api.Request) any { return &r.Store },
	"background":             func(r *api.Request) any { return &r.Background },
	"include":                func(r *api.Request) any { return &r.Include },
	"max_output_tokens":      func(r *api.Request) any { return &r.MaxOutputTokens },
	"max_tool_calls":         func(r *api.Request) any { return &r.MaxToolCalls },
	"temperature":            func(r *api.Request) any { return &r.Temperature },
	"top_p":                  func(r *api.Request) any { return &r.TopP },
	"reasoning":              func(r *api.Request) any { return &r.Reasoning },
	"text":                   func(r *api.Request) any { return &r.Text },
	"previous_response_id":   func(r *api.Request) any { return &r.PreviousResponseID },
	"prompt_cache_key":       func(r *api.Request) any { return &r.PromptCacheKey },
	"safety_identifier":      func(r *api.Request) any { return &r.SafetyIdentifier },
	"service_tier":           func(r *api.Request) any { return &r.ServiceTier },
	"truncation":             func(r *api.Request) any { return &r.Truncation },
	"user":                   func(r *api.Request) any { return &r.User },
	"metadata":               func(r *api.Request) any { return &r.Metadata },
	"stream_options":         func(r *api.Request) any { return &r.StreamOptions },
	"top_logprobs":           func(r *api.Request) any { return &r.TopLogprobs },
	"conversation":           func(r *api.Request) any { return &r.Conversation },
	"context_management":     func(r *api.Request) any { return &r.ContextManagement },
	"prompt":                 func(r *api.Request) any { return &r.Prompt },
	"prompt_cache_options":   func(r *api.Request) any { return &r.PromptCacheOptions },
	"prompt_cache_retention": func(r *api.Request) any { return &r.PromptCacheRetention },
	"moderation":             func(r *api.Request) any { return &r.Moderation },
	"tools":                  func(r *api.Request) any { return &r.Tools },
}

// has reports whether the request has the named member.
func has(r *api.Request, name string) bool {
	if at := members[name]; at != nil && !reflect.ValueOf(at(r)).Elem().IsZero() {
		return true
	}
	_, there := r.Extra.Get(name)
	return there
}

// leaveOut removes the named member from r, which is a shallow copy of the caller's request.
func leaveOut(r *api.Request, name string) {
	if at := members[name]; at != nil {
		reflect.ValueOf(at(r)).Elem().SetZero()
	}
	r.Extra = slices.DeleteFunc(slices.Clone(r.Extra), func(m item.Member) bool { return m.Name == name })
}

// set sets the named member, whatever its value was.
func set(r *api.Request, name string, value item.JSON) {
	leaveOut(r, name)
	r.Extra.Set(name, value)
}
