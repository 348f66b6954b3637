// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// B7: what is set is sent, what is not is not.
func TestBody(t *testing.T) {
	ok := agenttest.Completed()
	srv := agenttest.NewServer(t, ok, ok, ok, ok, ok)
	c := srv.Client()
	full := &api.Request{
		Model: "m", Input: item.NewList(item.User("a"), item.Call("c", "f", "{}")), Instructions: "i",
		Temperature: new(0.0), TopP: new(1.0), MaxOutputTokens: new(int64(16)), Store: new(false),
		Reasoning: &api.ReasoningConfig{Effort: "low"}, Tools: []item.Tool{&item.FunctionTool{Name: "f", Parameters: `{"type":"object"}`}},
		Include:    []string{api.IncludeEncryptedReasoning}, // R3 wants it, and does not add it twice
		ToolChoice: `"auto"`, Extra: item.Extra{{Name: "seed", Value: "7"}},
	}
	drain(t, c, hello())
	drain(t, c, full)
	create := func(r *api.Request) {
		if _, err := c.Create(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	create(full)
	full.Stream = new(true)
	create(full)
	full.Stream = new(false)
	create(full)
	got := srv.Requests()
	if want := `{"model":"m","input":` + hello().Input.JSON() + `,"stream":true}`; string(got[0].Body) != want {
		t.Errorf("got  %s\nwant %s", got[0].Body, want)
	}
	for i, stream := range map[int]*bool{1: new(true), 2: nil, 3: nil, 4: new(false)} {
		r := *full
		r.Stream = stream
		want, err := r.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got[i].Body)); d != "" {
			t.Errorf("request %d (-want +got):\n%s", i, d)
		}
	}
}

func TestHeaders(t *testing.T) {
	ok := agenttest.Completed()
	srv := agenttest.NewServer(t, ok, ok, ok)
	c := srv.Client()
	c.Key, c.UserAgent = endpoint.NewKey("sk-a-secret-key"), "me/1"
	c.Header = http.Header{"X-Extra": {"1", "2"}}
	drain(t, c, hello())
	c.Header.Set("Authorization", "Basic xyz")
	drain(t, c, hello())
	c.Header, c.Key, c.UserAgent = nil, endpoint.Key{}, ""
	if _, err := c.Create(t.Context(), hello()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]string{
		{"Authorization": "Bearer sk-a-secret-key", "User-Agent": "me/1", "X-Extra": "1,2", "Accept": "text/event-stream", "Content-Type": "application/json"},
		{"Authorization": "Basic xyz"},
		{"Authorization": "", "User-Agent": "antiphon", "X-Extra": "", "Accept": "application/json"},
	} {
		r := srv.Requests()[i]
		for name, value := range want {
			if got := strings.Join(r.Header[http.CanonicalHeaderKey(name)], ","); got != value {
				t.Errorf("request %d: %s is %q, want %q", i, name, got, value)
			}
		}
		if r.Path != "/v1/responses" || r.Method != "POST" || r.Header.Get("Content-Length") == "" {
			t.Errorf("request %d: %s %s %v", i, r.Method, r.Path, r.Header)
		}
	}
}

// B3
func TestProfileOmits(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Completed())
	c := srv.Client()
	c.Profile = &endpoint.Profile{Omit: []string{"temperature", "max_output_tokens", "seed", "model"}}
	req := hello()
	req.Temperature, req.MaxOutputTokens = new(0.5), new(int64(100))
	req.Extra = item.Extra{{Name: "seed", Value: "7"}, {Name: "other", Value: "8"}}
	if d := drain(t, c, req); d.err != nil {
		t.Fatal(d.err)
	}
	got := srv.Requests()[0].Parse(t)
	if got.Temperature != nil || got.MaxOutputTokens != nil || got.Model != "m" || !cmp.Equal(got.Extra, item.Extra{{Name: "other", Value: "8"}}) {
		t.Errorf("sent %s", srv.Requests()[0].Body)
	}
	if req.Temperature == nil || len(req.Extra) != 2 {
		t.Error("the caller's request was changed")
	}
}

// B1: a bad base URL is told before anything is sent.
func TestBadBaseURL(t *testing.T) {
	c := &responses.Client{BaseURL: "localhost:11434"}
	d := drain(t, c, hello())
	var bad *endpoint.URLError
	if !errors.As(d.err, &bad) {
		t.Errorf("got %v", d.err)
	}
	if _, err := c.Create(t.Context(), hello()); !errors.As(err, &bad) {
		t.Errorf("got %v", err)
	}
	c = &responses.Client{BaseURL: "http://127.0.0.1:1", Key: endpoint.NewKey("sk-with\nline")}
	if d := drain(t, c, hello()); strings.Contains(d.err.Error(), "sk-with") {
		t.Errorf("the key is in %q", d.err)
	}
}

// B5: a key goes to its host and nowhere else.
func TestRedirects(t *testing.T) {
	const secret = "sk-a-secret-key"
	other := agenttest.NewServer(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		srv := agenttest.NewServer(t, agenttest.Raw(status, "text/plain", "").WithHeader("Location", other.URL+"/responses?key=1"))
		c := srv.Client()
		c.Key = endpoint.NewKey(secret)
		c.Header = http.Header{"Api-Key": {secret}}
		e := wantClass(t, drain(t, c, hello()).err, endpoint.Protocol)
		if !strings.Contains(e.Error(), "redirects to "+other.URL+"/responses, which was not followed") || e.Status != status || e.SafeToRetry() {
			t.Errorf("%d: %v", status, e)
		}
	}
	if n := len(other.Requests()); n != 0 {
		t.Errorf("%d requests reached the other host", n)
	}

	srv := agenttest.NewServer(t,
		agenttest.Raw(307, "text/plain", "").WithHeader("Location", "/v2/responses"),
		agenttest.Raw(308, "text/plain", "").WithHeader("Location", "/v3/responses"),
		agenttest.Completed(item.Assistant("hi")),
		agenttest.Raw(302, "text/plain", "").WithHeader("Location", "/v2/responses"))
	c := srv.Client()
	c.Key = endpoint.NewKey(secret)
	if d := drain(t, c, hello()); d.err != nil || d.text() != "hi" {
		t.Errorf("text %q, %v", d.text(), d.err)
	}
	reqs := srv.Requests()
	if reqs[2].Path != "/v3/responses" || !bytes.Equal(reqs[0].Body, reqs[2].Body) || reqs[2].Header.Get("Authorization") == "" {
		t.Errorf("after redirects: %+v", reqs[2])
	}
	if e := wantClass(t, drain(t, c, hello()).err, endpoint.Protocol); !strings.Contains(e.Error(), "lose the request's body") {
		t.Error(e)
	}
	loop := agenttest.NewServer(t)
	loop.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Raw(307, "text/plain", "").WithHeader("Location", "/v1/responses")
	})
	wantClass(t, drain(t, loop.Client(), hello()).err, endpoint.Protocol)
	if n := len(loop.Requests()); n > 5 {
		t.Errorf("went round %d times", n)
	}
}

// B5: a server that repeats the key does not get it shown.
func TestKeyInErrors(t *testing.T) {
	const secret = "sk-a-secret-key"
	for name, answer := range map[string]agenttest.Reply{
		"message": agenttest.Failure(401, "invalid_api_key", "Incorrect key "+secret),
		"body":    agenttest.Raw(400, "text/plain", "bad header Authorization: Bearer "+secret),
		"failed":  agenttest.Failed("invalid_prompt", "key "+secret),
		"event":   agenttest.Events(`{"nonsense":` + secret),
	} {
		srv := agenttest.NewServer(t)
		srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return answer })
		c := srv.Client()
		c.Key = endpoint.NewKey(secret)
		if d := drain(t, c, hello()); d.err == nil || strings.Contains(d.err.Error(), secret) {
			t.Errorf("%s: %v", name, d.err)
		}
	}
}

// S7: silence at any point ends the request; a slow reader is not a silence.
func TestIdle(t *testing.T) {
	const limit = 50 * time.Millisecond
	reply := agenttest.Completed(item.Assistant("one two three"))
	for name, answer := range map[string]agenttest.Reply{
		"before the answer":      reply.Stall(nil),
		"before the first event": reply.StallAfter(0, nil),
		"in the middle":          reply.StallAfter(6, nil),
		"in an error's body":     agenttest.Failure(500, "server_error", "oh").WithHeader("Content-Length", "999").StallAfter(1, nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				c := inBubble(t, always(answer, &requests))
				c.IdleTimeout = limit
				e := wantClass(t, drain(t, c, hello()).err, endpoint.Idle)
				synctest.Wait() // the server sees that the client is gone
				if !strings.Contains(e.Error(), "sent nothing for 50ms") || requests != 1 {
					t.Errorf("%d requests, %v", requests, e)
				}
			})
		})
	}

	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	c := &responses.Client{BaseURL: silent.URL, HTTP: silent.Client(), IdleTimeout: limit}
	wantClass(t, drain(t, c, hello()).err, endpoint.Idle)
	_, err := c.Create(t.Context(), hello())
	wantClass(t, err, endpoint.Idle)

	synctest.Test(t, func(t *testing.T) {
		c := inBubble(t, always(reply, new(int)))
		c.IdleTimeout = limit
		for ev, err := range c.Stream(t.Context(), hello()) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Type == api.EventItemAdded {
				time.Sleep(100 * limit)
			}
		}
	})
}

// S7: on by default, and can be put off.
func TestIdleDefault(t *testing.T) {
	if dialect.DefaultIdleTimeout <= 0 {
		t.Error("off by default")
	}
	release := make(chan struct{})
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("hi")).StallAfter(3, release))
	c := srv.Client()
	c.IdleTimeout = -1
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	if d := drain(t, c, hello()); d.err != nil {
		t.Error(d.err)
	}
}

// S8: cancelling ends the request wherever it is; goleak and the server's
// Close, which waits for its connections, prove that nothing is left.
func TestCancel(t *testing.T) {
	reply := agenttest.Completed(item.Assistant("one two three"))
	why := errors.New("enough")

	t.Run("in the middle", func(t *testing.T) {
		srv := agenttest.NewServer(t, reply.StallAfter(6, nil))
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var got []string
		var last error
		for ev, err := range srv.Client().Stream(ctx, hello()) {
			if last = err; ev.Type == api.EventTextDelta {
				got = append(got, strings.Clone(ev.Delta))
				cancel(why)
			}
		}
		e := wantClass(t, last, endpoint.Canceled)
		if !errors.Is(e, why) || !e.Sent || !cmp.Equal(got, []string{"one "}) {
			t.Errorf("got %q, %v", got, e)
		}
	})
	t.Run("before the answer", func(t *testing.T) {
		srv := agenttest.NewServer(t, reply.StallAfter(0, nil))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		d := drainContext(ctx, t, srv.Client(), hello())
		if e := wantClass(t, d.err, endpoint.Canceled); !errors.Is(e, context.DeadlineExceeded) {
			t.Error(e)
		}
	})
	t.Run("before the request", func(t *testing.T) {
		srv := agenttest.NewServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		d := drainContext(ctx, t, srv.Client(), hello())
		if e := wantClass(t, d.err, endpoint.Canceled); !errors.Is(e, context.Canceled) {
			t.Error(e)
		}
	})
	t.Run("while waiting to retry", func(t *testing.T) {
		srv := agenttest.NewServer(t, agenttest.Failure(429, "rate_limit_exceeded", "slow").RetryAfter("60"))
		c := srv.Client()
		c.Retry.Sleep = nil
		ctx, cancel := context.WithCancel(t.Context())
		c.OnRetry = func(error, time.Duration, int) { cancel() }
		_, err := c.Create(ctx, hello())
		wantClass(t, err, endpoint.Canceled)
	})
	t.Run("breaking off", func(t *testing.T) {
		srv := agenttest.NewServer(t, reply.StallAfter(6, nil))
		for range srv.Client().Stream(t.Context(), hello()) {
			break
		}
		srv.Close()
	})
}

// A connection is used again after a stream that ended well, and after errors.
func TestKeepAlive(t *testing.T) {
	reply := agenttest.Completed(item.Assistant("hi"))
	srv := agenttest.NewServer(t, reply, reply.WithDone(), agenttest.Failure(400, "x", "y"), reply, reply, reply)
	c := srv.Client()
	fresh := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			fresh++
		}
	}})
	for range 4 {
		drainContext(ctx, t, c, hello())
	}
	for ev, err := range c.Stream(ctx, hello()) { // a consumer that leaves at the last event
		if err != nil || ev.Terminal() {
			break
		}
	}
	if _, err := c.Create(ctx, hello()); err != nil {
		t.Error(err)
	}
	if fresh != 1 {
		t.Errorf("%d connections for six requests", fresh)
	}
}

func TestGzip(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\"}}\n\n"))
	z.Close()
	whole := agenttest.Raw(200, "text/event-stream", packed.String()).WithHeader("Content-Encoding", "gzip")
	cut := agenttest.Raw(200, "text/event-stream", packed.String()[:packed.Len()-12]).WithHeader("Content-Encoding", "gzip")
	srv := agenttest.NewServer(t, whole, cut, whole)
	if d := drain(t, srv.Client(), hello()); d.err != nil || d.resp.ID != "r" {
		t.Errorf("%+v, %v", d.resp, d.err)
	}
	if d := drain(t, srv.Client(), hello()); d.err != nil || d.resp.ID != "r" { // from what is left of it, or by a retry
		t.Errorf("%+v, %v", d.resp, d.err)
	}
}

// Limits are typed errors.
func TestTooLarge(t *testing.T) {
	answer := agenttest.Completed(item.Assistant(strings.Repeat("x", 5000)))
	srv := agenttest.NewServer(t, answer, answer)
	c := srv.Client()
	c.MaxEvent, c.MaxBody = 4000, 4000
	e := wantClass(t, drain(t, c, hello()).err, endpoint.TooLarge)
	if !strings.Contains(e.Error(), "larger than 4000 bytes") {
		t.Error(e)
	}
	_, err := c.Create(t.Context(), hello())
	wantClass(t, err, endpoint.TooLarge)
}

// Create understands endpoints that stream all the same, and returns a failed
// response with its error.
func TestCreate(t *testing.T) {
	srv := agenttest.NewServer(t,
		agenttest.Events(
			`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","content":"hi"}}`,
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}`),
		agenttest.Failed("invalid_prompt", "no"))
	resp, err := srv.Client().Create(t.Context(), hello())
	if err != nil || resp.ID != "r" || resp.Text() != "hi" {
		t.Errorf("%+v, %v", resp, err)
	}
	resp, err = srv.Client().Create(t.Context(), hello())
	wantClass(t, err, endpoint.Policy)
	if resp == nil || resp.Status != item.StatusFailed {
		t.Errorf("%+v", resp)
	}
}

// A stream may be ranged over again: a new request each time.
func TestStreamIsRepeatable(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Completed(), agenttest.Completed())
	stream := srv.Client().Stream(t.Context(), hello())
	if len(srv.Requests()) != 0 {
		t.Error("sent before it was ranged over")
	}
	for range 2 {
		for _, err := range stream {
			if err != nil {
				t.Error(err)
			}
		}
	}
	if n := len(srv.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// E8: a caller that did not wait for the size of the context does not hide it from the next one.
func TestWindowAfterCancel(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","max_model_len":1234}]}`)
	}))
	defer srv.Close()
	c := &responses.Client{BaseURL: srv.URL, Profile: &endpoint.Profile{Name: "x", Windows: []string{"/models"}}}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if n := c.Window(gone, "m"); n != 0 {
		t.Errorf("%d for a context that has ended", n)
	}
	if n := c.Window(t.Context(), "m"); n != 1234 {
		t.Errorf("then %d", n)
	}
}
