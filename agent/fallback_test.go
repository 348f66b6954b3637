// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// pair is a rig whose agent has two models at two servers.
type pair struct {
	*rig
	second *agenttest.Server
}

func newPair(t *testing.T, first, second []agenttest.Reply) *pair {
	t.Helper()
	p := &pair{rig: newRig(t, first...), second: agenttest.NewServer(t, second...)}
	p.agent.Retry = endpoint.Retry{}
	p.models()
	return p
}

// models gives the agent new clients, as another process would have them.
func (p *pair) models() {
	other := p.second.Client()
	other.Profile = &endpoint.Profile{Name: "as it is"}
	p.agent.Model = agent.Fallback{{Model: p.client(), Name: "large"}, {Model: other, Name: "small"}}
}

// asked returns the models of a server's requests.
func asked(t *testing.T, s *agenttest.Server) (models []string) {
	for _, req := range s.Requests() {
		models = append(models, req.Parse(t).Model)
	}
	return models
}

// notices returns the texts of the notices of a kind in a session's log.
func notices(s *session.Session, kind string) (texts []string) {
	for e := range s.Entries() {
		if n, ok := e.Body.(session.Noticed); ok && n.Kind == kind {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

func saying(text string) agenttest.Reply { return agenttest.Completed(item.Assistant(text)) }

// G7: which failures of the first model the second one is asked after, and how often
// each is asked: both have their own retries.
func TestFallback(t *testing.T) {
	down := agenttest.Failure(503, "", "down")
	for _, c := range []struct {
		name          string
		first, second []agenttest.Reply
		large, small  int
		text          string
		why           agent.StopReason
	}{
		{name: "no failure", first: []agenttest.Reply{saying("L")}, large: 1, text: "L"},
		{name: "a blip", first: []agenttest.Reply{down, saying("L")}, large: 2, text: "L"},
		{name: "down", first: agenttest.Storm(3, down), second: []agenttest.Reply{saying("S")}, large: 3, small: 1, text: "S"},
		{name: "down, and the other shaky", first: agenttest.Storm(3, down), second: agenttest.Storm(2, down, saying("S")), large: 3, small: 3, text: "S"},
		{name: "no connection", first: agenttest.Storm(3, agenttest.Reset()), second: []agenttest.Reply{saying("S")}, large: 3, small: 1, text: "S"},
		{name: "a short limit", first: []agenttest.Reply{agenttest.Failure(429, "rate_limit_exceeded", "wait").WithHeader("Retry-After", "1"), saying("L")}, large: 2, text: "L"},
		{name: "a long limit", first: []agenttest.Reply{agenttest.Failure(429, "rate_limit_exceeded", "wait").WithHeader("Retry-After", "3600")}, second: []agenttest.Reply{saying("S")}, large: 1, small: 1, text: "S"},
		{name: "no credit", first: []agenttest.Reply{agenttest.Failure(429, "insufficient_quota", "pay")}, second: []agenttest.Reply{saying("S")}, large: 1, small: 1, text: "S"},
		{name: "unknown model", first: []agenttest.Reply{agenttest.Failure(404, "model_not_found", "no such model")}, second: []agenttest.Reply{saying("S")}, large: 1, small: 1, text: "S"},
		{name: "failed before output", first: agenttest.Storm(3, agenttest.Failed("server_error", "oh")), second: []agenttest.Reply{saying("S")}, large: 3, small: 1, text: "S"},
		{name: "our request", first: []agenttest.Reply{agenttest.Failure(400, "", "what?")}, large: 1, why: agent.StopProviderError},
		{name: "our key", first: []agenttest.Reply{agenttest.Failure(401, "invalid_api_key", "who?")}, large: 1, why: agent.StopProviderError},
		{name: "not allowed", first: []agenttest.Reply{agenttest.Failure(403, "", "no")}, large: 1, why: agent.StopProviderError},
		{name: "policy", first: []agenttest.Reply{agenttest.Failure(400, "content_policy_violation", "no")}, large: 1, why: agent.StopProviderError},
		{name: "too long", first: []agenttest.Reply{agenttest.Failure(400, "context_length_exceeded", "long")}, large: 1, why: agent.StopContextFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, c.first, c.second)
			res, err := p.agent.Run(t.Context(), p.session, item.User("go"))
			if c.why == "" {
				c.why = agent.StopEndTurn
			}
			if res.Text != c.text || res.Why != c.why || (err == nil) != (c.why == agent.StopEndTurn) {
				t.Errorf("%q %s, %v", res.Text, res.Why, err)
			}
			if l, s := asked(t, p.server), asked(t, p.second); len(l) != c.large || len(s) != c.small || slices.Contains(l, "small") || slices.Contains(s, "large") {
				t.Errorf("requests: %v, %v", l, s)
			}
			if n := len(notices(p.session, session.NoticeFallback)); n != min(c.small, 1) {
				t.Errorf("%d notices", n)
			}
		})
	}
}

// G7: the notice, the setup, the price and the event of each decision.
func TestFallbackIsRecorded(t *testing.T) {
	p := newPair(t, agenttest.Storm(3, agenttest.Failure(503, "", "down")), []agenttest.Reply{
		agenttest.Completed(call("c1", "echo", "hi")), saying("done"),
	})
	p.agent.Tools = []tool.Tool{echo()}
	p.agent.Prices = func(model string) (agent.Price, bool) {
		return map[string]agent.Price{"large": {Input: 1e6}, "small": {Output: 1e6}}[model], model == "large" || model == "small"
	}
	p.agent.Limits.MaxCost = 1e6
	run := p.agent.Start(p.session, item.User("go"))
	events, err := drain(run.Events(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, n := range told[session.Noticed](events) {
		list = append(list, n.Kind+": "+n.Text)
	}
	if len(list) != 1 || !strings.HasPrefix(list[0], "fallback: large did not answer (503 ") || !strings.HasSuffix(list[0], "so small is asked") {
		t.Errorf("notices: %q", list)
	}
	var setup session.Setup
	var models []string
	cost := 0.0
	for e := range p.session.Entries() {
		setup.Apply(e.Body)
		if b, ok := e.Body.(session.TurnEnded); ok {
			models = append(models, setup.Model+" "+setup.Endpoint+" "+b.Status)
			if b.Usage != nil {
				cost += float64(b.Usage.OutputTokens)
			}
		}
	}
	want := []string{"large " + p.server.URL + " failed", "small " + p.second.URL + " completed", "small " + p.second.URL + " completed"}
	if !slices.Equal(models, want) {
		t.Errorf("turns: %q, want %q", models, want)
	}
	if res := run.Result(); res.Turns != 3 || res.Cost != cost || cost == 0 {
		t.Errorf("%d turns, cost %v, want %v", res.Turns, res.Cost, cost)
	}
	// The next run begins with the first model again.
	p.server.Add(saying("back"))
	if res := p.run(item.User("and now?")); res.Text != "back" {
		t.Errorf("the next run: %+v", res)
	}
	p.inputs()
}

// G7: if all models fail, all errors are told, in the error and in the log.
func TestFallbackAllFail(t *testing.T) {
	p := newPair(t, agenttest.Storm(3, agenttest.Failure(503, "", "the first is down")), agenttest.Storm(3, agenttest.Failure(529, "", "the second is full")))
	res, err := p.agent.Run(t.Context(), p.session, item.User("go"))
	if res.Why != agent.StopProviderError || err == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	contains(t, err.Error(), "large: ", "the first is down", "small: ", "the second is full")
	contains(t, res.Detail, "the first is down", "the second is full")
	var e *endpoint.Error
	if !errors.As(err, &e) {
		t.Errorf("no endpoint error in %v", err)
	}
	p.server.Add(saying("up again"))
	if res := p.run(); res.Text != "up again" {
		t.Errorf("%+v", res)
	}
}

// E4 G7: a reply that breaks off after output is not repeated by another model; the run
// ends, and the next one goes on from what arrived.
func TestFallbackNotInMidReply(t *testing.T) {
	p := newPair(t, []agenttest.Reply{saying("half of the answer").WithoutLast()}, []agenttest.Reply{saying("never")})
	res, err := p.agent.Run(t.Context(), p.session, item.User("go"))
	if err == nil || res.Why != agent.StopProviderError || len(p.second.Requests()) > 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if len(res.Partial) == 0 {
		t.Errorf("nothing of the reply is kept: %+v", res)
	}
	p.server.Add(saying("whole"))
	if res := p.run(); res.Text != "whole" {
		t.Errorf("%+v", res)
	}
	p.inputs()
}

// G7: a step of another process asks the model that the log names; nothing but the log
// connects the two.
func TestFallbackSteps(t *testing.T) {
	p := newPair(t, agenttest.Storm(3, agenttest.Failure(503, "", "down")), []agenttest.Reply{
		agenttest.Completed(call("c1", "echo", "hi")), saying("done"),
	})
	p.agent.Tools = []tool.Tool{echo()}
	p.give(item.User("go"))
	for range 20 {
		p.reopen()
		p.models()
		e, err := p.agent.Step(t.Context(), p.session)
		if err != nil {
			t.Fatal(err)
		}
		if stop, ok := e.(plan.Stop); ok {
			if stop.Why != agent.StopEndTurn || len(p.server.Requests()) != 3 || len(p.second.Requests()) != 2 {
				t.Errorf("%+v after %d and %d requests", stop, len(p.server.Requests()), len(p.second.Requests()))
			}
			return
		}
	}
	t.Error("it does not stop")
}

// G7 J1: a crash after any entry of a run that fell over.
func TestFallbackCrash(t *testing.T) {
	build := func(t *testing.T) *pair {
		p := newPair(t, nil, nil)
		p.agent.Tools = []tool.Tool{echo(tool.Idempotent())}
		p.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Failure(503, "", "down") })
		p.second.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
			if !strings.Contains(string(req.Body), `"c1"`) {
				return agenttest.Completed(call("c1", "echo", "hi"))
			}
			return saying("done")
		})
		return p
	}
	whole := build(t)
	whole.give(item.User("go"))
	whole.run()
	log := whole.session.Log()
	for n := 1; n < len(log); n++ {
		if _, decision := log[n].Body.(session.Noticed); decision {
			continue // it is one append with the entry before
		}
		p := build(t)
		if err := p.store.Append(t.Context(), "s", 0, log[:n]); err != nil {
			t.Fatal(err)
		}
		if stop := p.steps(); stop.Why != agent.StopEndTurn {
			t.Errorf("after entry %d: %+v", n, stop)
		}
		begun := slices.Contains(kinds(p.session)[:n], "noticed")
		if fell := len(notices(p.session, session.NoticeFallback)); fell != 1 || begun && len(p.server.Requests()) > 0 {
			t.Errorf("after entry %d: %d notices, %d requests to the first model", n, fell, len(p.server.Requests()))
		}
		p.inputs()
	}
}

// R4 G5 G7: the second endpoint gets neither the conversation of the first nor, after it
// refused it, reasoning that only the first can read.
func TestFallbackForeign(t *testing.T) {
	p := newPair(t, []agenttest.Reply{
		agenttest.Completed(item.Must(&item.Reasoning{ID: "rs_1", Summary: []item.Part{}, EncryptedContent: "gAAA"}), call("c1", "echo", "hi")),
		agenttest.Failure(503, "", "down"), agenttest.Failure(503, "", "down"), agenttest.Failure(503, "", "down"),
	}, []agenttest.Reply{agenttest.Failure(400, "invalid_encrypted_content", "cannot read"), saying("done")})
	p.agent.Tools = []tool.Tool{echo()}
	p.agent.Request.Conversation = api.ConversationByID("conv_1")
	if f, ok := p.agent.Model.(agent.Fallback); ok {
		f[1].SameTrust = true // otherwise it is never sent: see TestFallbackTrust
	}
	res := p.run(item.User("go"))
	if res.Text != "done" {
		t.Fatalf("%+v", res)
	}
	for i, req := range p.second.Requests() {
		if strings.Contains(string(req.Body), "conv_1") || i > 0 && strings.Contains(string(req.Body), "gAAA") || !strings.Contains(string(req.Body), `"go"`) {
			t.Errorf("request %d: %s", i, req.Body)
		}
	}
}

// G8: what cannot be a Fallback is an error before anything is recorded.
func TestFallbackChecked(t *testing.T) {
	r := newRig(t)
	model := r.agent.Model
	for name, c := range map[string]struct {
		model agent.Model
		set   func(*agent.Agent)
	}{
		"empty":    {agent.Fallback{}, nil},
		"no model": {agent.Fallback{{Model: model}, {Name: "b"}}, nil},
		"nested":   {agent.Fallback{{Model: agent.Fallback{{Model: model}}}}, nil},
		"pointer":  {&agent.Fallback{{Model: model}}, nil},
		"pointers": {agent.Fallback{{Model: &agent.Fallback{{Model: model}}}}, nil},
		"previous": {agent.Fallback{{Model: model}}, func(a *agent.Agent) { a.Request.PreviousResponseID = "resp_1" }},
		"no price": {agent.Fallback{{Model: model, Name: "known"}, {Model: model, Name: "unknown"}}, func(a *agent.Agent) {
			a.Limits.MaxCost = 1
			a.Prices = func(model string) (agent.Price, bool) { return agent.Price{}, model == "known" }
		}},
	} {
		a := *r.agent
		a.Model = c.model
		if c.set != nil {
			c.set(&a)
		}
		if _, err := a.Run(t.Context(), r.session, item.User("go")); err == nil || len(r.session.Log()) > 0 {
			t.Errorf("%s: %v, %d entries", name, err, len(r.session.Log()))
		}
	}
}

// broken yields n events of output and then fails.
type broken struct {
	n   int
	err error
}

func (b broken) Stream(context.Context, *api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if !yield(event(`{"type":"response.created","response":{"id":"r"}}`), nil) {
			return
		}
		for range b.n {
			if !yield(event(`{"type":"response.output_text.delta","delta":"x"}`), nil) {
				return
			}
		}
		if b.err != nil {
			yield(api.Event{}, b.err)
		}
	}
}

var wrongAddress error = &url.Error{Op: "Get", URL: "htp://x", Err: errors.New("unsupported protocol scheme")}

var errOdd = errors.New("odd")

// G7: without a run, for a model that is asked by itself.
func TestFallbackStream(t *testing.T) {
	down, bad, last := &endpoint.Error{Class: endpoint.Overloaded}, &endpoint.Error{Class: endpoint.BadRequest}, errors.New("the last one")
	for _, c := range []struct {
		name   string
		first  broken
		req    api.Request
		events int
		want   []error
	}{
		{"down", broken{0, down}, api.Request{}, 2, []error{last}},
		{"a net.Error", broken{0, fmt.Errorf("my model: %w", &net.OpError{Op: "dial", Err: errors.New("refused")})}, api.Request{}, 2, []error{last}},
		{"a wrong address", broken{0, wrongAddress}, api.Request{}, 0, []error{wrongAddress}},
		{"an error of its own", broken{0, errOdd}, api.Request{}, 0, []error{errOdd}},
		{"down after output", broken{2, down}, api.Request{}, 3, []error{down}},
		{"a bad request", broken{0, bad}, api.Request{}, 0, []error{bad}},
		{"a conversation", broken{0, down}, api.Request{Conversation: api.ConversationByID("c")}, 0, []error{down}},
		{"a response", broken{0, down}, api.Request{PreviousResponseID: "r"}, 0, []error{down}},
		{"whole", broken{1, nil}, api.Request{}, 2, nil},
	} {
		var got error
		events := 0
		for _, err := range (agent.Fallback{{Model: c.first, Name: "a"}, {Model: broken{1, last}, Name: "b"}}).Stream(t.Context(), &c.req) {
			if got = err; err == nil {
				events++
			}
		}
		ok := events == c.events && (got == nil) == (c.want == nil)
		for _, err := range c.want {
			ok = ok && errors.Is(got, err)
		}
		if !ok {
			t.Errorf("%s: %d events, then %v", c.name, events, got)
		}
	}
	var got error
	for _, err := range (agent.Fallback{{Model: broken{0, down}, Name: "a"}, {Model: broken{0, down}}}).Stream(t.Context(), &api.Request{}) {
		got = err
	}
	contains(t, fmt.Sprint(got), "a: ", "candidate 2: ")
}

// S8: no other model is asked after the context ended.
func TestFallbackCancelled(t *testing.T) {
	p := newPair(t, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	p.server.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		cancel()
		return agenttest.Failure(503, "", "down")
	})
	res, err := p.agent.Run(ctx, p.session, item.User("go"))
	if !errors.Is(err, context.Canceled) || res.Why != agent.StopCancelled || len(p.second.Requests()) > 0 {
		t.Errorf("%+v, %v, %d requests to the second model", res, err, len(p.second.Requests()))
	}
}

// The notice says what happened, without a status where there was none. U8
func TestFallbackReason(t *testing.T) {
	silent := agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply { return agenttest.Events() })
	a := &agent.Agent{Model: agent.Fallback{{Model: silent, Name: "large"}, {Model: agenttest.Script(t, agenttest.Completed(item.Assistant("done"))), Name: "small"}}}
	s := session.New()
	if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
		t.Fatal(err)
	}
	if got := notices(s, session.NoticeFallback); len(got) != 1 || got[0] != "large did not answer (the answer is empty), so small is asked" {
		t.Errorf("%+v", got)
	}
}
