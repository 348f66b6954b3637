// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"strconv"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// answer is one response, made in full before its first byte is sent.
type answer struct {
	id      string
	body    item.Item // the request's object, for its members
	request *item.Request
	created int64 // seconds since 1970
	outputs []output
	usage   item.Usage
	tail    time.Duration // wait before the end
}

// usageOf counts what went in and out.
func usageOf(in intake, list []output) item.Usage {
	var out, reasoning int64
	for _, o := range list {
		n := itemTokens(o.done)
		if out += n; o.done.Type() == item.TypeReasoning {
			reasoning += n
		}
	}
	return item.Usage{
		InputTokens:   in.input,
		InputDetails:  &item.InputTokensDetails{CachedTokens: in.cached, CacheWriteTokens: new(int64(0))},
		OutputTokens:  out,
		OutputDetails: &item.OutputTokensDetails{ReasoningTokens: reasoning},
		TotalTokens:   in.input + out,
	}
}

// echoed are the members of the request that the response repeats, with what
// stands there when the request has none; "" leaves the member out.
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
	{Name: "max_output_tokens"},
	{Name: "max_tool_calls"},
	{Name: "prompt_cache_key"},
	{Name: "reasoning"},
	{Name: "safety_identifier"},
	{Name: "user"},
}

// response returns the response as it stands when it begins, or, completed,
// when it ends.
func (a *answer) response(completed bool) *item.Response {
	created := item.JSON(strconv.FormatInt(a.created, 10))
	r := &item.Response{ID: a.id, Model: a.request.Model, Status: item.StatusInProgress, Output: []item.Item{}}
	r.Extra = item.Extra{{Name: "created_at", Value: created}, {Name: "error", Value: "null"}, {Name: "incomplete_details", Value: "null"}}
	if completed {
		r.Status = item.StatusCompleted
		r.Usage = &a.usage
		r.Extra.Set("completed_at", created)
		for _, o := range a.outputs {
			r.Output = append(r.Output, o.done)
		}
	}
	for _, m := range echoed {
		if v, ok := a.body.Member(m.Name); ok && v != "null" {
			m.Value = v
		}
		if m.Value != "" {
			r.Extra = append(r.Extra, m)
		}
	}
	return r
}
