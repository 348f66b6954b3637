// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"slices"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// echoed are the members of the request that the response repeats, with their
// defaults; "" omits the member. The Open Responses specification requires all of
// them except user.
var echoed = item.Extra{
	{Name: "instructions", Value: "null"},
	{Name: "metadata", Value: "{}"},
	{Name: "parallel_tool_calls", Value: "true"},
	{Name: "temperature", Value: "1"},
	{Name: "text", Value: `{"format":{"type":"text"}}`},
	{Name: "tool_choice", Value: `"auto"`},
	{Name: "tools", Value: "[]"},
	{Name: "top_p", Value: "1"},
	{Name: "truncation", Value: `"disabled"`},
	{Name: "background", Value: "false"},
	{Name: "max_output_tokens", Value: "null"},
	{Name: "max_tool_calls", Value: "null"},
	{Name: "previous_response_id", Value: "null"},
	{Name: "prompt_cache_key", Value: "null"},
	{Name: "reasoning", Value: `{"effort":null,"summary":null}`},
	{Name: "safety_identifier", Value: "null"},
	{Name: "presence_penalty", Value: "0"},
	{Name: "frequency_penalty", Value: "0"},
	{Name: "top_logprobs", Value: "0"},
	{Name: "service_tier", Value: `"default"`},
	{Name: "user"},
}

// required are the members that objects in an echo must have, by the member of the response or their type,
// with the meaning of a missing member. The description of a format is never null in the API.
var required = map[string]item.Extra{
	"reasoning":   {{Name: "effort", Value: "null"}, {Name: "summary", Value: "null"}},
	"text member": {{Name: "format", Value: `{"type":"text"}`}},
	"json_schema": {{Name: "description", Value: `""`}, {Name: "strict", Value: "false"}},
	"function":    {{Name: "description", Value: "null"}, {Name: "parameters", Value: "null"}, {Name: "strict", Value: "true"}},
}

// echo returns a member of the request in the form that the response repeats. What the API does not
// have is for the backend, and not repeated, because a response has only what the API has. ok is false if nothing is left.
func echo(name string, v item.JSON) (_ item.JSON, ok bool, _ error) {
	if i := slices.IndexFunc(bodyShapes, func(one bodyShape) bool { return one.name == name }); i >= 0 {
		known, ok := bodyShapes[i].known(string(v))
		if !ok {
			return "", false, nil
		}
		v = item.JSON(known)
	}
	v, err := whole(name, v)
	return v, true, err
}

// whole returns a member of a response with all that the API requires of it.
func whole(name string, v item.JSON) (item.JSON, error) {
	switch name {
	case "service_tier":
		if v == `"auto"` {
			v = `"default"`
		}
	case "reasoning":
		object, err := filled(v, name)
		return item.JSON(object.JSON()), err
	case "text":
		object, err := filled(v, "text member")
		if err != nil {
			return "", err
		}
		format, _ := object.Member("format")
		inner, err := filled(format, "")
		if err != nil {
			return "", err
		}
		object, err = object.With("format", item.JSON(inner.JSON()))
		return item.JSON(object.JSON()), err
	case "tools":
		return echoTools(v)
	}
	return v, nil
}

// echoTools returns tools with all members of functions.
func echoTools(v item.JSON) (item.JSON, error) {
	tools, err := item.ParseList(string(v))
	if err != nil {
		return "", err
	}
	for i := range tools {
		if tools[i].Type() == item.ToolMCP {
			tools[i] = tools[i].Without("authorization", "headers") // secrets of the client
		}
		if tools[i], err = filled(item.JSON(tools[i].JSON()), ""); err != nil {
			return "", err
		}
	}
	b, err := item.NewList(tools...).MarshalJSON()
	return item.JSON(b), err
}

// filled returns an object with the members that its kind requires. The default kind
// is its type.
func filled(v item.JSON, kind string) (item.Item, error) {
	object, err := item.ParseString(string(v))
	if err != nil {
		return object, err
	}
	for _, m := range required[cmp.Or(kind, string(object.Type()))] {
		if v, ok := object.Member(m.Name); ok && v != "null" {
			continue
		}
		if object, err = object.With(m.Name, m.Value); err != nil {
			return object, err
		}
	}
	return object, nil
}

// base returns the members that the events of a response repeat.
func (s *Server) base(r *Request, id string) (api.Response, error) {
	base := api.Response{ID: id, Model: r.Model, CreatedAt: new(s.now())}
	if r.conversation != "" {
		base.Conversation = &api.ConversationRef{ID: r.conversation}
	}
	unsaid := []string{"error", "incomplete_details", "completed_at", "usage"}
	base.Extra = make(item.Extra, 0, len(unsaid)+1+len(echoed))
	for _, name := range unsaid {
		base.Extra = append(base.Extra, item.Member{Name: name, Value: "null"})
	}
	var err error
	base.Extra, err = s.echo(base.Extra, r)
	return base, err
}

// echo appends the members of a request that every response repeats.
func (s *Server) echo(list item.Extra, r *Request) (item.Extra, error) {
	store := item.Member{Name: "store", Value: "false"}
	if s.keeps(r.Request) {
		store.Value = "true"
	}
	list = append(list, store)
	for _, m := range echoed {
		if v, ok := r.Object.Member(m.Name); ok && v != "null" {
			switch v, ok, err := echo(m.Name, v); {
			case err != nil:
				return nil, err
			case ok:
				m.Value = v
			}
		}
		if m.Value != "" {
			list = append(list, m)
		}
	}
	return list, nil
}
