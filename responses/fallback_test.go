// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// withImage is a history whose tool gave an image.
func withImage(t *testing.T) *api.Request {
	t.Helper()
	out, err := item.Output("call_1", item.Parts(&item.InputText{Text: "here"}, &item.InputImage{ImageURL: "data:image/png;base64,iVBORw0KGgo="}))
	if err != nil {
		t.Fatal(err)
	}
	return &api.Request{Model: "m", Input: item.NewList(item.User("look"), item.Call("call_1", "shot", "{}"), out)}
}

// refusesLists is a server that takes tool outputs as text alone.
func refusesLists(_ int, r agenttest.Request) agenttest.Reply {
	if strings.Contains(string(r.Body), `"output":[`) {
		return agenttest.Failure(http.StatusBadRequest, "400", "Output of tool call should be 'Input text'")
	}
	return agenttest.Completed(item.Assistant("fine"))
}

// T10, B3: an unknown endpoint that refuses a list of parts gets text and a
// message, once it has said so; and from then on at once.
func TestFallback(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Otherwise(refusesLists)
	c := srv.Client()
	c.Profile = nil
	for range 2 {
		if d := drain(t, c, withImage(t)); d.err != nil || d.text() != "fine" {
			t.Fatalf("%q, %v", d.text(), d.err)
		}
	}
	if resp, err := c.Create(t.Context(), withImage(t)); err != nil || resp.Text() != "fine" {
		t.Fatal(err)
	}
	reqs := srv.Requests()
	if len(reqs) != 4 {
		t.Fatalf("%d requests, want one refused and three answered", len(reqs))
	}
	for _, r := range reqs[1:] {
		in := r.Parse(t).Input
		if last := in.At(in.Len() - 1); in.Len() != 5 || last.Role() != item.RoleUser || !strings.Contains(last.JSON(), "iVBORw0KGgo=") {
			t.Errorf("input %s", r.Body)
		}
	}
}

// E2: what would be sent the same again is not, nor is anything to an endpoint
// whose profile was given.
func TestNoFallback(t *testing.T) {
	bad := agenttest.Failure(http.StatusBadRequest, "invalid_value", "no")
	for name, tt := range map[string]struct {
		profile string
		req     *api.Request
		answer  agenttest.Reply
		want    int
	}{
		"the same shape": {"", hello(), bad, 1},
		"given":          {"openai", withImage(t), bad, 1},
		"another class":  {"", withImage(t), agenttest.Failure(http.StatusBadRequest, "context_length_exceeded", "no"), 1},
		"refused twice":  {"", withImage(t), bad, 2},
	} {
		t.Run(name, func(t *testing.T) {
			srv := agenttest.NewServer(t, tt.answer, tt.answer)
			c := srv.Client()
			c.Profile = nil
			if tt.profile != "" {
				p, err := endpoint.ByName(tt.profile)
				if err != nil {
					t.Fatal(err)
				}
				c.Profile = &p
			}
			if d := drain(t, c, tt.req); d.err == nil || !strings.Contains(d.err.Error(), "no") {
				t.Error(d.err)
			}
			if n := len(srv.Requests()); n != tt.want {
				t.Errorf("%d requests, want %d", n, tt.want)
			}
		})
	}
}

// A server that calls itself by a known name is asked as one from then on.
func TestServerHeader(t *testing.T) {
	srv := agenttest.NewServer(t)
	srv.Otherwise(func(n int, r agenttest.Request) agenttest.Reply {
		return refusesLists(n, r).WithHeader("Server", "llama.cpp")
	})
	c := srv.Client()
	c.Profile = nil
	for _, req := range []*api.Request{hello(), withImage(t)} {
		if d := drain(t, c, req); d.err != nil {
			t.Fatal(d.err)
		}
	}
	if n := len(srv.Requests()); n != 2 {
		t.Errorf("%d requests: the second was not asked as llama.cpp takes it", n)
	}
}
