// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// team is an agent that has a fork and an agent with an agent inside.
func team(t *testing.T) *agent.Agent {
	t.Helper()
	prices := func(string) (agent.Price, bool) { return agent.Price{Input: 1000, Output: 2000}, true }
	inside := &agent.Agent{Model: agenttest.Script(t, agenttest.Completed(item.Assistant("wool"))), Prices: prices}
	inside.Request.Model = "small"
	clothes, err := agent.AsTool("clothes", "Knows clothes.", inside)
	if err != nil {
		t.Fatal(err)
	}
	middle := &agent.Agent{Model: agenttest.Script(t, agenttest.Completed(item.Call("m1", "clothes", `{"task":"what?"}`)), agenttest.Completed(item.Assistant("wear wool"))),
		Tools: []tool.Tool{clothes}, Prices: prices}
	middle.Request.Model = "medium"
	research, err := agent.AsTool("research", "Looks it up.", middle)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent.Agent{
		Model: agenttest.Script(t,
			agenttest.Completed(call("c1", "echo", "a"), call("c2", "fail", "b"), call("c3", "writer", "c")),
			agenttest.Completed(item.Call("c4", "research", `{"task":"what?"}`)),
			agenttest.Completed(forkCall("c5", "Look.")),
			agenttest.Completed(item.Assistant("so it is")), // of the fork
			agenttest.Completed(item.Assistant("done"))),
		Tools:  []tool.Tool{echo(), new(ledger).tool("writer", tool.Approval(string(session.Deny))), research, agent.ForkTool(), failingTool()},
		Prices: prices, Limits: agent.Limits{MaxDepth: 2}, Parallel: 1, Policy: agent.Policy{Allow: []string{"echo"}},
	}
	a.Request.Model = "large"
	return a
}

func failingTool() tool.Tool {
	return tool.Must("fail", "Fails.", func(context.Context, textInput) (string, error) { return "", errors.New("no") }, tool.ReadOnly())
}

// U5: every token is counted once, by agent and in total, also in a session that is
// read again.
func TestAccount(t *testing.T) {
	a := team(t)
	store := new(session.Memory)
	s, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	res, err := a.Run(t.Context(), s, item.User("go"))
	if err != nil || res.Why != agent.StopEndTurn {
		t.Fatalf("%+v, %v", res, err)
	}
	again, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	got, err := agent.AccountOf(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(res.Totals, got.Totals, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("totals (-run +account):\n%s", diff)
	}
	var sum agent.Usage
	var names []string
	for _, one := range got.Agents {
		sum.Add(one.Usage)
		names = append(names, one.Agent)
		if one.Sessions != 1 || one.Tokens == 0 || one.Cost == 0 {
			t.Errorf("%+v", one)
		}
	}
	all := got.All()
	if sum.Turns != all.Turns || sum.Tokens != all.Tokens || math.Abs(sum.Cost-all.Cost) > 1e-9 || all.Turns != 8 {
		t.Errorf("the agents used %+v, and all is %+v", sum, all)
	}
	if diff := cmp.Diff([]string{"", "research", "fork", "research/clothes"}, names); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	turns := map[string]int{}
	for _, one := range got.Agents {
		turns[one.Agent] = one.Turns
	}
	if diff := cmp.Diff(map[string]int{"": 4, "research": 2, "research/clothes": 1, "fork": 1}, turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	tools := map[string][3]int{}
	for _, one := range got.Tools {
		tools[one.Tool] = [3]int{one.Calls, one.Failed, one.Refused}
		if one.OutputBytes == 0 || (one.Nested.Tokens > 0) != (one.Tool == "research" || one.Tool == "fork") {
			t.Errorf("%+v", one)
		}
	}
	if diff := cmp.Diff(map[string][3]int{"echo": {1, 0, 0}, "fail": {1, 1, 0}, "writer": {0, 0, 1}, "research": {1, 0, 0}, "fork": {1, 0, 0}}, tools); diff != "" {
		t.Errorf("tools: calls, failed, refused (-want +got):\n%s", diff)
	}
	if m := got.Models; len(m) != 1 || m[0].Model != "large" || m[0].Turns != 4 || m[0].InputTokens != res.InputTokens || m[0].Tokens != res.TotalTokens {
		t.Errorf("%+v", m)
	}
	if text, err := json.Marshal(got); err != nil || len(text) == 0 {
		t.Error(err)
	}
}

// What is folded from the events of a run is what is folded from its log, but for
// agents inside agents.
func TestAccountOfEvents(t *testing.T) {
	a := team(t)
	s := session.New()
	var live agent.Account
	for ev, err := range a.Stream(t.Context(), s, item.User("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if ev, ok := ev.(agent.Recorded); ok {
			live.Add(ev.Entry)
		}
	}
	stored, err := agent.AccountOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	opts := cmp.Options{cmpopts.IgnoreUnexported(agent.Account{}, agent.Totals{}), cmpopts.EquateApprox(0, 1e-9)}
	if diff := cmp.Diff(stored.Tools, live.Tools, opts); diff != "" {
		t.Errorf("tools (-stored +live):\n%s", diff)
	}
	if stored.All() != live.All() || len(live.Agents) != 3 {
		t.Errorf("%+v, %+v", stored, live)
	}
}

// A subagent that a crash interrupted is in the account before it goes on, and is
// counted once when it has gone on. A fork's log begins with its parent's turns, which
// are not counted again.
func TestAccountOfInterrupted(t *testing.T) {
	whole, _ := forking(t)
	whole.run(item.User("go"))
	want, err := agent.AccountOf(t.Context(), whole.session)
	if err != nil || want.Nested.Turns != 2 || len(want.Agents) != 2 {
		t.Fatalf("%+v, %v", want, err)
	}
	r, l := forking(t)
	l.ran = map[string]int{}
	for i, e := range whole.session.Log() {
		b, ok := e.Body.(session.CallStarted)
		if !ok || b.CallID != "f1" {
			continue
		}
		inner, err := session.Open(t.Context(), whole.store, b.Session)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.store.Append(t.Context(), "s", 0, whole.session.Log()[:i+1]), r.store.Append(t.Context(), b.Session, 0, inner.Log())); err != nil {
			t.Fatal(err)
		}
	}
	r.reopen()
	for _, when := range []string{"before it goes on", "after it"} {
		got, err := agent.AccountOf(t.Context(), r.session)
		if err != nil || got.Nested != want.Nested {
			t.Errorf("%s: %+v, %v, want %+v", when, got.Nested, err, want.Nested)
		}
		if len(got.Agents) != 2 || got.Agents[1] != want.Agents[1] {
			t.Errorf("%s: %+v, want %+v", when, got.Agents, want.Agents)
		}
		if when == "before it goes on" {
			r.run()
		}
	}
}
