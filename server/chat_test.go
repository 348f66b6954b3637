// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/server"
)

func served(t *testing.T, script string) *rehearsal.Server {
	t.Helper()
	s, err := rehearsal.Parse("s.script", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return &rehearsal.Server{Script: s}
}

// The same script answers through Chat Completions, streamed and whole.
func TestChat(t *testing.T) {
	base := serve(t, "turn\n  say Hello.\n  call look {\"at\": \"it\"}\n  call look {\"at\": \"that\"}\nturn\n  say You: {{question}}; it: {{output 1}} {{output 2}} {{tools}} {{instructions}}\n", nil)
	own := new(http.Transport)
	defer own.CloseIdleConnections()
	c := &completions.Client{BaseURL: base, Profile: full, HTTP: &http.Client{Transport: &checked{t, apispec.Load(t), apispec.LoadOpen(t), own}}}
	for _, streamed := range []bool{false, true} {
		req := &api.Request{
			Model: "m", Instructions: "Be brief.", Input: users("Hello?"),
			Tools: []item.Tool{&item.FunctionTool{Name: "look", Parameters: `{"type":"object","properties":{}}`}},
		}
		r := chatted(t, c, req, streamed)
		var names []string
		for _, it := range r.Output {
			names = append(names, fmt.Sprint(it.Type(), " ", it.Name()))
		}
		if d := cmp.Diff([]string{"message ", "function_call look", "function_call look"}, names); d != "" {
			t.Fatalf("streamed %v (-want +got):\n%s", streamed, d)
		}
		req.Input.Append(r.Output...)
		for i, out := range []string{"blue", "green"} {
			req.Input.Append(item.Must(&item.FunctionCallOutput{CallID: r.Output[1+i].CallID(), Output: item.Text(out)}))
		}
		r = chatted(t, c, req, streamed)
		if got := r.Text(); got != "You: Hello?; it: blue green [look] Be brief." {
			t.Errorf("streamed %v: said %q", streamed, got)
		}
		if r.Usage == nil || r.Usage.OutputTokens == 0 {
			t.Errorf("streamed %v: usage %+v", streamed, r.Usage)
		}
	}
}

func chatted(t *testing.T, c *completions.Client, req *api.Request, streamed bool) *api.Response {
	t.Helper()
	if !streamed {
		r, err := c.Create(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var acc api.Accumulator
	for ev, err := range c.Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := acc.Add(ev); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := acc.Response()
	return r
}

func TestChatRefusals(t *testing.T) {
	base := serve(t, "again\nturn\n  say {{output 9}}\n", nil)
	c := clientOf(t, base)
	for _, test := range []struct{ body, code, param, want string }{
		{`{`, "", "", "parse"},
		{`{"model":"m"}`, "missing_required_parameter", "messages", "'messages'"},
		{`{"messages":[{"role":"user","content":"x"}]}`, "missing_required_parameter", "model", "'model'"},
		{`{"model":"m","n":2,"messages":[{"role":"user","content":"x"}]}`, "unsupported_value", "n", "one choice"},
		{`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c","content":"y"}]}`, "", "messages", "No tool call found"},
		{`{"model":"m","messages":[{"role":"user","content":"x"}]}`, "rehearsal_script", "model", "s.script:3:9"},
	} {
		status, e := raw(t, c, "POST", base+"/chat/completions", test.body)
		if status != http.StatusBadRequest || e.Code != test.code || e.Param != test.param || !strings.Contains(e.Message, test.want) {
			t.Errorf("%s: %d %+v", test.body, status, e)
		}
	}
}

// Usage stands in a stream only if it is asked for.
func TestChatUsage(t *testing.T) {
	base := serve(t, "again\nturn\n  say x\n", nil)
	for options, want := range map[string]bool{"": false, `,"stream_options":{"include_usage":true}`: true, `,"stream_options":{}`: false} {
		resp, err := http.Post(base+"/chat/completions", "application/json",
			strings.NewReader(`{"model":"m","stream":true`+options+`,"messages":[{"role":"user","content":"x"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := resp.Write(&b); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if id := resp.Header.Get("X-Request-Id"); !strings.HasPrefix(id, "req_rehearsal_") || !strings.Contains(b.String(), `"id":"chatcmpl-`+strings.TrimPrefix(id, "req_")+`"`) {
			t.Errorf("X-Request-Id %q of\n%s", id, b.String())
		}
		if strings.Contains(b.String(), `"usage"`) != want || !strings.Contains(b.String(), "data: [DONE]\n\n") {
			t.Errorf("%q:\n%s", options, b.String())
		}
	}
}

func TestModels(t *testing.T) {
	base := serve(t, "turn\n  say x\n", nil)
	for path, want := range map[string]string{
		"/models":           `{"object":"list","data":[{"id":"rehearsal","object":"model","created":1767225600,"owned_by":"antiphon"}]}`,
		"/models/rehearsal": `{"id":"rehearsal","object":"model","created":1767225600,"owned_by":"antiphon"}`,
	} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := resp.Write(&b); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if !strings.HasSuffix(b.String(), want) {
			t.Errorf("%s: %s", path, b.String())
		}
	}
}

// A request for approval cannot be answered through Chat Completions, so the client is told why
// the answer ends, and is not left with half of it. V1
func TestChatUnapproved(t *testing.T) {
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		if err := w.Text("I look."); err != nil {
			return err
		}
		return w.Item(item.Must(&item.MCPApprovalRequest{ID: "mcpr_1", ServerLabel: "s", Name: "wipe", Arguments: "{}"}))
	})}
	base, stop, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	own := new(http.Transport)
	defer own.CloseIdleConnections()
	c := &completions.Client{BaseURL: base, Profile: full, HTTP: &http.Client{Transport: &checked{t, apispec.Load(t), apispec.LoadOpen(t), own}}}
	for _, streamed := range []bool{false, true} {
		r := chatted(t, c, &api.Request{Model: "m", Input: users("Hello?")}, streamed)
		text := r.Output[0].JSON()
		if len(r.Output) != 1 || !strings.Contains(text, "I look.") || !strings.Contains(text, "The call of wipe was not made") || !strings.Contains(text, `"refusal"`) {
			t.Errorf("streamed %v: %v", streamed, r.Output)
		}
	}
}

// sampled honours members that only Chat Completions has, except seed.
type sampled struct{ server.BackendFunc }

func (sampled) CheckChat(r *server.Request) error {
	if _, ok := r.Chat.Get("seed"); ok {
		return server.Invalid("unsupported_parameter", "seed", "no seeds here")
	}
	return nil
}

// A name of who speaks is refused, because no model would see it. That of a tool in its output is no speaker.
func TestChatNames(t *testing.T) {
	asked := false
	s := &server.Server{Backend: server.BackendFunc(func(_ context.Context, _ *server.Request, w *server.Writer) error {
		asked = true
		return w.Text("x")
	})}
	for _, test := range []struct{ messages, refused string }{
		{`{"role":"user","content":"a","name":"bob"},{"role":"user","content":"b","name":"eve"}`, "messages[0].name"},
		{`{"role":"user","content":"a"},{"role":"assistant","content":"b","name":"eve"}`, "messages[1].name"},
		{`{"role":"system","content":"a","name":5},{"role":"user","content":"a"}`, "messages[0].name"},
		{`{"role":"user","content":"a","name":null},{"role":"user","content":"b","name":""}`, ""},
		{`{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","name":"f","content":"ok"}`, ""},
	} {
		asked = false
		status, text := call(s, http.MethodPost, "chat/completions", `{"model":"m","messages":[`+test.messages+`]}`)
		if test.refused == "" {
			if status != http.StatusOK || !asked {
				t.Errorf("%s: %d %s", test.messages, status, text)
			}
		} else if status != http.StatusBadRequest || asked || !strings.Contains(text, `"param": "`+test.refused+`"`) {
			t.Errorf("%s: %d %s", test.messages, status, text)
		}
	}
}

// Each member of Chat Completions is honoured, or refused by name. V1
func TestChatMembers(t *testing.T) {
	var got *server.Request
	answer := server.BackendFunc(func(_ context.Context, r *server.Request, w *server.Writer) error {
		got = r
		return w.Text("x")
	})
	plain, able := &server.Server{Backend: answer}, &server.Server{Backend: sampled{answer}}
	for _, test := range []struct{ members, refused, refusedAble string }{
		{`"max_tokens":5`, "", ""},
		{`"max_completion_tokens":5`, "", ""},
		{`"max_tokens":5,"max_completion_tokens":5`, "", ""},
		{`"max_tokens":5,"max_completion_tokens":6`, "max_tokens", "max_tokens"},
		{`"max_tokens":0`, "max_completion_tokens", "max_completion_tokens"},
		{`"max_tokens":-1`, "", ""},
		{`"max_tokens":-2`, "max_completion_tokens", "max_completion_tokens"},
		{`"max_tokens":"5"`, "max_tokens", "max_tokens"},
		{`"stop":["a"]`, "stop", ""},
		{`"stop":null,"frequency_penalty":0,"presence_penalty":0.0,"logit_bias":{},"modalities":["text"],"n":1`, "", ""},
		{`"frequency_penalty":0.5`, "frequency_penalty", ""},
		{`"presence_penalty":-1`, "presence_penalty", ""},
		{`"logit_bias":{"5":1}`, "logit_bias", ""},
		{`"audio":{"voice":"x"}`, "audio", ""},
		{`"prediction":{"type":"content","content":"x"}`, "prediction", ""},
		{`"seed":0`, "seed", "seed"},
		{`"stream":"yes"`, "stream", "stream"},
	} {
		for _, one := range []struct {
			s       *server.Server
			refused string
		}{{plain, test.refused}, {able, test.refusedAble}} {
			got = nil
			status, text := call(one.s, http.MethodPost, "chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],`+test.members+`}`)
			if one.refused != "" {
				if status != http.StatusBadRequest || got != nil || !strings.Contains(text, `"param": "`+one.refused+`"`) {
					t.Errorf("%s: %d %s", test.members, status, text)
				}
				continue
			}
			if status != http.StatusOK || got == nil {
				t.Errorf("%s: %d %s", test.members, status, text)
				continue
			}
			if limit := strings.Contains(test.members, "5") && strings.Contains(test.members, "tokens"); limit != (got.MaxOutputTokens != nil && *got.MaxOutputTokens == 5) {
				t.Errorf("%s: the limit is %v", test.members, got.MaxOutputTokens)
			}
			if len(got.Chat) == 1 && !strings.Contains(test.members, `"`+got.Chat[0].Name+`":`+string(got.Chat[0].Value)) || (len(got.Chat) == 1) != (test.refused != "") {
				t.Errorf("%s: the backend got %v", test.members, got.Chat)
			}
		}
	}
}
