// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
)

// half is an upstream that has nothing but Chat Completions, or nothing but plain
// responses.
func half(t *testing.T, chat bool, script string) string {
	t.Helper()
	s, err := rehearsal.Parse("s.script", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	without := []rehearsal.Feature{rehearsal.Stored, rehearsal.Background, rehearsal.Conversations, rehearsal.InputTokens, rehearsal.Compact, rehearsal.WebSocket}
	if chat {
		without = append(without, rehearsal.Responses)
	} else {
		without = append(without, rehearsal.Chat)
	}
	base, stop, err := (&rehearsal.Server{Script: s, Without: without}).Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return base
}

// V1: a server with half of the API, in front of which there is all of it.
func TestWholeAPI(t *testing.T) {
	for name, chat := range map[string]bool{"chat": true, "responses": false} {
		t.Run(name, func(t *testing.T) {
			w := serving(t, open(t, half(t, chat, "turn\n  say One.\nround\nturn\n  say Two.\n"), chat))
			first := w.create(`{"model":"rehearsal","input":"a"}`)
			second := w.create(`{"model":"rehearsal","input":"b","previous_response_id":"` + first.ID + `"}`)
			if first.Text() != "One." || second.Text() != "Two." || second.Usage == nil {
				t.Errorf("%q, %q", first.Text(), second.Text())
			}
			status, _, list := w.ask(http.MethodGet, "/responses/"+second.ID+"/input_items", "")
			if status != http.StatusOK || strings.Count(list, `"role"`) != 3 {
				t.Errorf("%d %s", status, list)
			}
			c := w.typed()
			talk, err := c.CreateConversation(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			in := w.create(`{"model":"rehearsal","input":"a","conversation":"` + talk.ID + `"}`)
			if in.Text() != "One." {
				t.Errorf("in a conversation: %q", in.Text())
			}
			events := w.events(`{"model":"rehearsal","input":"c","conversation":"` + talk.ID + `","stream":true}`)
			if last := events[len(events)-1]; last.Type != api.EventCompleted || !strings.Contains(last.JSON(), "Two.") {
				t.Errorf("%s", last.JSON())
			}
			made := w.create(`{"model":"rehearsal","input":"a","background":true}`)
			got, err := c.Wait(t.Context(), made.ID)
			if err != nil || got.Text() != "One." {
				t.Errorf("in the background: %v, %v", got, err)
			}
			chain := &responses.Chain{Client: c, Transport: responses.WebSocket}
			defer chain.Close()
			var said string
			for ev, err := range chain.Stream(t.Context(), &api.Request{Model: "rehearsal", Input: item.NewList(item.User("a"))}) {
				if err != nil {
					t.Fatal(err)
				}
				said += ev.Delta
			}
			if said != "One." {
				t.Errorf("over a WebSocket: %q", said)
			}
		})
	}
}

// W7 W8: items and events pass as they came, with what this program does not know.
func TestBytesPass(t *testing.T) {
	const message = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","new":{"a" :1.50},"content":[{"type":"output_text","text":"h\u00e9","annotations":[],"logprobs":[]}]}`
	const strange = `{"type":"tomorrows_call", "id":"tc_1","x":[1e2]}`
	up := agenttest.NewServer(t)
	up.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Events(
			`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}}`,
			`{"type":"response.output_text.delta","delta":"h\u00e9"}`,
			`{"type":"keepalive"}`,
			`{"type":"response.output_item.done","item":`+message+`}`,
			`{"type":"response.output_item.done","item":`+strange+`}`,
			`{"type":"response.completed","response":{"id":"r","object":"response","status":"completed","model":"m-2026","output":[`+message+`,`+strange+`]}}`)
	})
	w := serving(t, open(t, up.URL, false))
	_, _, body := w.ask(http.MethodPost, "/responses", `{"model":"m","input":"a"}`)
	for _, it := range []string{message, strange} {
		if !strings.Contains(body, it) {
			t.Errorf("%s\nlacks %s", body, it)
		}
	}
	r, err := api.ParseResponse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	w.ask(http.MethodPost, "/responses", `{"model":"m","input":"b","previous_response_id":"`+r.ID+`"}`)
	if sent := string(up.Requests()[1].Body); !strings.Contains(sent, message) || !strings.Contains(sent, strange) {
		t.Errorf("sent %s", sent)
	}
}

// The next upstream is asked before anything of an answer was sent, streamed or not, and
// both are recorded. J12
func TestFallback(t *testing.T) {
	for name, failure := range map[string]agenttest.Reply{
		"503": agenttest.Failure(503, "server_is_overloaded", "Busy."), "429": agenttest.Failure(429, "rate_limit_exceeded", "Slow down."),
		"failed": agenttest.Failed("server_error", "Broken."), "event": agenttest.ErrorEvent("server_error", "Broken."),
		"reset": agenttest.Reset(), "page": agenttest.WebPage(502, "Bad gateway"), "garbage": agenttest.Raw(200, "text/event-stream", "data: {{{\n\n"),
		"empty": agenttest.Raw(200, "application/json", ""), "cut": agenttest.Completed(item.Assistant("x")).CutAfter(2),
	} {
		for _, stream := range []string{"false", "true"} {
			t.Run(name+" "+stream, func(t *testing.T) {
				bad, good := agenttest.NewServer(t, failure), says(t, "Well.")
				w := serving(t, open(t, bad.URL, false), open(t, good.URL, false))
				body := `{"model":"m","input":"a","stream":` + stream + `}`
				if stream == "true" {
					events := w.events(body)
					if last := events[len(events)-1]; last.Type != api.EventCompleted || !strings.Contains(last.JSON(), "Well.") {
						t.Errorf("%s", last.JSON())
					}
				} else if r := w.create(body); r.Text() != "Well." {
					t.Errorf("%q", r.Text())
				}
				a := w.records[0].Attempts
				if len(a) != 2 || a[0].Outcome != "failed" || a[1].Outcome != "answered" || !strings.HasPrefix(good.URL, a[1].URL) {
					t.Errorf("%v", w.records[0])
				}
			})
		}
	}
}

// What a response and a compaction cost is told, so that keys have limits of cost, also if the
// upstream fails after it counted.
func TestCost(t *testing.T) {
	up := agenttest.NewServer(t, agenttest.Completed(item.Assistant("Well.")), agenttest.Events(
		`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","status":"in_progress","model":"big","output":[]}}`,
		`{"type":"response.failed","sequence_number":1,"response":{"id":"r","object":"response","status":"failed","model":"big","output":[],
		"error":{"code":"invalid_prompt","message":"No."},"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}}`))
	local := agenttest.StartLocal(t, &agenttest.Local{Text: "They talked."})
	b := &gateway.Backend{Upstreams: []gateway.Upstream{open(t, up.URL, false), open(t, local.URL, true)}}
	b.Upstreams[0].Models, b.Upstreams[1].Models = "far/", "near"
	b.Cost = func(model, baseURL string, used *api.Usage) float64 {
		if model == "big" && strings.HasPrefix(up.URL, baseURL) || model == "near" && strings.HasPrefix(local.URL, baseURL) {
			return float64(used.TotalTokens)
		}
		t.Errorf("%s at %s", model, baseURL)
		return 0
	}
	got := make(chan server.Outcome, 1)
	w := &world{t: t, b: b}
	w.serve(&server.Server{Backend: b, Admit: func(context.Context, *server.Request) (func(server.Outcome), error) {
		return func(o server.Outcome) { got <- o }, nil
	}})
	defer w.end()
	for _, status := range []string{"completed", "failed"} {
		_, _, _ = w.ask(http.MethodPost, "/responses", `{"model":"far/big","input":"x","stream":true}`)
		if o := <-got; o.Status != status || o.Cost == 0 || o.Model != "big" {
			t.Errorf("%+v", o)
		}
	}
	if _, err := w.typed().Compact(t.Context(), &api.CompactRequest{Model: "near", Input: item.NewList(item.User("x"))}); err != nil {
		t.Error(err)
	}
	if o := <-got; o.Status != "completed" || o.Cost == 0 || o.Usage == nil || o.Cost != float64(o.Usage.TotalTokens) {
		t.Errorf("%+v", o)
	}
}

// E2, E4: another upstream is not asked about a request that is wrong, nor after output.
func TestNoFallback(t *testing.T) {
	good := says(t, "Well.")
	bad := agenttest.NewServer(t, agenttest.Failure(400, "invalid_prompt", "No."), agenttest.Completed(item.Assistant("one two three")).CutAfter(1500))
	w := serving(t, open(t, bad.URL, false), open(t, good.URL, false))
	_, e := w.refused(`{"model":"m","input":"a"}`, 400)
	if text(e, "code") != "invalid_prompt" || text(e, "message") != "No." {
		t.Errorf("%s", e.JSON())
	}
	events := w.events(`{"model":"m","input":"a","stream":true}`)
	if last := events[len(events)-1]; last.Type != api.EventFailed || !strings.Contains(last.JSON(), "ended before the response did") {
		t.Errorf("%s", last.JSON())
	}
	if n := len(good.Requests()); n != 0 {
		t.Errorf("the second upstream was asked %d times", n)
	}
}

// Errors have the API's form, with the time to wait and the limits, and without the
// upstream's address and key.
func TestErrors(t *testing.T) {
	const secret = "sk-very-secret-0123456789"
	up := agenttest.NewServer(t)
	upstream := open(t, up.URL, false)
	upstream.Config.Key = endpoint.NewKey(secret)
	w := serving(t, upstream)
	for _, tt := range []struct {
		reply  agenttest.Reply
		status int
		code   string
	}{
		{agenttest.Failure(429, "rate_limit_exceeded", "Slow down, "+secret).RetryAfter("7").WithHeader("x-ratelimit-remaining-requests", "0").WithHeader("x-ratelimit-limit-requests", "60"), 429, "rate_limit_exceeded"},
		{agenttest.Failure(401, "invalid_api_key", "Wrong key "+secret), 502, "upstream_refused"},
		{agenttest.Failure(404, "model_not_found", "No such model."), 404, "model_not_found"},
		{agenttest.Failure(400, "context_length_exceeded", "Too long."), 400, "context_length_exceeded"},
		{agenttest.Failure(500, "server_error", "Oops."), 502, "server_error"},
		{agenttest.WebPage(200, "Welcome"), 502, "upstream_unreadable"},
		{agenttest.Reset(), 502, "upstream_unreachable"},
	} {
		up.Add(tt.reply)
		header, e := w.refused(`{"model":"m","input":"a"}`, tt.status)
		if text(e, "code") != tt.code {
			t.Errorf("%s, want the code %s", e.JSON(), tt.code)
		}
		if tt.code == "upstream_refused" && !strings.Contains(text(e, "message"), "needs a key and got none") { // this gateway has none
			t.Error(e.JSON())
		}
		if tt.status == 429 && (header.Get("Retry-After") != "7" || header.Get("X-Ratelimit-Limit-Requests") != "60") {
			t.Errorf("%v", header)
		}
		if strings.Contains(e.JSON(), "127.0.0.1") || strings.Contains(e.JSON()+w.logged.String(), secret) {
			t.Errorf("%s\n%s", e.JSON(), w.logged.String())
		}
	}
	up.Add(agenttest.Completed(item.Assistant("x")).WithHeader("x-ratelimit-remaining-tokens", "9"))
	if _, header, _ := w.ask(http.MethodPost, "/responses", `{"model":"m","input":"a"}`); header.Get("X-Ratelimit-Remaining-Tokens") != "9" {
		t.Errorf("%v", header)
	}
}

// R4, B5: encrypted reasoning goes only to the upstream that made it, and stays stored.
func TestSealed(t *testing.T) {
	sealed := item.Must(&item.Reasoning{ID: "rs_1", Summary: []item.Part{}, EncryptedContent: "only-for-one"})
	one := agenttest.NewServer(t, agenttest.Completed(sealed, item.Assistant("One.")), agenttest.Failure(503, "", ""), agenttest.Completed(item.Assistant("Three.")))
	two := says(t, "Two.")
	w := serving(t, open(t, one.URL, false), open(t, two.URL, false))
	first := w.create(`{"model":"m","input":"a"}`)
	second := w.create(`{"model":"m","input":"b","previous_response_id":"` + first.ID + `"}`)
	if sent := string(two.Requests()[0].Body); second.Text() != "Two." || strings.Contains(sent, "only-for-one") || !strings.Contains(sent, "One.") {
		t.Errorf("%q, sent %s", second.Text(), sent)
	}
	if notes := w.records[1].Notes; len(notes) != 1 || !strings.Contains(notes[0], "encrypted reasoning") {
		t.Errorf("notes %q", notes)
	}
	third := w.create(`{"model":"m","input":"c","previous_response_id":"` + second.ID + `"}`)
	if sent := string(one.Requests()[2].Body); third.Text() != "Three." || !strings.Contains(sent, "only-for-one") {
		t.Errorf("%q, sent %s", third.Text(), sent)
	}
}

// An upstream that fails again and again is left out, and is tried again later.
func TestBreaker(t *testing.T) {
	bad, good := agenttest.NewServer(t), says(t, "Well.")
	working := false
	bad.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		if working {
			return agenttest.Completed(item.Assistant("Back."))
		}
		return agenttest.Failure(500, "server_error", "Oops.")
	})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := serving(t, open(t, bad.URL, false), open(t, good.URL, false))
	w.b.Now = func() time.Time { return now }
	for range 20 {
		if r := w.create(`{"model":"m","input":"a"}`); r.Text() != "Well." {
			t.Fatalf("%q", r.Text())
		}
	}
	if n := len(bad.Requests()); n != 5 {
		t.Errorf("the first upstream was asked %d times", n)
	}
	working = true
	now = now.Add(time.Minute)
	if r := w.create(`{"model":"m","input":"a"}`); r.Text() != "Back." {
		t.Errorf("%q", r.Text())
	}
	alone := serving(t, open(t, agenttest.DeadURL(t, agenttest.Refusing), false))
	alone.b.Now = func() time.Time { return now }
	for range 5 {
		alone.refused(`{"model":"m","input":"a"}`, 502)
	}
	header, _ := alone.refused(`{"model":"m","input":"a"}`, 503)
	if header.Get("Retry-After") == "" {
		t.Errorf("%v", header)
	}
}

// Members that only Chat Completions has go to an upstream that has it, and others are refused
// by name. V1
func TestChatMembers(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":5,"stop":["a"],"seed":7,"logit_bias":{"5":1.50},"tool_choice":"auto"}`
	up := agenttest.NewServer(t)
	up.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Raw(200, "application/json", `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"length","message":{"role":"assistant","content":"y"}}]}`)
	})
	w := serving(t, open(t, up.URL, true))
	status, _, text := w.ask(http.MethodPost, "/chat/completions", body)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	sent := string(up.Requests()[0].Body)
	for _, want := range []string{`"stop":["a"]`, `"seed":7`, `"logit_bias":{"5":1.50}`, `_tokens":5`} {
		if !strings.Contains(sent, want) {
			t.Errorf("%s is not in %s", want, sent)
		}
	}
	if strings.Contains(sent, "tool_choice") { // which some servers refuse without tools
		t.Errorf("sent %s", sent)
	}
	other := says(t, "y")
	w = serving(t, open(t, other.URL, false))
	status, _, text = w.ask(http.MethodPost, "/chat/completions", body)
	if status != http.StatusBadRequest || !strings.Contains(text, `"param": "stop"`) || len(other.Requests()) > 0 {
		t.Errorf("%d %s", status, text)
	}
	if status, _, text = w.ask(http.MethodPost, "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":50,"tool_choice":"none"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	if sent := string(other.Requests()[0].Body); !strings.Contains(sent, `"max_output_tokens":50`) || strings.Contains(sent, "tool_choice") {
		t.Errorf("sent %s", sent)
	}
}

// A failure is told to the operator once: by the record of the response, or else by the log.
func TestFailureIsToldOnce(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	w := serving(t, open(t, down.URL, false))
	for _, recorded := range []bool{true, false} {
		if !recorded {
			w.b.Made = nil
		}
		w.refused(`{"model":"m","input":"x"}`, http.StatusBadGateway)
		w.mu.Lock()
		if got := strings.Count(w.logged.String(), "connect"); (got == 0) != recorded || len(w.records) != 1 || !strings.Contains(w.records[0].String(), "connect") {
			t.Errorf("%q, %v", w.logged.String(), w.records)
		}
		w.mu.Unlock()
	}
}
