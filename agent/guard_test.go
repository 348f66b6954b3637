// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// judge objects to items that speak of a bomb.
func judge(_ context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
	if noBombs(c.Items...) != nil {
		return &agent.Tripwire{Reason: "no explosives", Value: 0.9}, nil
	}
	return nil, nil
}

// What a guard objects to is not sent, now or later, is not in the result, and is
// in the log as withdrawn; the error, the result and an event say which guard it was
// and what it found; and the session goes on. G2
func TestGuards(t *testing.T) {
	agree := agent.Guard{Name: "yes", Input: func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) { return nil, nil }}
	bomb := []agenttest.Reply{agenttest.Completed(call("c", "get", "BOMB"), item.Assistant("here is a bomb"))}
	for _, c := range []struct {
		name  string
		guard agent.Guard
		reply []agenttest.Reply // before the last one
		text  string
		stage string
		want  []string // the last request
		asked int      // requests before the objection
	}{
		{"input, first", agent.Guard{Input: judge, First: true}, nil, "a bomb", "input", []string{"system: be nice", "user: hello"}, 0},
		{"input, beside", agent.Guard{Input: judge}, []agenttest.Reply{agenttest.Completed(item.Assistant("sure"))}, "a bomb", "input", []string{"system: be nice", "user: hello"}, -1},
		{"reply", agent.Guard{Output: judge}, bomb, "tell me", "output", []string{"system: be nice", "user: tell me", "user: hello"}, 1},
		{"reply, held", agent.Guard{Output: judge, Hold: true}, bomb, "tell me", "output", []string{"system: be nice", "user: tell me", "user: hello"}, 1},
		{
			"a tool's output", agent.Guard{Input: judge, First: true, ToolOutputs: true}, []agenttest.Reply{agenttest.Completed(call("c", "get", "BOMB"))}, "tell me", "input",
			[]string{"system: be nice", "user: tell me", `c: get({"text":"BOMB"})`, "c = The output of this call was withheld by a check. no explosives.", "user: hello"}, 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := guardedRig(t, agent.Hooks{}, append(c.reply, agenttest.Completed(item.Assistant("hi")))...)
			if c.asked < 0 { // whether the request arrived depends on the time
				r = guardedRig(t, agent.Hooks{})
				r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("hi")) })
			}
			c.guard.Name = "police"
			r.agent.Hooks, r.agent.Guards = nil, []agent.Guard{agree, c.guard}
			run := r.agent.Start(r.session, item.System("be nice"), item.User(c.text))
			events, err := drain(run.Events(t.Context()))
			res := run.Result()
			var trip *agent.Tripwire
			if !errors.As(err, &trip) {
				t.Fatal(err)
			}
			want := &agent.Tripwire{Guard: "police", Stage: c.stage, Reason: "no explosives", Value: 0.9}
			tripped := progressOf(events, agent.ProgressTripped)
			if len(tripped) != 1 {
				t.Fatalf("%d events", len(tripped))
			}
			if diff := cmp.Diff([]*agent.Tripwire{want, want, want}, []*agent.Tripwire{trip, res.Tripwire, tripped[0].Tripwire}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if res.Why != agent.StopVetoed || res.Guard != "police" || res.Text != "" {
				t.Errorf("%+v", res)
			}
			contains(t, err.Error(), "guard police objects to the "+c.stage+": no explosives")
			if asked := len(r.server.Requests()); c.asked >= 0 && asked != c.asked {
				t.Errorf("%d requests", asked)
			}
			if c.name != "reply" && noBombs(itemsSaid(events)...) != nil {
				t.Errorf("it was shown: %v", events)
			}
			gone := told[session.ItemsWithdrawn](events)
			if len(gone) != 1 || gone[0].By != "police" || gone[0].Reason != "no explosives." {
				t.Errorf("%+v", gone)
			}
			checkClosed(t, r.session, c.name)
			r.reopen()
			if res := r.run(item.User("hello")); res.Text != "hi" {
				t.Errorf("%+v", res)
			}
			if diff := cmp.Diff(c.want, outline(r.last())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// itemsSaid returns the items of a reply that events show, and its text.
func itemsSaid(events []agent.Event) (items []item.Item) {
	for _, d := range texts(events) {
		items = append(items, item.Assistant(d.Text))
	}
	for _, b := range told[session.OutputItem](events) {
		items = append(items, b.Item)
	}
	return items
}

// A guard beside the request reads while the request is in flight. If it objects,
// the request is cancelled and nothing of the reply is shown. G2
func TestGuardBeside(t *testing.T) {
	said, cancelled := make(chan struct{}), false
	model := &memory{replies: []any{listen(func(ctx context.Context, yield func(api.Event, error) bool) {
		yield(event(`{"type":"response.output_text.delta","item_id":"m","delta":"a secret"}`), nil)
		yield(event(`{"type":"response.output_item.done","output_index":0,"item":%s}`, item.Assistant("a secret").JSON()), nil)
		close(said)
		<-ctx.Done()
		cancelled = true
		yield(api.Event{}, ctx.Err())
	}), []item.Item{item.Assistant("hi")}}}
	a := &agent.Agent{Model: model, Guards: []agent.Guard{{Name: "police", Input: func(ctx context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
		if c.Text() != "a bomb" {
			return nil, nil
		}
		<-said
		return &agent.Tripwire{Reason: "no explosives"}, nil
	}}}}
	s := session.New()
	run := a.Start(s, item.User("a bomb"))
	events, err := drain(run.Events(t.Context()))
	if errors.As(err, new(*agent.Tripwire)); err == nil || !cancelled || len(itemsSaid(events)) > 0 || len(run.Result().Items)+len(run.Result().Partial) > 0 {
		t.Errorf("%v, cancelled %v, shown %v, %+v", err, cancelled, itemsSaid(events), run.Result())
	}
	if got := history(s); len(got) != 0 {
		t.Errorf("%v", outline(got))
	}
	res, err := a.Run(t.Context(), s, item.User("hello"))
	if err != nil || res.Text != "hi" || len(itemsOf(model.asked[1].Input)) != 1 {
		t.Errorf("%+v, %v, %v", res, err, outline(itemsOf(model.asked[1].Input)))
	}
}

// As soon as the guards beside a request agree, the reply is yielded as it comes,
// even while the model is silent; and with Hold, when it has been judged. G2
func TestGuardBesideAgrees(t *testing.T) {
	shown, said := make(chan struct{}), make(chan struct{})
	model := &memory{replies: []any{listen(func(_ context.Context, yield func(api.Event, error) bool) {
		yield(event(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}`), nil)
		yield(event(`{"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":"hel"}`), nil)
		close(said)
		<-shown // until then the model is silent
		yield(event(`{"type":"response.output_text.delta","output_index":0,"item_id":"m","delta":"lo"}`), nil)
		speak(yield, "resp_1", item.Must(&item.Message{ID: "m", Role: item.RoleAssistant, Content: item.Text("hello")}))
	})}}
	a := &agent.Agent{Model: model, Guards: []agent.Guard{{Input: func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) {
		<-said
		return nil, nil
	}}}}
	var got []string
	for ev, err := range a.Stream(t.Context(), session.New(), item.User("hi")) {
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := ev.(agent.Delta); ok {
			if got = append(got, d.Text); len(got) == 1 {
				close(shown)
			}
		}
	}
	if diff := cmp.Diff([]string{"hel", "lo"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A guard that fails, panics, does not answer in time, or is cut short has said
// neither yes nor no: nothing is shown and the input is kept, the run ends, and the
// next one asks the guard again before anything else. G2 L4
func TestGuardUndecided(t *testing.T) {
	for _, stage := range []string{"first", "beside", "output"} {
		for _, how := range []string{"error", "panic", "goexit", "timeout", "cancelled"} {
			t.Run(stage+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					asked, fails, stored := 0, true, 0
					ask := func(own context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
						if asked++; c.Stored {
							stored++
						}
						switch {
						case !fails:
							return nil, nil
						case how == "error":
							return nil, errors.New("it is closed")
						case how == "panic":
							panic("oh")
						case how == "goexit":
							runtime.Goexit()
						case how == "cancelled":
							cancel()
						}
						<-own.Done() // for the timeout it may as well return nil
						return nil, own.Err()
					}
					model := &memory{replies: []any{[]item.Item{item.Assistant("hi")}}}
					g := agent.Guard{Name: "police", Input: ask, First: stage == "first", Timeout: time.Minute}
					if stage == "output" {
						g = agent.Guard{Name: "police", Output: ask, Hold: true, Timeout: time.Minute}
					}
					a := &agent.Agent{Model: model, Guards: []agent.Guard{g}}
					s := session.New()
					run := a.Start(s, item.User("hello"))
					events, err := drain(run.Events(ctx))
					res := run.Result()
					why, text := agent.StopVetoed, map[string]string{"error": "it is closed", "panic": "it panicked: oh", "goexit": "it panicked", "timeout": "it did not answer within 1m0s"}[how]
					if how == "cancelled" {
						why, text = agent.StopCancelled, "canceled"
					} else if res.Guard != "police" {
						t.Errorf("%+v", res)
					}
					if err == nil || res.Why != why || res.Tripwire != nil || res.Text != "" || len(itemsSaid(events)) > 0 {
						t.Fatalf("%+v, %v", res, err)
					}
					contains(t, err.Error(), text)
					for e := range s.Entries() { // only an unfinished reply goes
						if w, ok := e.Body.(session.ItemsWithdrawn); ok && (stage != "beside" || slices.Contains(w.Seqs, 2)) {
							t.Errorf("%+v", w)
						}
					}
					before := len(model.asked)
					asked, fails = 0, false
					res, err = a.Run(t.Context(), s)
					switch {
					case stage == "output" && how == "cancelled" || stage == "output": // the reply is there, and judged now
						if asked != 1 || stored != 1 || len(model.asked) != before {
							t.Errorf("asked %d, stored %d, %v, %+v", asked, stored, err, res)
						}
					case err != nil || res.Text != "hi" || asked != 1 || len(model.asked) != before+1:
						t.Errorf("%+v, %v, asked %d", res, err, asked)
					}
					if got := history(s); got[0].JSON() != item.User("hello").JSON() {
						t.Errorf("%v", outline(got))
					}
				})
			})
		}
	}
}

// Guards run at the same time, each with its own copy. The first in the list that
// objects is named; an objection ends the others and outweighs their failures. G2
func TestGuardsTogether(t *testing.T) {
	together := make(chan struct{})
	var there atomic.Int32
	meet := func() {
		if there.Add(1) == 3 {
			close(together)
		}
		<-together
	}
	spoil := agent.Guard{Name: "spoils", First: true, Input: func(_ context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
		meet()
		c.Items[0] = item.User("nothing")
		c.History.Append(item.User("more"))
		return nil, errors.New("out of order")
	}}
	read := func(name string) agent.Guard {
		return agent.Guard{Name: name, First: true, Input: func(ctx context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
			meet()
			if c.Text() != "a bomb" || c.History.Len() != 1 {
				return nil, fmt.Errorf("it sees %q after %d", c.Text(), c.History.Len())
			}
			if name == "slow" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &agent.Tripwire{}, nil
		}}
	}
	a := &agent.Agent{Model: &memory{}, Guards: []agent.Guard{spoil, read("slow"), read("police")}}
	res, err := a.Run(t.Context(), session.New(), item.System("be nice"), item.User("a bomb"))
	if res.Guard != "police" || res.Tripwire == nil || err == nil {
		t.Errorf("%+v, %v", res, err)
	}
	contains(t, err.Error(), "guard police objects to the input: it gives no reason")
}

// What guards spend on models counts in the run's limits and budgets, in this process
// and in one that takes over; and so does what they spend by themselves. G2 L4
func TestGuardUsage(t *testing.T) {
	for _, first := range []bool{false, true} {
		second := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("ok")}}}}
		a := &agent.Agent{Model: &memory{replies: []any{[]item.Item{call("c", "get", "x")}, []item.Item{item.Assistant("hi")}}}, Budget: &agent.Budget{}}
		a.Tools, a.Policy = []tool.Tool{echo()}, agent.Policy{Allow: []string{"*"}}
		a.Guards = []agent.Guard{{Name: "model", First: first, Input: func(ctx context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
			_, err := second.Run(ctx, session.New(), c.Items...)
			c.Spend(agent.Usage{Tokens: 100, Cost: 1})
			return nil, err
		}}}
		s := session.New()
		res, err := a.Run(t.Context(), s, item.User("hello"))
		if err != nil || res.Nested != (agent.Usage{Turns: 1, Tokens: 115, Cost: 1}) || res.TotalTokens != 30 || a.Budget.Used() != (agent.Usage{Turns: 3, Tokens: 145, Cost: 1}) {
			t.Errorf("first %v: %+v, %v, %+v", first, res, err, a.Budget.Used())
		}
		a.Limits.MaxTokens = 120 // the guard and its turn use more
		a.Model = &memory{replies: []any{[]item.Item{call("c", "get", "x")}}}
		res, err = a.Run(t.Context(), session.New(), item.User("hello"))
		if err != nil || res.Why != agent.StopMaxTokens {
			t.Errorf("first %v: %+v, %v", first, res, err)
		}
		a.Budget, a.Model = &agent.Budget{}, &memory{replies: []any{[]item.Item{call("c", "get", "x")}}}
		if _, err := s.Append(t.Context(), session.InputItem{Item: item.User("again")}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Step(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		want := a.Budget.Used()
		a.Budget = &agent.Budget{} // as in another process
		if _, err := a.Step(t.Context(), s); err != nil || a.Budget.Used() != want || want.Tokens < 115 {
			t.Errorf("first %v: %+v, then %+v, %v", first, want, a.Budget.Used(), err)
		}
	}
}

// A guard that ignores the end of its context does not hold up the run. G2 L4
func TestGuardHangs(t *testing.T) {
	release, ended := make(chan struct{}), make(chan struct{})
	a := &agent.Agent{Model: &memory{}, Guards: []agent.Guard{{Name: "hangs", First: true, Timeout: time.Millisecond, Input: func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) {
		defer close(ended)
		<-release
		return nil, nil
	}}}}
	res, err := a.Run(t.Context(), session.New(), item.User("hello"))
	if res.Why != agent.StopVetoed || err == nil || !strings.Contains(err.Error(), "guard hangs could not decide about the input: it did not answer within 1ms") {
		t.Errorf("%+v, %v", res, err)
	}
	close(release)
	<-ended
}

// A guard that checks nothing is an error, not a yes. G8
func TestGuardChecksNothing(t *testing.T) {
	a := &agent.Agent{Model: &memory{}, Guards: []agent.Guard{{Name: "idle"}}}
	if _, err := a.Run(t.Context(), session.New(), item.User("hi")); err == nil || !strings.Contains(err.Error(), "Guards[0] (idle) checks nothing") {
		t.Error(err)
	}
	agrees := func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) { return nil, nil }
	for want, g := range map[string]agent.Guard{
		"Hold, which is about Output":                 {Input: agrees, Hold: true},
		"First or ToolOutputs, which are about Input": {Output: agrees, First: true},
	} {
		a.Guards = []agent.Guard{g}
		if _, err := a.Run(t.Context(), session.New(), item.User("hi")); err == nil || !strings.Contains(err.Error(), "Guards[0] (guard 1) has "+want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// Wherever the process ends, the guards are asked again: no later request of a
// process holds what a guard objects to, nothing of it is in a result, and every
// input that a model answers was agreed to. G2 J1
func TestGuardsAfterCrash(t *testing.T) {
	for _, c := range []struct {
		name   string
		guards []agent.Guard
		text   string
		reply  string
	}{
		{"first", []agent.Guard{{Name: "police", Input: judge, First: true}}, "a bomb", "sure"},
		{"beside", []agent.Guard{{Name: "police", Input: judge}}, "a bomb", "sure"},
		{"output", []agent.Guard{{Name: "police", Output: judge}}, "BOMB", "here is a bomb"},
		{"tools", []agent.Guard{{Name: "police", Input: judge, First: true, ToolOutputs: true}}, "get a BOMB", "wait"},
	} {
		t.Run(c.name, func(t *testing.T) {
			newAgent := func(guards []agent.Guard) (*agent.Agent, *memory) {
				m := &memory{replies: []any{
					[]item.Item{item.Assistant("fine")},
					[]item.Item{call("c", "get", "BOMB"), item.Assistant(c.reply)},
					[]item.Item{item.Assistant("done")},
				}}
				a := &agent.Agent{Model: m, Guards: guards, Policy: agent.Policy{Allow: []string{"*"}}}
				a.Tools = []tool.Tool{textTool("get", func(_ context.Context, s string) (string, error) { return strings.ToLower(s), nil }, tool.Idempotent())}
				return a, m
			}
			// The whole log is one in which the guards said yes, so that all of it is
			// there.
			whole, _ := newAgent(nil)
			s := session.New()
			for _, text := range []string{"one", c.text} {
				if _, err := whole.Run(t.Context(), s, item.User(text)); err != nil {
					t.Fatal(err)
				}
			}
			var log []session.Entry
			for e := range s.Entries() {
				log = append(log, e)
			}
			second := slices.IndexFunc(log, func(e session.Entry) bool {
				b, ok := e.Body.(session.InputItem)
				return ok && b.Item.JSON() == item.User(c.text).JSON()
			})
			answered := second + 1 + slices.IndexFunc(log[second+1:], func(e session.Entry) bool { _, ok := e.Body.(session.TurnEnded); return ok })
			for n := second + 1; n <= answered; n++ {
				store := new(session.Memory)
				if err := store.Append(t.Context(), "s", 0, log[:n]); err != nil {
					t.Fatal(err)
				}
				s, err := session.Open(t.Context(), store, "s")
				if err != nil {
					t.Fatal(err)
				}
				a, m := newAgent(c.guards)
				m.replies = m.replies[1:]
				res, err := a.Run(t.Context(), s)
				if !errors.As(err, new(*agent.Tripwire)) || res.Guard != "police" || strings.Contains(res.Text, "bomb") {
					t.Errorf("%d entries: %+v, %v", n, res, err)
				}
				for e := range s.Entries() {
					if _, started := e.Body.(session.CallStarted); started && c.name != "tools" {
						t.Errorf("%d entries: a call was started", n)
					}
				}
				a.Model = &memory{replies: []any{[]item.Item{item.Assistant("hi")}}}
				if res, err := a.Run(t.Context(), s, item.User("hello")); err != nil || res.Text != "hi" {
					t.Errorf("%d entries: %+v, %v", n, res, err)
				}
				for _, it := range itemsOf(a.Model.(*memory).asked[0].Input) {
					if it.IsCall() && c.name == "tools" {
						continue
					}
					if err := noBombs(it); err != nil {
						t.Errorf("%d entries: sent: %v", n, it.JSON())
					}
				}
			}
		})
	}
}

// After any sequence of guards that agree, object, fail and are cut short, in whole
// runs and in steps of changing processes: a request that follows an objection does
// not hold what was objected to, a model answers no input that the guards have not
// agreed to, calls and outputs pair up, and the session goes on. G2 P1 J1
func TestAnyGuards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		text := func(what string) string {
			n++
			return fmt.Sprintf("%s %d", rapid.SampledFrom([]string{"fine", "fine", "bomb", "flaky"}).Draw(t, what), n)
		}
		fails := true
		flaky := func() func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) {
			var asked atomic.Int32
			return func(ctx context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
				if fails && slices.ContainsFunc(c.Items, func(it item.Item) bool { return strings.Contains(it.JSON(), "flaky") }) {
					switch asked.Add(1) % 4 { // it decides the next time
					case 1:
						panic("oh")
					case 3:
						return nil, errors.New("closed")
					}
				}
				return judge(ctx, c)
			}
		}
		model := &memory{}
		a := &agent.Agent{Model: model, Policy: agent.Policy{Allow: []string{"*"}}, HoldOutput: rapid.Bool().Draw(t, "hold")}
		a.Limits.MaxTurns = 4
		a.Tools = []tool.Tool{
			textTool("get", func(_ context.Context, in string) (string, error) {
				return "output of " + strings.TrimPrefix(in, "bomb"), nil
			}),
			textTool("peek", func(_ context.Context, in string) (string, error) { return strings.TrimPrefix(in, "bomb"), nil }, tool.ReadOnly(), tool.EarlyStart()),
		}
		input := agent.Guard{Name: "in", Input: flaky(), First: rapid.Bool().Draw(t, "first"), ToolOutputs: rapid.Bool().Draw(t, "tool outputs")}
		a.Guards = []agent.Guard{input, {Name: "out", Output: flaky(), Hold: rapid.Bool().Draw(t, "hold")}}[rapid.IntRange(0, 1).Draw(t, "from"):]
		model.replies = []any{listen(func(_ context.Context, yield func(api.Event, error) bool) {
			var items []item.Item
			for range rapid.IntRange(0, 2).Draw(t, "calls") {
				n++
				items = append(items, item.Must(&item.Reasoning{ID: fmt.Sprintf("rs_%d", n)}), call(fmt.Sprintf("c%d", n%3), rapid.SampledFrom([]string{"get", "peek"}).Draw(t, "tool"), text("arguments")))
			}
			if len(items) == 0 || rapid.Bool().Draw(t, "says") {
				items = append(items, item.Assistant(text("reply")))
			}
			speak(yield, fmt.Sprintf("resp_%d", n), items...)
		})}
		store := new(session.Memory)
		open := func() *session.Session {
			s, err := session.Open(context.Background(), store, "s")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		for range rapid.IntRange(1, 6).Draw(t, "runs") {
			said := item.User(text("input"))
			if rapid.Bool().Draw(t, "whole") {
				res, err := a.Run(context.Background(), open(), said)
				if (res.Why == agent.StopVetoed) != (err != nil) || res.Tripwire != nil != errors.As(err, new(*agent.Tripwire)) {
					t.Fatalf("%+v, %v", res, err)
				}
				continue
			}
			if _, err := open().Append(context.Background(), session.InputItem{Item: said}); err != nil {
				t.Fatal(err)
			}
			for range 40 { // each step in another process
				effect, err := a.Step(context.Background(), open())
				if stop, ok := effect.(plan.Stop); ok {
					if (stop.Why == agent.StopVetoed) != (err != nil) {
						t.Fatalf("%+v, %v", stop, err)
					}
					break
				}
				if err != nil || effect == nil {
					t.Fatalf("%+v, %v", effect, err)
				}
			}
		}
		// What a guard objected to, and is in the log as withdrawn.
		s, gone := open(), map[item.Item]bool{}
		withdrawn := map[int64]bool{}
		for e := range s.Entries() {
			if b, ok := e.Body.(session.ItemsWithdrawn); ok {
				for _, seq := range b.Seqs {
					withdrawn[seq] = true
				}
			}
		}
		for e := range s.Entries() {
			switch b := e.Body.(type) {
			case session.InputItem:
				gone[b.Item] = gone[b.Item] || withdrawn[e.Seq]
			case session.OutputItem:
				gone[b.Item] = gone[b.Item] || withdrawn[e.Seq]
			}
		}
		fails, model.replies = false, []any{[]item.Item{item.Assistant("the end")}}
		first := len(model.asked)
		var trips int
		for { // what is left over is judged first
			res, err := a.Run(context.Background(), open(), item.User("go on"))
			if err == nil && res.Text == "the end" {
				break
			}
			if trips++; err == nil || trips > 5 {
				t.Fatalf("%+v, %v", res, err)
			}
		}
		for _, req := range model.asked[first:] {
			var last []item.Item
			for _, it := range req.Input.All() {
				if last = append(last, it); gone[it] {
					t.Fatalf("it is sent again: %s", it.JSON())
				}
				if it.Role() == item.RoleUser && input.First && a.Guards[0].Input != nil && noBombs(it) != nil {
					t.Fatalf("no guard read it: %s", it.JSON())
				}
			}
			if err := agenttest.CheckPairing(last...); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A compaction sends input to a model, so it waits for all guards. G2
func TestGuardsBeforeCompaction(t *testing.T) {
	model := &memory{replies: []any{[]item.Item{item.Assistant("fine")}}}
	a := &agent.Agent{Model: model}
	s := session.New()
	for range 3 {
		if _, err := a.Run(t.Context(), s, item.User(strings.Repeat("many words ", 100))); err != nil {
			t.Fatal(err)
		}
	}
	a.Guards = []agent.Guard{{Name: "police", Input: judge}}
	if _, err := s.Append(t.Context(), session.InputItem{Item: item.User("a bomb")}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Compact(t.Context(), s); !errors.As(err, new(*agent.Tripwire)) {
		t.Error(err)
	}
	a.Compaction.At, a.Compaction.Keep = 1, 1 // the run compacts before it asks
	if _, err := a.Run(t.Context(), s, item.User("another bomb")); !errors.As(err, new(*agent.Tripwire)) {
		t.Error(err)
	}
	if err := noBombs(history(s)...); err != nil || len(model.asked) != 3 {
		t.Errorf("%v, %d requests", err, len(model.asked))
	}
	if _, err := a.Run(t.Context(), s, item.User("hello")); err != nil {
		t.Error(err)
	}
	for _, req := range model.asked {
		if err := noBombs(itemsOf(req.Input)...); err != nil {
			t.Errorf("sent: %v", err)
		}
	}
}

// The event of an objection has a JSON form, also if the guard's value has none. G2
func TestGuardEvent(t *testing.T) {
	schema, _ := eventSchema(t)
	for _, value := range []any{nil, "seven", map[string]any{"violence": 0.5}, make(chan int)} {
		ev := agent.Progress{Kind: agent.ProgressTripped, Turn: 1, Tripwire: &agent.Tripwire{Guard: "police", Stage: "input", Reason: "no", Value: value}}
		if _, ok := value.(chan int); !ok {
			checkEvents(t, schema, []agent.Event{ev}, map[string]bool{})
			continue
		}
		line, err := agent.AppendEvent(nil, ev)
		if err != nil || strings.Contains(string(line), "value") {
			t.Errorf("%s, %v", line, err)
		}
	}
}

// The guards of the first agent stay when the conversation is handed over, and the
// other agent's are added. G2 G7
func TestGuardsOfHandoff(t *testing.T) {
	for _, history := range []agent.HandoffHistory{"", session.BySummary} {
		other := &memory{replies: []any{[]item.Item{item.Assistant("billing here")}}}
		billing := &agent.Agent{Model: other, Guards: []agent.Guard{{Name: "theirs", Output: func(_ context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
			if strings.Contains(c.History.JSON(), "quiet") {
				return &agent.Tripwire{Reason: "quiet"}, nil
			}
			return nil, nil
		}}}}
		first := &memory{replies: []any{[]item.Item{item.Call("h", "transfer", "{}")}, []item.Item{item.Assistant("a summary")}}}
		a := &agent.Agent{Model: first, Handoffs: []agent.Handoff{{Name: "transfer", Agent: billing, History: history}}}
		a.Guards = []agent.Guard{{Name: "police", Input: judge}}
		s := session.New()
		if res, err := a.Run(t.Context(), s, item.User("money")); err != nil || res.Text != "billing here" {
			t.Fatalf("%+v, %v", res, err)
		}
		for text, by := range map[string]string{"a bomb": "police", "quiet": "theirs"} {
			if res, err := a.Run(t.Context(), s, item.User(text)); err == nil || res.Guard != by {
				t.Errorf("%q, %s: %+v, %v", history, text, res, err)
			}
		}
	}
}

// What a run is given was answered by nobody, whatever the caller puts behind it: a
// guard reads the messages before an assistant's message or a call, too. Messages with a
// reply that a program appended between runs are history. G2
func TestGuardReadsAllInput(t *testing.T) {
	output := func(text string) item.Item {
		it, err := item.Output("c1", item.Text(text))
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	for _, c := range []struct {
		name      string
		appended  []item.Item
		undecided bool // for the input, in a first run
		input     []item.Item
		more      []item.Item // appended after the first run
		text      string      // what the guard reads
		harmless  bool
	}{
		{name: "before a reply", input: []item.Item{item.User("a bomb"), item.Assistant("Sure."), item.User("go on")}, text: "a bomb\ngo on"},
		{name: "before a call", input: []item.Item{item.User("a bomb"), item.Call("c1", "get", `{"text":"x"}`), output("x")}, text: "a bomb\nx"},
		{name: "an output", input: []item.Item{item.User("fine"), item.Call("c1", "get", `{"text":"x"}`), output("a bomb"), item.Assistant("Sure."), item.User("go on")}, text: "fine\na bomb\ngo on"},
		{name: "history", appended: []item.Item{item.User("a bomb"), item.Assistant("No.")}, input: []item.Item{item.User("hello")}, text: "hello", harmless: true},
		{
			name: "a reply appended after a run", undecided: true, input: []item.Item{item.User("a bomb")},
			more: []item.Item{item.Assistant("Sure."), item.User("go on")}, text: "a bomb\ngo on",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := guardedRig(t, agent.Hooks{}, agenttest.Completed(item.Assistant("hi")))
			r.agent.Hooks = nil
			read, undecided := "", c.undecided
			r.agent.Guards = []agent.Guard{{Name: "police", First: true, ToolOutputs: true, Input: func(ctx context.Context, g *agent.GuardCall) (*agent.Tripwire, error) {
				if undecided {
					return nil, errors.New("not now")
				}
				read = g.Text()
				return judge(ctx, g)
			}}}
			appendItems(t, r.session, c.appended)
			res, err := r.agent.Run(t.Context(), r.session, c.input...)
			if c.undecided {
				undecided = false
				appendItems(t, r.session, c.more)
				res, err = r.agent.Run(t.Context(), r.session)
			}
			if read != c.text || (err == nil) != c.harmless || (len(r.server.Requests()) > 0) != c.harmless {
				t.Errorf("the guard read %q; %d requests; %s, %v", read, len(r.server.Requests()), res.Why, err)
			}
		})
	}
}

func appendItems(t *testing.T, s *session.Session, items []item.Item) {
	t.Helper()
	for _, it := range items {
		if _, err := s.Append(t.Context(), session.InputItem{Item: it}); err != nil {
			t.Fatal(err)
		}
	}
}

// The guards of the agent that gets the conversation are asked about all of the history
// that it gets, before its model reads it; also by the next process. They are not asked
// about it again after the agent has answered. G2 G7
func TestGuardsReadWhatIsHandedOver(t *testing.T) {
	for _, history := range []agent.HandoffHistory{"", session.ByDropping, session.BySummary} {
		for _, first := range []bool{true, false} {
			for _, bad := range []string{"a bomb", "a bill"} {
				t.Run(fmt.Sprintf("%q first %v %s", history, first, bad), func(t *testing.T) {
					d := newDesk(t)
					var read []string
					d.bills.Guards = []agent.Guard{{Name: "own", First: first, Input: func(ctx context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
						read = append(read, c.Text())
						if len(read) == 1 {
							return nil, errors.New("not now")
						}
						return judge(ctx, c)
					}}}
					d.agent.Handoffs[0].History = history
					appendItems(t, d.session, []item.Item{item.User(bad), item.Assistant("Yes?")})
					if _, err := d.agent.Run(t.Context(), d.session, item.User("pay")); err == nil {
						t.Fatal("the guard was not asked")
					}
					d.reopen()
					res, err := d.agent.Run(t.Context(), d.session, item.User("now"))
					want := []string{bad + "\npay", bad + "\npay\nnow"}
					if bad == "a bomb" {
						if err == nil || res.Guard != "own" {
							t.Errorf("%+v, %v", res, err)
						}
					} else {
						if err != nil || res.Text != "Paid." {
							t.Errorf("%+v, %v", res, err)
						}
						d.run(item.User("thanks"))
						want = append(want, "thanks")
					}
					if diff := cmp.Diff(want, read); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// G2: a reply that no guard has judged, because the process ended, is judged by the next
// run, whatever another program appended meanwhile; its calls do not run before.
func TestGuardAfterEntriesOfOthers(t *testing.T) {
	for name, more := range map[string]session.Body{
		"input":     session.InputItem{Item: item.User("hello?")},
		"words":     session.InputItem{Item: item.Developer("note")},
		"a stop":    session.StopAsked{Why: string(agent.StopRequested), AfterTurn: true},
		"compacted": session.Compacted{},
		"asked":     session.ApprovalAsked{CallID: "c1", Number: 1, Tool: "echo"},
		"a notice":  session.Noticed{Kind: "of a newer program"},
	} {
		for _, steps := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", steps ", steps), func(t *testing.T) {
				r := newRig(t)
				r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("next")) })
				ran, asked := 0, 0
				r.agent.Tools = []tool.Tool{tool.Must("echo", "", func(context.Context, struct{}) (string, error) { ran++; return "", nil }, tool.ReadOnly())}
				r.agent.Guards = []agent.Guard{{Name: "out", Output: func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) {
					asked++
					return &agent.Tripwire{Reason: "no"}, nil
				}}}
				_, err := r.session.Append(t.Context(), session.RunStarted{}, session.InputItem{Item: item.User("hi")}, session.TurnStarted{Turn: 1},
					session.OutputItem{Turn: 1, Item: item.Call("c1", "echo", "{}")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted}, more)
				if err != nil {
					t.Fatal(err)
				}
				r.reopen()
				if steps {
					_, err = r.agent.Step(t.Context(), r.session)
				} else {
					_, err = r.agent.Run(t.Context(), r.session)
				}
				if ran > 0 || asked == 0 {
					t.Errorf("the guard was asked %d times, and %d calls ran: %v", asked, ran, err)
				}
			})
		}
	}
}

// A reply that no guard has judged, because the process ended before, is judged before
// its calls run, whatever another program appends to the log or an imported log
// claims. G2 K5
func TestGuardsJudgeWhatWasLeft(t *testing.T) {
	judged := session.Noticed{Kind: session.NoticeJudged, Text: "the hooks have seen the reply"}
	for _, c := range []struct {
		name     string
		more     []session.Body
		imported bool
		ran      int
	}{
		{name: "nothing"},
		{name: "input", more: []session.Body{session.InputItem{Item: item.User("hello?")}}},
		{name: "instructions", more: []session.Body{session.InputItem{Item: item.Developer("note")}}},
		{name: "stop", more: []session.Body{session.StopAsked{Why: "stop_requested", AfterTurn: true}}},
		{name: "compaction", more: []session.Body{session.Compacted{}}},
		{name: "judged by a step", more: []session.Body{judged}, ran: 1},
		{name: "judged, as an import says", more: []session.Body{judged}, imported: true},
		{name: "stopped, as an import says", more: []session.Body{session.Stopped{Why: "answered"}}, imported: true},
		{name: "dropped, as an import says", more: []session.Body{session.CallDropped{CallID: "c9", Reason: "x"}}, imported: true},
		{name: "another withdrawn, as an import says", more: []session.Body{session.ItemsWithdrawn{Seqs: []int64{2}, By: "police"}}, imported: true},
		{name: "resumed, as an import says", more: []session.Body{session.RunStarted{Resumes: true}}, imported: true},
	} {
		for _, step := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, step), func(t *testing.T) {
				r := newRig(t)
				r.server.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("next")) })
				ran := 0
				r.agent.Tools = []tool.Tool{textTool("get", func(context.Context, string) (string, error) { ran++; return "got", nil }, tool.ReadOnly())}
				r.agent.Guards = []agent.Guard{{Name: "police", Output: func(_ context.Context, g *agent.GuardCall) (*agent.Tripwire, error) {
					if slices.ContainsFunc(g.Items, item.Item.IsCall) {
						return &agent.Tripwire{Reason: "no calls"}, nil
					}
					return nil, nil
				}}}
				log := append([]session.Body{
					session.RunStarted{}, session.InputItem{Item: item.User("hi")}, session.TurnStarted{Turn: 1},
					session.OutputItem{Turn: 1, Item: call("c1", "get", "x")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
				}, c.more...)
				var d agent.Disarm
				for i, b := range log {
					d.Learn(session.Entry{Seq: int64(i + 1), Body: b})
				}
				for i, b := range log {
					if c.imported {
						e, _ := d.Entry(session.Entry{Seq: int64(i + 1), Body: b})
						log[i] = e.Body
					}
				}
				if c.imported {
					log = append(log, session.Noticed{Kind: session.NoticeImported, Text: "imported"})
				}
				if _, err := r.session.Append(t.Context(), log...); err != nil {
					t.Fatal(err)
				}
				r.reopen()
				var err error
				if step {
					for range 4 {
						if _, err = r.agent.Step(t.Context(), r.session); err != nil {
							break
						}
					}
				} else {
					_, err = r.agent.Run(t.Context(), r.session)
				}
				if ran != c.ran || (err == nil) != (c.ran > 0) {
					t.Errorf("it ran %d times, %d requests: %v", ran, len(r.server.Requests()), err)
				}
			})
		}
	}
}

// K5: an imported log decides neither which model is asked nor that lost entries do
// not matter, and a kind of notice that this version does not know decides nothing.
func TestDisarmDropsNoticesThatDecide(t *testing.T) {
	for kind, stays := range map[string]bool{
		session.NoticeHandoff: false, session.NoticeFallback: false, session.NoticeJudged: false, session.NoticeGapsAccepted: false, "new": false,
		session.NoticeEntryLost: true, session.NoticeNotJudged: true, session.NoticeTextDiffers: true, session.NoticeUnfit: true,
	} {
		var d agent.Disarm
		e := session.Entry{Seq: 1, Body: session.Noticed{Kind: kind, Text: "x"}}
		d.Learn(e)
		kept, dropped := d.Entry(e)
		if (kept.Body == e.Body) != stays || (len(dropped) == 0) != stays {
			t.Errorf("%s: %+v, %q", kind, kept.Body, dropped)
		}
	}
}

// K5: the receipt of a delivery is not imported, since its key would stop a delivery here, and the
// line about it says what it was. Where an earlier import began is not listed: this one is about all.
func TestDisarmDropsReceipts(t *testing.T) {
	for want, b := range map[string]session.Body{
		`the receipt "k" of a delivery of "root" by "sessions say"; what was delivered stays`: session.Delivered{Key: "k", By: "root", From: "sessions say", Entries: 1},
		`the receipt "k" of a delivery, which could not be used: it is over`:                  session.Delivered{Key: "k", Problem: "it is over"},
		"where an earlier import began":                                                       session.Noticed{Kind: session.NoticeImportBegins, Text: "x"},
	} {
		var d agent.Disarm
		e := session.Entry{Seq: 1, Body: b}
		d.Learn(e)
		kept, dropped := d.Entry(e)
		notice, ok := kept.Body.(session.Noticed)
		_, receipt := b.(session.Delivered)
		if !ok || notice.Kind != session.NoticeDisarmed || notice.Text != "dropped by the import: "+want || receipt != (len(dropped) == 1 && dropped[0] == want) {
			t.Errorf("%+v, %q", kept.Body, dropped)
		}
	}
}

// A guard whose context has ended has not agreed, also if it says so at once: what it asks, such as a
// server, may have been cut short. G2
func TestGuardAgreesTooLate(t *testing.T) {
	late := func(ctx context.Context, _ *agent.GuardCall) (*agent.Tripwire, error) {
		<-ctx.Done()
		return nil, nil
	}
	for name, g := range map[string]agent.Guard{
		"input":  {Name: "late", First: true, Input: late, Timeout: time.Millisecond},
		"beside": {Name: "late", Input: late, Timeout: time.Millisecond},
		"output": {Name: "late", Hold: true, Output: late, Timeout: time.Millisecond},
	} {
		a := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("not judged")}}}, Guards: []agent.Guard{g}}
		events, err := drain(a.Start(session.New(), item.User("hi")).Events(t.Context()))
		if err == nil || !strings.Contains(err.Error(), "did not answer within 1ms") {
			t.Errorf("%s: %v", name, err)
		}
		for _, ev := range events {
			if d, ok := ev.(agent.Delta); ok {
				t.Errorf("%s: %q is shown", name, d.Text)
			}
		}
	}
}

// A nil *Tripwire that a guard returns as its error is named: it neither agrees nor objects. G8
func TestGuardReturnsNilTripwireAsError(t *testing.T) {
	g := agent.Guard{Name: "odd", First: true, Input: func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) {
		var none *agent.Tripwire
		return nil, none
	}}
	res, err := (&agent.Agent{Model: &memory{}, Guards: []agent.Guard{g}}).Run(t.Context(), session.New(), item.User("hi"))
	if res.Why != agent.StopVetoed || err == nil || !strings.Contains(err.Error(), "a nil *agent.Tripwire") {
		t.Errorf("%v, %v", res.Why, err)
	}
}
