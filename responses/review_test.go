// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
)

// S3, E7: an error without a type keeps its words, in a stream and over a
// socket, and is not an output: the request may be repeated.
func TestUntypedErrors(t *testing.T) {
	for _, data := range []string{
		`{"error":"boom"}`,
		`{"object":"error","message":"boom","type":"BadRequestError","code":400}`,
		`{"message":"boom","code":502}`,
		`{"detail":"boom"}`,
		`{"error":{"message":"boom","code":"server_error"}}`,
	} {
		for name, over := range map[string]responses.Transport{"HTTP": responses.HTTP, "WebSocket": responses.WebSocket} {
			srv := agenttest.NewServer(t)
			srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Events(data) })
			c := srv.Client()
			c.Profile = openAI(t)
			c.IdleTimeout = 20 * time.Second
			th := &responses.Chain{Client: c, Transport: over}
			d := drainModel(t.Context(), t, th, hello())
			var e *endpoint.Error
			if !errors.As(d.err, &e) || !strings.Contains(e.Message, "boom") {
				t.Errorf("%s %s: %v", name, data, d.err)
			}
			_ = th.Close()
		}
	}
}

// S3: a response that failed is not a success, whatever its event says.
func TestFailedInCompleted(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Events(`{"type":"response.completed","response":{"id":"r","status":"failed","output":[],"error":{"code":"invalid_prompt","message":"no"}}}`)
	})
	d := drain(t, srv.Client(), hello())
	var e *endpoint.Error
	if !errors.As(d.err, &e) || e.Code != "invalid_prompt" || e.Class != endpoint.Policy {
		t.Errorf("%v", d.err)
	}
}

// B5: what was sent in secret is in no error and no event, wherever the server
// repeats it, and however it was given.
func TestSecretsAreHidden(t *testing.T) {
	const secret = "sk-proj-TOPSECRET0123456789"
	body := `{"error":{"message":"bad ` + secret + `","code":"` + secret + `","param":"` + secret + `","type":"` + secret + `"}}`
	event := `{"type":"error","code":"` + secret + `","message":"bad key Bearer ` + secret + `","param":null}`
	answers := map[string]agenttest.Reply{
		"status": agenttest.Raw(http.StatusBadRequest, "application/json", body).WithHeader("X-Request-Id", secret),
		"event":  agenttest.Events(event),
	}
	for name, a := range answers {
		for how, give := range map[string]func(*responses.Client){
			"key":    func(c *responses.Client) { c.Key = endpoint.NewKey(secret) },
			"header": func(c *responses.Client) { c.Header = http.Header{"Authorization": {"Bearer " + secret}} },
			"other":  func(c *responses.Client) { c.Header = http.Header{"X-Gateway-Token": {secret}} },
			"query":  func(c *responses.Client) { c.BaseURL += "?api-key=" + secret },
		} {
			srv := agenttest.NewServer(t)
			srv.Otherwise(func(int, agenttest.Request) agenttest.Reply { return a })
			c := srv.Client()
			give(c)
			d := drain(t, c, hello())
			if d.err == nil || strings.Contains(d.err.Error(), secret) {
				t.Errorf("%s, %s: %v", name, how, d.err)
			}
			for err := d.err; err != nil; err = errors.Unwrap(err) {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%s, %s: within it %v", name, how, err)
				}
			}
			for _, ev := range d.events {
				if strings.Contains(ev.JSON(), secret) {
					t.Errorf("%s, %s: the event %s", name, how, ev.JSON())
				}
			}
		}
	}
}

// I8: a request that says nothing, or in a role nobody knows, is not sent.
func TestNothingToSend(t *testing.T) {
	srv := agenttest.NewServer(t) // a request fails the test
	king, err := item.ParseString(`{"type":"message","role":"king","content":"kneel"}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, req := range map[string]*api.Request{
		"no input":     {Model: "m"},
		"empty list":   {Model: "m", Input: new(item.List)},
		"unknown role": {Model: "m", Input: item.NewList(item.User("hi"), king)},
		"few tokens":   {Model: "m", Input: item.NewList(item.User("hi")), MaxOutputTokens: new(int64(1))},
	} {
		c := srv.Client()
		var refused *endpoint.RefusedError
		if d := drain(t, c, req); !errors.As(d.err, &refused) {
			t.Errorf("%s: %v", name, d.err)
		}
		if _, err := c.Create(t.Context(), req); !errors.As(err, &refused) {
			t.Errorf("%s, whole: %v", name, err)
		}
	}
}

// E1: both retries may wait for as long as a server can ask for; one that asks
// for longer is not asked again, and the error says when to come back.
func TestTwoLongWaits(t *testing.T) {
	absurd := agenttest.NewServer(t, agenttest.Failure(http.StatusTooManyRequests, "rate_limit_exceeded", "slow down").RetryAfter("1000"))
	if e := wantClass(t, drain(t, absurd.Client(), hello()).err, endpoint.RateLimit); e.RetryAfter != 1000*time.Second || !strings.Contains(e.Error(), "retry after 16m40s") || len(absurd.Requests()) != 1 {
		t.Errorf("%v, after %d requests", e, len(absurd.Requests()))
	}

	srv := agenttest.NewServer(t)
	srv.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Failure(http.StatusTooManyRequests, "rate_limit_exceeded", "slow down").RetryAfter("60")
	})
	c := srv.Client()
	c.Retry.Rand = func() float64 { return 0.99 }
	drain(t, c, hello())
	if n := len(srv.Requests()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// S10, E6: a chain asks again with the whole history while there was no output,
// also behind response.created.
func TestChainBeginsAgain(t *testing.T) {
	for name, over := range map[string]responses.Transport{"HTTP": responses.HTTP, "WebSocket": responses.WebSocket} {
		srv := agenttest.NewServer(t,
			agenttest.Completed(item.Assistant("one")),
			agenttest.Failed("previous_response_not_found", "gone"),
			agenttest.Completed(item.Assistant("two")))
		c := srv.Client()
		c.Profile = openAI(t)
		th := &responses.Chain{Client: c, Transport: over}
		req := hello()
		first := drainModel(t.Context(), t, th, req)
		if first.err != nil {
			t.Fatal(first.err)
		}
		req.Input.Append(first.resp.Output...)
		req.Input.Append(item.User("and?"))
		second := drainModel(t.Context(), t, th, req)
		if second.err != nil || second.resp.Text() != "two" {
			t.Errorf("%s: %v, %v", name, second.resp, second.err)
		}
		if last := srv.Requests()[len(srv.Requests())-1].Parse(t); last.PreviousResponseID != "" || last.Input.Len() != 3 {
			t.Errorf("%s: the last request goes on from %q with %d items", name, last.PreviousResponseID, last.Input.Len())
		}
		_ = th.Close()
	}
}
