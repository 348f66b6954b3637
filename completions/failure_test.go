// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/google/go-cmp/cmp"
)

// E2, E7: an error in a stream is of the class that its status and its code say,
// however it is worded, and is asked for again only where that may help.
func TestStreamedErrorClasses(t *testing.T) {
	for _, tt := range []struct {
		chunk    string
		class    endpoint.Class
		message  string
		requests int
	}{
		{`{"type":"error","status":400,"error":{"message":"boom","type":"invalid_request_error"}}`, endpoint.BadRequest, "boom", 1},
		{`{"type":"error","status":429,"error":{"message":"boom"}}`, endpoint.RateLimit, "boom", 3},
		{`{"type":"error","status":401,"error":{"message":"boom"}}`, endpoint.Auth, "boom", 1},
		{`{"message":"boom","code":502}`, endpoint.Server, "boom", 3},
		{`{"detail":"boom"}`, "", "boom", 0},
		{`{"error":"boom"}`, "", "boom", 0},
		{`{"object":"error","message":"boom","code":400}`, endpoint.BadRequest, "boom", 1},
		{`{"error":{"message":"boom","code":"insufficient_quota"}}`, endpoint.Quota, "boom", 1},
		{`{"choices":[{"index":0,"delta":{},"error":{"message":"boom","code":400}}]}`, endpoint.BadRequest, "boom", 1},
	} {
		for _, kind := range []string{"stream", "whole", "create"} {
			srv := agenttest.NewServer(t)
			srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
				if kind == "whole" {
					return agenttest.Raw(200, "application/json", tt.chunk)
				}
				return agenttest.Events(tt.chunk)
			})
			if kind == "whole" && strings.Contains(tt.chunk, "choices") {
				continue // a chunk is not an answer
			}
			var err error
			if kind == "create" {
				_, err = client(srv).Create(t.Context(), hello())
			} else {
				err = drain(t.Context(), t, client(srv), hello()).err
			}
			var e *endpoint.Error
			if !errors.As(err, &e) || tt.class != "" && e.Class != tt.class || !strings.Contains(e.Message, tt.message) {
				t.Errorf("%s %s: %v", kind, tt.chunk, err)
			}
			if n := len(srv.Requests()); tt.requests > 0 && n != tt.requests && !strings.Contains(tt.chunk, "choices") {
				t.Errorf("%s %s: %d requests", kind, tt.chunk, n)
			}
		}
	}
}

// E3: an error event that refuses the key has a new one tried, once.
func TestStreamedRefusalRefreshes(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Events(`{"type":"error","status":401,"error":{"message":"expired"}}`), reply("a"))
	c := client(srv)
	c.Key = endpoint.NewKey("sk-old-key")
	c.Refresh = func(context.Context) (endpoint.Key, error) { return endpoint.NewKey("sk-new-key"), nil }
	d := drain(t.Context(), t, c, hello())
	if d.err != nil || d.text.String() != "a" || len(srv.Requests()) != 2 || srv.Requests()[1].Header.Get("Authorization") != "Bearer sk-new-key" {
		t.Errorf("%v after %d requests", d.err, len(srv.Requests()))
	}
}

// B5: what a server says of the key is neither in an error nor in an event.
func TestKeyHidden(t *testing.T) {
	const key = "sk-proj-TOPSECRET1234567890"
	for _, chunk := range []string{
		`{"error":{"message":"bad key ` + key + `","code":"invalid_api_key","param":"` + key + `","metadata":{"raw":"` + key + `"}}}`,
		`{"type":"error","status":401,"error":{"message":"` + key + `"}}`,
		`{"detail":"` + key + `"}`,
		`{"object":"error","message":"` + key + `","code":400}`,
	} {
		srv := agenttest.NewServer(t)
		srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
			return agenttest.Events(delta(`"content":"a"`), chunk)
		})
		c := client(srv)
		c.Key = endpoint.NewKey(key)
		events := 0
		for ev, err := range c.Stream(t.Context(), hello()) {
			if ev.Type == api.EventError {
				events++
			}
			if said := ev.JSON() + whole(err); strings.Contains(said, "TOPSECRET") {
				t.Errorf("%s: %s", chunk, said)
			}
		}
		if _, err := c.Create(t.Context(), hello()); strings.Contains(whole(err), "TOPSECRET") {
			t.Errorf("%s: %v", chunk, whole(err))
		}
		if events != 1 {
			t.Errorf("%s: %d error events", chunk, events)
		}
		srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Raw(200, "application/json", chunk) })
		resp, err := c.Create(t.Context(), hello())
		if resp != nil && resp.Error != nil {
			err = errors.Join(err, resp.Error)
		}
		if err == nil || strings.Contains(whole(err), "TOPSECRET") {
			t.Errorf("%s: %v", chunk, whole(err))
		}
	}
}

// whole is all that an error holds.
func whole(err error) string {
	said := fmt.Sprint(err)
	var e *endpoint.Error
	if errors.As(err, &e) {
		said += fmt.Sprintf(" %+v", *e)
	}
	var a *api.APIError
	if errors.As(err, &a) {
		said += fmt.Sprintf(" %+v", *a)
	}
	return said
}

// B1: the address of an endpoint itself is taken for what it is below.
func TestAddress(t *testing.T) {
	for base, want := range map[string]string{
		"":                                      "/v1/chat/completions",
		"/v1":                                   "/v1/chat/completions",
		"/v1/chat/completions":                  "/v1/chat/completions",
		"/v1/chat/completions/":                 "/v1/chat/completions",
		"/chat/completions":                     "/chat/completions",
		"/v1/responses":                         "/v1/chat/completions",
		"/gw/responses/?a=b":                    "/gw/chat/completions?a=b",
		"/my-responses":                         "/my-responses/chat/completions",
		"/v1/chat/completions?api-version=2025": "/v1/chat/completions?api-version=2025",
	} {
		srv := agenttest.NewServer(t, reply("a"))
		c := client(srv)
		c.BaseURL = strings.TrimSuffix(srv.URL, "/v1") + base
		if d := drain(t.Context(), t, c, hello()); d.err != nil {
			t.Errorf("%s: %v", base, d.err)
			continue
		}
		r := srv.Requests()[0]
		if got := strings.TrimSuffix(r.Path+"?"+r.Query, "?"); got != want {
			t.Errorf("%s: asked %s, want %s", base, got, want)
		}
	}
}

// The ids of calls say whose tool is called, streamed or not.
func TestCallIDs(t *testing.T) {
	calls := `[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"c2","type":"custom","custom":{"name":"g","input":"x"}}]`
	whole, _, err := completions.ParseResponse([]byte(`{"id":"r","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":` + calls + `},"finish_reason":"tool_calls"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	streamed, _ := decode(t, []string{delta(`"tool_calls":` + calls), finish("tool_calls")}).acc.Response()
	for _, r := range []*api.Response{whole, streamed} {
		if len(r.Output) != 2 || r.Output[0].ID() != "fc_chat_r_0" || r.Output[1].ID() != "ctc_chat_r_1" {
			t.Errorf("%s", r.Output)
		}
	}
}

// I11: what was made up on the way to items is not a loss on the way back.
func TestMadeUpIsNoLoss(t *testing.T) {
	for _, messages := range []string{
		`[{"role":"user","content":"q"},{"role":"assistant","content":null,"refusal":"no"}]`,
		`[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"text","text":"a"}],"reasoning_content":"hm"}]`,
		`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]},{"role":"assistant","content":"a","refusal":"no"}]`,
	} {
		items, losses, err := completions.ToItems([]byte(messages))
		if err != nil || losses != nil {
			t.Fatal(err, losses)
		}
		_, losses, err = completions.FromItems(item.NewList(items...), completions.Options{Reasoning: completions.ReasoningContent})
		if err != nil || losses != nil {
			t.Errorf("%s: %v, lost %v", messages, err, losses)
		}
	}
	cut, _, err := completions.ParseResponse([]byte(`{"id":"r","choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"length"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, losses, _ := completions.FromItems(item.NewList(cut.Output...), completions.Options{}); lines(losses) != "input[0].status: has no counterpart" {
		t.Errorf("that it was cut off is lost: %v", losses)
	}
}

// What says what is so without it is not a loss, and what is missing is told.
func TestUsualMembers(t *testing.T) {
	for member, want := range map[string]string{
		`"modalities":["text"]`:         "",
		`"modalities":["text","audio"]`: "modalities: has no counterpart",
		`"modalities":"audio"`:          "modalities: has no counterpart",
	} {
		_, losses, err := completions.ParseRequest([]byte(`{"messages":[{"role":"user","content":"a"}],` + member + `}`))
		if err != nil || lines(losses) != want {
			t.Errorf("%s: %v %v", member, err, losses)
		}
	}
	for body, want := range map[string]string{
		`{"choices":[]}`:   "choices: found an empty list, want a list with a choice",
		`{"choices":[ ]}`:  "choices: found an empty list, want a list with a choice",
		`{"choices":{}}`:   "choices: found an object, want a list with a choice",
		`{"choices":null}`: "choices: found nothing, want a list with a choice",
	} {
		if _, _, err := completions.ParseResponse([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// A loss says how much it matters: what is moved, and labels that no model
// reads, are told apart from what is missing.
func TestKindsOfLoss(t *testing.T) {
	raw := func(text string) item.Item {
		it, err := item.ParseString(text)
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	history := item.NewList(
		item.User("look"),
		raw(`{"type":"function_call","id":"fc_1","status":"completed","call_id":"c1","name":"see","arguments":"{}"}`),
		raw(`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"here"},{"type":"input_image","image_url":"https://x/1.png"}]}`),
		raw(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`),
	)
	_, losses, err := completions.AppendRequest(nil, &api.Request{Model: "m", Instructions: "Be brief.", Input: history, Truncation: "auto"}, completions.Options{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]completions.LossKind{
		"instructions":       completions.Moved,
		"input[1].id":        completions.LostLabel,
		"input[1].status":    completions.LostLabel,
		"input[2].output[1]": completions.Moved,
		"input[2].output":    completions.Moved,
		"input[3]":           completions.LostMember,
		"truncation":         completions.LostMember,
	}
	got := map[string]completions.LossKind{}
	for _, l := range losses {
		got[l.Path] = l.Kind
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("kinds (-want +got):\n%s", d)
	}
	_, losses, err = completions.ParseResponse([]byte(`{"id":"r","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi"},"logprobs":{"content":null,"reasoning_content":[{"token":"a"}]}}]}`))
	if err != nil || lines(losses) != "choices[0].logprobs.reasoning_content: has no counterpart" {
		t.Errorf("log probabilities of the reasoning: %v %v", losses, err)
	}
}

// Servers of the field that answer in ways of their own: nothing of it is lost
// and nothing is refused.
func TestOddAnswers(t *testing.T) {
	for _, tt := range []struct{ name, message, want, losses string }{
		{"an empty call of the older form", `{"role":"assistant","content":"hi","function_call":{"arguments":"","name":""}}`, "hi", ""},
		{"JSON that the server parsed", `{"role":"assistant","content":{"a": [1, 2.0]}}`, `{"a": [1, 2.0]}`, "choices[0].message.content: an object: becomes its JSON text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, losses, err := completions.ParseResponse([]byte(`{"id":"r","choices":[{"index":0,"finish_reason":"stop","message":` + tt.message + `}]}`))
			if err != nil || r.Text() != tt.want || len(r.Output) != 1 || lines(losses) != tt.losses {
				t.Errorf("whole: %v, %v, %v", r, losses, err)
			}
			got := decode(t, []string{`{"id":"r","choices":[{"index":0,"delta":` + tt.message + `}]}`, finish("stop")})
			if got.err != nil || got.text.String() != tt.want || len(got.items) != 1 {
				t.Errorf("streamed: %q, %v", got.text.String(), got.err)
			}
		})
	}
}
