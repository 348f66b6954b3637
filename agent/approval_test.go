// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// pausing is a rig whose model reads, writes twice and then is done.
func pausing(t *testing.T) (*rig, *ledger) {
	r := newRig(t)
	r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
		if strings.Contains(string(req.Body), `"w1"`) {
			return agenttest.Completed(item.Assistant("done"))
		}
		return agenttest.Completed(call("w1", "write", "one"), call("r1", "read", "r"), call("w2", "write", "two"))
	})
	l := new(ledger)
	r.agent.Tools = []tool.Tool{l.tool("write"), l.tool("read", tool.ReadOnly())}
	r.agent.Policy = agent.Policy{Pause: true}
	return r, l
}

// through is the value after a day in a file.
func through[T any](t *testing.T, v T) (back T) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, back); diff != "" {
		t.Fatalf("(-before +after):\n%s", diff)
	}
	return back
}

// L7 A4: siblings that need nobody run, the run stops, what waits is a value;
// another process answers, and the next run goes on.
func TestPauseAndDecide(t *testing.T) {
	r, l := pausing(t)
	run := r.agent.Start(r.session, item.User("go"))
	events, err := drain(run.Events(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	stopped := run.Result()
	waiting := progressOf(events, agent.ProgressWaiting)
	if stopOf(t, events).Why != string(agent.StopApprovalPending) || stopped.Why != agent.StopApprovalPending || len(stopped.Pending) != 2 || len(waiting) != 2 || len(told[session.ApprovalAsked](events)) != 2 {
		t.Fatalf("stopped: %+v", stopped)
	}
	if diff := cmp.Diff(map[string]int{"r": 1}, l.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	r.reopen()
	wanted, err := agent.PendingApprovals(t.Context(), r.session)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stopped.Pending, []agent.PendingApproval{*waiting[0].Pending, *waiting[1].Pending}); diff != "" {
		t.Errorf("at the end and told (-end +told):\n%s", diff)
	}
	if diff := cmp.Diff(stopped.Pending, through(t, wanted)); diff != "" {
		t.Errorf("told and in the log (-told +log):\n%s", diff)
	}
	if p := wanted[0]; p.Session != "s" || p.CallID != "w1" || p.Tool != "write" || p.Arguments != `{"text":"one"}` || p.Reason == "" || len(p.Rules) != 2 {
		t.Errorf("pending: %+v", p)
	}
	// Nobody answered: it stops again, without a request.
	if res := r.run(); res.Why != agent.StopApprovalPending || len(res.Pending) != 2 || res.Turns != 0 {
		t.Fatalf("then: %+v", res)
	}
	yes := through(t, agent.Decision{Number: wanted[0].Number, CallID: "w1", Allow: true, Arguments: `{"text":"eins"}`, By: "me"})
	no := through(t, agent.Decision{CallID: "w2", Reason: "not two"})
	if err := agent.Decide(t.Context(), r.session, yes, no); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	if again, err := agent.PendingApprovals(t.Context(), r.session); err != nil || len(again) > 0 {
		t.Errorf("still wanted: %v, %v", again, err)
	}
	if res := r.run(); res.Why != agent.StopEndTurn || res.Text != "done" {
		t.Fatalf("then: %+v", res)
	}
	if diff := cmp.Diff(map[string]int{"r": 1, "eins": 1}, l.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	want := []string{
		"user: go", `w1: write({"text":"one"})`, `r1: read({"text":"r"})`, `w2: write({"text":"two"})`,
		"w1 = Note: the arguments of this call were changed before it ran, to: {\"text\":\"eins\"}\n\neins", "r1 = r", "w2 = error: not two",
	}
	if diff := cmp.Diff(want, outline(r.last())); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// L7: an answer is given once. The same again is not an error, another is, and so
// is one that nobody waits for or that makes no sense. Of several, all or none
// are recorded.
func TestDecideRefuses(t *testing.T) {
	r, _ := pausing(t)
	r.run(item.User("go"))
	wanted, err := agent.PendingApprovals(t.Context(), r.session)
	if err != nil {
		t.Fatal(err)
	}
	number := wanted[0].Number
	entries := func() int { return len(r.session.Log()) }
	before := entries()
	for _, c := range []struct {
		name string
		d    agent.Decision
		want error
	}{
		{"unknown", agent.Decision{CallID: "w9", Allow: true}, agent.ErrNoSuchApproval},
		{"another call of the id", agent.Decision{CallID: "w1", Number: number + 1, Allow: true}, agent.ErrNoSuchApproval},
		{"ran already", agent.Decision{CallID: "r1", Allow: true}, agent.ErrDecided},
		{"another session", agent.Decision{Session: "else", CallID: "w1"}, agent.ErrNoSuchApproval},
		{"refused with arguments", agent.Decision{CallID: "w1", Arguments: "{}"}, agent.ErrMeaningless},
		{"no arguments", agent.Decision{CallID: "w1", Allow: true, Arguments: "[1]"}, agent.ErrMeaningless},
		{"later", agent.Decision{CallID: "w1", Later: true}, agent.ErrMeaningless},
		{"no rule", agent.Decision{CallID: "w1", Allow: true, Remember: &session.Rule{Verdict: "maybe", Tool: "write"}}, agent.ErrMeaningless},
	} {
		err := agent.Decide(t.Context(), r.session, agent.Decision{CallID: "w2", Allow: true}, c.d)
		if _, typed := errors.AsType[*agent.DecisionError](err); !typed || !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if c.d.Session == "" && entries() != before {
			t.Fatalf("%s: something was recorded", c.name)
		}
		before = entries()
	}
	yes := agent.Decision{Number: number, CallID: "w1", Allow: true, Remember: &session.Rule{Verdict: session.Allow, Tool: "write"}}
	for range 2 {
		if err := agent.Decide(t.Context(), r.session, yes); err != nil {
			t.Fatal(err)
		}
	}
	if entries() != before+1 {
		t.Errorf("%d entries for one answer", entries()-before)
	}
	if err := agent.Decide(t.Context(), r.session, agent.Decision{CallID: "w1"}); !errors.Is(err, agent.ErrDecided) {
		t.Errorf("another answer: %v", err)
	}
	r.run()
	// The same, after the run went on.
	if err := agent.Decide(t.Context(), r.session, yes); err != nil {
		t.Error(err)
	}
	if err := agent.Decide(t.Context(), r.session, agent.Decision{Number: number, CallID: "w1"}); !errors.Is(err, agent.ErrDecided) {
		t.Errorf("another answer afterwards: %v", err)
	}
}

// A5 L7: what is remembered holds for the session, in later processes too; deny
// over ask over allow, from all sources, and over edited arguments as well.
func TestRemember(t *testing.T) {
	allow := func(text ...string) *session.Rule {
		r := &session.Rule{Verdict: session.Allow, Tool: "write"}
		if len(text) > 0 {
			r.Member, r.Under = "text", text[0]
		}
		return r
	}
	for _, c := range []struct {
		name   string
		rule   *session.Rule
		policy agent.Policy
		edit   string
		ran    map[string]int
		waits  int
	}{
		{"this call", nil, agent.Policy{}, "", map[string]int{"docs/a": 1}, 2},
		{"the tool", allow(), agent.Policy{}, "", map[string]int{"docs/a": 1, "docs/b": 1, "src/c": 1}, 0},
		{"a prefix", allow("docs"), agent.Policy{}, "", map[string]int{"docs/a": 1, "docs/b": 1}, 1},
		{"a refusal", &session.Rule{Verdict: session.Deny, Tool: "write"}, agent.Policy{Allow: []string{"write"}}, "", map[string]int{}, 0},
		{"ask over remembered", allow(), agent.Policy{Ask: []string{"write"}}, "", map[string]int{"docs/a": 1}, 2},
		{"deny over remembered", allow(), agent.Policy{Rules: []session.Rule{{Verdict: session.Deny, Tool: "write", Member: "text", Under: "docs"}}}, "", map[string]int{"src/c": 1}, 0},
		{"deny over an edit", nil, agent.Policy{Rules: []session.Rule{{Verdict: session.Deny, Tool: "write", Member: "text", Under: "etc"}}}, "etc/x", map[string]int{}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, agenttest.Completed(call("a", "write", "docs/a"), call("b", "write", "docs/b"), call("c", "write", "src/c")), agenttest.Completed(item.Assistant("done")))
			l := &ledger{ran: map[string]int{}}
			r.agent.Tools = []tool.Tool{l.tool("write")}
			r.agent.Policy = agent.Policy{Pause: true}
			r.run(item.User("go"))
			d := agent.Decision{CallID: "a", Allow: true, Remember: c.rule}
			if c.edit != "" {
				d.Arguments = `{"text":"` + c.edit + `"}`
			}
			if err := agent.Decide(t.Context(), r.session, d); err != nil {
				t.Fatal(err)
			}
			r.reopen()
			c.policy.Pause = true
			r.agent.Policy = c.policy
			res := r.run()
			if diff := cmp.Diff(c.ran, l.ran); diff != "" {
				t.Errorf("ran (-want +got):\n%s", diff)
			}
			if len(res.Pending) != c.waits {
				t.Errorf("%d calls wait, want %d: %+v", len(res.Pending), c.waits, res)
			}
		})
	}
}

// A5: an approver of flesh and blood edits, remembers, and puts off.
func TestApproverAnswersInFull(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("a", "write", "a"), call("b", "write", "b"), call("c", "other", "c")), agenttest.Completed(item.Assistant("done")))
	l := new(ledger)
	r.agent.Tools = []tool.Tool{l.tool("write"), l.tool("other")}
	asked := 0
	r.agent.Policy = agent.Policy{Approver: func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
		c := q.Call
		asked++
		if c.Name == "other" {
			return agent.Decision{Later: true}, nil
		}
		return agent.Decision{Allow: true, By: "me", Arguments: `{"text":"A"}`, Remember: &session.Rule{Verdict: session.Allow, Tool: "write"}}, nil
	}}
	res := r.run(item.User("go"))
	if asked != 2 || res.Why != agent.StopApprovalPending || len(res.Pending) != 1 || res.Pending[0].CallID != "c" {
		t.Errorf("asked %d times: %+v", asked, res)
	}
	if diff := cmp.Diff(map[string]int{"A": 1, "b": 1}, l.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
}

// L7 T13: an approver learns that a call will not run, because its arguments do not fit.
func TestApproverLearnsOfMisfit(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Call("a", "write", `{"text":"a"}`), item.Call("b", "write", `{"words":"b"}`)), agenttest.Completed(item.Assistant("done")))
	l := new(ledger)
	r.agent.Tools = []tool.Tool{l.tool("write")}
	problems := map[string]string{}
	r.agent.Policy = agent.Policy{Approver: func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
		problems[q.Call.ID] = q.Problem
		return agent.Decision{Allow: true}, nil
	}}
	r.run(item.User("go"))
	if problems["a"] != "" || !strings.Contains(problems["b"], `missing member "text"`) || len(l.ran) != 1 {
		t.Errorf("told %q, ran %v", problems, l.ran)
	}
}

// A4: without Pause a run that has nobody to ask refuses at once, also what a
// run before it let wait.
func TestFailsClosedAfterPause(t *testing.T) {
	r, l := pausing(t)
	r.run(item.User("go"))
	r.agent.Policy = agent.Policy{Hint: useAllow}
	if res := r.run(); res.Why != agent.StopEndTurn || res.RefusedCalls != 2 || len(l.ran) != 1 {
		t.Errorf("got %+v, ran %v", res, l.ran)
	}
	contains(t, outputs(r.last())["w1"], "nobody to give it", "Use --allow write.")
}

// L5 L7: what is said meanwhile waits for the outputs.
func TestSayWhileItWaits(t *testing.T) {
	r, _ := pausing(t)
	r.run(item.User("go"))
	if res := r.run(item.User("hurry")); res.Why != agent.StopApprovalPending {
		t.Fatalf("got %+v", res)
	}
	if err := agent.Decide(t.Context(), r.session, agent.Decision{CallID: "w1"}, agent.Decision{CallID: "w2"}); err != nil {
		t.Fatal(err)
	}
	r.run()
	got := outline(r.last())
	want := []string{"w1 = error: The call was refused by the person in charge. Nothing was done.", "r1 = r", "w2 = error: The call was refused by the person in charge. Nothing was done.", "user: hurry"}
	if diff := cmp.Diff(want, got[len(got)-4:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// L7 J1: a crash after any entry of a run that pauses and goes on. What was
// asked stays asked or is asked again, and nothing runs twice.
func TestCrashWhileItWaits(t *testing.T) {
	whole, _ := pausing(t)
	whole.run(item.User("go"))
	if err := agent.Decide(t.Context(), whole.session, agent.Decision{CallID: "w1", Allow: true, Arguments: `{"text":"eins"}`}, agent.Decision{CallID: "w2"}); err != nil {
		t.Fatal(err)
	}
	whole.run()
	log := whole.session.Log()
	for n := 2; n <= len(log); n++ {
		r, l := pausing(t)
		l.ran = map[string]int{}
		for _, e := range log[:n] {
			if b, ok := e.Body.(session.CallStarted); ok {
				l.ran[map[string]string{"w1": "eins", "r1": "r"}[b.CallID]]++
			}
		}
		if err := r.store.Append(t.Context(), "s", 0, log[:n]); err != nil {
			t.Fatal(err)
		}
		r.reopen()
		res, err := r.agent.Run(t.Context(), r.session, item.User("go on"))
		for err == nil && res.Why == agent.StopApprovalPending {
			for _, p := range res.Pending {
				if err := agent.Decide(t.Context(), r.session, agent.Decision{Number: p.Number, CallID: p.CallID, Allow: p.CallID == "w1", Arguments: map[string]string{"w1": `{"text":"eins"}`}[p.CallID]}); err != nil {
					t.Fatalf("after entry %d: %v", n, err)
				}
			}
			res, err = r.agent.Run(t.Context(), r.session)
		}
		if err != nil || res.Why != agent.StopEndTurn {
			t.Fatalf("after entry %d: %+v, %v", n, res, err)
		}
		r.inputs()
		for text, times := range l.ran {
			if times > 1 || text == "two" || text == "one" {
				t.Errorf("after entry %d: %s ran %d times", n, text, times)
			}
		}
	}
}

// L7 T13: arguments that somebody put instead of the model's and that do not fit
// are not held against the model.
func TestEditedArgumentsDoNotFit(t *testing.T) {
	const wrong = `{"txt":1}`
	for name, set := range map[string]func(a *agent.Agent){
		"verdict": func(a *agent.Agent) {
			a.Policy = agent.Policy{Approver: approver(agent.Decision{Allow: true, Arguments: wrong}, nil)}
		},
		"decision": func(a *agent.Agent) { a.Policy = agent.Policy{Pause: true} },
		"hook": func(a *agent.Agent) {
			a.Hooks = []agent.Hooks{{BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
				c.Call.Arguments = wrong
				return ctx, nil
			}}}
		},
	} {
		r := newRig(t, agenttest.Completed(call("w", "write", "one")), agenttest.Completed(item.Assistant("done")))
		l := new(ledger)
		r.agent.Tools = []tool.Tool{l.tool("write")}
		set(r.agent)
		if res := r.run(item.User("go")); res.Why == agent.StopApprovalPending {
			if err := agent.Decide(t.Context(), r.session, agent.Decision{CallID: "w", Allow: true, Arguments: wrong}); err != nil {
				t.Fatal(err)
			}
			r.run()
		}
		out := outputs(r.last())["w"]
		if !strings.HasPrefix(out, "error: The arguments of this call were changed before it could run, and what they were changed to does not fit: "+wrong) || len(l.ran) > 0 {
			t.Errorf("%s: %q, ran %v", name, out, l.ran)
		}
	}
}

// A decision reaches a run that is nested in a nested one.
func TestDecideDeepInside(t *testing.T) {
	store := new(session.Memory)
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	deep := s
	for _, id := range []string{"", "x", "y"} {
		if id != "" {
			if deep, err = deep.Nested(t.Context(), session.SubsessionID(deep.ID(), 1, id)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := deep.Append(t.Context(), session.RunStarted{}, session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: item.Call("c", "f", "{}")},
			session.TurnEnded{Turn: 1, Status: item.StatusCompleted}, session.ApprovalAsked{CallID: "c", Tool: "f", Arguments: "{}"})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := agent.Decide(t.Context(), s, agent.Decision{Session: deep.ID(), CallID: "c", Allow: true}); err != nil {
		t.Fatal(err)
	}
	again, err := session.Open(t.Context(), store, deep.ID())
	if err != nil {
		t.Fatal(err)
	}
	if log := again.Log(); len(log) != 6 || !log[5].Body.(session.Approval).Allowed {
		t.Errorf("%d entries", len(log))
	}
}

// What a caller appends to the result so far stays, though the run goes on.
func TestResultSoFar(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c1", "echo", "a")), agenttest.Completed(call("c2", "echo", "b")), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{echo(tool.ReadOnly())}
	run := r.agent.Start(r.session, item.User("x"))
	var kept [][]item.Item
	for _, err := range run.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, append(run.Result().Items, item.User("of the caller")))
	}
	for _, items := range kept {
		if text := items[len(items)-1].JSON(); !strings.Contains(text, "of the caller") {
			t.Errorf("the run wrote over what its caller appended: %s", text)
		}
	}
}
