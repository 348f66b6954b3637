// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
)

// alternates judges as the templates of Mistral and Gemma do.
func alternates(messages []agenttest.LocalMessage) error {
	last := ""
	for _, m := range messages {
		if m.Role == last {
			return errors.New("Conversation roles must alternate user/assistant/user/assistant/...")
		}
		last = m.Role
	}
	return nil
}

// S3 E2: an unknown server that refuses a chat for its roles gets it once more in
// the form that every server takes, and from then on at once.
func TestFallback(t *testing.T) {
	for _, stream := range []bool{true, false} {
		l := agenttest.StartLocal(t, &agenttest.Local{Text: "It is so.", Template: alternates})
		c := &completions.Client{BaseURL: l.URL, Retry: endpoint.Retry{Max: 1}}
		req := &api.Request{Model: "m", Input: item.NewList(item.User("a"), item.User("b"))}
		for range 2 {
			var said string
			var err error
			if stream {
				var acc api.Accumulator
				for ev, failed := range c.Stream(t.Context(), req) {
					if failed != nil {
						err = failed
						break
					}
					if _, err := acc.Add(ev); err != nil {
						t.Error(err)
					}
				}
				resp, _ := acc.Response()
				said = resp.Text()
			} else if resp, failed := c.Create(t.Context(), req); failed != nil {
				err = failed
			} else {
				said = resp.Text()
			}
			if err != nil || said != "It is so." {
				t.Errorf("stream %t: %q, %v", stream, said, err)
			}
		}
		requests := l.Requests()
		if len(requests) != 3 || len(requests[0].Messages) != 2 || len(requests[1].Messages) != 1 || len(requests[2].Messages) != 1 {
			t.Errorf("stream %t: %d requests, want one refused and two answered", stream, len(requests))
		}
		if known := c.About().Profile; known != "plain" {
			t.Errorf("the server is known as %s", known)
		}
	}
}

// E2: what would be sent the same again is not; nothing is sent twice to an
// endpoint whose profile was given; and of two refusals the first is told.
func TestNoFallback(t *testing.T) {
	one, two := item.NewList(item.User("a")), item.NewList(item.User("a"), item.User("b"))
	for name, tt := range map[string]struct {
		profile *endpoint.Profile
		input   *item.List
		want    int
	}{
		"the same shape": {nil, one, 1},
		"given":          {&endpoint.Careful, two, 1},
		"refused twice":  {nil, two, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := agenttest.StartLocal(t, &agenttest.Local{Template: func([]agenttest.LocalMessage) error { return errors.New("not so") }})
			c := &completions.Client{BaseURL: l.URL, Profile: tt.profile}
			_, err := c.Create(t.Context(), &api.Request{Model: "m", Input: tt.input})
			if err == nil || !strings.Contains(err.Error(), "not so") || len(l.Requests()) != tt.want || c.About().Profile != "careful" {
				t.Errorf("%d requests, want %d; %v", len(l.Requests()), tt.want, err)
			}
		})
	}
}
