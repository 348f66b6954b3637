// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// S4, S9: the stream gives what the response without a stream holds.
func TestStreamEqualsCreate(t *testing.T) {
	answer := agenttest.Completed(
		item.Must(&item.Reasoning{Summary: []item.Part{&item.SummaryText{Text: "First, think."}}, EncryptedContent: "gAAA"}),
		item.Call("call_1", "read_file", `{"path": "a b", "n": 1}`),
		item.Call("call_2", "now", ""),
		item.Must(&item.CustomToolCall{CallID: "call_3", Name: "sql", Input: "select 1,\n 2"}),
		item.Must(&item.Message{Role: item.RoleAssistant, Content: item.Parts(&item.OutputText{Text: "One.\nTwo, ä€𝄞"}, &item.Refusal{Refusal: "no, sorry"})}),
		item.Assistant(""),
	)
	srv := agenttest.NewServer(t, answer, answer)
	d := drain(t, srv.Client(), hello())
	if d.err != nil || !d.whole {
		t.Fatalf("whole %v, %v", d.whole, d.err)
	}
	whole, err := srv.Client().Create(t.Context(), hello())
	if err != nil {
		t.Fatal(err)
	}
	texts := func(list []item.Item) (out []string) {
		for _, it := range list {
			out = append(out, strings.NewReplacer("resp_0", "resp_N", "resp_1", "resp_N").Replace(it.JSON()))
		}
		return out
	}
	if diff := cmp.Diff(texts(whole.Output), texts(d.resp.Output)); diff != "" {
		t.Errorf("(-created +streamed):\n%s", diff)
	}
	if diff := cmp.Diff(texts(whole.Output), texts(d.items)); diff != "" {
		t.Errorf("(-created +items as they came):\n%s", diff)
	}
	if u := d.resp.Usage; u == nil || u.InputTokens == 0 || u.OutputTokens == 0 || u.TotalTokens != u.InputTokens+u.OutputTokens {
		t.Errorf("usage %+v", u)
	}
	checkDeltas(t, d.events)
}

// checkDeltas proves S4: deltas concatenate to exactly the done text.
func checkDeltas(t *testing.T, events []api.Event) {
	t.Helper()
	type key struct {
		id            string
		kind          api.EventType
		output, place int
	}
	done := map[api.EventType]struct {
		delta  api.EventType
		member string
	}{
		api.EventTextDone:        {api.EventTextDelta, "text"},
		api.EventRefusalDone:     {api.EventRefusalDelta, "refusal"},
		api.EventArgumentsDone:   {api.EventArgumentsDelta, "arguments"},
		api.EventCustomInputDone: {api.EventCustomInputDelta, "input"},
		api.EventSummaryTextDone: {api.EventSummaryTextDelta, "text"},
	}
	sum := map[key]string{}
	for _, ev := range events {
		k := key{ev.ItemID, ev.Type, ev.OutputIndex, max(ev.ContentIndex, ev.SummaryIndex)}
		d, ok := done[ev.Type]
		if !ok {
			sum[k] += ev.Delta
			continue
		}
		k.kind = d.delta
		if got, want := sum[k], ev.Text(d.member); got != want {
			t.Errorf("%s of %s: deltas make %.100q, done says %.100q", ev.Type, ev.ItemID, got, want)
		}
	}
}

// S2, S3, E4: every way a stream goes wrong is a typed error after what came,
// and is not tried again.
func TestStreamFaults(t *testing.T) {
	reply := agenttest.Completed(item.Assistant("one two three"), item.Call("call_1", "f", `{"a":1}`))
	one := agenttest.Completed(item.Assistant("one")).WithoutLast()
	const created = `{"type":"response.created","response":{"id":"r"}}`
	tests := []struct {
		name   string
		answer agenttest.Reply
		class  endpoint.Class
		text   string // streamed before
		items  int    // whole
		says   string
	}{
		{"no last event", reply.WithoutLast(), endpoint.Truncated, "one two three", 2, "without its last event"},
		{"[DONE] instead of the last event", reply.WithoutLast().WithDone(), endpoint.Truncated, "one two three", 2, "done without its last event"},
		{"cut in the middle", reply.CutAfter(1700), endpoint.Truncated, "one two ", 0, "ends too early"},
		{"Content-Length too large", reply.WithoutLast().WithHeader("Content-Length", "100000"), endpoint.Truncated, "one two three", 2, "broke before the end"},
		{"Content-Length too small", reply.WithHeader("Content-Length", "1700"), endpoint.Truncated, "one two ", 0, "ends too early"},
		{"invalid JSON in one event", reply.WithEvent(7, `{"type":"response.output_text.delta",`+"\n"+`"delta":nope}`), endpoint.Protocol, "one two three", 0, "event 8 of the stream cannot be read: invalid JSON at byte 47"},
		{"error event", agenttest.ErrorEvent("server_error", "it broke", item.Assistant("one")), endpoint.Server, "one", 1, "it broke"},
		{"nested error event", one.WithEvent(99, `{"type":"error","error":{"code":"rate_limit_exceeded","message":"slow"}}`), endpoint.RateLimit, "one", 1, "slow"},
		{"untyped error", one.WithEvent(99, `{"error":{"code":500,"message":"oh"}}`), endpoint.Server, "one", 1, "oh"},
		{"error event, then [DONE]", one.WithEvent(99, `{"type":"error","code":"server_error","message":"oh"}`).WithDone(), endpoint.Server, "one", 1, "oh"},
		{"error event, then completed", agenttest.Completed(item.Assistant("one")).WithEvent(-1, `{"type":"error","code":"server_error","message":"oh"}`), endpoint.Server, "one", 1, "oh"},
		{"failed", agenttest.Failed("rate_limit_exceeded", "slow down", item.Assistant("one")), endpoint.RateLimit, "one", 1, "slow down"},
		{"failed, policy", agenttest.Failed("invalid_prompt", "not this"), endpoint.Policy, "", 0, "not this"},
		{"failed without a reason", agenttest.Events(created, `{"type":"response.failed","response":{"id":"r","error":null}}`), endpoint.Server, "", 0, "the server gave no reason"},
		{"cancelled at the server", agenttest.Events(created, `{"type":"response.cancelled","response":{"id":"r"}}`), endpoint.Canceled, "", 0, "cancelled at the server"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := agenttest.NewServer(t, tt.answer.WithHeader("X-Request-Id", "req_7"))
			c := srv.Client()
			if tt.text == "" {
				c.Retry.Max = -1
			}
			d := drain(t, c, hello())
			e := wantClass(t, d.err, tt.class)
			if d.text() != tt.text || len(d.items) != tt.items {
				t.Errorf("text %q, %d items; want %q, %d", d.text(), len(d.items), tt.text, tt.items)
			}
			if s := e.Error(); !strings.Contains(s, tt.says) || !strings.HasPrefix(s, "POST "+srv.URL+"/responses: ") || e.RequestID != "req_7" {
				t.Errorf("error says %q, want %q", s, tt.says)
			}
			if e.Sent != (tt.text != "") || e.SafeToRetry() && e.Sent {
				t.Errorf("Sent is %v after %q", e.Sent, tt.text)
			}
			if n := len(srv.Requests()); n != 1 {
				t.Errorf("%d requests after output was yielded", n)
			}
		})
	}
}

// S3: the recorded order is an error event and then the failed response.
func TestErrorEventThenFailed(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Failed("insufficient_quota", "spent").WithEvent(-1, `{"type":"error","code":"insufficient_quota","message":"spent"}`))
	d := drain(t, srv.Client(), hello())
	wantClass(t, d.err, endpoint.Quota)
	if n := len(d.events); d.events[n-1].Type != api.EventFailed || d.resp.ID != "resp_0" || d.resp.Status != item.StatusFailed {
		t.Errorf("last event %s, response %q %q", d.events[n-1].Type, d.resp.ID, d.resp.Status)
	}
}

// S3: an error event ends the stream also where the server leaves it open.
func TestErrorEventThenSilence(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.ErrorEvent("server_error", "oh").WithEvent(99, `{"type":"never sent"}`).StallAfter(3, nil))
	c := srv.Client()
	c.Retry.Max = -1
	d := drain(t, c, hello())
	wantClass(t, d.err, endpoint.Server)
}

// S3: an incomplete response is a result.
func TestIncomplete(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Incomplete("max_output_tokens", item.Assistant("half a")))
	d := drain(t, srv.Client(), hello())
	if d.err != nil || !d.whole || d.resp.Incomplete == nil || d.resp.Incomplete.Reason != "max_output_tokens" {
		t.Errorf("whole %v, response %+v, %v", d.whole, d.resp, d.err)
	}
}

// S1, S2: streams that are odd and whole.
func TestStreamOddities(t *testing.T) {
	reply := agenttest.Completed(item.Assistant("one two three"))
	bare := "data:{\"type\":\"response.output_text.delta\",\"delta\":\"one two three\"}\r\rdata:{\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[]}}"
	unnamed := "event: response.output_text.delta\ndata: {\"delta\":\"one two three\"}\n\nevent: response.completed\ndata: {\"response\":{\"id\":\"r\"}}\n\n"
	for name, answer := range map[string]agenttest.Reply{
		"[DONE] at the end":               reply.WithDone(),
		"events after the last":           reply.WithEvent(99, `{"type":"response.completed"}`).WithEvent(99, "not JSON"),
		"unknown events":                  reply.WithEvent(0, `{"type":"keepalive"}`).WithEvent(5, `{"type":"response.new.delta","delta":5}`),
		"empty data":                      reply.WithEvent(3, ""),
		"byte by byte":                    reply.InPieces(ones(3000)...),
		"type application/json":           reply.WithHeader("Content-Type", "application/json"),
		"type text/plain":                 reply.WithHeader("Content-Type", "text/plain"),
		"no type":                         reply.WithHeader("Content-Type", ""),
		"status 201":                      reply.WithStatus(201),
		"no final newline, CR, no spaces": agenttest.Raw(200, "text/event-stream", bare),
		"types in the event field alone":  agenttest.Raw(200, "text/event-stream", unnamed),
		"byte order mark and blank lines": agenttest.Raw(200, "text/event-stream", "\ufeff\n\n: hello\n\n"+bare),
		"open behind the last event":      reply.WithEvent(99, `{"type":"never sent"}`).StallAfter(11, nil),
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, answer)
			d := drain(t, srv.Client(), hello())
			if d.err != nil || !d.whole || d.text() != "one two three" {
				t.Errorf("whole %v, text %q, %v", d.whole, d.text(), d.err)
			}
		})
	}
}

func ones(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 1
	}
	return list
}

// A server that does not stream is understood.
func TestStreamOfWholeResponse(t *testing.T) {
	const body = ` {"id":"r","object":"response","status":"completed","error":null,"output":[{"type":"new_thing","x":1},{"id":"m","type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}]}` + "\n"
	srv := agenttest.NewServer(t, agenttest.Raw(200, "application/json", body))
	d := drain(t, srv.Client(), hello())
	if d.err != nil || len(d.events) != 3 || len(d.items) != 2 || d.items[0].JSON() != `{"type":"new_thing","x":1}` || d.resp.ID != "r" {
		t.Errorf("%d events, items %v, response %+v, %v", len(d.events), d.items, d.resp, d.err)
	}
	for body, class := range map[string]endpoint.Class{
		`{"id":"r","status":"failed","error":{"code":"invalid_prompt","message":"no"},"output":[]}`: endpoint.Policy,
		`{"id":"r","status":"queued","output":[]}`:                                                  endpoint.Truncated,
		`{"error":{"message":"bad","code":"context_length_exceeded"}}`:                              endpoint.ContextOverflow,
		`{"error":"bad","code":"429"}`:                                                              endpoint.RateLimit,
		`{"id":"r","output":5}`:                                                                     endpoint.Protocol,
		`{"id":"r","output":[}`:                                                                     endpoint.Protocol,
		`{"id":"r","output":[`:                                                                      endpoint.Truncated,
		`{"object":"list"}`:                                                                         endpoint.Protocol,
		`[]`:                                                                                        endpoint.Protocol,
		`{"choices":[{"message":{"content":"a chat completion"}}]}`:                                 endpoint.Protocol,
		`hello there, this is not a stream at all`:                                                  endpoint.Protocol,
		"<!doctype html><title>Sign in</title>":                                                     endpoint.Protocol,
		"":                                                                                          endpoint.Protocol,
	} {
		srv := agenttest.NewServer(t)
		srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Raw(200, "application/json", body) })
		d := drain(t, srv.Client(), hello())
		e := wantClass(t, d.err, class)
		if want := 1 + 2*map[bool]int{true: 1}[e.SafeToRetry()]; len(d.events) == 0 && len(srv.Requests()) != want {
			t.Errorf("%s: %d requests, want %d", body, len(srv.Requests()), want)
		}
		if _, err := srv.Client().Create(t.Context(), hello()); class != endpoint.Truncated || !strings.Contains(body, "queued") {
			wantClass(t, err, class)
			presentable(t, err)
		}
	}
}

// S4: the last event stays as it is, whatever other streams are read meanwhile.
func TestLastEventStays(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("one")), agenttest.Completed(item.Assistant("two")), agenttest.Completed(item.Assistant("three")))
	var last []api.Event
	var texts []string
	for range 3 {
		var ev api.Event
		for e, err := range srv.Client().Stream(t.Context(), hello()) {
			if err != nil {
				t.Fatal(err)
			}
			ev = e
		}
		last, texts = append(last, ev), append(texts, strings.Clone(ev.JSON()))
	}
	for i, ev := range last {
		if ev.JSON() != texts[i] || ev.Type != api.EventCompleted {
			t.Errorf("event %d became %q %s", i, ev.Type, ev.JSON())
		}
	}
}
