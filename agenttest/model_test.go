// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// The same replies by a model in memory and by a server, over a socket, make the
// same events and the same log.
func TestModelIsLikeAServer(t *testing.T) {
	replies := []agenttest.Reply{
		agenttest.Failure(503, "overloaded", "later"), // is retried
		agenttest.Completed(item.Assistant("Let me look."), item.Call("c1", "echo", `{"text":"a b"}`), item.Call("c2", "nothing", `{}`)),
		agenttest.Completed(item.Call("c3", "echo", `{"text":"c"}`)).LineEnds("\r\n").WithComments().InPieces(1, 2, 3, 500),
		agenttest.Incomplete("max_output_tokens", item.Assistant("Two words and")),
	}
	play := func(t *testing.T, model agent.Model, retry endpoint.Retry) (told []string) {
		a := &agent.Agent{Model: model, Retry: retry, Tools: []tool.Tool{echo}, Parallel: 1}
		a.Request.Model = "test-model"
		for ev, err := range a.Stream(t.Context(), session.New(), item.User("go")) {
			if err != nil {
				t.Fatal(err)
			}
			switch ev := ev.(type) {
			case agent.Delta:
				told = append(told, fmt.Sprintf("%s %q", ev.Kind, ev.Text))
			case agent.Recorded:
				ev.Time = time.Time{}
				switch b := ev.Body.(type) {
				case session.TurnEnded:
					told = append(told, fmt.Sprintf("turn %d %s %s %v", b.Turn, b.Status, b.Reason, b.Usage.OutputTokens))
				case session.RunStarted:
				default:
					line, err := session.AppendEntry(nil, ev.Entry)
					if err != nil {
						t.Fatal(err)
					}
					told = append(told, string(line))
				}
			}
		}
		return told
	}
	model := agenttest.Script(t, replies...)
	srv := agenttest.NewServer(t, replies...)
	client := srv.Client()
	client.Profile = &endpoint.Profile{Name: "test model"}
	if diff := cmp.Diff(play(t, client, client.Retry), play(t, model, endpoint.Retry{})); diff != "" {
		t.Errorf("(-server +model):\n%s", diff)
	}
	for i, req := range model.Requests() {
		want := srv.Requests()[i].Parse(t)
		if got, want := text(t, req), text(t, want); got != want {
			t.Errorf("request %d:\n%s\nwant\n%s", i, got, want)
		}
	}
}

func text(t *testing.T, req *api.Request) string {
	t.Helper()
	b, err := req.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type echoed struct {
	Text string `json:"text"`
}

var echo = tool.Must("echo", "Returns the text.", func(_ context.Context, in echoed) (string, error) { return in.Text, nil }, tool.ReadOnly())

// Replies that break connections break off in memory too.
func TestModelBreaks(t *testing.T) {
	long := agenttest.Completed(item.Assistant(strings.Repeat("word ", 50)))
	for _, c := range []struct {
		reply agenttest.Reply
		class endpoint.Class
	}{
		{agenttest.Reset(), endpoint.Network},
		{long.CutAfter(2000), endpoint.Truncated},
		{long.WithoutLast(), endpoint.Truncated},
		{agenttest.Failure(401, "invalid_api_key", "no"), endpoint.Auth},
		{agenttest.Failed("server_error", "it fell"), endpoint.Server},
	} {
		t.Run(c.reply.String(), func(t *testing.T) {
			a := &agent.Agent{Model: agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply { return c.reply })}
			a.Request.Model = "test-model"
			_, err := a.Run(t.Context(), session.New(), item.User("go"))
			var e *endpoint.Error
			if !errors.As(err, &e) || e.Class != c.class {
				t.Errorf("got %v, want the class %s", err, c.class)
			}
		})
	}
}

// A model has no socket and leaves no goroutine, so a bubble of fake time ends.
func TestModelInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply {
			return agenttest.Completed(item.Assistant("Never.")).StallAfter(3, nil)
		})
		a := &agent.Agent{Model: model, Limits: agent.Limits{MaxTime: time.Hour}}
		a.Request.Model = "test-model"
		res, err := a.Run(t.Context(), session.New(), item.User("go"))
		if err != nil || res.Why != agent.StopMaxTime {
			t.Errorf("%+v, %v", res, err)
		}
		for range a.Stream(t.Context(), session.New(), item.User("go")) {
			break
		}
	})
}

// spyTB takes the failures of a test, and its cleanups.
type spyTB struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (s *spyTB) Helper()          {}
func (s *spyTB) Failed() bool     { return len(s.failures) > 0 }
func (s *spyTB) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }
func (s *spyTB) Errorf(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

func TestScriptRunsOut(t *testing.T) {
	tb := &spyTB{TB: t}
	model := agenttest.Script(tb, agenttest.Completed(item.Call("c1", "echo", `{"text":"x"}`)))
	a := &agent.Agent{Model: model, Tools: []tool.Tool{echo}}
	a.Request.Model = "test-model"
	_, err := a.Run(t.Context(), session.New(), item.User("go"))
	if err == nil || !strings.Contains(err.Error(), "turn 2: the script of the test has no reply left") {
		t.Errorf("got %v", err)
	}
	want := `turn 2: the script has no reply left, it had 1: add one, or find out why the model is asked again; the request ends with item 3: {"type":"function_call_output"`
	if len(tb.failures) != 1 || !strings.HasPrefix(tb.failures[0], want) {
		t.Errorf("got %q, want one that begins with %q", tb.failures, want)
	}
	if n := len(model.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestScriptIsLeft(t *testing.T) {
	tb := &spyTB{TB: t}
	model := agenttest.Script(tb, agenttest.Completed(item.Assistant("one")))
	model.Add(agenttest.Failure(429, "slow", "down"))
	a := &agent.Agent{Model: model}
	a.Request.Model = "test-model"
	if _, err := a.Run(t.Context(), session.New(), item.User("go")); err != nil {
		t.Fatal(err)
	}
	for _, end := range tb.cleanups {
		end()
	}
	if want := []string{"the model was asked 1 times, and the script has more replies, 1: the next is Failure(429, slow)"}; !cmp.Equal(tb.failures, want) {
		t.Errorf("got %q", tb.failures)
	}
}

// An empty Reply is an error that says what to do, not a panic in a goroutine. G8
func TestEmptyReply(t *testing.T) {
	model := agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply { return agenttest.Reply{} })
	for _, err := range model.Stream(t.Context(), &api.Request{Model: "m", Input: item.NewList(item.User("hi"))}) {
		if err == nil || !strings.Contains(err.Error(), "the test's Reply is empty") {
			t.Error(err)
		}
	}
}

// A reply with an item that a test forgot to make is an error that says so, and does not end the
// test's process. G8
func TestZeroItem(t *testing.T) {
	a := &agent.Agent{Model: agenttest.Script(t, agenttest.Completed(item.Assistant("hello"), item.Item{}))}
	_, err := a.Run(t.Context(), session.New(), item.User("go"))
	if err == nil || !strings.Contains(err.Error(), "item 2 of the test's Reply is the zero Item") {
		t.Error(err)
	}
}

// A model without a function fails each request and says why. G8
func TestModelFuncNil(t *testing.T) {
	a := &agent.Agent{Model: agenttest.ModelFunc(nil)}
	if _, err := a.Run(t.Context(), session.New(), item.User("hi")); err == nil || !strings.Contains(err.Error(), "give ModelFunc one") {
		t.Error(err)
	}
}

// A response says which conversation it belongs to and which response it continues, as
// that of a server that knows them: an agent in a conversation sends what is new.
func TestRepliesAreInTheConversation(t *testing.T) {
	m := agenttest.Script(t, agenttest.Completed(item.Assistant("one")), agenttest.Completed(item.Assistant("two")), agenttest.Completed(item.Assistant("three")))
	a := &agent.Agent{Model: m}
	a.Request.Conversation = api.ConversationByID("conv_1")
	s := session.New()
	for range 3 {
		if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range m.Requests() {
		if id, ok := api.ConversationID(r.Conversation); !ok || id != "conv_1" || r.Input.Len() != 1 {
			t.Errorf("request %d has %d items, %s", i+1, r.Input.Len(), r.Conversation)
		}
	}
	srv := agenttest.NewServer(t, agenttest.Completed(item.Assistant("one")), agenttest.Completed(item.Assistant("two")))
	for _, stream := range []bool{false, true} {
		req := &api.Request{Model: "m", PreviousResponseID: "resp_9", Input: item.NewList(item.User("go"))}
		var got *api.Response
		if !stream {
			var err error
			if got, err = srv.Client().Create(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		} else {
			for ev, err := range srv.Client().Stream(t.Context(), req) {
				if err != nil {
					t.Fatal(err)
				}
				if ev.Type == api.EventCompleted {
					got, _ = ev.Response()
				}
			}
		}
		if got.PreviousResponseID != "resp_9" || got.Conversation != nil {
			t.Errorf("%+v", got)
		}
	}
}
