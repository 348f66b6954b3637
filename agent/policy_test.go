// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// useAllow is the hint of a program that has such a flag.
func useAllow(tool string) string { return "Use --allow " + tool + "." }

func approver(v agent.Decision, err error) agent.Approver {
	return func(context.Context, agent.ApprovalRequest) (agent.Decision, error) { return v, err }
}

// A5 A4: one set of rules; deny over ask over allow; with no rule reading runs
// and writing asks; with nobody to ask, no.
func TestPolicy(t *testing.T) {
	yes, no := approver(agent.Decision{Allow: true}, nil), approver(agent.Decision{Reason: "not today"}, nil)
	for _, c := range []struct {
		name        string
		policy      agent.Policy
		read, write string // the output, or what the error begins with
		unasked     bool
	}{
		{"no rule", agent.Policy{}, "done", "The call was refused: write needs an approval and there is nobody to give it. Nothing was done.", true},
		{"hint", agent.Policy{Hint: useAllow}, "done", "The call was refused: write needs an approval and there is nobody to give it. Nothing was done. Use --allow write.", true},
		{"allow", agent.Policy{Allow: []string{"write"}}, "done", "done", false},
		{"allow another", agent.Policy{Allow: []string{"writ", "rite"}}, "done", "The call was refused: write needs", true},
		{"allow by pattern", agent.Policy{Allow: []string{"w*"}}, "done", "done", false},
		{"deny", agent.Policy{Deny: []string{"*"}}, "The call was refused: a rule denies read.", "The call was refused: a rule denies write.", false},
		{"deny over allow", agent.Policy{Allow: []string{"*"}, Deny: []string{"write"}}, "done", "The call was refused: a rule denies write.", false},
		{"deny over ask", agent.Policy{Ask: []string{"*"}, Deny: []string{"write"}, Approver: yes}, "done", "The call was refused: a rule denies write.", false},
		{"ask over allow", agent.Policy{Allow: []string{"*"}, Ask: []string{"*"}, Approver: no}, "not today", "not today", false},
		{"ask over reading", agent.Policy{Ask: []string{"read"}}, "The call was refused: read needs an approval", "The call was refused: write needs", true},
		{"approved", agent.Policy{Approver: yes}, "done", "done", false},
		{"refused", agent.Policy{Approver: no}, "done", "not today", false},
		{"refused in silence", agent.Policy{Approver: approver(agent.Decision{}, nil)}, "done", "The call was refused by the person in charge. Nothing was done.", false},
		{"refused by an error", agent.Policy{Approver: approver(agent.Decision{Allow: true}, errors.New("no line"))}, "done", "The call was refused: no approval could be got: no line. Nothing was done.", false},
		{"nobody to ask", agent.Policy{Approver: approver(agent.Decision{Allow: true}, agent.ErrNobody)}, "done", "The call was refused: write needs an approval and there is nobody to give it. Nothing was done.", true},
		{"nobody to ask, hint", agent.Policy{Approver: approver(agent.Decision{}, fmt.Errorf("no line: %w", agent.ErrNobody)), Hint: useAllow}, "done", "The call was refused: write needs an approval and there is nobody to give it. Nothing was done. Use --allow write.", true},
		{"a reason that is not text", agent.Policy{Approver: approver(agent.Decision{Reason: "no\xff\x00way"}, nil)}, "done", "no\uFFFD\uFFFDway", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, agenttest.Completed(call("r", "read", ""), call("w", "write", "")), agenttest.Completed(item.Assistant("I see")))
			ran := map[string]bool{}
			act := func(name string) func(context.Context, string) (string, error) {
				return func(context.Context, string) (string, error) { ran[name] = true; return "done", nil }
			}
			r.agent.Parallel = 1
			r.agent.Tools = []tool.Tool{textTool("read", act("read"), tool.ReadOnly()), textTool("write", act("write"))}
			r.agent.Policy = c.policy
			events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("go")))
			if err != nil {
				t.Fatal(err)
			}
			got := outputs(r.last())
			for id, want := range map[string]string{"r": c.read, "w": c.write} {
				if out := strings.TrimPrefix(got[id], "error: "); !strings.HasPrefix(out, want) {
					t.Errorf("%s: got %q, want %q", id, got[id], want)
				}
			}
			if ran["read"] != (c.read == "done") || ran["write"] != (c.write == "done") {
				t.Errorf("ran: %v", ran)
			}
			unasked := len(progressOf(events, agent.ProgressUnapproved)) > 0
			if unasked != c.unasked {
				t.Errorf("refused for want of an approver: %v, want %v", unasked, c.unasked)
			}
		})
	}
}

// A5 P5: the approver gets the call as the model made it, one at a time, and
// calls of a name that no tool has are not its business.
func TestApproverIsAsked(t *testing.T) {
	type asked struct {
		ID, Name, Arguments string
		Exclusive           bool
	}
	var got []asked
	r := newRig(t, agenttest.Completed(
		item.Must(&item.FunctionCall{ID: "fc_1", CallID: "call_1", Name: "write", Arguments: `{"text": "a"}`}), call("call_2", "write", "b"), call("call_3", "nobody", ""),
	), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{textTool("write", func(_ context.Context, s string) (string, error) { return s, nil }, tool.Exclusive())}
	r.agent.Policy = agent.Policy{Approver: func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
		c, annotations := q.Call, q.Annotations
		got = append(got, asked{c.ID, c.Name, c.Arguments, annotations.Exclusive})
		return agent.Decision{Allow: c.ID == "call_2", Reason: "not this"}, nil
	}}
	res := r.run(item.User("go"))
	want := []asked{{"call_1", "write", `{"text": "a"}`, true}, {"call_2", "write", `{"text":"b"}`, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if res.RefusedCalls != 1 || res.Calls != 2 {
		t.Errorf("result: %+v", res)
	}
	out := outputs(r.last())
	if out["call_1"] != "error: not this" || out["call_2"] != "b" {
		t.Errorf("outputs: %v", out)
	}
}

// A5: a verdict is for one call. Another call with the same id, in the same
// reply or a later one, does not inherit it.
func TestVerdictIsForOneCall(t *testing.T) {
	r := newRig(t,
		agenttest.Completed(call("c", "write", "denied"), call("c", "write", "allowed"), call("c", "write", "denied too")),
		agenttest.Completed(call("c", "write", "denied again")),
		agenttest.Completed(item.Assistant("done")))
	l := new(ledger)
	r.agent.Tools = []tool.Tool{l.tool("write")}
	r.agent.Policy = agent.Policy{Approver: func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
		c := q.Call
		return agent.Decision{Allow: strings.Contains(c.Arguments, `"allowed"`)}, nil
	}}
	r.run(item.User("go"))
	if diff := cmp.Diff(map[string]int{"allowed": 1}, l.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	r.inputs()
}

// L6: an approver that gives up because the run was cancelled has not refused
// anything: the call was not started, and may be approved in the next run.
func TestCancelWhileAsking(t *testing.T) {
	r := newRig(t, agenttest.Completed(call("c", "write", "x")), agenttest.Completed(item.Assistant("done")))
	l := new(ledger)
	r.agent.Tools = []tool.Tool{l.tool("write")}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.agent.Policy = agent.Policy{Approver: func(ctx context.Context, _ agent.ApprovalRequest) (agent.Decision, error) {
		cancel()
		return agent.Decision{}, ctx.Err()
	}}
	if _, err := r.agent.Run(ctx, r.session, item.User("go")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for e := range r.session.Entries() {
		if _, ok := e.Body.(session.Approval); ok {
			t.Error("a verdict was recorded")
		}
	}
	r.reopen()
	r.run()
	contains(t, outputs(r.last())["c"], "not started")
}

// A verdict that was recorded before a crash holds.
func TestVerdictOutlivesCrash(t *testing.T) {
	r := newRig(t, agenttest.Completed(item.Assistant("done")))
	l := new(ledger)
	r.agent.Tools = []tool.Tool{l.tool("write")}
	r.agent.Policy = agent.Policy{Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
		t.Error("asked again")
		return agent.Decision{}, nil
	}}
	_, err := r.session.Append(t.Context(), session.RunStarted{}, session.InputItem{Item: item.User("go")}, session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: call("c1", "write", "x")}, session.OutputItem{Turn: 1, Item: call("c2", "write", "y")},
		session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
		session.Approval{CallID: "c1", Allowed: true}, session.Approval{CallID: "c2", Reason: "not this"})
	if err != nil {
		t.Fatal(err)
	}
	r.run()
	if got := outputs(r.last()); got["c1"] != "x" || got["c2"] != "error: not this" {
		t.Errorf("outputs: %v", got)
	}
}

// A call whose tool was unknown when its run was killed is not made by a run that knows the tool,
// because nobody was asked about it. A2
func TestUnknownToolIsKnownLater(t *testing.T) {
	before := newRig(t, agenttest.Completed(call("c1", "write", "x")), agenttest.Completed(item.Assistant("none")))
	before.run(item.User("go"))
	after := newRig(t, agenttest.Completed(item.Assistant("done")))
	for e := range before.session.Entries() {
		if _, err := after.session.Append(t.Context(), e.Body); err != nil {
			t.Fatal(err)
		}
		if _, ok := e.Body.(session.Approval); ok {
			break // it was killed here
		}
	}
	l := new(ledger)
	after.agent.Tools = []tool.Tool{l.tool("write")}
	after.run()
	if got := outputs(after.last()); !strings.Contains(got["c1"], "nobody was asked") || l.ran["x"] != 0 {
		t.Errorf("outputs: %v, ran %v", got, l.ran)
	}
}

// The error of a pattern names it.
func TestCheckPatterns(t *testing.T) {
	if err := plan.CheckPatterns("*", "read_*", "[ab]c"); err != nil {
		t.Error(err)
	}
	if err := plan.CheckPatterns("fine", "[a"); err == nil || !strings.Contains(err.Error(), `"[a"`) {
		t.Errorf("got %v", err)
	}
}

// L7 A4: an approver that finds nobody lets the call wait where that is wanted.
func TestNobodyToAskPauses(t *testing.T) {
	r, l := pausing(t)
	r.agent.Policy.Approver = approver(agent.Decision{}, agent.ErrNobody)
	res := r.run(item.User("go"))
	if res.Why != agent.StopApprovalPending || len(res.Pending) != 2 || res.RefusedCalls != 0 || l.ran["r"] != 1 {
		t.Errorf("%+v, ran %v", res, l.ran)
	}
}

// commanding says which command its calls run.
type commanding struct{ tool.Tool }

func (commanding) Command(call tool.Call) []string { return []string{"echo", "first", call.Arguments} }

// A5: the person who is asked gets the command as it would run, at once or later.
func TestApprovalRequestCommand(t *testing.T) {
	want := []string{"echo", "first", `{"text":"x"}`}
	l := new(ledger)
	r := newRig(t, agenttest.Completed(call("c", "say", "x"), call("d", "plain", "x")), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{commanding{l.tool("say")}, l.tool("plain")}
	got := map[string][]string{}
	r.agent.Policy = agent.Policy{Pause: true, Approver: func(ctx context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
		got[q.Call.Name] = q.Command
		return agent.Decision{Later: true}, nil
	}}
	res := r.run(item.User("go"))
	if diff := cmp.Diff(map[string][]string{"say": want, "plain": nil}, got); diff != "" {
		t.Errorf("the approver (-want +got):\n%s", diff)
	}
	if len(res.Pending) != 2 || !slices.Equal(res.Pending[0].Command, want) || res.Pending[1].Command != nil {
		t.Errorf("what waits: %+v", res.Pending)
	}
}

// L7: an approver sees the rules that its answer could leave behind, those of
// the tool itself if it knows.
func TestSuggestedRules(t *testing.T) {
	l := new(ledger)
	for name, c := range map[string]struct {
		tool tool.Tool
		want []session.Rule
	}{
		"the tool's own": {&judging{Tool: l.tool("run")}, []session.Rule{
			{Verdict: session.Allow, Tool: "run", Member: "text", Prefix: []string{"mine"}}, {Verdict: session.Allow, Tool: "run"},
		}},
		"of the arguments": {tool.Must("run", "Runs.", func(context.Context, struct {
			Path string `json:"path"`
		}) (string, error) {
			return "", nil
		}), []session.Rule{{Verdict: session.Allow, Tool: "run", Arguments: `{"path":"docs/a","text":"x"}`}, {Verdict: session.Allow, Tool: "run"}}},
	} {
		r := newRig(t, agenttest.Completed(item.Call("c", "run", `{"text":"x","path":"docs/a"}`)), agenttest.Completed(item.Assistant("done")))
		r.agent.Tools = []tool.Tool{c.tool}
		var got []session.Rule
		r.agent.Policy = agent.Policy{Approver: func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
			got = q.Rules
			return agent.Decision{}, nil
		}}
		r.run(item.User("go"))
		bound := got[0].Definition
		for i := range got {
			if bound == "" || got[i].Definition != bound {
				t.Errorf("%s: %q is not bound to the tool", name, got[i])
			}
			got[i].Definition = ""
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
