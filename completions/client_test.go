// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/dialect"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

var _ agent.Model = (*completions.Client)(nil)

// client speaks to a server and never waits between retries.
func client(srv *agenttest.Server) *completions.Client {
	return &completions.Client{
		BaseURL: srv.URL, HTTP: srv.HTTP(),
		Retry: endpoint.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }},
	}
}

func hello() *api.Request {
	return &api.Request{Model: "m", Input: item.NewList(item.User("hello"))}
}

// usage is the chunk behind the last choice.
const usage = `{"id":"r","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`

// reply streams a text.
func reply(words ...string) agenttest.Reply {
	chunks := []string{delta(`"role":"assistant","content":""`)}
	for _, word := range words {
		chunks = append(chunks, delta(`"content":`+string(item.Quote(word))))
	}
	return agenttest.Events(append(chunks, finish("stop"), usage)...).WithDone()
}

// drained is what a stream gave.
type drained struct {
	text  strings.Builder
	n     int
	items []item.Item
	resp  *api.Response
	whole bool
	err   error
}

func drain(ctx context.Context, t *testing.T, c agent.Model, req *api.Request) *drained {
	t.Helper()
	d := &drained{}
	var acc api.Accumulator
	for ev, err := range c.Stream(ctx, req) {
		if d.err != nil {
			t.Errorf("%s and %v came behind the error", ev.Type, err)
		}
		if d.err = err; err != nil {
			continue
		}
		d.n++
		if ev.Type == api.EventTextDelta {
			d.text.WriteString(ev.Delta)
		}
		items, err := acc.Add(ev)
		if err != nil {
			t.Error(err)
		}
		d.items = append(d.items, items...)
	}
	d.resp, d.whole = acc.Response()
	return d
}

func wantClass(t *testing.T, err error, class endpoint.Class) *endpoint.Error {
	t.Helper()
	var e *endpoint.Error
	if !errors.As(err, &e) || e.Class != class {
		t.Fatalf("got %v, want class %s", err, class)
	}
	return e
}

// B7, I9: what is set is sent, in the words of Chat Completions.
func TestBody(t *testing.T) {
	srv := agenttest.NewServer(t, reply("a"), reply("a"))
	c := client(srv)
	if d := drain(t.Context(), t, c, hello()); d.err != nil || d.text.String() != "a" || d.resp.Usage.TotalTokens != 15 {
		t.Error(d.err, d.resp)
	}
	full := &api.Request{
		Model: "m", Input: item.NewList(item.User("a")), Instructions: "i", Temperature: new(0.5), MaxOutputTokens: new(int64(16)),
		Tools: []item.Tool{&item.FunctionTool{Name: "f", Parameters: `{"type":"object"}`, Strict: new(true)}}, ToolChoice: api.ChooseFunction("f"),
		Extra: item.Extra{{Name: "stop", Value: `["x"]`}},
	}
	if d := drain(t.Context(), t, c, full); d.err != nil {
		t.Error(d.err)
	}
	for i, want := range []string{
		`{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"m","messages":[{"role":"system","content":"i"},{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"},"strict":true}}],"tool_choice":{"type":"function","function":{"name":"f"}},"max_tokens":16,"temperature":0.5,"stream":true,"stream_options":{"include_usage":true},"stop":["x"]}`,
	} {
		r := srv.Requests()[i]
		if d := cmp.Diff(want, string(r.Body)); d != "" || r.Path != "/v1/chat/completions" || r.Header.Get("Content-Length") == "" {
			t.Errorf("%s %v (-want +got):\n%s", r.Path, r.Header, d)
		}
	}
}

func TestCreate(t *testing.T) {
	body := `{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`
	whole := agenttest.Raw(200, "application/json", body)
	srv := agenttest.NewServer(t, whole, reply("hi"), whole, agenttest.Raw(200, "application/json", `{"error":{"message":"no","code":"invalid_prompt"}}`),
		agenttest.Raw(200, "application/json", `{"hello":1}`), agenttest.Raw(200, "application/json", body[:60]))
	c := client(srv)
	c.Retry.Max = -1
	for range 2 { // the second answers with a stream
		r, err := c.Create(t.Context(), hello())
		if err != nil || r.Text() != "hi" || r.Usage == nil {
			t.Errorf("%v, %+v", err, r)
		}
	}
	d := drain(t.Context(), t, c, hello()) // and this is a stream that comes in one piece
	if d.err != nil || d.resp.Text() != "hi" || len(d.items) != 1 || !d.whole {
		t.Errorf("%v, %v", d.err, d.items)
	}
	r, err := c.Create(t.Context(), hello())
	if e := wantClass(t, err, endpoint.Policy); e.Code != "invalid_prompt" || r == nil || r.Status != item.StatusFailed {
		t.Errorf("%v, %+v", e, r)
	}
	_, err = c.Create(t.Context(), hello())
	wantClass(t, err, endpoint.Protocol)
	_, err = c.Create(t.Context(), hello())
	wantClass(t, err, endpoint.Truncated)
}

// E1, E2, E4
func TestRetries(t *testing.T) {
	ok := reply("hi")
	early := agenttest.Events(`{"error":{"message":"busy","code":"rate_limit_exceeded"}}`)
	for _, c := range []struct {
		name    string
		answers []agenttest.Reply
		class   endpoint.Class // "" is success
		n       int
	}{
		{"429, 500, then right", []agenttest.Reply{agenttest.Failure(429, "rate_limit_exceeded", "slow"), agenttest.Failure(500, "server_error", "oh"), ok}, "", 3},
		{"reset before the first chunk", []agenttest.Reply{agenttest.Reset(), ok}, "", 2},
		{"an error in the first chunk", []agenttest.Reply{early, ok}, "", 2},
		{"[DONE] at once", []agenttest.Reply{agenttest.Events().WithDone(), ok}, "", 2},
		{"cut behind the beginning", []agenttest.Reply{agenttest.Events(delta(`"role":"assistant","content":""`)), ok}, "", 2},
		{"an error behind the beginning", []agenttest.Reply{agenttest.Events(delta(`"role":"assistant"`), `{"error":{"message":"busy","code":"rate_limit_exceeded"}}`), ok}, "", 2},
		{"no quota", []agenttest.Reply{agenttest.Failure(429, "insufficient_quota", "pay")}, endpoint.Quota, 1},
		{"a bad request", []agenttest.Reply{agenttest.Failure(400, "x", "bad")}, endpoint.BadRequest, 1},
		{"cut after output", []agenttest.Reply{agenttest.Events(delta(`"content":"h"`))}, endpoint.Truncated, 1},
		{"usage and [DONE] after output (S2)", []agenttest.Reply{agenttest.Events(delta(`"content":"hi"`), usage).WithDone()}, "", 1},
		{"usage after output", []agenttest.Reply{agenttest.Events(delta(`"content":"h"`), usage)}, endpoint.Truncated, 1},
		{"usage before output, and [DONE]", []agenttest.Reply{agenttest.Events(usage, delta(`"content":"h"`)).WithDone()}, endpoint.Truncated, 1},
		{"a broken call, usage and [DONE]", []agenttest.Reply{agenttest.Events(delta(`"tool_calls":[{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":"}}]`), usage).WithDone()}, endpoint.Truncated, 1},
		{"[DONE] after output", []agenttest.Reply{agenttest.Events(delta(`"content":"h"`)).WithDone()}, endpoint.Truncated, 1},
		{"an error after output", []agenttest.Reply{agenttest.Events(delta(`"content":"h"`), `{"error":{"message":"boom","code":"server_error"}}`)}, endpoint.Server, 1},
		{"finish_reason and no [DONE]", []agenttest.Reply{agenttest.Events(delta(`"content":"hi"`), finish("stop"))}, "", 1},
		{"an error event", []agenttest.Reply{agenttest.Raw(200, "text/event-stream", "event: error\ndata: {\"message\":\"boom\",\"code\":\"invalid_prompt\"}\n\n")}, endpoint.Policy, 1},
		{"a web page", []agenttest.Reply{agenttest.WebPage(200, "hello")}, endpoint.Protocol, 1},
		{"the events of another API", []agenttest.Reply{agenttest.Completed(item.Assistant("hi"))}, endpoint.Protocol, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := agenttest.NewServer(t, c.answers...)
			d := drain(t.Context(), t, client(srv), hello())
			if n := len(srv.Requests()); n != c.n {
				t.Errorf("%d requests, want %d", n, c.n)
			}
			if c.class == "" {
				if d.err != nil || d.text.String() != "hi" || !d.whole {
					t.Errorf("%q, %v", d.text.String(), d.err)
				}
				return
			}
			if e := wantClass(t, d.err, c.class); d.n > 0 && e.SafeToRetry() && e.Sent {
				t.Errorf("safe to retry after output: %v", e)
			}
		})
	}
}

// S1, S2: cut anywhere, a stream is whole or an error, never half as whole.
func TestCutAnywhere(t *testing.T) {
	right := reply("one ", "two ", "three")
	whole, broken := 0, 0
	for n := 0; ; n += 7 {
		srv := agenttest.NewServer(t, right.CutAfter(n))
		c := client(srv)
		c.Retry.Max = -1
		d := drain(t.Context(), t, c, hello())
		switch {
		case d.err != nil:
			broken++
			if wantClass(t, d.err, endpoint.Truncated); whole > 0 {
				t.Errorf("cut after %d bytes: broken, though less was whole", n)
			}
		case !d.whole || d.text.String() != "one two three" || d.resp.Text() != "one two three":
			t.Errorf("cut after %d bytes: %q taken as whole", n, d.text.String())
		default:
			whole++
		}
		if d.err == nil && d.resp.Usage != nil {
			break // nothing is missing
		}
	}
	if whole < 2 || broken < 20 {
		t.Errorf("%d whole, %d broken", whole, broken)
	}
	for name, a := range map[string]agenttest.Reply{
		"bytes": right.ByteByByte(), "CR": right.LineEnds("\r"), "BOM": right.WithBOM(), "comments": right.WithComments(), "tight": right.Tight(), "gzip": right.Gzip(),
	} {
		srv := agenttest.NewServer(t, a)
		if d := drain(t.Context(), t, client(srv), hello()); d.err != nil || d.text.String() != "one two three" {
			t.Errorf("%s: %q, %v", name, d.text.String(), d.err)
		}
	}
}

// unended answers with the chunks of a stream, of which the rest does not come.
type unended []string

func (u unended) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	there, rest := io.Pipe()
	go func() {
		for _, chunk := range u {
			_, _ = io.WriteString(rest, "data: "+chunk+"\n\n")
		}
		<-r.Context().Done()
		rest.CloseWithError(r.Context().Err())
	}()
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: there, ContentLength: -1, Request: r}, nil
}

// S7, S8
func TestIdleAndCancel(t *testing.T) {
	right := reply("one ", "two ", "three")
	t.Run("idle", func(t *testing.T) {
		srv := agenttest.NewServer(t, right.StallAfter(2, nil))
		c := client(srv)
		c.IdleTimeout = 50 * time.Millisecond
		wantClass(t, drain(t.Context(), t, c, hello()).err, endpoint.Idle)
	})
	t.Run("silence behind the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // in which no machine is too slow for the limit
			c := &completions.Client{BaseURL: "http://localhost/v1", IdleTimeout: 50 * time.Millisecond, HTTP: &http.Client{Transport: unended{
				delta(`"role":"assistant","content":""`), delta(`"content":"one two three"`), finish("stop"), // the usage never comes
			}}}
			if d := drain(t.Context(), t, c, hello()); d.err != nil || !d.whole || d.text.String() != "one two three" || d.resp.Usage != nil {
				t.Errorf("%q, %v, %+v", d.text.String(), d.err, d.resp)
			}
		})
	})
	t.Run("cancel", func(t *testing.T) {
		srv := agenttest.NewServer(t, right.StallAfter(3, nil))
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var last error
		for ev, err := range client(srv).Stream(ctx, hello()) {
			if last = err; ev.Type == api.EventTextDelta {
				cancel(why)
			}
		}
		if e := wantClass(t, last, endpoint.Canceled); !errors.Is(e, why) || !e.Sent {
			t.Error(e)
		}
	})
	t.Run("cancel behind the end", func(t *testing.T) {
		srv := agenttest.NewServer(t, right.StallAfter(5, nil))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		wantClass(t, drain(ctx, t, client(srv), hello()).err, endpoint.Canceled)
	})
	t.Run("break off", func(t *testing.T) {
		srv := agenttest.NewServer(t, right.StallAfter(3, nil))
		for range client(srv).Stream(t.Context(), hello()) {
			break
		}
		srv.Close()
	})
}

func TestKeepAlive(t *testing.T) {
	srv := agenttest.NewServer(t, reply("a"), reply("b"), reply("c"))
	c, fresh := client(srv), 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			fresh++
		}
	}})
	for range 3 {
		drain(ctx, t, c, hello())
	}
	if fresh != 1 {
		t.Errorf("%d connections for three requests", fresh)
	}
}

// TestLossesOfReplies: words of a reply that a response has no place for, such as
// those of a second choice, are named to who takes the notes of a run.
func TestLossesOfReplies(t *testing.T) {
	for name, answer := range map[string]agenttest.Reply{
		"a stream":  agenttest.Events(delta(`"content":"one"`), `{"choices":[{"index":1,"delta":{"content":"two"}}]}`, finish("stop")).WithDone(),
		"one piece": agenttest.Raw(http.StatusOK, "application/json", `{"choices":[{"index":0,"message":{"role":"assistant","content":"one"},"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":"two"},"finish_reason":"stop"}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, answer)
			c := client(srv)
			var told []completions.Loss
			c.OnLoss = func(list []completions.Loss) { told = append(told, list...) }
			var notes []api.Note
			d := drain(api.WithNotes(t.Context(), func(n api.Note) { notes = append(notes, n) }), t, c, hello())
			if d.err != nil || len(told) != 1 || told[0].Kind != completions.LostContent {
				t.Errorf("%v, told %v", d.err, told)
			}
			const want = "the reply holds data that a response cannot hold, and it is not kept: choices[1]: a response has one choice"
			if len(notes) != 1 || notes[0].Kind != api.NoteLost || notes[0].Text != want {
				t.Errorf("notes: %+v", notes)
			}
		})
	}
}

// What the model would not see is not sent; what is lost otherwise is told,
// once.
func TestLosses(t *testing.T) {
	srv := agenttest.NewServer(t, reply("a"), reply("a"))
	c := client(srv)
	c.Profile = &endpoint.Profile{Name: "bare"}
	var told []string
	c.OnLoss = func(list []completions.Loss) { told = append(told, lines(list)) }
	for problem, req := range map[string]*api.Request{
		"input[0].content[0]":  {Input: item.NewList(item.Must(&item.Message{Role: item.RoleUser, Content: item.Parts(&item.InputImage{FileID: "file_1"})}))},
		"previous_response_id": {Input: item.NewList(item.User("a")), PreviousResponseID: "resp_1"},
		"nothing to send":      {},
		`unknown role "x"`:     {Input: item.NewList(item.Must(&item.Message{Role: "x", Content: item.Text("a")}))},
	} {
		if d := drain(t.Context(), t, c, req); d.err == nil || !strings.Contains(d.err.Error(), problem) {
			t.Errorf("%s: %v", problem, d.err)
		}
	}
	req := hello()
	req.Input.Append(item.Must(&item.Message{Role: item.RoleAssistant, ID: "msg_1", Content: item.Text("b")}))
	drain(t.Context(), t, c, req)
	req.Input.Append(item.User("c"))
	req.Truncation = "auto"
	drain(t.Context(), t, c, req)
	want := []string{"input[1].id: has no counterpart", "truncation: has no counterpart"}
	if d := cmp.Diff(want, told); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	c.Profile = &endpoint.Profile{Name: "codex", APIs: []string{endpoint.APIResponses}}
	var refused *endpoint.RefusedError
	if d := drain(t.Context(), t, c, hello()); !errors.As(d.err, &refused) {
		t.Error(d.err)
	}
	if n := len(srv.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// The loop does not know the difference; I12: each request begins with the
// messages of the one before.
func TestLoop(t *testing.T) {
	call := func(id, args string) agenttest.Reply {
		return agenttest.Events(
			delta(`"role":"assistant","content":null,"reasoning_content":"hm"`),
			delta(`"tool_calls":[{"index":0,"id":"`+id+`","type":"function","function":{"name":"double","arguments":""}}]`),
			delta(`"tool_calls":[{"index":0,"function":{"arguments":`+string(item.Quote(args))+`}}]`),
			finish("tool_calls"), usage).WithDone()
	}
	srv := agenttest.NewServer(t, call("c1", `{"n":2}`), call("c2", `{"n":4}`), reply("8"))
	c := client(srv)
	reasons := completions.Dialect{Options: &completions.Options{Plain: true, Reasoning: completions.ReasoningContent}}
	double, err := tool.New("double", "doubles a number", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return fmt.Sprint(2 * in.N), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := session.New()
	a := &agent.Agent{Model: dialect.Client{Config: (*dialect.Config)(c), Dialect: reasons}, Request: api.Request{Model: "m"}, Tools: []tool.Tool{double}, Policy: agent.Policy{Allow: []string{"*"}}}
	result, err := a.Run(t.Context(), s, item.User("double 2 twice"))
	if err != nil {
		t.Fatal(err)
	}
	if result.Why != agent.StopEndTurn || result.Text != "8" {
		t.Errorf("%+v", result)
	}
	var before string
	for i, r := range srv.Requests() {
		m := string(r.Body[strings.Index(string(r.Body), `"messages":[`):strings.Index(string(r.Body), `],"tools"`)])
		if !strings.HasPrefix(m, before) {
			t.Errorf("request %d begins otherwise:\n%s\n%s", i, before, m)
		}
		before = m
	}
	want := `"messages":[{"role":"user","content":"double 2 twice"},` +
		`{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"double","arguments":"{\"n\":2}"}}]},{"role":"tool","tool_call_id":"c1","content":"4"},` +
		`{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"c2","type":"function","function":{"name":"double","arguments":"{\"n\":4}"}}]},{"role":"tool","tool_call_id":"c2","content":"8"}`
	if d := cmp.Diff(want, before); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// E2, E7: what servers said when they refused is told, and not asked for again
// but where that may help.
func TestRecordedErrors(t *testing.T) {
	recorded(t, "errors", func(t *testing.T, text []byte) {
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		srv := agenttest.NewServer(t)
		srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
			return agenttest.Raw(resp.StatusCode, resp.Header.Get("Content-Type"), string(body))
		})
		d := drain(t.Context(), t, client(srv), hello())
		var e *endpoint.Error
		if !errors.As(d.err, &e) || e.Status != resp.StatusCode || e.Class == "" || len(body) > 0 && e.Message == "" && e.Body == "" {
			t.Errorf("%#v of %s", d.err, body)
		}
		if n := len(srv.Requests()); n > 1 && !e.SafeToRetry() {
			t.Errorf("%d requests for %v", n, e)
		}
	})
}

// Every recording is served on a socket, cut as networks cut, and read as it is
// read in one piece.
func TestRecordedServed(t *testing.T) {
	sizes := recordedSizes(t)
	recorded(t, "streams", func(t *testing.T, text []byte) {
		want := decode(t, chunksOf(t, text))
		pieces := sizes[path.Base(t.Name())]
		if pieces == nil {
			pieces = []int{1, 2, 3, 5, 17, 101, 7, 1300}
		}
		srv := agenttest.NewServer(t, agenttest.Raw(200, "text/event-stream", string(text)).InPieces(pieces...))
		d := drain(t.Context(), t, client(srv), hello())
		wantResp, wantWhole := want.acc.Response()
		if d.text.String() != want.text.String() || d.n != len(want.events) || d.whole != wantWhole || d.resp.ID != wantResp.ID || !slices.Equal(d.resp.Output, wantResp.Output) {
			t.Errorf("%d events, %q", d.n, d.text.String())
		}
		if broken := want.events[len(want.events)-1].Type == api.EventError; broken != (d.err != nil) {
			t.Error(d.err)
		}
	})
}

// recordedSizes are the reads that clients really saw, by file.
func recordedSizes(t *testing.T) map[string][]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(apispec.Shared(t, "corpus"), "stream_chunks.jsonl"))
	if err != nil {
		t.Skip(err)
	}
	sizes := map[string][]int{}
	for line := range bytes.Lines(text) {
		var one struct {
			Path   string `json:"path"`
			Chunks []int  `json:"chunk_bytes"`
		}
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		sizes[path.Base(one.Path)] = one.Chunks
	}
	return sizes
}
