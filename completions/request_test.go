// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
)

// I9, I11: members of a request, there and back. The messages are left out.
func TestRequestMembers(t *testing.T) {
	const said = `"messages":[{"role":"user","content":"a"}]`
	const input = `"input":[{"type":"message","content":"a","role":"user"}]`
	for _, c := range []struct {
		name, chat, api string
		back            string // "" is chat
		losses, lost    string // there, and back
		o               completions.Options
	}{
		{name: "sampling", chat: `"max_completion_tokens":100,"temperature":0.5,"top_p":1`, api: `"max_output_tokens":100,"temperature":0.5,"top_p":1`},
		{name: "the older limit", chat: `"max_tokens":100`, api: `"max_output_tokens":100`, o: completions.Options{MaxTokens: "max_tokens"}, losses: "max_tokens: the older form: becomes max_output_tokens"},
		{name: "limits that differ", chat: `"max_tokens":100,"max_completion_tokens":50`, api: `"max_output_tokens":50`, back: `"max_completion_tokens":50`, losses: "max_tokens: differs from max_completion_tokens"},
		{name: "reasoning", chat: `"reasoning_effort":"low"`, api: `"reasoning":{"effort":"low"}`},
		{name: "OpenRouter's reasoning", chat: `"reasoning":{"effort":"low","max_tokens":5}`, api: `"reasoning":{"effort":"low","max_tokens":5}`},
		{name: "log probabilities", chat: `"logprobs":true,"top_logprobs":2`, api: `"include":["message.output_text.logprobs"],"top_logprobs":2`},
		{name: "a format with a schema", chat: `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"anyOf":[]},"strict":true}}`, api: `"text":{"format":{"type":"json_schema","name":"n","schema":{"anyOf":[]},"strict":true}}`},
		{name: "other formats, and verbosity", chat: `"verbosity":"low","response_format":{"type":"json_object"}`, api: `"text":{"format":{"type":"json_object"},"verbosity":"low"}`},
		{name: "tools", chat: `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"$ref":"#/x"},"strict":true}}],"tool_choice":"required","parallel_tool_calls":false`,
			api: `"tools":[{"type":"function","name":"f","description":"d","parameters":{"$ref":"#/x"},"strict":true}],"tool_choice":"required","parallel_tool_calls":false`},
		{name: "strict is said", chat: `"tools":[{"type":"function","function":{"name":"f"}}]`, api: `"tools":[{"type":"function","name":"f","strict":false}]`},
		{name: "custom tools", chat: `"tools":[{"type":"custom","custom":{"name":"c","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: X"}}}}],"tool_choice":{"type":"custom","custom":{"name":"c"}}`,
			api: `"tools":[{"type":"custom","name":"c","format":{"type":"grammar","syntax":"lark","definition":"start: X"}}],"tool_choice":{"type":"custom","name":"c"}`},
		{name: "allowed tools", chat: `"tools":[{"type":"tomorrow","x":1}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}`,
			api: `"tools":[{"type":"tomorrow","x":1}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`},
		{name: "functions, as they were before tools", chat: `"functions":[{"name":"f"}],"function_call":{"name":"f"}`, api: `"tools":[{"type":"function","name":"f","strict":false}],"tool_choice":{"type":"function","name":"f"}`,
			back: `"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}`, losses: "functions: the older form: become tools\nfunction_call: the older form: becomes the tool choice"},
		{name: "web search", chat: `"web_search_options":{"search_context_size":"low","user_location":{"type":"approximate","approximate":{"city":"Bergen"}}}`,
			api: `"tools":[{"type":"web_search","user_location":{"type":"approximate","city":"Bergen"},"search_context_size":"low"}]`},
		{name: "what is the same", chat: `"store":false,"metadata":{"a":"b"},"service_tier":"flex","user":"u","safety_identifier":"s","prompt_cache_key":"k","prompt_cache_retention":"24h"`,
			api: `"store":false,"prompt_cache_key":"k","safety_identifier":"s","service_tier":"flex","user":"u","metadata":{"a":"b"},"prompt_cache_retention":"24h"`},
		{name: "a stream", chat: `"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}`, api: `"stream":true,"stream_options":{"include_obfuscation":false}`},
		{name: "a stream that cannot be asked for its usage", chat: `"stream":true`, api: `"stream":true`, o: completions.Options{NoUsage: true}},
		{name: "what only chat has is lost", chat: `"stop":["x"],"n":2,"seed":7`, api: ``, back: ``, losses: "stop: has no counterpart\nseed: has no counterpart\nn: a response has one choice"},
		{name: "what neither has is kept", chat: `"provider":{"order":["a"]}`, api: `"provider":{"order":["a"]}`},
		{name: "hosted tools", api: `"tools":[{"type":"file_search","vector_store_ids":["v"]}],"tool_choice":{"type":"file_search"}`,
			lost: "tools[0]: a tool of the type file_search has no counterpart and is left out\ntool_choice: a choice of the type file_search has no counterpart"},
		{name: "I9: no tools, then neither field", api: `"tools":[],"tool_choice":"auto"`, lost: "tool_choice: is left out: there are no tools"},
		{name: "what only responses have is lost", api: `"truncation":"auto"`, lost: "truncation: has no counterpart"},
	} {
		join := func(first, rest string) string {
			if rest == "" {
				return "{" + first + "}"
			}
			return "{" + first + "," + rest + "}"
		}
		back := c.chat
		if c.back != "" || c.losses != "" && c.api == "" {
			back = c.back
		}
		if c.chat != "" {
			r, losses, err := completions.ParseRequest([]byte(join(said, c.chat)))
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			body, err := r.AppendJSON(nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(anyOf(join(input, c.api)), anyOf(string(body))); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, d)
			}
			if d := cmp.Diff(c.losses, lines(losses)); d != "" {
				t.Errorf("%s: losses (-want +got):\n%s", c.name, d)
			}
		}
		r, err := api.ParseRequest([]byte(join(input, c.api)))
		if err != nil {
			t.Fatal(err)
		}
		body, losses, err := completions.AppendRequest([]byte("x"), r, c.o)
		if err != nil || body[0] != 'x' {
			t.Errorf("%s: %v, %s", c.name, err, body)
			continue
		}
		if d := cmp.Diff(anyOf(join(said, back)), anyOf(string(body[1:]))); d != "" {
			t.Errorf("%s, back (-want +got):\n%s", c.name, d)
		}
		if d := cmp.Diff(c.lost, lines(losses)); d != "" {
			t.Errorf("%s: losses on the way back (-want +got):\n%s", c.name, d)
		}
	}
}

func TestRequestRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m"}`: "nothing to send", `7`: "found the number 7, want a request", `{"messages":[{"role":"user","content":"a"}],"tools":7}`: "tools: found the number 7",
		`{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function"}]}`:               "tools[0]: found no function",
		`{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{}}]}`: "tools[0]: found a tool without a name",
		`{"messages":[{"role":"user","content":"a"}],"tools":[7]}`:                                 "tools[0]: found the number 7",
		`{"messages":`: "invalid JSON",
	} {
		if _, _, err := completions.ParseRequest([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
	prompt := &api.Request{Input: item.NewList(item.User("a")), Prompt: &api.Prompt{ID: "p"}}
	var shape *item.ShapeError
	if out, _, err := completions.AppendRequest([]byte("x"), prompt, completions.Options{}); !errors.As(err, &shape) || shape.Path != "prompt" || string(out) != "x" {
		t.Errorf("%v, %s", err, out)
	}
}

// The instructions are the first message, also where there is no other.
func TestInstructions(t *testing.T) {
	for input, want := range map[string]string{
		`[]`:  `[{"role":"developer","content":"i"}]`,
		`"a"`: `[{"role":"developer","content":"i"},{"role":"user","content":[{"type":"text","text":"a"}]}]`,
	} {
		r, err := api.ParseRequest([]byte(`{"instructions":"i","input":` + input + `}`))
		if err != nil {
			t.Fatal(err)
		}
		body, _, err := completions.AppendRequest(nil, r, completions.Options{Roles: map[string]string{"system": "developer"}})
		if got := `{"messages":` + want + `}`; err != nil || string(body) != got {
			t.Errorf("%v\ngot  %s\nwant %s", err, body, got)
		}
	}
}
