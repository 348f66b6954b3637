// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// both runs test with a streamed and with a whole request.
func both(t *testing.T, answers []agenttest.Reply, test func(t *testing.T, srv *agenttest.Server, ask func(*responses.Client) error)) {
	t.Run("streamed", func(t *testing.T) {
		test(t, agenttest.NewServer(t, answers...), func(c *responses.Client) error { return drain(t, c, hello()).err })
	})
	t.Run("whole", func(t *testing.T) {
		test(t, agenttest.NewServer(t, answers...), func(c *responses.Client) error {
			_, err := c.Create(t.Context(), hello())
			if err != nil {
				presentable(t, err)
			}
			return err
		})
	})
}

// E1: what may pass is tried again, with the same body, honouring Retry-After.
func TestRetries(t *testing.T) {
	ok := agenttest.Completed(item.Assistant("hi"))
	rate := agenttest.Failure(429, "rate_limit_exceeded", "slow down")
	for name, tt := range map[string]struct {
		failure agenttest.Reply
		wait    time.Duration
	}{
		"429":                  {rate, 500 * time.Millisecond},
		"429 with seconds":     {rate.RetryAfter("7"), 7 * time.Second},
		"429 with ms":          {rate.WithHeader("Retry-After-Ms", "70"), 70 * time.Millisecond},
		"429 with a date":      {rate.RetryAfter("Sat, 21 Nov 2026 12:00:09 GMT").WithHeader("Date", "Sat, 21 Nov 2026 12:00:00 GMT"), 9 * time.Second},
		"500":                  {agenttest.Failure(500, "server_error", "oh"), 500 * time.Millisecond},
		"502 with a web page":  {agenttest.WebPage(502, "Bad Gateway"), 500 * time.Millisecond},
		"503":                  {agenttest.Raw(503, "text/plain", "no healthy upstream").RetryAfter("2"), 2 * time.Second},
		"504":                  {agenttest.Raw(504, "text/plain", ""), 500 * time.Millisecond},
		"reset":                {agenttest.Reset(), 500 * time.Millisecond},
		"cut before any event": {ok.CutAfter(5), 500 * time.Millisecond},
		"empty":                {ok.CutAfter(0), 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, []agenttest.Reply{tt.failure, ok}, func(t *testing.T, srv *agenttest.Server, ask func(*responses.Client) error) {
				c := srv.Client()
				var slept []time.Duration
				var told []int
				c.Retry.Rand = func() float64 { return 0 }
				c.Retry.Sleep = func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil }
				c.OnRetry = func(err error, wait time.Duration, attempt int) {
					presentable(t, err)
					told = append(told, attempt)
				}
				if err := ask(c); err != nil {
					t.Fatal(err)
				}
				reqs := srv.Requests()
				if len(reqs) != 2 || string(reqs[0].Body) != string(reqs[1].Body) {
					t.Errorf("%d requests, or their bodies differ", len(reqs))
				}
				if !cmp.Equal(slept, []time.Duration{tt.wait}) || !cmp.Equal(told, []int{1}) {
					t.Errorf("waited %v, told %v, want %v", slept, told, tt.wait)
				}
			})
		})
	}
}

// E1: retries are bounded, and a budget in the context bounds them over calls.
func TestRetryBudget(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Failure(500, "server_error", "oh") })
	wantClass(t, drain(t, srv.Client(), hello()).err, endpoint.Server)
	if n := len(srv.Requests()); n != 1+endpoint.DefaultRetries {
		t.Errorf("%d requests", n)
	}
	c := srv.Client()
	retry := c.Retry
	retry.Max = 3
	ctx := endpoint.WithBudget(t.Context(), retry.Budget())
	for range 3 {
		wantClass(t, drainContext(ctx, t, c, hello()).err, endpoint.Server)
	}
	if n := len(srv.Requests()) - 1 - endpoint.DefaultRetries; n != 3+3 {
		t.Errorf("%d requests of three calls that share three retries", n)
	}
}

// doorkeeper is a gate that lets some requests through.
type doorkeeper struct {
	lets     int
	entered  []string
	failures []*endpoint.Error
}

var errFullHouse = errors.New("full house")

func (d *doorkeeper) Enter(_ context.Context, url string) error {
	if d.entered = append(d.entered, url); len(d.entered) > d.lets {
		return errFullHouse
	}
	return nil
}

func (d *doorkeeper) Failed(_ context.Context, _ string, err *endpoint.Error) {
	d.failures = append(d.failures, err)
}

// E1: a gate in the context sees each attempt before it is sent, and each failure. What it
// refuses is not sent, and not tried again.
func TestGate(t *testing.T) {
	rate := agenttest.Failure(429, "rate_limit_exceeded", "slow down").RetryAfter("7")
	srv := agenttest.NewServer(t, rate, rate, agenttest.Completed(item.Assistant("hi")))
	c := srv.Client()
	d := &doorkeeper{lets: 1}
	if err := drainContext(endpoint.WithGate(t.Context(), d), t, c, hello()).err; !errors.Is(err, errFullHouse) {
		t.Errorf("got %v", err)
	}
	if n := len(srv.Requests()); n != 1 || len(d.entered) != 2 || d.entered[0] != srv.URL {
		t.Errorf("%d requests, entered %q", n, d.entered)
	}
	if len(d.failures) != 1 || d.failures[0].RetryAfter != 7*time.Second {
		t.Errorf("failures %v", d.failures)
	}
	d = &doorkeeper{lets: 2}
	if err := drainContext(endpoint.WithGate(t.Context(), d), t, c, hello()).err; err != nil || len(d.failures) != 1 {
		t.Errorf("%v, failures %v", err, d.failures)
	}
	if endpoint.GateFrom(t.Context()) != nil {
		t.Error("there is a gate without one")
	}
}

// E1, S3: an error event in place of an answer is retried, and yielded only if
// that does not help.
func TestRetryOfFirstEvent(t *testing.T) {
	busy := agenttest.Events(`{"type":"error","code":"rate_limit_exceeded","message":"slow down"}`)
	srv := agenttest.NewServer(t, busy, busy, agenttest.Completed(item.Assistant("hi")))
	if d := drain(t, srv.Client(), hello()); d.err != nil || d.text() != "hi" || d.events[0].Type != api.EventCreated {
		t.Errorf("text %q, first event %s, %v", d.text(), d.events[0].Type, d.err)
	}
	srv = agenttest.NewServer(t, busy, busy, busy)
	d := drain(t, srv.Client(), hello())
	wantClass(t, d.err, endpoint.RateLimit)
	if len(d.events) != 1 || d.events[0].Type != api.EventError {
		t.Errorf("%d events", len(d.events))
	}
}

// E1: a stream that breaks when the response has begun, and before any output, is
// asked for again, as over a WebSocket. The beginning comes again; what was noted of
// the first response is not held against the second.
func TestRetryBehindTheBeginning(t *testing.T) {
	begun := agenttest.Completed(item.Assistant("lost"))
	const created = `{"type":"response.created","sequence_number":0,"response":{"id":"r","status":"queued"}}`
	const queued = `{"type":"response.queued","sequence_number":1,"response":{"id":"r","status":"queued"}}`
	const working = `{"type":"response.in_progress","sequence_number":2,"response":{"id":"r","status":"in_progress"}}`
	for name, tt := range map[string]struct {
		first    agenttest.Reply
		requests int
		class    endpoint.Class // "" for a whole answer in the end
	}{
		"an end":         {agenttest.Events(created, queued, working), 2, ""},
		"a cut":          {agenttest.Events(created, queued, working).CutAfter(200), 2, ""},
		"a failure":      {agenttest.Failed("server_error", "it broke"), 2, ""},
		"an error event": {agenttest.Events(created, `{"type":"error","code":"server_error","message":"oh"}`), 2, ""},
		"for good":       {agenttest.Failed("invalid_prompt", "not this"), 1, endpoint.Policy},
		"output":         {begun.WithoutLast(), 1, endpoint.Truncated},
		"still made":     {agenttest.Events(created, `{"type":"response.completed","response":{"id":"r","status":"in_progress","output":[]}}`), 1, endpoint.Truncated},
		"one piece":      {agenttest.Raw(200, "application/json", `{"id":"r","object":"response","status":"queued","output":[]}`), 1, endpoint.Truncated},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, tt.first)
			if tt.class == "" {
				srv.Add(agenttest.Completed(item.Assistant("hi")))
			}
			var notes []api.Note
			ctx := api.WithNotes(t.Context(), func(n api.Note) { notes = append(notes, n) })
			text, ids := "", []string{}
			var failure error
			for ev, err := range srv.Client().Stream(ctx, hello()) {
				if failure = err; err == nil && ev.Type == api.EventCreated {
					r, _ := ev.Response()
					ids = append(ids, r.ID)
				}
				text += ev.Delta
			}
			if tt.class != "" {
				wantClass(t, failure, tt.class)
			} else if failure != nil || text != "hi" || len(ids) != 2 || ids[0] == ids[1] {
				t.Errorf("%q from %q, %v", text, ids, failure)
			}
			if n := len(srv.Requests()); n != tt.requests || len(notes) > 0 {
				t.Errorf("%d requests, want %d; %v", n, tt.requests, notes)
			}
			srv = agenttest.NewServer(t, tt.first) // what was begun may be in the conversation
			req := hello()
			req.Conversation = api.ConversationByID("conv_1")
			c := srv.Client()
			c.Profile = openAI(t)
			for range c.Stream(t.Context(), req) {
			}
			if n := len(srv.Requests()); n != 1 {
				t.Errorf("%d requests of a conversation", n)
			}
		})
	}
}

// E2: what cannot pass is asked once.
func TestNoRetries(t *testing.T) {
	for name, tt := range map[string]struct {
		failure agenttest.Reply
		class   endpoint.Class
		says    string
	}{
		"quota":          {agenttest.Failure(429, "insufficient_quota", "You exceeded your quota").RetryAfter("1"), endpoint.Quota, "billing"},
		"billing":        {agenttest.Failure(429, "billing_hard_limit_reached", "limit"), endpoint.Quota, "billing"},
		"400":            {agenttest.Failure(400, "unsupported_parameter", "Unsupported parameter: 'x'"), endpoint.BadRequest, "Unsupported parameter: 'x'"},
		"401":            {agenttest.Failure(401, "invalid_api_key", "Incorrect key"), endpoint.Auth, "OPENAI_API_KEY"},
		"403":            {agenttest.Failure(403, "permission_denied", "no"), endpoint.Forbidden, "403 Forbidden: no"},
		"404":            {agenttest.Raw(404, "text/plain", "404 page not found\n"), endpoint.NotFound, "404 Not Found: 404 page not found (request req_0); check the model's name, and that this server has the Responses API"},
		"404, a page":    {agenttest.WebPage(404, "Not Found"), endpoint.Protocol, "not a Responses endpoint"},
		"invalid_prompt": {agenttest.Failure(400, "invalid_prompt", "no"), endpoint.Policy, "no"},
		"a page":         {agenttest.WebPage(200, "Sign in"), endpoint.Protocol, `got a web page instead of JSON, titled "Sign in" (request req_0); this URL is not a Responses endpoint`},
		"overflow":       {agenttest.Failure(400, "context_length_exceeded", "long"), endpoint.ContextOverflow, "compact"},
		"not to be":      {agenttest.Failure(500, "server_error", "oh").WithHeader("X-Should-Retry", "false"), endpoint.Server, "oh"},
		"too long":       {agenttest.Failure(503, "", "later").RetryAfter("1000"), endpoint.Server, "retry after 16m40s"},
		"no content":     {agenttest.Raw(204, "", ""), endpoint.Protocol, "the answer is empty"},
		"nothing":        {agenttest.Raw(200, "text/event-stream", ""), endpoint.Protocol, "the answer is empty"},
		"gzip unsaid":    {agenttest.Raw(200, "text/event-stream", "\x1f\x8b\x08\x00rest"), endpoint.Protocol, "gzip without a Content-Encoding header"},
		"UTF-16":         {agenttest.Raw(200, "text/event-stream", "d\x00a\x00t\x00a\x00:\x00"), endpoint.Protocol, "text in UTF-16"},
		"UTF-16, marked": {agenttest.Raw(200, "text/event-stream", "\xfe\xff\x00d"), endpoint.Protocol, "text in UTF-16"},
		"binary":         {agenttest.Raw(200, "text/event-stream", "\x00\x00\x01\x02"), endpoint.Protocol, "binary data"},
		"moved":          {agenttest.Raw(304, "text/plain", ""), endpoint.Protocol, "304 Not Modified"},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, []agenttest.Reply{tt.failure}, func(t *testing.T, srv *agenttest.Server, ask func(*responses.Client) error) {
				err := ask(srv.Client())
				e := wantClass(t, err, tt.class)
				if !strings.Contains(e.Error(), tt.says) || !strings.Contains(e.Error(), srv.URL+"/responses") {
					t.Errorf("error says %q, want %q", e, tt.says)
				}
				if n := len(srv.Requests()); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// E3: a refused key is renewed once, and kept.
func TestRefresh(t *testing.T) {
	no := agenttest.Failure(401, "invalid_api_key", "expired")
	ok := agenttest.Completed(item.Assistant("hi"))
	both(t, []agenttest.Reply{no, ok, ok, no, no}, func(t *testing.T, srv *agenttest.Server, ask func(*responses.Client) error) {
		c := srv.Client()
		c.Key = endpoint.NewKey("sk-old-secret")
		asked := 0
		c.Refresh = func(context.Context) (endpoint.Key, error) {
			if asked++; asked > 2 {
				return endpoint.Key{}, errors.New("login first")
			}
			return endpoint.NewKey("sk-new-secret"), nil
		}
		for i, want := range []bool{true, true, false} {
			if err := ask(c); (err == nil) != want {
				t.Errorf("call %d: %v", i, err)
			}
		}
		var sent []string
		for _, r := range srv.Requests() {
			sent = append(sent, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		}
		want := []string{"sk-old-secret", "sk-new-secret", "sk-new-secret", "sk-new-secret", "sk-new-secret"}
		if d := cmp.Diff(want, sent); d != "" || asked != 2 {
			t.Errorf("asked %d times; keys sent (-want +got):\n%s", asked, d)
		}
	})
}

// A server that is down is named, with what to do.
func TestServerDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	l.Close()
	c := &responses.Client{
		BaseURL: "http://me:hunter2@" + host + "/v1?key=hunter2",
		HTTP:    &http.Client{Transport: &http.Transport{}},
		Retry:   endpoint.Retry{Sleep: func(context.Context, time.Duration) error { return nil }},
	}
	d := drain(t, c, hello())
	e := wantClass(t, d.err, endpoint.Network)
	if !strings.HasPrefix(e.Error(), "POST http://"+host+"/v1/responses: ") || !strings.HasSuffix(e.Error(), "; is the server running at "+host+"?") {
		t.Errorf("error says %q", e)
	}
}

// E3: where no new key can be had, the refusal says so.
func TestRefreshFails(t *testing.T) {
	srv := agenttest.NewServer(t, agenttest.Failure(401, "invalid_api_key", "expired"))
	c := srv.Client()
	c.Refresh = func(context.Context) (endpoint.Key, error) { return endpoint.Key{}, errors.New("login first") }
	if e := wantClass(t, drain(t, c, hello()).err, endpoint.Auth); !strings.Contains(e.Error(), "expired") || !strings.HasSuffix(e.Error(), "login first") {
		t.Error(e)
	}
}
