// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// held is a model that waits in the middle of its text until it may go on.
type held struct {
	agent.Model
	after int
	goOn  chan struct{}
}

func (m held) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		texts := 0
		for ev, err := range m.Model.Stream(ctx, req) {
			if !yield(ev, err) {
				return
			}
			if ev.Type == api.EventTextDelta {
				if texts++; texts == m.after {
					<-m.goOn
				}
			}
		}
	}
}

// seen is what a page has of a conversation.
type seen struct {
	last    string
	entries []int64
	draft   string // of the message that is being written
	texts   []string
	calls   []string
	stopped bool
}

// read adds the events after the last one until enough is true.
func (p *seen) read(t *testing.T, url string, enough func() bool) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.last != "" {
		req.Header.Set("Last-Event-ID", p.last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("%s, %s", resp.Status, got)
	}
	for lines := bufio.NewScanner(resp.Body); !enough(); {
		if !lines.Scan() {
			t.Fatalf("the stream ended: %v; %+v", lines.Err(), p)
		}
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			p.last = id
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		ev, err := agent.ParseEvent([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		p.add(t, ev)
	}
}

func (p *seen) add(t *testing.T, ev agent.Event) {
	t.Helper()
	switch ev := ev.(type) {
	case agent.Delta:
		if ev.Kind == agent.DeltaText {
			p.draft += ev.Text
		}
	case agent.Recorded:
		p.entries = append(p.entries, ev.Seq)
		switch b := ev.Body.(type) {
		case session.OutputItem:
			if b.Item.IsCall() {
				p.calls = append(p.calls, b.Item.Name())
				break
			}
			m, err := item.As[item.Message](b.Item)
			if err != nil {
				t.Fatal(err)
			}
			p.texts = append(p.texts, m.Content.Display())
		case session.Stopped:
			p.stopped = true
		}
	}
}

// A page reads a reply, is cut off in the middle of its text and connects again: it
// gets each entry and each piece of text once. So does a page that comes when all is
// over, and one of another process that has the same store.
func TestChat(t *testing.T) {
	c, stop, err := open(-1)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	goOn := make(chan struct{})
	c.Agent.Model = held{c.Agent.Model, 5, goOn}
	server := httptest.NewServer(c.Handler())
	defer server.Close()

	posted := make(chan string)
	post := func(at, text string) string {
		resp, err := http.Post(at, "text/plain", strings.NewReader(text))
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	go func() { posted <- post(server.URL+"/ann", "Hello?") }()

	var p seen
	p.read(t, server.URL+"/ann/events", func() bool { return p.draft != "" })
	var other seen // comes in the middle of the text, and gets its beginning too
	other.read(t, server.URL+"/ann/events", func() bool { return strings.Count(other.draft, " ") >= 5 })
	if got := post(server.URL+"/ann", "Me too"); !strings.HasPrefix(got, "409 ") {
		t.Errorf("a second question beside the first: %s", got)
	}
	close(goOn)
	p.read(t, server.URL+"/ann/events", func() bool { return p.stopped })
	other.read(t, server.URL+"/ann/events", func() bool { return other.stopped })
	if got := <-posted; got != "204 " {
		t.Errorf("the first question: %s", got)
	}

	const want = "You said “Hello?”. In Bergen it is half past nine, and the ferry leaves in ten minutes."
	s, err := session.Open(t.Context(), c.Store, "ann")
	if err != nil {
		t.Fatal(err)
	}
	var entries []int64
	for e := range s.Entries() {
		entries = append(entries, e.Seq)
	}
	check := func(who string, p seen) {
		t.Helper()
		if !slices.Equal(p.entries, entries) || !slices.Equal(p.texts, []string{want}) || !slices.Equal(p.calls, []string{"clock"}) {
			t.Errorf("%s: %+v, want the entries %d", who, p, entries)
		}
	}
	check("the page that was cut off", p)
	check("the page that came later", other)
	// The pieces that a page saw before the cut and after it are the text, unless the
	// entry came first and the rest was left out.
	for _, draft := range []string{p.draft, other.draft} {
		if !strings.HasPrefix(want, draft) {
			t.Errorf("the text as it came: %q", draft)
		}
	}
	again := httptest.NewServer((&Chat{Agent: c.Agent, Store: c.Store}).Handler())
	defer again.Close()
	var after seen
	after.read(t, again.URL+"/ann/events", func() bool { return after.stopped })
	check("the page of another process", after)
}

// The page is there; a bad cursor and a foreign name of the server are refused.
func TestChatRequests(t *testing.T) {
	c := &Chat{Store: new(session.Memory)}
	for _, q := range []struct {
		path, host, last string
		want             int
	}{
		{"/ann", "127.0.0.1:8098", "", http.StatusOK},
		{"/ann", "chat.example:8098", "", http.StatusForbidden},
		{"/ann/events", "127.0.0.1:8098", "seven", http.StatusBadRequest},
	} {
		r := httptest.NewRequest(http.MethodGet, q.path, nil)
		r.Host = q.host
		r.Header.Set("Last-Event-ID", q.last)
		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, r)
		if w.Code != q.want {
			t.Errorf("%+v: %d %s", q, w.Code, w.Body)
		}
	}
}
