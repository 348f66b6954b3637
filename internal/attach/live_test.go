// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/show"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server/sessions"
	"github.com/antiphon-go/antiphon/session"
)

// A text that a server sends while it is written is shown once: with the rest that its entry
// has, and again as a whole only if the entry says something else.
func TestLiveTextIsShownOnce(t *testing.T) {
	t.Parallel()
	says := func(text string) agent.Event {
		return agent.Recorded{Entry: session.Entry{Body: session.OutputItem{Item: item.Assistant(text)}}}
	}
	piece := func(text string) agent.Event { return agent.Delta{Kind: agent.DeltaText, Text: text} }
	turn := agent.Recorded{Entry: session.Entry{Body: session.TurnStarted{Turn: 2}}}
	for want, events := range map[string][]agent.Event{
		"one two\n":       {piece("one "), piece("two"), says("one two")},
		"one two three\n": {piece("one "), says("one two three")},
		"one\nother\n":    {piece("one"), says("other")},
		"lost\nnew\n":     {piece("lost"), turn, says("new")},
		"whole\nnext\n":   {says("whole"), piece("ne"), piece("xt"), says("next")},
	} {
		var out bytes.Buffer
		a := &View{Show: show.NewPrinter(&out, io.Discard, host.Environment{})}
		for _, ev := range events {
			if err := a.Take(ev); err != nil {
				t.Error(err)
			}
		}
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}

// A question is asked with all that it says, once, and again if the sandbox of its call is another one now.
func TestQuestionIsAskedAsItIs(t *testing.T) {
	t.Parallel()
	v := &View{Show: show.NewPrinter(io.Discard, io.Discard, host.Environment{}), Info: session.Info{ID: "s"}}
	asked := func(sandbox string) (agent.PendingApproval, bool) {
		t.Helper()
		if err := v.Take(agent.Recorded{Entry: session.Entry{Body: session.ApprovalAsked{CallID: "c", Number: 1, Tool: "t", Sandbox: sandbox}}}); err != nil {
			t.Fatal(err)
		}
		return v.next([]agent.PendingApproval{{Session: "s", Number: 1, CallID: "c", Tool: "t", Sandbox: sandbox}})
	}
	if p, waits := asked("workspace"); !waits || p.Sandbox != "workspace" || p.Tool != "t" {
		t.Errorf("%+v %v", p, waits)
	}
	if _, again := asked("workspace"); again {
		t.Error("the same question is asked twice")
	}
	if p, waits := asked("full"); !waits || p.Sandbox != "full" {
		t.Errorf("%+v %v", p, waits)
	}
}

// A message whose pieces never end is shown up to a limit, and the rest with its entry. V5
func TestLiveTextHasLimit(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat("x", mostUnsettled/4)
	var out, errs bytes.Buffer
	a := &View{Err: &errs, Show: show.NewPrinter(&out, &errs, host.Environment{})}
	for range 8 {
		if err := a.Take(agent.Delta{Kind: agent.DeltaText, Text: piece}); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() > mostUnsettled+1 || a.live.Len() > mostUnsettled || strings.Count(errs.String(), "its rest is shown when it is complete") != 1 {
		t.Errorf("%d bytes shown, %d kept, %s", out.Len(), a.live.Len(), &errs)
	}
	whole := agent.Recorded{Entry: session.Entry{Body: session.OutputItem{Item: item.Assistant(strings.Repeat(piece, 8))}}}
	if err := a.Take(whole); err != nil || strings.Count(out.String(), "x") != 8*len(piece) {
		t.Errorf("%v, %d of %d bytes are shown", err, strings.Count(out.String(), "x"), 8*len(piece))
	}
	out.Reset()
	if err := a.Take(agent.Delta{Kind: agent.DeltaText, Text: "next"}); err != nil || out.String() != "next" {
		t.Errorf("%v, %q", err, &out)
	}
}

// A server that sends a log without an end does not fill the memory: only the end of the log is
// kept, what comes before it is counted, and after the limit the session is left. V5
func TestEndlessLog(t *testing.T) {
	t.Parallel()
	entry, err := session.AppendEntry(nil, session.Entry{Seq: 7, Body: session.InputItem{Item: item.User(strings.Repeat("words ", 100))}})
	if err != nil {
		t.Fatal(err)
	}
	before, after, _ := bytes.Cut(entry, []byte(`"seq":7`))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: session\ndata: {\"id\":\"s\",\"entries\":%d}\n\n", int64(1)<<60)
		for n := 1; r.Context().Err() == nil; n++ {
			fmt.Fprintf(w, "event: entry\ndata: %s\"seq\":%d%s\n\n", before, n, after)
		}
	}))
	defer server.Close()
	const limit, most = 1 << 20, 20_000
	r := &Remote{Client: &sessions.Client{URL: server.URL, Limit: limit}, ID: "s", most: most}
	passed := int64(0)
	log, err := r.Read(t.Context(), "s", func(e session.Entry) {
		if passed++; e.Seq != passed {
			t.Fatalf("entry %d, want %d", e.Seq, passed)
		}
	}, func() {})
	if !errors.Is(err, sessions.ErrLimit) || log != nil || passed < (limit-2*most)/int64(len(entry)+40) {
		t.Errorf("%d entries, %d passed: %v", len(log), passed, err)
	}
	for ev, err := range r.Watch(t.Context(), "s", 0) {
		if err != nil && !errors.Is(err, sessions.ErrLimit) {
			t.Error(err)
		}
		_ = ev
	}
}
