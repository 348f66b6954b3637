// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// odd are values that a member may have where the schema says otherwise.
var odd = []any{nil, true, json.Number("5"), json.Number("1.50"), json.Number("12345678901234567890"), "", "s", []any{}, []any{nil}, []any{json.Number("5")},
	[]any{map[string]any{}}, map[string]any{}, map[string]any{"type": "invented", "x": []any{json.Number("1")}}}

// mutants calls f with copies of the object in which one member, at any depth,
// is gone, is odd, or has an unknown one beside it.
func mutants(t *testing.T, s string, f func(what, mutant string)) {
	t.Helper()
	root, _ := plainNumbers(t, s).(object)
	give := func(what string) {
		b, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		f(what, string(b))
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case object:
			v["x_unknown"] = []any{json.Number("1.0"), nil}
			give(path + " with an unknown member")
			delete(v, "x_unknown")
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if name == "type" && path == "" {
					continue // it would be another item
				}
				at, old := path+"."+name, v[name]
				delete(v, name)
				give(at + " gone")
				for _, o := range odd {
					v[name] = o
					give(at)
				}
				v[name] = old
				walk(at, old)
			}
		case []any:
			for i, e := range v {
				for _, o := range odd {
					v[i] = o
					give(path + "[]")
				}
				v[i] = e
				walk(path+"[]", e)
			}
		}
	}
	walk("", root)
}

func plainNumbers(t *testing.T, s string) any {
	t.Helper()
	return denormal(plain(t, s))
}

// denormal makes numbers encode as they are.
func denormal(v any) any {
	switch v := v.(type) {
	case object:
		for k := range v {
			v[k] = denormal(v[k])
		}
	case []any:
		for i := range v {
			v[i] = denormal(v[i])
		}
	}
	return v
}

// onlyShape fails the test unless err is of the value's shape.
func onlyShape(t *testing.T, what string, err error) {
	t.Helper()
	var shape *item.ShapeError
	if !errors.As(err, &shape) {
		t.Errorf("%s: %v", what, err)
	}
}

// W6 W7 W11: what a struct has no field for is not lost and not changed,
// wherever it stands; or, where a client would act on it, it is a typed error.
func TestItemsLoseNothing(t *testing.T) {
	kept, refused := 0, 0
	for _, v := range values {
		it := encode(t, v.value)
		mutants(t, it.JSON(), func(what, mutant string) {
			it := parse(t, mutant)
			got, err := it.Decode()
			if err != nil {
				refused++
				onlyShape(t, what, err)
				return
			}
			kept++
			sameJSON(t, string(it.Type())+what, encode(t, got).JSON(), typed(it))
		})
	}
	t.Logf("%d kept, %d refused", kept, refused)
}

// W6 W7 W11
func TestToolsLoseNothing(t *testing.T) {
	kept, refused := 0, 0
	for _, tool := range tools {
		data := body(t, (&api.Request{Tools: []item.Tool{tool}}).AppendJSON)
		mutants(t, data, func(what, mutant string) {
			r, err := api.ParseRequest([]byte(mutant))
			if err != nil {
				refused++
				onlyShape(t, what, err)
				return
			}
			kept++
			sameJSON(t, tool.ToolType()+what, body(t, r.AppendJSON), mutant)
		})
	}
	t.Logf("%d kept, %d refused", kept, refused)
}

// bodies is one full body of every kind, with the function that reads and
// writes it.
func bodies(t *testing.T) map[string]func(string) (string, error) {
	t.Helper()
	return map[string]func(string) (string, error){
		fullRequestJSON: reread(api.ParseRequest),
		`{"id":"resp_1","object":"response","created_at":1,"status":"failed","error":{"code":"server_error","message":"m"},"incomplete_details":{"reason":"content_filter"},` +
			`"model":"m","output":[` + someReply + `],"usage":` + someUsage + `,"background":false,"completed_at":2.5,"conversation":{"id":"conv_1"},"instructions":"i",` +
			`"max_output_tokens":16,"max_tool_calls":1,"metadata":{"a":"b"},"moderation":{"input":{"type":"error","code":"c","message":"m"},"output":{"type":"moderation_result","model":"m",` +
			`"flagged":true,"categories":{"c":true},"category_scores":{"c":0.5},"category_applied_input_types":{"c":["text"]}}},"output_text":"x","parallel_tool_calls":true,` +
			`"previous_response_id":"resp_0","prompt":{"id":"p","version":"1","variables":{"a":"b"}},"prompt_cache_key":"k","prompt_cache_options":{"mode":"implicit","ttl":"30m"},` +
			`"prompt_cache_retention":"24h","reasoning":{"effort":"low"},"safety_identifier":"s","service_tier":"auto","temperature":1,"text":{"verbosity":"low"},"tool_choice":"auto",` +
			`"tools":[],"top_logprobs":0,"top_p":0.5,"truncation":"auto","user":"u"}`: reread(api.ParseResponse),
		`{"model":"m","input":[` + someReply + `],"instructions":"i","previous_response_id":"r","prompt_cache_key":"k","prompt_cache_options":{"mode":"implicit"},` +
			`"prompt_cache_retention":"24h","service_tier":"auto"}`: reread(api.ParseCompactRequest),
		`{"id":"r","object":"response.compaction","created_at":1,"output":[` + someReply + `],"usage":` + someUsage + `}`: reread(api.ParseCompacted),
		`{"model":"m","input":[` + someReply + `],"instructions":"i","tools":[],"tool_choice":"auto","parallel_tool_calls":true,"text":{},"reasoning":{},"truncation":"auto",` +
			`"previous_response_id":"r","conversation":"c","personality":"friendly"}`: reread(api.ParseTokenCountRequest),
		`{"object":"response.input_tokens","input_tokens":5}`:                                              reread(api.ParseTokenCount),
		`{"id":"conv_1","object":"conversation","created_at":1,"metadata":{"a":"b"}}`:                      reread(api.ParseConversation),
		`{"items":[` + someReply + `],"metadata":{"a":"b"}}`:                                               reread(api.ParseCreateConversation),
		`{"metadata":{"a":"b"}}`:                                                                           reread(api.ParseUpdateConversation),
		`{"items":[` + someReply + `]}`:                                                                    reread(api.ParseAddItems),
		`{"object":"list","data":[` + someReply + `],"first_id":"a","last_id":"b","has_more":true}`:        reread(api.ParseItemPage),
		`{"id":"conv_1","object":"conversation.deleted","deleted":true}`:                                   reread(api.ParseDeleted),
		`{"error":{"code":"c","type":"t","message":"m","param":"p","headers":{"A":"b"}}}`:                  reread(api.ParseErrorBody),
		`{"type":"response.create","stream_id":"s","model":"m","input":[` + someReply + `],"store":false}`: rereadClientEvent,
	}
}

const (
	someReply = `{"type":"message","id":"m","status":"completed","role":"assistant","content":[]}`
	someUsage = `{"input_tokens":1,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":3}`

	fullRequestJSON = `{"model":"m","input":[` + someReply + `],"instructions":"i","tools":[{"type":"web_search"}],"tool_choice":"auto","parallel_tool_calls":true,"stream":true,` +
		`"stream_options":{"include_obfuscation":false},"store":false,"background":false,"include":["message.output_text.logprobs"],"max_output_tokens":16,"max_tool_calls":1,` +
		`"temperature":0.5,"top_p":1,"top_logprobs":3,"reasoning":{"effort":"low","summary":"auto","context":"auto","mode":"pro","generate_summary":"auto"},` +
		`"text":{"format":{"type":"text"},"verbosity":"low"},"previous_response_id":"r","conversation":{"id":"c"},"context_management":[{"type":"compaction","compact_threshold":2000}],` +
		`"prompt":{"id":"p","version":"1","variables":{"a":"b"}},"prompt_cache_key":"k","prompt_cache_options":{"mode":"explicit","ttl":"30m"},"prompt_cache_retention":"24h",` +
		`"moderation":{"model":"m","policy":{"input":{"mode":"block"},"output":{"mode":"score"}}},"safety_identifier":"s","service_tier":"auto","truncation":"auto","user":"u","metadata":{"a":"b"}}`
)

// reread reads a body and writes it again.
func reread[P interface {
	AppendJSON(dst []byte) ([]byte, error)
}](read func([]byte) (P, error)) func(string) (string, error) {
	return func(s string) (string, error) {
		v, err := read([]byte(s))
		if err != nil {
			return "", err
		}
		out, err := v.AppendJSON(nil)
		return string(out), err
	}
}

func rereadClientEvent(s string) (string, error) {
	v, err := api.ParseClientEvent([]byte(s))
	if err != nil {
		return "", err
	}
	out, err := api.AppendClientEvent(nil, v)
	return string(out), err
}

// W6 W7 W11
func TestBodiesLoseNothing(t *testing.T) {
	kept, refused := 0, 0
	for full, again := range bodies(t) {
		if got, err := again(full); err != nil || len(got) == 0 {
			t.Errorf("%v in %s", err, full)
		}
		mutants(t, full, func(what, mutant string) {
			got, err := again(mutant)
			if err != nil {
				refused++
				onlyShape(t, what, err)
				return
			}
			kept++
			sameJSON(t, what+" of "+full[:20], got, mutant)
		})
	}
	t.Logf("%d kept, %d refused", kept, refused)
}
