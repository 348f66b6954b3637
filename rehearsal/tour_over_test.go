// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// full is a profile that withholds nothing: the endpoint is to say what it has.
var full = &endpoint.Profile{
	Name: "full", APIs: []string{endpoint.APIResponses, endpoint.APIChat},
	PreviousResponse: endpoint.Yes, Stored: endpoint.Yes, WebSocket: endpoint.Yes,
}

// The tour is one conversation whatever it goes over: over HTTP with the whole
// history or with ids, over a WebSocket stored or not, and in the words of Chat
// Completions, which have no reasoning. L9 I6
func TestTourOverAll(t *testing.T) {
	plain, _, _ := tour(t)
	want := tourOver(t, plain, nil)
	if len(want) < 15 {
		t.Fatalf("the tour is short: %q", want)
	}
	for name, test := range map[string]struct {
		chain bool
		over  responses.Transport
		store *bool
	}{
		"HTTP, ids":             {true, responses.HTTP, nil},
		"WebSocket":             {true, responses.WebSocket, nil},
		"WebSocket, not stored": {true, responses.WebSocket, new(false)},
		"HTTP, not stored":      {false, responses.HTTP, new(false)},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _ := tour(t)
			own := &ids{next: new(http.Transport)}
			defer own.next.CloseIdleConnections()
			c.Profile, c.HTTP = full, &http.Client{Transport: own}
			var model agent.Model = c
			if test.chain {
				chain := &responses.Chain{Client: c, Transport: test.over}
				defer chain.Close()
				model = chain
			}
			if d := cmp.Diff(want, tourOver(t, model, test.store)); d != "" {
				t.Errorf("(-plain +this):\n%s", d)
			}
			if chain, ok := model.(*responses.Chain); ok && chain.Uses() != test.over {
				t.Errorf("it went over %q", chain.Uses())
			}
			if byID := test.chain && test.over == responses.HTTP; byID != (own.sent > 0) {
				t.Errorf("%d requests had an id to go on from", own.sent)
			}
		})
	}
	t.Run("Chat Completions", func(t *testing.T) {
		c, _, _ := tour(t)
		got := tourOver(t, &completions.Client{BaseURL: c.BaseURL, HTTP: c.HTTP}, nil)
		if a, b := want[len(want)-1], got[len(got)-1]; text(a) != text(b) {
			t.Errorf("(-plain +this):\n%s", cmp.Diff(text(a), text(b)))
		}
	})
}

// ids counts the requests that go on from a response by its id.
type ids struct {
	next *http.Transport
	sent int
}

func (c *ids) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		defer body.Close()
		b, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		if strings.Contains(string(b), `"previous_response_id":"resp_`) {
			c.sent++
		}
	}
	return c.next.RoundTrip(r)
}

func text(itemJSON string) string {
	it, err := item.ParseString(itemJSON)
	if err != nil {
		return err.Error()
	}
	m, err := item.As[item.Message](it)
	if err != nil {
		return err.Error()
	}
	return m.Content.Display()
}

// tourOver runs the tour as an agent and returns the items of its history.
func tourOver(t *testing.T, model agent.Model, store *bool) (items []string) {
	t.Helper()
	_, set, req := tour(t)
	var tools []tool.Tool
	for _, def := range req.Tools {
		tl, _ := set.Lookup(def.(*item.FunctionTool).Name)
		tools = append(tools, tl)
	}
	a := &agent.Agent{Model: model, Request: api.Request{Model: "rehearsal", Store: store}, Tools: tools, Parallel: 1, Policy: agent.Policy{Allow: []string{"*"}}}
	r, err := a.Run(context.Background(), session.New(), req.InputItems()...)
	if err != nil {
		t.Fatal(err)
	}
	if r.Why != agent.StopEndTurn {
		t.Fatalf("stopped: %s %s", r.Why, r.Detail)
	}
	for _, it := range r.Items {
		items = append(items, it.JSON())
	}
	return items
}
