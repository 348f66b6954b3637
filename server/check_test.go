// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	stdlog "log"
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
)

// V1: a member of a wrong type is refused, as the API does, and never ignored: a
// client that asks for a stream in a wrong way must not wait for one.
func TestMemberTypes(t *testing.T) {
	asked := 0
	s := &server.Server{Backend: server.BackendFunc(func(context.Context, *server.Request, *server.Writer) error {
		asked++
		return nil
	})}
	url, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	resp, err := http.Post(url+"/responses", "application/json", strings.NewReader(`[]`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "the body of your request: found a list") {
		t.Errorf("%d %s %v", resp.StatusCode, text, err)
	}
	for member, name := range map[string]string{
		`"stream":"yes"`: "stream", `"store":1`: "store", `"background":"true"`: "background", `"parallel_tool_calls":[]`: "parallel_tool_calls",
		`"temperature":"1"`: "temperature", `"top_p":{}`: "top_p", `"max_output_tokens":"100"`: "max_output_tokens", `"max_output_tokens":99.5`: "max_output_tokens",
		`"instructions":["a"]`: "instructions", `"previous_response_id":5`: "previous_response_id", `"tools":{}`: "tools", `"metadata":[]`: "metadata",
		`"reasoning":"high"`: "reasoning", `"prompt":"p"`: "prompt", `"moderation":true`: "moderation", `"context_management":{}`: "context_management",
		`"prompt_cache_options":"24h"`: "prompt_cache_options", `"prompt_cache_retention":1`: "prompt_cache_retention",
	} {
		resp, err := http.Post(url+"/responses", "application/json", strings.NewReader(`{"model":"m","input":"hi",`+member+`}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Error struct{ Code, Param string }
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v: %s", member, err, body)
		}
		if resp.StatusCode != http.StatusBadRequest || got.Error.Code != "invalid_type" || got.Error.Param != name {
			t.Errorf("%s: status %d: %s", member, resp.StatusCode, body)
		}
	}
	if asked > 0 {
		t.Errorf("the backend was asked %d times", asked)
	}
	resp, err = http.Post(url+"/responses", "application/json", strings.NewReader(`{"model":"m","input":"hi","stream":null,"temperature":null,"metadata":null,"unknown":5}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK || asked != 1 {
		t.Errorf("null is no value: status %d, asked %d times: %v", resp.StatusCode, asked, err)
	}
}

// V1: members that a response repeats have one of the values of the API, whatever the backend does with them.
func TestMemberWords(t *testing.T) {
	spec := apispec.Load(t)
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("x") })}
	defer s.Close()
	for _, test := range []struct{ member, code, param string }{
		{`"service_tier":"gold"`, "invalid_value", "service_tier"},
		{`"truncation":"maybe"`, "invalid_value", "truncation"},
		{`"reasoning":{"effort":"turbo"}`, "invalid_value", "reasoning.effort"},
		{`"reasoning":{"effort":5}`, "invalid_type", "reasoning.effort"},
		{`"reasoning":{"summary":"x"}`, "invalid_value", "reasoning.summary"},
		{`"text":{"verbosity":"loud"}`, "invalid_value", "text.verbosity"},
		{`"text":{"format":{"type":"xml"}}`, "invalid_value", "text.format.type"},
		{`"text":{"format":{}}`, "missing_required_parameter", "text.format.type"},
		{`"text":{"format":"text"}`, "invalid_type", "text.format"},
		{`"text":"plain"`, "invalid_type", "text"},
		{`"text":{"format":{"type":"json_schema","name":"a b","schema":{}}}`, "invalid_value", "text.format.name"},
		{`"text":{"format":{"type":"json_schema","name":"a"}}`, "missing_required_parameter", "text.format.schema"},
		{`"text":{"format":{"type":"json_schema","name":"a","schema":{},"strict":"yes"}}`, "invalid_type", "text.format.strict"},
		{`"tool_choice":"maybe","tools":[{"type":"function","name":"f","parameters":null}]`, "invalid_value", "tool_choice"},
		{`"tool_choice":{"type":"allowed_tools","mode":"x","tools":[{"type":"function","name":"f"}]},"tools":[{"type":"function","name":"f","parameters":null}]`, "invalid_value", "tool_choice.mode"},
		{`"tools":[{"type":"function","name":"f","parameters":null,"strict":"yes"}]`, "invalid_type", "tools[0].strict"},
		{`"tools":[{"type":"function","name":"f","parameters":null,"description":5}]`, "invalid_type", "tools[0].description"},
		{`"tool_choice":"required","tools":[{"type":"function","name":"f","parameters":null,"strict":null,"description":null}]`, "", ""},
		{`"safety_identifier":"` + strings.Repeat("é", 65) + `"`, "string_above_max_length", "safety_identifier"},
		{`"tools":[{"type":"custom","name":"c","format":{"type":"grammar","syntax":"perl","definition":"x"}}]`, "invalid_value", "tools[0].format.syntax"},
		{`"service_tier":"flex","truncation":"auto","prompt_cache_retention":"24h","reasoning":{"effort":"xhigh","summary":"concise"},"text":{"verbosity":"low","format":{"type":"json_object"}}`, "", ""},
		{`"service_tier":null,"truncation":null,"reasoning":null,"text":null,"safety_identifier":"` + strings.Repeat("é", 64) + `"`, "", ""},
		{`"reasoning":{"effort":null,"summary":null},"text":{"format":{"type":"json_schema","name":"a","description":"b","schema":{"type":"object"},"strict":null}}`, "", ""},
	} {
		status, text := call(s, http.MethodPost, "responses", `{"model":"m","input":"hi",`+test.member+`}`)
		var got struct {
			Error struct{ Code, Param string }
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%s: %v: %s", test.member, err, text)
		}
		if (status == http.StatusOK) != (test.code == "") || got.Error.Code != test.code || got.Error.Param != test.param {
			t.Errorf("%s: status %d: %s", test.member, status, text)
		}
		if status == http.StatusOK {
			spec.Check(t, "Response", []byte(text))
		}
	}
}

// A second answer to a request for approval is refused by the member that names the request.
func TestSecondAnswer(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("x") })}
	defer s.Close()
	const asked, yes = `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"f","arguments":"{}"}`, `{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true}`
	status, text := call(s, http.MethodPost, "responses", `{"model":"m","input":[`+asked+","+yes+","+yes+`]}`)
	if status != http.StatusBadRequest || !strings.Contains(text, `"param": "input[2].approval_request_id"`) {
		t.Errorf("%d %s", status, text)
	}
}

// An answer to a request for approval that is neither a yes nor a no is refused by name, and the backend does not see it.
func TestNoAnswer(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
		if r.Items[1].JSON() == "" || r.Items[1].Type() != item.TypeMCPApprovalResponse {
			t.Errorf("%s", r.Items)
		}
		return w.Text("x")
	})}
	defer s.Close()
	const asked = `{"type":"mcp_approval_request","id":"mcpr_1","server_label":"s","name":"f","arguments":"{}"}`
	for members, want := range map[string]string{
		`"approve":"true"`:               "input[1].approve': expected a boolean, but got a string",
		`"approve":1`:                    "input[1].approve': expected a boolean, but got the number 1",
		`"approve":{}`:                   "input[1].approve': expected a boolean, but got an object",
		`"approve":[]`:                   "input[1].approve': expected a boolean, but got a list",
		`"approve":null`:                 "Missing required parameter: 'input[1].approve'",
		`"reason":"x"`:                   "Missing required parameter: 'input[1].approve'",
		`"approve":true,"reason":5`:      "input[1].reason': expected a string",
		`"approve":false,"reason":null`:  "",
		`"approve":true`:                 "",
		`"approve":false,"reason":"why"`: "",
	} {
		status, text := call(s, http.MethodPost, "responses", `{"model":"m","input":[`+asked+`,{"type":"mcp_approval_response","approval_request_id":"mcpr_1",`+members+`}]}`)
		if (status == http.StatusOK) != (want == "") || status != http.StatusOK && (status != http.StatusBadRequest || !strings.Contains(text, want)) {
			t.Errorf("%s: %d %s", members, status, text)
		}
	}
}

// The same errors name the members of Chat Completions to its clients.
func TestMemberWordsOfChat(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("x") })}
	defer s.Close()
	for member, param := range map[string]string{
		`"reasoning_effort":"turbo"`: "reasoning_effort", `"verbosity":"loud"`: "verbosity", `"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}`: "response_format.json_schema.name",
		`"service_tier":"gold"`: "service_tier", `"max_tokens":1`: "max_completion_tokens",
	} {
		status, text := call(s, http.MethodPost, "chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}],`+member+`}`)
		if status != http.StatusBadRequest && param != "max_completion_tokens" || status != http.StatusOK && !strings.Contains(text, `"param": "`+param+`"`) {
			t.Errorf("%s: %d %s", member, status, text)
		}
	}
}

// V1: numbers and metadata have the limits of the API. What has others would not be a valid part
// of a response.
func TestMemberLimits(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error { return w.Text("x") })}
	defer s.Close()
	pairs := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"k%d":"v"`, i))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	quoted := func(text string, n int) string { return `"` + strings.Repeat(text, n) + `"` }
	for _, test := range []struct{ member, code, param string }{
		{`"temperature":2.1`, "decimal_above_max_value", "temperature"},
		{`"temperature":-0.5`, "decimal_below_min_value", "temperature"},
		{`"top_p":1.5`, "decimal_above_max_value", "top_p"},
		{`"top_p":-1`, "decimal_below_min_value", "top_p"},
		{`"top_logprobs":21`, "integer_above_max_value", "top_logprobs"},
		{`"top_logprobs":-1`, "integer_below_min_value", "top_logprobs"},
		{`"metadata":{"a":1}`, "invalid_type", "metadata.a"},
		{`"metadata":{"a":null}`, "invalid_type", "metadata.a"},
		{`"metadata":` + pairs(17), "object_above_max_properties", "metadata"},
		{`"metadata":{"a":` + quoted("é", 513) + `}`, "string_above_max_length", "metadata.a"},
		{`"metadata":{` + quoted("é", 65) + `:"a"}`, "string_above_max_length", "metadata"},
		{`"metadata":{"a":"b","a":"c"}`, "invalid_type", "metadata"},
		{`"model":` + quoted("m", 513), "string_above_max_length", "model"},
		{`"model":` + quoted("é", 512), "", ""},
		{`"temperature":2,"top_p":1,"top_logprobs":20,"metadata":` + pairs(16), "", ""},
		{`"temperature":0,"top_p":0,"top_logprobs":0,"metadata":{` + quoted("é", 64) + `:` + quoted("é", 512) + `}`, "", ""},
	} {
		bodies := map[string]string{"responses": `{"model":"m","input":"hi",` + test.member + `}`}
		if strings.HasPrefix(test.member, `"metadata"`) {
			bodies["conversations"] = `{` + test.member + `}`
		}
		if strings.HasPrefix(test.member, `"model"`) {
			bodies["responses"] = `{"input":"hi",` + test.member + `}`
			bodies["chat/completions"] = `{"messages":[{"role":"user","content":"hi"}],` + test.member + `}`
		}
		for path, body := range bodies {
			status, text := call(s, http.MethodPost, path, body)
			var got struct {
				Error struct{ Code, Param string }
			}
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%s: %v: %s", test.member, err, text)
			}
			if (status == http.StatusOK) != (test.code == "") || got.Error.Code != test.code || got.Error.Param != test.param {
				t.Errorf("%s, %s: status %d: %s", path, test.member, status, text)
			}
		}
	}
}

// A server without a backend says so when it starts, and not at each request.
func TestStartWithoutBackend(t *testing.T) {
	if _, _, err := new(server.Server).Start(); err == nil || !strings.Contains(err.Error(), "no Backend") {
		t.Errorf("got %v", err)
	}
}

// A server whose store is a nil pointer says so, when it starts and in its log, and looks for
// nothing in it. G8
func TestStoreIsNilPointer(t *testing.T) {
	says := server.BackendFunc(func(context.Context, *server.Request, *server.Writer) error { return nil })
	var log strings.Builder
	for name, s := range map[string]*server.Server{
		"alone":  {Backend: says, Store: (*server.Memory)(nil)},
		"beside": {Backend: says, Beside: &server.Server{Backend: says, Store: (*server.Memory)(nil)}},
	} {
		log.Reset()
		s.ErrorLog = stdlog.New(&log, "", 0)
		if _, _, err := s.Start(); err == nil || !strings.Contains(err.Error(), "nil *server.Memory") {
			t.Errorf("%s: %v", name, err)
		}
		s.Resume()
		if status, text := call(s, http.MethodGet, "responses/resp_1", ""); status != http.StatusInternalServerError || !strings.Contains(log.String(), "nil *server.Memory") {
			t.Errorf("%s: status %d: %s, log %q", name, status, text, log.String())
		}
		s.Close()
	}
}

// V1: a request without tools may say that there is to be no call, as clients do that always send
// tool_choice. A call that is wanted is refused.
func TestChoiceWithoutTools(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(context.Context, *server.Request, *server.Writer) error { return nil })}
	for choice, want := range map[string]int{
		`"auto"`: http.StatusOK, `"none"`: http.StatusOK, `null`: http.StatusOK,
		`"required"`: http.StatusBadRequest, `{"type":"function","name":"f"}`: http.StatusBadRequest,
	} {
		for _, tools := range []string{"", `"tools":[],`} {
			if status, text := call(s, http.MethodPost, "responses", `{"model":"m","input":"x",`+tools+`"tool_choice":`+choice+`}`); status != want {
				t.Errorf("%s with %s: %d %s", choice, tools, status, text)
			}
		}
	}
}
