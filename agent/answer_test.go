// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

// L4, G10: the last turn that a limit is expected to allow is an answer, and the result, the
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

// G10: a budget that several runs share and the time that is left are limits, too; the log
// says which one it was, so another process does not run calls of that turn either.
func TestAnswerNowOfBudget(t *testing.T) {
	plain := eager(t, agent.Limits{MaxTurns: 1})
	plain.run(item.User("go"))
	used := told[session.TurnEnded](inLog(plain.session))[0]
	for _, c := range []struct {
		name   string
		budget *agent.Budget
		turns  int
		detail string
	}{
		{"turns", &agent.Budget{Turns: 3}, 3, "its last turn: 3 of 3 by all runs that share the budget"},
		{"tokens", &agent.Budget{Tokens: 3 * used.Usage.TotalTokens}, 3, "tokens were used by all runs"},
		{"cost", &agent.Budget{Cost: 3 * used.Cost}, 3, "was spent by all runs"},
		{"of the context", (&agent.Budget{Turns: 2}).Child(), 2, "its last turn: 2 of 2 by all runs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := eager(t, agent.Limits{AnswerNow: true})
			r.agent.Budget = c.budget
			res := r.run(item.User("go"))
			if res.Why != agent.StopEndTurn || res.Text != "Three things are known." || res.Turns != c.turns || !strings.Contains(res.Detail, c.detail) {
				t.Errorf("%+v", res)
			}
			said := notices(r.session, session.NoticeAnswerNow)
			if len(said) != 1 || said[0] != res.Detail {
				t.Errorf("%q", said)
			}
			r.inputs()
		})
	}
}

// G10: the time that is left has to be enough for another round of calls and an answer.
func TestAnswerNowOfTime(t *testing.T) {
	for _, c := range []struct {
		name  string
		think time.Duration // how long each reply takes
		work  time.Duration // and each call
		turns int           // within a minute
	}{
		{"replies", 11 * time.Second, 0, 5},
		{"calls", 2 * time.Second, 25 * time.Second, 3},
		{"one reply takes nearly all", 50 * time.Second, 0, 2},
		{"nothing takes long", 0, 0, 7},
	} {
		for _, shared := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				turns := 0
				a := &agent.Agent{Limits: agent.Limits{AnswerNow: true, MaxTurns: 7}}
				a.Model = agenttest.ModelFunc(func(ctx context.Context, req *api.Request) agenttest.Reply {
					turns++
					sleep(ctx, c.think)
					if req.ToolChoice == api.ChoiceNone {
						return saying("Three things are known.")
					}
					return agenttest.Completed(call(fmt.Sprint("c", turns), "work", "x"))
				})
				a.Tools = []tool.Tool{textTool("work", func(ctx context.Context, s string) (string, error) {
					sleep(ctx, c.work)
					return s, nil
				}, tool.ReadOnly())}
				if shared {
					a.Budget = &agent.Budget{Time: time.Minute}
				} else {
					a.Limits.MaxTime = time.Minute
				}
				s := session.New()
				res, err := a.Run(t.Context(), s, item.User("go"))
				why := "of the time of the run is left"
				if c.turns == 7 {
					why = "its last turn"
				}
				if c.turns == 2 { // the answer may come too late, but it was asked for
					if said := notices(s, session.NoticeAnswerNow); res.Why != agent.StopMaxTime || len(said) != 1 || !strings.Contains(said[0], why) {
						t.Errorf("%s, shared %v: %+v, %v, %v", c.name, shared, res, err, said)
					}
					return
				}
				if err != nil || res.Why != agent.StopEndTurn || res.Turns != c.turns || !strings.Contains(res.Detail, why) {
					t.Errorf("%s, shared %v: %+v, %v", c.name, shared, res, err)
				}
			})
		}
	}
}

// sleep waits on the clock of the test's bubble.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// inLog returns the log as events.
func inLog(s *session.Session) (events []agent.Event) {
	for e := range s.Entries() {
		events = append(events, agent.Recorded{Entry: e})
	}
	return events
}
