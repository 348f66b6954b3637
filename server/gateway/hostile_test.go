// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
)

// An upstream that breaks off after output, sends garbage or an error there, or stops
// sending, gives a failed response: streamed, whole and in the background. Every event is
// valid. S2 S3 S7
func TestBreaksOff(t *testing.T) {
	good := agenttest.Completed(item.Assistant("one two three"))
	never := make(chan struct{})
	for name, bad := range map[string]agenttest.Reply{
		"cut": good.CutAfter(1500), "reset": good.CutAfter(1500).ByReset(), "no end": good.WithoutLast(), "done": good.WithoutLast().WithDone(),
		"garbage": good.WithEvent(6, `{"type":"response.output_text.delta",`), "stalls": good.StallAfter(6, never),
		"error": agenttest.ErrorEvent("server_error", "Broken.", item.Assistant("one")), "failed": agenttest.Failed("rate_limit_exceeded", "Slow.", item.Assistant("one")),
	} {
		t.Run(name, func(t *testing.T) {
			up := agenttest.NewServer(t)
			up.Otherwise(func(int, agenttest.Request) agenttest.Reply { return bad })
			u := open(t, up.URL, false)
			if name == "stalls" {
				u.Config.IdleTimeout = time.Second // in which it answers, also on a busy machine
			}
			w := serving(t, u)
			events := w.events(`{"model":"m","input":"a","stream":true}`)
			if last := events[len(events)-1]; last.Type != api.EventFailed {
				t.Errorf("ends with %s", last.JSON())
			}
			whole := w.create(`{"model":"m","input":"a"}`)
			if whole.Status != item.StatusFailed || whole.Error == nil || strings.Contains(whole.Error.Message, "127.0.0.1") {
				t.Errorf("%s %v", whole.Status, whole.Error)
			}
			made := w.create(`{"model":"m","input":"a","background":true}`)
			got, err := w.typed().Wait(t.Context(), made.ID)
			if got == nil || got.Status != item.StatusFailed {
				t.Errorf("in the background: %v, %v", got, err)
			}
		})
	}
}

// waits is an upstream that begins a response and goes on when its client has gone.
func waits(t *testing.T) (base string, begun, gone <-chan struct{}) {
	t.Helper()
	here, left := make(chan struct{}, 1), make(chan struct{}, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range []string{
			`{"type":"response.created","sequence_number":0,"response":{"id":"r","object":"response","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"m1","role":"assistant","status":"in_progress","content":[]}}`,
			`{"type":"response.output_text.delta","sequence_number":2,"item_id":"m1","output_index":0,"content_index":0,"delta":"x"}`,
		} {
			_, _ = w.Write([]byte("data: " + data + "\n\n"))
		}
		w.(http.Flusher).Flush()
		here <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", here, left
}

// A client that goes away ends the request to the upstream, unless the response is made in
// the background; then a cancellation ends it. S8
func TestClientGoesAway(t *testing.T) {
	base, begun, gone := waits(t)
	w := serving(t, open(t, base, false))
	for _, stream := range []string{"true", "false"} {
		ctx, stop := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+"/responses", strings.NewReader(`{"model":"m","input":"a","stream":`+stream+`}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		go func() {
			<-begun
			stop()
		}()
		if resp, err := w.client.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		<-gone
	}
	made := w.create(`{"model":"m","input":"a","background":true}`)
	<-begun
	select {
	case <-gone:
		t.Error("the upstream's request of a background response ended with the client's")
	default:
	}
	status, _, text := w.ask(http.MethodPost, "/responses/"+made.ID+"/cancel", "")
	if status != http.StatusOK || !strings.Contains(text, item.StatusCancelled) {
		t.Errorf("%d %s", status, text)
	}
	<-gone
}

// What a sloppy server leaves out is added, so that every event is valid: numbers,
// positions, the beginning of items and parts. S5
func TestSloppy(t *testing.T) {
	const head = `{"id":"r","object":"response","status":"in_progress","output":[]}`
	const message = `{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello","annotations":[],"logprobs":[]}]}`
	const call = `{"type":"function_call","id":"fc1","call_id":"c1","name":"f","arguments":"{}","status":"completed"}`
	end := `{"type":"response.completed","response":{"id":"r","object":"response","status":"completed","output":[` + message + `,` + call + `]}}`
	for name, events := range map[string][]string{
		"no numbers": {`{"type":"response.created","response":` + head + `}`,
			`{"type":"response.output_item.added","item":{"type":"message","id":"m1","role":"assistant","status":"in_progress","content":[]}}`,
			`{"type":"response.output_text.delta","item_id":"m1","delta":"hel"}`, `{"type":"response.output_text.delta","item_id":"m1","delta":"lo"}`,
			`{"type":"response.output_item.done","item":` + message + `}`, `{"type":"response.output_item.done","item":` + call + `}`, end},
		"only deltas": {`{"type":"response.output_text.delta","item_id":"m1","delta":"hel"}`, `{"type":"response.output_text.delta","item_id":"m1","delta":"lo"}`, end},
		"only done":   {`{"type":"response.output_item.done","item":` + message + `}`, `{"type":"response.output_item.done","item":` + call + `}`, end},
		"only an end": {end},
		"unknown":     {`{"type":"response.created","response":` + head + `}`, `{"type":"codex.rate_limits","x":1}`, `{"type":"keepalive"}`, end},
		"twice":       {`{"type":"response.output_item.done","output_index":0,"item":` + message + `}`, `{"type":"response.output_item.done","output_index":0,"item":` + message + `}`, end},
	} {
		t.Run(name, func(t *testing.T) {
			up := agenttest.NewServer(t)
			up.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Events(events...) })
			w := serving(t, open(t, up.URL, false))
			got := w.events(`{"model":"m","input":"a","stream":true}`)
			var acc api.Accumulator
			said := ""
			for _, ev := range got {
				if ev.Type == api.EventTextDelta {
					said += ev.Delta
				}
				if _, err := acc.Add(ev); err != nil {
					t.Error(err)
				}
			}
			r, ended := acc.Response()
			if !ended || len(r.Output) != 2 || r.Output[0].JSON() != message || r.Output[1].JSON() != call || said != "hello" {
				t.Errorf("%q, %v", said, r.Output)
			}
			whole := w.create(`{"model":"m","input":"a"}`)
			if len(whole.Output) != 2 || whole.Output[0].JSON() != message {
				t.Errorf("%v", whole.Output)
			}
		})
	}
}

// The tools of a request that name a URL, such as an MCP server, need the scope of the key, and
// lead only to the public internet. A3
func TestToolURLs(t *testing.T) {
	b := &gateway.Backend{Upstreams: []gateway.Upstream{open(t, says(t, "yes").URL, false)}}
	for _, test := range []struct {
		urls        bool
		tools, want string
	}{
		{false, `[{"type":"mcp","server_label":"x","server_url":"https://8.8.8.8/mcp"}]`, "'urls'"},
		{false, `[{"type":"image_generation","input_image_mask":{"image_url":"https://8.8.8.8/x.png"}}]`, "'urls'"},
		{false, `{"new_source_url":"https://8.8.8.8/x"}`, "'urls'"},
		{false, `{"new_thing":{"deep":[{"audio_url":"https://8.8.8.8/x"}]}}`, "'urls'"},
		{true, `[{"type":"mcp","server_label":"x","server_url":"http://169.254.169.254/mcp"}]`, "public internet"},
		{true, `[{"type":"mcp","server_label":"x","server_url":"https://8.8.8.8/mcp"}]`, ""},
		{false, `[{"type":"function","name":"f","parameters":{"type":"object","properties":{"image_url":{"type":"string"}}}}]`, ""},
	} {
		text := `{"model":"m","input":"x","tools":` + test.tools + `}`
		if strings.HasPrefix(test.tools, "{") {
			text = `{"model":"m","input":"x",` + test.tools[1:]
		}
		req, err := api.ParseRequest([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		object, err := item.ParseString(text)
		if err != nil {
			t.Fatal(err)
		}
		r := &server.Request{Request: req, Object: object, Items: req.InputItems()}
		ctx := server.WithCaller(t.Context(), server.Caller{Project: "p", URLs: test.urls})
		_, err = b.CountTokens(ctx, r)
		if test.want == "" && err != nil && strings.Contains(err.Error(), "URL") || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", test.tools, err)
		}
	}
}

// What was complete of a response whose client left is kept, with the text so far, and can be continued. It
// is not in its conversation, because its client may ask the same again.
func TestAbandoned(t *testing.T) {
	base, _, gone := waits(t)
	w := &world{t: t, b: &gateway.Backend{Upstreams: []gateway.Upstream{open(t, base, false), open(t, says(t, "Well.").URL, false)}}}
	w.b.Upstreams[0].Models, w.b.Upstreams[1].Models = "slow", "quick"
	keep := &gateway.Store{In: opened(t)}
	w.serve(&server.Server{Backend: w.b, Store: keep})
	defer func() {
		w.end()
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	}()
	talk, err := w.typed().CreateConversation(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	id := leaves(t, w, `{"model":"slow","input":"Tell me.","stream":true,"conversation":"`+talk.ID+`"}`, "output_text.delta")
	<-gone
	got, err := w.typed().Wait(t.Context(), id)
	if got == nil || got.Status != item.StatusIncomplete || got.Text() != "x" || got.Error == nil || !strings.Contains(got.Error.Message, "client left") {
		t.Fatalf("%v, %v", got, err)
	}
	if _, _, list := w.ask(http.MethodGet, "/conversations/"+talk.ID+"/items", ""); !strings.Contains(list, `"data":[]`) {
		t.Errorf("%s", list)
	}
	next := w.create(`{"model":"quick","input":"Go on.","previous_response_id":"` + id + `"}`)
	_, _, list := w.ask(http.MethodGet, "/responses/"+next.ID+"/input_items", "")
	for _, want := range []string{"Tell me.", `"text":"x"`, "Go on."} {
		if !strings.Contains(list, want) {
			t.Errorf("%s lacks %s", list, want)
		}
	}
}

// Of a response that a backend of one's own writes, a call that broke off is not kept, and half a message is not complete.
func TestAbandonedOpen(t *testing.T) {
	for _, v := range []item.Value{&item.Message{}, &item.FunctionCall{CallID: "c1", Name: "rm"}, &item.CustomToolCall{CallID: "c1", Name: "rm"}, &item.MCPCall{ServerLabel: "s", Name: "rm"}} {
		w := &world{t: t}
		keep := &gateway.Store{In: opened(t)}
		w.serve(&server.Server{Store: keep, Backend: server.BackendFunc(func(ctx context.Context, r *server.Request, out *server.Writer) error {
			if r.PreviousResponseID != "" {
				return out.Text("Well.")
			}
			if err := errors.Join(out.Text("Whole."), out.Open(v), out.Delta("half")); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})})
		id := leaves(t, w, `{"model":"m","input":"Tell me.","stream":true}`, "half")
		got, err := w.typed().Wait(t.Context(), id)
		if got == nil || got.Status != item.StatusIncomplete || len(got.Output) == 0 || got.Output[0].Status() != item.StatusCompleted {
			t.Fatalf("%s: %v, %v", v.ItemType(), got, err)
		}
		_, message := v.(*item.Message)
		if rest := got.Output[1:]; message != (len(rest) == 1) || message && rest[0].Status() != item.StatusIncomplete {
			t.Errorf("%s: %v", v.ItemType(), got.Output)
		}
		next := w.create(`{"model":"m","input":"Go on.","previous_response_id":"` + id + `"}`)
		if _, _, list := w.ask(http.MethodGet, "/responses/"+next.ID+"/input_items", ""); !strings.Contains(list, "Whole.") || strings.Contains(list, "_call") {
			t.Errorf("%s: %s", v.ItemType(), list)
		}
		w.end()
		if err := keep.Close(); err != nil {
			t.Error(err)
		}
	}
}

// leaves asks for a streamed response, and leaves when it has seen a text. It returns the id of the response.
func leaves(t *testing.T, w *world, body, text string) string {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+"/responses", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var seen strings.Builder
	for !strings.Contains(seen.String(), text) {
		part := make([]byte, 4096)
		n, err := resp.Body.Read(part)
		seen.Write(part[:n])
		if err != nil {
			t.Fatal(err)
		}
	}
	return regexp.MustCompile(`resp_[A-Z0-9]+`).FindString(seen.String())
}
