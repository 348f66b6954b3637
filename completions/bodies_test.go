// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
)

func (d *dice) chatTool() any {
	switch d.pick(4) {
	case 0:
		return obj{"type": "custom", "custom": d.maybe(obj{"name": d.tok(), "format": obj{"type": "grammar", "grammar": obj{"syntax": "lark", "definition": d.tok()}}}, "description", "foreign")}
	case 1:
		return obj{"type": "tomorrow", "x": d.tok()}
	}
	return d.maybe(obj{"type": "function", "function": d.maybe(obj{"name": d.tok(), "parameters": obj{"type": "object", "title": d.tok()}}, "description", "foreign")}, "foreign")
}

func (d *dice) chatRequest() obj {
	r := d.maybe(obj{"model": d.tok(), "messages": d.chatMessages()}, "service_tier", "user", "safety_identifier", "prompt_cache_key",
		"prompt_cache_retention", "verbosity", "reasoning_effort", "stop", "foreign")
	if d.chance(50) {
		r["tools"] = d.list(0, 3, d.chatTool)
	}
	for name, v := range map[string]any{
		"metadata": obj{"a": d.tok()}, "logit_bias": obj{d.tok(): 1}, "modalities": []any{d.tok()}, "prediction": obj{"type": d.tok()},
		"tool_choice":        obj{"type": "function", "function": obj{"name": d.tok()}},
		"response_format":    obj{"type": "json_schema", "json_schema": obj{"name": d.tok(), "schema": obj{"title": d.tok()}, "foreign": d.tok()}},
		"reasoning":          obj{"effort": d.tok(), "foreign": d.tok()},
		"web_search_options": obj{"search_context_size": d.tok(), "user_location": obj{"type": "approximate", "approximate": obj{"city": d.tok(), "foreign": d.tok()}}},
		"functions":          []any{obj{"name": d.tok()}}, "function_call": obj{"name": d.tok()},
		"stream_options": obj{"include_usage": true, "foreign": d.tok()},
	} {
		if d.chance(30) {
			r[name] = v
		}
	}
	return r
}

// What a request says is in the other, or is named.
func TestRequestsLoseNothingUnnamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &dice{T: t}
		body := d.chatRequest()
		text := marshal(body)
		r, losses, err := completions.ParseRequest(text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		got, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if missing := unaccounted(body, "", string(got), losses); missing != nil {
			t.Fatalf("lost without a word: %q\nfrom %s\nto   %s\n%v", missing, text, got, losses)
		}
		back, losses, err := completions.AppendRequest(nil, r, completions.Options{Reasoning: completions.ReasoningDetails})
		if err != nil {
			t.Fatalf("%v in %s", err, got)
		}
		if missing := unaccounted(anyOf(string(got)), "", string(back), losses); missing != nil {
			t.Fatalf("lost without a word on the way back: %q\nfrom %s\nto   %s\n%v", missing, got, back, losses)
		}
	})
}

func (d *dice) completion() obj {
	m, _ := d.assistant()
	choice := d.maybe(obj{"index": 0, "message": m, "finish_reason": []string{"stop", "length", "content_filter", "tool_calls"}[d.pick(4)]}, "foreign")
	if d.chance(30) {
		choice["logprobs"] = obj{"content": []any{obj{"token": d.tok(), "logprob": -1, "bytes": nil, "top_logprobs": []any{}}}}
	}
	r := d.maybe(obj{"id": d.tok(), "object": "chat.completion", "created": 1, "model": d.tok(), "choices": []any{choice}}, "service_tier", "system_fingerprint", "foreign")
	if d.chance(50) {
		r["usage"] = obj{
			"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "foreign": d.tok(),
			"prompt_tokens_details": obj{"cached_tokens": 3, "foreign": d.tok()}, "completion_tokens_details": obj{"reasoning_tokens": 2, "foreign": d.tok()},
		}
	}
	if d.chance(20) {
		r["choices"] = append(anyList(r["choices"]), obj{"index": 1, "message": obj{"role": "assistant", "content": d.tok()}})
	}
	return r
}

// What a completion says is in the response, or is named; and back.
func TestResponsesLoseNothingUnnamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &dice{T: t}
		body := d.completion()
		text := marshal(body)
		r, losses, err := completions.ParseResponse(text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		got, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if missing := unaccounted(body, "", string(got), losses); missing != nil {
			t.Fatalf("lost without a word: %q\nfrom %s\nto   %s\n%v", missing, text, got, losses)
		}
		back, losses, err := completions.AppendResponse(nil, r, completions.Options{Reasoning: completions.ReasoningDetails})
		if err != nil {
			t.Fatalf("%v in %s", err, got)
		}
		if missing := unaccounted(anyOf(string(got)), "", string(back), losses); missing != nil {
			t.Fatalf("lost without a word on the way back: %q\nfrom %s\nto   %s\n%v", missing, got, back, losses)
		}
	})
}

// pieces cuts a text in random pieces that are text themselves.
func (d *dice) pieces(s string) []string {
	var list []string
	for s != "" {
		n := min(len(s), rapid.IntRange(1, 12).Draw(d.T, "piece"))
		for n < len(s) && s[n]&0xC0 == 0x80 {
			n++
		}
		list, s = append(list, s[:n]), s[n:]
	}
	return list
}

// streamed is a completion as the chunks that a server would send.
func (d *dice) streamed(r obj) []string {
	choice := anyList(r["choices"])[0].(obj)
	m := choice["message"].(obj)
	var chunks []string
	send := func(delta obj, more obj) {
		c := obj{"index": 0, "delta": delta, "finish_reason": nil}
		for k, v := range more {
			c[k] = v
		}
		chunks = append(chunks, string(marshal(obj{
			"id": r["id"], "object": "chat.completion.chunk", "created": r["created"], "model": r["model"], "choices": []any{c},
		})))
	}
	send(obj{"role": "assistant", "content": ""}, nil)
	for _, name := range []string{"reasoning_content", "content", "refusal"} {
		s, _ := m[name].(string)
		for i, p := range d.pieces(s) {
			var more obj
			if probs := choice["logprobs"]; name == "content" && i == 0 && probs != nil {
				more = obj{"logprobs": probs}
			}
			send(obj{name: p}, more)
		}
	}
	if a := m["annotations"]; a != nil {
		send(obj{"annotations": a}, nil)
	}
	calls := anyList(m["tool_calls"])
	repeat := d.chance(30) // the id, in each chunk
	for i, c := range calls {
		holder, input := "function", "arguments"
		if get(c, "custom") != nil {
			holder, input = "custom", "input"
		}
		name, args := get(c, holder, "name"), get(c, holder, input).(string)
		send(obj{"tool_calls": []any{obj{"index": i, "id": get(c, "id"), "type": holder, holder: obj{"name": name, input: ""}}}}, nil)
		for _, p := range d.pieces(args) {
			one := obj{"index": i, holder: obj{input: p}}
			if repeat {
				one["id"] = get(c, "id")
			}
			send(obj{"tool_calls": []any{one}}, nil)
		}
	}
	send(obj{}, obj{"finish_reason": choice["finish_reason"]})
	if u := r["usage"]; u != nil {
		chunks = append(chunks, string(marshal(obj{"id": r["id"], "choices": []any{}, "usage": u})))
	}
	return chunks
}

// plain is a completion without what cannot be streamed in an order of its own.
func (d *dice) plain() obj {
	text := rapid.StringMatching(`[a-z"\\ \n€😀]{1,40}`)
	m := obj{"role": "assistant", "content": nil}
	for _, name := range []string{"reasoning_content", "content", "refusal"} {
		if d.chance(50) {
			m[name] = text.Draw(d.T, name)
		}
	}
	if m["content"] != nil && d.chance(30) {
		m["annotations"] = d.list(1, 2, d.annotation)
	}
	if d.chance(60) {
		m["tool_calls"] = d.list(1, 3, func() any {
			if d.chance(30) {
				return obj{"id": d.tok(), "type": "custom", "custom": obj{"name": d.tok(), "input": text.Draw(d.T, "input")}}
			}
			return obj{"id": d.tok(), "type": "function", "function": obj{"name": d.tok(), "arguments": `{"a":` + strconv.Quote(d.tok()) + `}`}}
		})
	}
	choice := obj{"index": 0, "message": m, "finish_reason": []string{"stop", "length", "content_filter", "tool_calls"}[d.pick(4)]}
	if s, _ := m["content"].(string); s != "" && d.chance(30) {
		choice["logprobs"] = obj{"content": []any{obj{"token": "a", "logprob": -0.5, "bytes": []any{97}, "top_logprobs": []any{}}}}
	}
	r := obj{"id": d.tok(), "object": "chat.completion", "created": 1, "model": d.tok(), "choices": []any{choice}}
	if d.chance(50) {
		r["usage"] = obj{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	}
	return r
}

// S4, S5, S9, I11: a stream makes the same response as the completion in one
// piece, and its chunks go back to a stream that makes it again.
func TestStreamEqualsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &dice{T: t}
		body := d.plain()
		want, _, err := completions.ParseResponse(marshal(body))
		if err != nil {
			t.Fatal(err)
		}
		chunks := d.streamed(body)
		got := decode(t, chunks)
		if got.err != nil {
			t.Fatal(got.err)
		}
		r, whole := got.acc.Response()
		if !whole {
			t.Fatal("no last event")
		}
		if d := diffResponse(want, r); d != "" {
			t.Fatalf("stream (-whole +streamed):\n%s\n%s", d, strings.Join(chunks, "\n"))
		}
		var e completions.Encoder
		e.Options.Reasoning = completions.ReasoningContent
		var again []string
		for _, ev := range got.events {
			if err := e.Encode(ev, func(c []byte) error { again = append(again, string(c)); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		second := decode(t, again)
		r2, _ := second.acc.Response()
		if d := diffResponse(r, r2); second.err != nil || d != "" {
			t.Fatalf("again: %v (-first +second):\n%s", second.err, d)
		}
	})
}

func diffResponse(a, b *api.Response) string {
	text := func(r *api.Response) any {
		body, err := r.AppendJSON(nil)
		if err != nil {
			panic(err)
		}
		return anyOf(string(body))
	}
	return cmp.Diff(text(a), text(b))
}
