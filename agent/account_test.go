// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
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

// U5, G12: every token is counted once, by agent and in total, also in a session that is
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
		tools[strings.TrimPrefix(one.Agent+": "+one.Tool, ": ")] = [3]int{one.Calls, one.Failed, one.Refused}
		if one.OutputBytes == 0 || (one.Nested.Tokens > 0) != slices.Contains([]string{"research", "fork", "clothes"}, one.Tool) {
			t.Errorf("%+v", one)
		}
	}
	if diff := cmp.Diff(map[string][3]int{"echo": {1, 0, 0}, "fail": {1, 1, 0}, "writer": {0, 0, 1}, "research": {1, 0, 0}, "fork": {1, 0, 0},
		"research: clothes": {1, 0, 0}}, tools); diff != "" {
		t.Errorf("tools: calls, failed, refused (-want +got):\n%s", diff)
	}
	var own agent.Account // without what the logs of subagents say
	for e := range again.Entries() {
		own.Add(e)
	}
	if m := own.Models; len(m) != 1 || m[0].Model != "large" || m[0].Turns != 4 || m[0].InputTokens != res.InputTokens || m[0].Tokens != res.TotalTokens {
		t.Errorf("%+v", m)
	}
	turns = map[string]int{}
	for _, one := range got.Models {
		turns[one.Model] = one.Turns
	}
	if diff := cmp.Diff(map[string]int{"large": 5, "medium": 2, "small": 1}, turns); diff != "" {
		t.Errorf("turns by model (-want +got):\n%s", diff)
	}
	if text, err := json.Marshal(got); err != nil || len(text) == 0 {
		t.Error(err)
	}
}

// total adds what is listed.
func total[T any](list []T, used func(T) agent.TokenUsage) (sum agent.TokenUsage) {
	for _, one := range list {
		u := used(one)
		sum.Add(u.Usage)
		sum.InputTokens += u.InputTokens
		sum.CachedTokens += u.CachedTokens
		sum.OutputTokens += u.OutputTokens
		sum.ReasoningTokens += u.ReasoningTokens
	}
	return sum
}

// U5 G7: a run with a fallback, a subagent that is handed over, and a handoff: the
// sums by agent, by session and by model are what the endpoints reported.
func TestAccountOfTeam(t *testing.T) {
	var reported agent.TokenUsage
	reply := func(in, cached, out, reasoning int64, items ...item.Item) agenttest.Reply {
		reported.Add(agent.Usage{Turns: 1, Tokens: in + out})
		reported.InputTokens += in
		reported.CachedTokens += cached
		reported.OutputTokens += out
		reported.ReasoningTokens += reasoning
		output, err := json.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		return agenttest.Events(fmt.Sprintf(`{"type":"response.completed","sequence_number":0,"response":{"id":"resp_%d","object":"response","status":"completed","output":%s,
			"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}}}`,
			reported.Turns, output, in, cached, out, reasoning, in+out))
	}
	p := newPair(t, []agenttest.Reply{
		agenttest.Failure(404, "model_not_found", "no such model"),
		reply(300, 200, 30, 3, item.Assistant("Paid.")), // of the agent that was handed over to
	}, []agenttest.Reply{
		reply(100, 0, 10, 1, call("c1", "echo", "a"), item.Call("c2", "research", `{"task":"what?"}`)),
		reply(200, 100, 20, 2, item.Call("h1", "to_bills", `{}`)),
	})
	inside := agenttest.Script(t,
		reply(10, 0, 1, 0, call("r1", "echo", "b"), item.Call("r2", "to_expert", `{}`)),
		reply(20, 5, 2, 1, call("e1", "echo", "c")),
		reply(40, 9, 4, 2, item.Assistant("wool")))
	prices := func(string) (agent.Price, bool) { return agent.Price{Input: 1000, Cached: 1000, Output: 2000}, true }
	expert := &agent.Agent{Model: inside, Tools: []tool.Tool{echo()}, Prices: prices, Policy: p.agent.Policy}
	expert.Request.Model = "expert"
	first := &agent.Agent{Model: inside, Tools: []tool.Tool{echo()}, Prices: prices, Policy: p.agent.Policy, Handoffs: []agent.Handoff{{Name: "to_expert", Agent: expert}}}
	first.Request.Model = "junior"
	research, err := agent.AsTool("research", "Looks it up.", first)
	if err != nil {
		t.Fatal(err)
	}
	bills := &agent.Agent{Model: p.client(), Prices: prices}
	bills.Request.Model = "bills"
	p.agent.Tools, p.agent.Prices = []tool.Tool{echo(), research}, prices
	p.agent.Handoffs = []agent.Handoff{{Name: "to_bills", Agent: bills}}
	res := p.run(item.User("go"))
	if res.Text != "Paid." {
		t.Fatalf("%+v", res)
	}
	p.reopen()
	got, err := agent.AccountOf(t.Context(), p.session)
	if err != nil {
		t.Fatal(err)
	}
	reported.Turns++ // a request that failed is a turn
	reported.Cost = float64(reported.InputTokens)/1000 + float64(reported.OutputTokens)/500
	near := cmpopts.EquateApprox(0, 1e-9)
	for of, sum := range map[string]agent.TokenUsage{
		"agents":   total(got.Agents, func(u agent.AgentUsage) agent.TokenUsage { return u.TokenUsage }),
		"sessions": total(got.Sessions, func(u agent.SessionUsage) agent.TokenUsage { return u.TokenUsage }),
		"models":   total(got.Models, func(u agent.ModelUsage) agent.TokenUsage { return u.TokenUsage }),
	} {
		if diff := cmp.Diff(reported, sum, near); diff != "" {
			t.Errorf("the sum of the %s (-reported +got):\n%s", of, diff)
		}
	}
	if diff := cmp.Diff(reported.Usage, got.All(), near); diff != "" || res.All() != got.All() {
		t.Errorf("all (-reported +got):\n%s, and of the run: %+v", diff, res.All())
	}
	type row struct{ turns, in, cached, out int64 }
	rows := func(u agent.TokenUsage) row {
		return row{int64(u.Turns), u.InputTokens, u.CachedTokens, u.OutputTokens}
	}
	agents, sessions, models, calls := map[string]row{}, []row{}, map[string]row{}, map[string]int{}
	for _, one := range got.Agents {
		agents[one.Agent] = rows(one.TokenUsage)
		if one.Sessions != 1 || one.Cost == 0 {
			t.Errorf("%+v", one)
		}
	}
	for _, one := range got.Sessions {
		sessions = append(sessions, rows(one.TokenUsage))
	}
	for _, one := range got.Models {
		models[one.Model] = rows(one.TokenUsage)
	}
	for _, one := range got.Tools {
		calls[one.Agent+": "+one.Tool] = one.Calls
	}
	bare := cmp.AllowUnexported(row{})
	if diff := cmp.Diff(map[string]row{"": {3, 300, 100, 30}, "to_bills": {1, 300, 200, 30}, "research": {1, 10, 0, 1}, "research/to_expert": {2, 60, 14, 6}}, agents, bare); diff != "" {
		t.Errorf("agents (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]row{{4, 600, 300, 60}, {3, 70, 14, 7}}, sessions, bare); diff != "" || got.Sessions[0].Session != "s" || got.Sessions[1].Agent != "research" {
		t.Errorf("sessions %+v (-want +got):\n%s", got.Sessions, diff)
	}
	if diff := cmp.Diff(map[string]row{"large": {1, 0, 0, 0}, "small": {2, 300, 100, 30}, "bills": {1, 300, 200, 30}, "junior": {1, 10, 0, 1}, "expert": {2, 60, 14, 6}}, models, bare); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{": echo": 1, ": research": 1, ": to_bills": 1, "research: echo": 1, "research: to_expert": 1, "research/to_expert: echo": 1}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// What is folded from the events of a run is what is folded from its log, but for
// what only the logs of subagents say.
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
	own := slices.DeleteFunc(stored.Tools, func(u agent.ToolUsage) bool { return u.Agent != "" })
	if diff := cmp.Diff(own, live.Tools, opts); diff != "" {
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

// An agent inside another one costs what the outer one's prices say, if it has none of
// its own, as after a handoff: the account has the cost, and limits count it. G12 G7
func TestPricesOfInner(t *testing.T) {
	inner := &agent.Agent{Model: agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply {
		return agenttest.Completed(item.Assistant("wool"))
	})}
	inner.Request.Model = "small"
	ask, err := agent.AsTool("ask", "Asks.", inner)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []float64{0, 1e9} {
		a := &agent.Agent{Model: agenttest.Script(t, agenttest.Completed(item.Call("c1", "ask", `{"task":"x"}`)), agenttest.Completed(item.Assistant("done"))), Tools: []tool.Tool{ask}}
		a.Request.Model, a.Limits.MaxCost = "large", limit
		a.Prices = func(model string) (agent.Price, bool) {
			return agent.Price{Input: 1e6, Output: 1e6}, model == "small" || model == "large"
		}
		s := session.New()
		res, err := a.Run(t.Context(), s, item.User("go"))
		if err != nil || res.FailedCalls != 0 || res.Nested.Cost != float64(res.Nested.Tokens) || res.Nested.Cost == 0 {
			t.Errorf("%+v, %v", res.Totals, err)
		}
		account, err := agent.AccountOf(t.Context(), s)
		if err != nil || account.All().Cost != float64(account.All().Tokens) {
			t.Errorf("%+v, %v", account.All(), err)
		}
	}
	inner.Prices = func(string) (agent.Price, bool) { return agent.Price{}, true }
	a := &agent.Agent{Model: agenttest.Script(t, agenttest.Completed(item.Call("c1", "ask", `{"task":"x"}`)), agenttest.Completed(item.Assistant("done"))), Tools: []tool.Tool{ask}}
	a.Prices = func(string) (agent.Price, bool) { return agent.Price{Input: 1e6}, true }
	if res, err := a.Run(t.Context(), session.New(), item.User("go")); err != nil || res.Nested.Cost != 0 {
		t.Errorf("the inner agent's own prices: %+v, %v", res.Totals, err)
	}
}
