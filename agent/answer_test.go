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
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// eager is a rig whose model calls a tool until it is not allowed to.
func eager(t *testing.T, limits agent.Limits) *rig {
	t.Helper()
	r := newRig(t)
	r.server.Otherwise(func(n int, req agenttest.Request) agenttest.Reply {
		if req.Parse(t).ToolChoice == api.ChoiceNone {
			return saying("Three things are known.")
		}
		return endless(n, req)
	})
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.Limits = limits
	r.agent.Prices = func(string) (agent.Price, bool) { return agent.Price{Output: 1e6}, true }
	return r
}

// L4: the last turn that a limit is expected to allow is an answer, and the result, the
// request and the log say so; the next run may call tools again.
func TestAnswerNow(t *testing.T) {
	plain := eager(t, agent.Limits{MaxTurns: 1})
	plain.run(item.User("go"))
	ended := told[session.TurnEnded](inLog(plain.session))
	tokens, cost := ended[0].Usage.TotalTokens, ended[0].Cost
	if tokens == 0 || cost == 0 {
		t.Fatalf("%d tokens, cost %v", tokens, cost)
	}
	for _, c := range []struct {
		name   string
		limits agent.Limits
		turns  int
		detail string
	}{
		{"turns", agent.Limits{MaxTurns: 3}, 3, "its last turn: 3 of 3"},
		{"one turn", agent.Limits{MaxTurns: 1}, 1, "its last turn: 1 of 1"},
		{"tokens", agent.Limits{MaxTokens: 2 * tokens}, 2, "tokens were used"},
		{"cost", agent.Limits{MaxCost: 2 * cost}, 2, "was spent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.limits.AnswerNow = true
			for _, steps := range []bool{false, true} {
				r := eager(t, c.limits)
				var why agent.StopReason
				var detail string
				r.give(item.User("go"))
				if steps {
					stop := r.steps()
					why, detail = stop.Why, stop.Detail
				} else {
					res := r.run()
					why, detail = res.Why, res.Detail
					if res.Text != "Three things are known." {
						t.Errorf("%+v", res)
					}
				}
				if why != agent.StopEndTurn || !strings.Contains(detail, c.detail) {
					t.Errorf("steps %v: %s, %q", steps, why, detail)
				}
				requests := r.server.Requests()
				if len(requests) != c.turns {
					t.Fatalf("steps %v: %d requests", steps, len(requests))
				}
				for i, req := range requests {
					p := req.Parse(t)
					now := p.Input.At(p.Input.Len()-1).Role() == item.RoleDeveloper
					if last := i == c.turns-1; now != last || (p.ToolChoice == api.ChoiceNone) != last || len(p.Tools) != 1 {
						t.Errorf("steps %v, request %d: %s", steps, i, req.Body)
					}
				}
				r.inputs()
			}
		})
	}
	r := eager(t, agent.Limits{MaxTurns: 2, AnswerNow: true})
	r.run(item.User("go"))
	r.agent.Limits.MaxTurns = 5
	r.server.Add(saying("More."))
	if res := r.run(item.User("and?")); res.Text != "More." || res.Detail != "" || r.server.Requests()[2].Parse(t).ToolChoice != api.ChoiceAuto {
		t.Errorf("the next run: %+v", res)
	}
}

// L4: a model that calls in its last turn all the same is stopped by the limit, and so is
// one that is not asked to answer.
func TestAnswerNowNotObeyed(t *testing.T) {
	for _, on := range []bool{true, false} {
		r := newRig(t)
		r.server.Otherwise(endless)
		ran, want := 0, 2
		if on {
			want = 1 // nobody would read what the last call did
		}
		r.agent.Tools = []tool.Tool{tool.Must("echo", "", func(_ context.Context, in struct {
			Text string `json:"text"`
		}) (string, error) {
			ran++
			return in.Text, nil
		}, tool.ReadOnly(), tool.EarlyStart())}
		r.agent.Limits = agent.Limits{MaxTurns: 2, AnswerNow: on}
		if res := r.run(item.User("go")); res.Why != agent.StopMaxTurns || res.Turns != 2 || ran != want {
			t.Errorf("%v: %d calls ran, %+v", on, ran, res)
		}
		r.inputs()
	}
}

// inLog returns the log as events.
func inLog(s *session.Session) (events []agent.Event) {
	for e := range s.Entries() {
		events = append(events, agent.Recorded{Entry: e})
	}
	return events
}
