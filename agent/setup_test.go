// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// setups returns the setup of each turn of a log, and how often one is written.
func setups(s *session.Session) (turns []session.Setup, ends []session.TurnEnded, written int) {
	var now session.Setup
	for e := range s.Entries() {
		now.Apply(e.Body)
		switch b := e.Body.(type) {
		case session.RunStarted:
			if b.Setup != nil {
				written++
			}
		case session.TurnStarted:
			if b.Setup != nil {
				written++
			}
			turns = append(turns, now)
		case session.TurnEnded:
			ends = append(ends, b)
		}
	}
	return turns, ends, written
}

// J12: the log says who was asked with what, and writes it again only when it
// changed.
func TestSetupInLog(t *testing.T) {
	rounds := append(rounds(), rounds()...)
	r := newRig(t, append(rounds, agenttest.Completed(item.Assistant("done")), agenttest.Completed(item.Assistant("more")))...)
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.Request.Instructions = "Be brief."
	warm := 0.25
	r.agent.Request.Temperature = &warm
	r.agent.Setup = session.Setup{Program: "test v1", Files: []session.Hashed{{Name: "a.md", Hash: session.Fingerprint("text")}}}
	r.run(item.User("go"))
	r.run(item.User("again"))

	turns, ends, written := setups(r.session)
	if written != 1 || len(turns) < 3 {
		t.Fatalf("%d turns, the setup is written %d times", len(turns), written)
	}
	got := turns[len(turns)-1]
	definition := string(agenttestTool(t, r))
	want := session.Setup{
		Model: "test-model", Endpoint: strings.TrimSuffix(r.client().BaseURL, "/"), API: "responses", Transport: "http", Profile: "as it is",
		Settings:     `{"tool_choice":"auto","temperature":0.25}`,
		Instructions: session.Fingerprint("Be brief."),
		Tools:        []session.Hashed{{Name: "echo", Hash: session.Fingerprint(definition)}},
		Program:      "test v1", Files: r.agent.Setup.Files,
	}
	if !got.Equal(&want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, end := range ends {
		if end.Model == "" || end.RequestID == "" || end.Setup != nil || end.Profile != "" {
			t.Errorf("turn %d: %+v", end.Turn, end)
		}
	}

	r.agent.Request.Model = "other-model"
	r.agent.Tools = nil
	r.run(item.User("and now"))
	turns, _, written = setups(r.session)
	last := turns[len(turns)-1]
	if written != 2 || last.Model != "other-model" || last.Tools != nil || strings.Contains(string(last.Settings), "tool_choice") {
		t.Errorf("written %d times; after a change: %+v", written, last)
	}
}

// agenttestTool returns the definition of the only tool as it was sent.
func agenttestTool(t *testing.T, r *rig) []byte {
	t.Helper()
	req := r.server.Requests()[0].Parse(t)
	text, err := (&api.Request{Tools: req.Tools}).MarshalJSON()
	if err != nil || len(req.Tools) != 1 {
		t.Fatal(err, req.Tools)
	}
	return []byte(strings.TrimSuffix(strings.TrimPrefix(string(text), `{"tools":[`), `]}`))
}

// J12: what a hook makes of a request is said of its turn alone.
func TestSetupByHook(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("one")), agenttest.Completed(item.Assistant("two")))
	switched := true
	r.agent.Hooks = []agent.Hooks{{BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
		if switched {
			c.Request.Model = "by-hook"
		}
		switched = false
		return ctx, nil
	}}}
	r.run(item.User("a"))
	r.run(item.User("b"))
	turns, ends, written := setups(r.session)
	if written != 1 || turns[0].Model != "test-model" || turns[1].Model != "test-model" {
		t.Errorf("%d: %+v", written, turns)
	}
	if ends[0].Setup == nil || ends[0].Setup.Model != "by-hook" || ends[1].Setup != nil {
		t.Errorf("%+v", ends)
	}
}

// J12: the kind of server that an answer tells is kept with the session.
func TestSetupLearnsProfile(t *testing.T) {
	answer := agenttest.Completed(item.Assistant("one"))
	r := newRig(t, answer)
	client := r.server.Client()
	client.Table = nil
	r.agent.Model = &learning{Model: client}
	r.run(item.User("a"))
	var now session.Setup
	for e := range r.session.Entries() {
		now.Apply(e.Body)
	}
	_, ends, _ := setups(r.session)
	if ends[0].Profile != "ollama" || now.Profile != "ollama" {
		t.Errorf("%+v, then %+v", ends[0], now)
	}
}

// learning is a model whose endpoint shows what it is with its answer.
type learning struct {
	agent.Model
	asked int
}

func (l *learning) About() endpoint.About {
	if l.asked++; l.asked <= 2 { // when the run and when the turn begins
		return endpoint.About{URL: "http://127.0.0.1:1/v1", Profile: "careful"}
	}
	return endpoint.About{URL: "http://127.0.0.1:1/v1", Profile: "ollama"}
}

// J12: no secret of the address is written.
func TestSetupHidesSecrets(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("one")))
	client := r.client()
	client.Key = endpoint.NewKey("sk-secret-key")
	client.BaseURL = strings.Replace(client.BaseURL, "http://", "http://me:secret-word@", 1) + "?api-key=secret-query"
	about := client.About()
	if strings.Contains(about.URL, "secret") || !strings.HasPrefix(about.URL, "http://127.0.0.1") {
		t.Errorf("%q", about.URL)
	}
}
