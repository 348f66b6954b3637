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

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// desk is a rig with two agents: the first looks something up and hands over, and the
// second, for bills, pays and answers.
type desk struct {
	*rig
	bills  *agent.Agent
	ledger *ledger
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{rig: newRig(t), ledger: &ledger{ran: map[string]int{}}}
	d.bills = &agent.Agent{Model: d.agent.Model, Tools: []tool.Tool{d.ledger.tool("pay")}, Policy: agent.Policy{Allow: []string{"*"}}}
	d.bills.Request.Model, d.bills.Request.Instructions = "bills", "You pay bills."
	d.agent.Request.Model, d.agent.Request.Instructions = "front", "You are at the front desk."
	d.agent.Tools = []tool.Tool{d.ledger.tool("look")}
	d.agent.Handoffs = []agent.Handoff{{Name: "to_bills", Description: "For bills.", Agent: d.bills}}
	d.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
		body, r := string(req.Body), req.Parse(t)
		switch {
		case r.Instructions != "" && !strings.HasPrefix(r.Instructions, "You pay") && !strings.HasPrefix(r.Instructions, "You are at"):
			return saying("It was about a bill.") // a summary
		case r.Model == "front":
			if strings.Contains(body, `"to_bills"}`) && strings.Contains(body, "was handed over") {
				t.Errorf("the front desk is asked after the handoff: %s", body)
			}
			return agenttest.Completed(call("a1", "look", "a1"), item.Call("h1", "to_bills", `{"reason":"It is about a bill."}`))
		case !strings.Contains(body, `"b1"`):
			return agenttest.Completed(call("b1", "pay", "b1"))
		}
		return saying("Paid.")
	})
	return d
}

// models returns the models of the requests so far.
func (d *desk) models() []string { return asked(d.t, d.server) }

// G7: the other agent's model, instructions, tools and policy hold from the next request
// on, in this run and in the next, and the log and the events say so.
func TestHandoff(t *testing.T) {
	d := newDesk(t)
	var speakers []string
	d.agent.Hooks = []agent.Hooks{{Name: "speakers", AfterModel: func(_ context.Context, c *agent.ModelCall) error {
		speakers = append(speakers, fmt.Sprintf("%d %q", c.Turn, c.Speaker))
		return nil
	}, AfterTool: func(_ context.Context, c *agent.ToolCall) error {
		speakers = append(speakers, fmt.Sprintf("%s %q", c.Call.Name, c.Speaker))
		return nil
	}}}
	run := d.agent.Start(d.session, item.User("Pay my bill."))
	events, err := drain(run.Events(t.Context()))
	if res := run.Result(); err != nil || res.Text != "Paid." || res.Speaker != "to_bills" || res.Turns != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := d.models(); !slices.Equal(got, []string{"front", "bills", "bills"}) {
		t.Errorf("models: %v", got)
	}
	if want := []string{`1 ""`, `look ""`, `to_bills ""`, `2 "to_bills"`, `pay "to_bills"`, `3 "to_bills"`}; !slices.Equal(speakers, want) {
		t.Errorf("hooks were called for %v, want %v", speakers, want)
	}
	for i, req := range d.server.Requests() {
		r := req.Parse(t)
		names := []string{}
		for _, def := range r.Tools {
			names = append(names, def.(*item.FunctionTool).Name)
		}
		want, instructions := []string{"look", "to_bills"}, "You are at the front desk."
		if i > 0 {
			want, instructions = []string{"pay"}, "You pay bills."
		}
		if !slices.Equal(names, want) || r.Instructions != instructions {
			t.Errorf("request %d: %v, %q", i, names, r.Instructions)
		}
	}
	want := []string{"user: Pay my bill.", `a1: look({"text":"a1"})`, `h1: to_bills({"reason":"It is about a bill."})`, "a1 = a1",
		"h1 = The conversation was handed over. You go on with it from here.", `b1: pay({"text":"b1"})`, "b1 = b1"}
	if got := outline(d.last()); !slices.Equal(got, want) {
		t.Errorf("history: %q", got)
	}
	n := told[session.Noticed](events)
	if len(n) != 1 || n[0].Kind != session.NoticeHandoff || n[0].CallID != "h1" || n[0].Turn != 1 {
		t.Errorf("notices: %+v", n)
	}
	if p := progressOf(events, agent.ProgressSpeaker); len(p) != 1 || p[0].Handoff != "to_bills" || p[0].Tool != "" || p[0].Turn != 2 {
		t.Errorf("speakers: %+v", p)
	}
	account, err := agent.AccountOf(t.Context(), d.session)
	if err != nil || len(account.Agents) != 2 || account.Agents[0].Turns != 1 || account.Agents[1].Agent != "to_bills" || account.Agents[1].Turns != 2 ||
		account.Agents[0].Tokens+account.Agents[1].Tokens != account.All().Tokens {
		t.Errorf("account: %+v, %v", account, err)
	}
	d.server.Add(saying("Yes."))
	d.reopen()
	run = d.agent.Start(d.session, item.User("Really?"))
	events, err = drain(run.Events(t.Context()))
	if res := run.Result(); err != nil || res.Text != "Yes." || res.Speaker != "to_bills" || d.models()[3] != "bills" || len(progressOf(events, agent.ProgressSpeaker)) != 1 {
		t.Errorf("the next run: %+v, %v, %v", res, d.models(), err)
	}
}

// C2 G7: what the other agent gets of the history. The log keeps everything.
func TestHandoffHistory(t *testing.T) {
	for _, c := range []struct {
		history agent.HandoffHistory
		fail    bool
		want    []string
	}{
		{session.BySummary, false, []string{"user: Pay my bill.", "user: [This conversation was handed to you by another agent. This is a summary of the 4 items", "It was about a bill."}},
		{session.ByDropping, false, []string{"user: Pay my bill.", "user: [This conversation was handed to you by another agent. 4 items are left out here", `reason: "It is about a bill."`}},
		{session.BySummary, true, []string{"user: Pay my bill.", "user: [This conversation was handed to you by another agent. 4 items are left out here"}},
	} {
		d := newDesk(t)
		d.agent.Handoffs[0].History = c.history
		if c.fail {
			d.server.Add(agenttest.Completed(call("a1", "look", "a1"), item.Call("h1", "to_bills", `{"reason":"Bill."}`)), agenttest.Failure(400, "", "no summary"))
		}
		if res := d.run(item.User("Pay my bill.")); res.Text != "Paid." {
			t.Fatalf("%s: %+v", c.history, res)
		}
		last := strings.Join(outline(d.last()), "\n")
		contains(t, last, c.want...)
		if strings.Contains(last, "a1") || strings.Contains(last, "h1") {
			t.Errorf("%s: the other agent reads what the first did: %s", c.history, last)
		}
		if c.history == session.BySummary && d.models()[1] != "front" {
			t.Errorf("another model wrote the summary: %v", d.models())
		}
	}
}

// G7: of two handoffs in a reply the first counts, and the second one's output says so.
func TestHandoffTwice(t *testing.T) {
	d := newDesk(t)
	other := *d.bills
	other.Request.Model = "other"
	d.agent.Handoffs = append(d.agent.Handoffs, agent.Handoff{Name: "to_other", Agent: &other})
	d.server.Add(agenttest.Completed(item.Call("h1", "to_bills", `{}`), item.Call("h2", "to_other", `{}`), item.Call("h3", "to_bills", `{}`)))
	res := d.run(item.User("go"))
	out := outputs(history(d.session))
	if res.Text != "Paid." || res.Speaker != "to_bills" || slices.Contains(d.models(), "other") {
		t.Errorf("%+v, %v", res, d.models())
	}
	contains(t, out["h2"], "error: ", "to_bills did it before")
	contains(t, out["h3"], "error: ", "to_bills did it before")
	if n := notices(d.session, session.NoticeHandoff); len(n) != 1 {
		t.Errorf("%q", n)
	}
}

// G7: what an earlier agent's policy denies, no later agent may do, also not in its
// subagents; what it does not deny is decided by the later agent's policy.
func TestHandoffDenials(t *testing.T) {
	for _, c := range []struct {
		name          string
		front, bills  agent.Policy
		nested, paid  bool
		declaredByOld bool
		inSource      bool
	}{
		{name: "denied before", front: agent.Policy{Deny: []string{"pay"}}, bills: agent.Policy{Allow: []string{"*"}}},
		{name: "denied now", front: agent.Policy{Allow: []string{"*"}}, bills: agent.Policy{Deny: []string{"pay"}}},
		{name: "nobody to ask now", front: agent.Policy{Allow: []string{"*"}}},
		{name: "allowed now", bills: agent.Policy{Allow: []string{"pay"}}, paid: true},
		{name: "denied before, in a subagent", front: agent.Policy{Deny: []string{"pay"}}, bills: agent.Policy{Allow: []string{"*"}}, nested: true},
		{name: "denied before, by the tool's declaration", bills: agent.Policy{Allow: []string{"*"}}, declaredByOld: true},
		{name: "denied before, by the declaration of a source's tool", bills: agent.Policy{Allow: []string{"*"}}, inSource: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			d.agent.Policy, d.bills.Policy = c.front, c.bills
			d.agent.Policy.Allow = append(d.agent.Policy.Allow, "look")
			if c.declaredByOld {
				d.agent.Tools = append(d.agent.Tools, d.ledger.tool("pay", tool.Approval("deny")))
			}
			if c.inSource {
				denied := d.ledger.tool("pay", tool.Approval("deny"))
				d.agent.ToolSource = func(context.Context) ([]tool.Tool, error) { return []tool.Tool{denied}, nil }
			}
			if c.nested {
				inner := *d.bills
				asTool, err := agent.AsTool("payer", "Pays.", &inner)
				if err != nil {
					t.Fatal(err)
				}
				d.bills.Tools = []tool.Tool{asTool}
				d.server.Add(agenttest.Completed(item.Call("h1", "to_bills", `{}`)), agenttest.Completed(item.Call("p1", "payer", `{"task":"pay"}`)),
					agenttest.Completed(call("b1", "pay", "b1")), saying("tried"), saying("done"))
			}
			d.run(item.User("go"))
			if paid := d.ledger.ran["b1"] > 0; paid != c.paid {
				t.Errorf("it paid: %v", paid)
			}
		})
	}
}

// G7 L4: agents that hand over to each other for ever are stopped, and the limits count
// over all of them.
func TestHandoffLoop(t *testing.T) {
	build := func() *desk {
		d := newDesk(t)
		d.bills.Handoffs = []agent.Handoff{{Name: "to_front", Agent: d.agent}}
		d.server.Otherwise(func(n int, req agenttest.Request) agenttest.Reply {
			name := map[string]string{"front": "to_bills", "bills": "to_front"}[req.Parse(t).Model]
			if strings.Contains(string(req.Body), "no more is allowed") {
				return saying("I answer.")
			}
			return agenttest.Completed(item.Call(fmt.Sprintf("h%d", n), name, `{}`))
		})
		return d
	}
	d := build()
	d.agent.Limits.MaxHandoffs = 3
	res := d.run(item.User("go"))
	if res.Text != "I answer." || res.Speaker != "to_bills" {
		t.Errorf("%+v", res)
	}
	if want := []string{"front", "bills", "front", "bills", "bills"}; !slices.Equal(d.models(), want) {
		t.Errorf("models: %v, want %v", d.models(), want)
	}
	// The limits are the first agent's.
	d = build()
	d.agent.Limits.MaxTurns, d.bills.Limits.MaxTurns = 4, 1
	if res := d.run(item.User("go")); res.Why != agent.StopMaxTurns || res.Turns != 4 {
		t.Errorf("%+v", res)
	}
	budget := &agent.Budget{Turns: 2}
	d = build()
	d.agent.Budget = budget
	if res := d.run(item.User("go")); res.Why != agent.StopMaxTurns || budget.Used().Turns != 2 {
		t.Errorf("%+v, %+v", res, budget.Used())
	}
}

// G7: a call beside the handoff belongs to the agent that made it, also if its approval
// comes in another run.
func TestHandoffWhileACallWaits(t *testing.T) {
	d := newDesk(t)
	d.agent.Policy = agent.Policy{Ask: []string{"look"}, Pause: true}
	d.bills.Policy = agent.Policy{Deny: []string{"look"}, Allow: []string{"pay"}}
	res := d.run(item.User("go"))
	if res.Why != agent.StopApprovalPending || len(res.Pending) != 1 || res.Speaker != "to_bills" {
		t.Fatalf("%+v", res)
	}
	d.reopen()
	if err := agent.Decide(t.Context(), d.session, agent.Decision{CallID: "a1", Allow: true}); err != nil {
		t.Fatal(err)
	}
	if res := d.run(); res.Text != "Paid." || d.ledger.ran["a1"] != 1 {
		t.Errorf("%+v, %v", res, d.ledger.ran)
	}
	if got := d.models(); !slices.Equal(got, []string{"front", "bills", "bills"}) {
		t.Errorf("models: %v", got)
	}
}

// J1 G7: a crash after any entry; the next process goes on with the right agent, in a
// new run or step by step, for each kind of history.
func TestHandoffCrash(t *testing.T) {
	for _, how := range []agent.HandoffHistory{"", session.BySummary, session.ByDropping} {
		build := func(t *testing.T) *desk {
			d := newDesk(t)
			d.agent.Handoffs[0].History = how
			return d
		}
		whole := build(t)
		whole.give(item.User("go"))
		whole.run()
		log := whole.session.Log()
		for n := 1; n < len(log); n++ {
			for _, steps := range []bool{false, true} {
				d := build(t)
				at := fmt.Sprintf("%q, after entry %d (%s), steps %v", how, n, session.Kind(log[n-1].Body), steps)
				for _, e := range log[:n] {
					if s, ok := e.Body.(session.CallStarted); ok {
						d.ledger.ran[s.CallID]++ // it may have run
					}
				}
				if err := d.store.Append(t.Context(), "s", 0, log[:n]); err != nil {
					t.Fatal(err)
				}
				d.reopen()
				if steps {
					if stop := d.steps(); stop.Why != agent.StopEndTurn {
						t.Errorf("%s: %+v", at, stop)
					}
				} else if res := d.run(item.User("go on")); res.Text != "Paid." {
					t.Errorf("%s: %+v", at, res)
				}
				d.inputs()
				for text, n := range d.ledger.ran {
					if n > 1 {
						t.Errorf("%s: %s ran %d times", at, text, n)
					}
				}
				handed := slices.ContainsFunc(log[:n], func(e session.Entry) bool {
					b, ok := e.Body.(session.Noticed)
					return ok && b.Kind == session.NoticeHandoff
				})
				for _, req := range d.server.Requests() {
					if r := req.Parse(t); handed && strings.HasPrefix(r.Instructions, "You are at") {
						t.Errorf("%s: the front desk is asked", at)
					}
				}
			}
		}
	}
}

// G2 G7: the first agent's guards stay; the other agent's are added, and one with the
// same name is not called twice.
func TestHandoffHooks(t *testing.T) {
	d := newDesk(t)
	var seen []string
	hook := func(name string) agent.Hooks {
		return agent.Hooks{Name: name, BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
			seen = append(seen, name+" "+c.Request.Model)
			return ctx, nil
		}}
	}
	d.agent.Hooks = []agent.Hooks{hook("trace"), hook("guard")}
	d.bills.Hooks = []agent.Hooks{hook("trace"), hook("own")}
	d.run(item.User("go"))
	want := []string{"trace front", "guard front", "trace bills", "guard bills", "own bills", "trace bills", "guard bills", "own bills"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
	// The first agent's guard reads the other agent's reply.
	d = newDesk(t)
	d.agent.Guards = []agent.Guard{{Name: "cents", Output: func(_ context.Context, c *agent.GuardCall) (*agent.Tripwire, error) {
		if strings.Contains(c.Items[0].JSON(), "Paid.") {
			return &agent.Tripwire{Reason: "too short"}, nil
		}
		return nil, nil
	}}}
	if res, err := d.agent.Run(t.Context(), d.session, item.User("go")); err == nil || res.Why != agent.StopVetoed || res.Text != "" || len(d.models()) != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	// A hook that withholds the output of the handoff prevents it.
	d = newDesk(t)
	d.agent.Hooks = []agent.Hooks{{AfterTool: func(_ context.Context, c *agent.ToolCall) error {
		if c.Call.Name == "to_bills" {
			return errors.New("not today")
		}
		return nil
	}}}
	d.server.Add(agenttest.Completed(item.Call("h1", "to_bills", `{}`)), saying("Then not."))
	if res := d.run(item.User("go")); res.Text != "Then not." || res.Speaker != "" {
		t.Errorf("%+v", res)
	}
}

// K5: an imported log does not decide which agent speaks.
func TestHandoffDisarmed(t *testing.T) {
	d := newDesk(t)
	d.run(item.User("go"))
	var disarm agent.Disarm
	for _, e := range d.session.Log() {
		disarm.Learn(e)
	}
	for _, e := range d.session.Log() {
		b, _ := disarm.Entry(e)
		if n, ok := b.Body.(session.Noticed); ok && n.Kind == session.NoticeHandoff {
			t.Errorf("entry %d stays: %+v", e.Seq, n)
		}
	}
}

// G8: handoffs that cannot work are errors before anything is recorded.
func TestHandoffChecked(t *testing.T) {
	for name, set := range map[string]func(d *desk){
		"no agent":       func(d *desk) { d.agent.Handoffs[0].Agent = nil },
		"no model":       func(d *desk) { d.bills.Model = nil },
		"name":           func(d *desk) { d.agent.Handoffs[0].Name = "to bills" },
		"same name":      func(d *desk) { d.agent.Handoffs[0].Name = "look" },
		"history":        func(d *desk) { d.agent.Handoffs[0].History = "some" },
		"conversation":   func(d *desk) { d.bills.Request.Conversation = api.ConversationByID("conv_1") },
		"previous":       func(d *desk) { d.bills.Request.PreviousResponseID = "resp_1" },
		"previous first": func(d *desk) { d.agent.Request.PreviousResponseID = "resp_1" },
		"price": func(d *desk) {
			d.agent.Limits.MaxCost = 1
			d.agent.Prices = func(m string) (agent.Price, bool) { return agent.Price{}, m == "front" }
		},
		"deeper": func(d *desk) { d.bills.Handoffs = []agent.Handoff{{Name: "on"}} },
	} {
		d := newDesk(t)
		set(d)
		_, err := d.agent.Run(t.Context(), d.session, item.User("go"))
		if err == nil || len(d.session.Log()) > 0 {
			t.Errorf("%s: %v, %d entries", name, err, len(d.session.Log()))
		}
		if name == "no model" && !strings.Contains(err.Error(), "handoff to_bills") {
			t.Errorf("which agent has no model is not said: %v", err)
		}
	}
	// The log names a handoff that the agent does not have any more.
	d := newDesk(t)
	d.run(item.User("go"))
	n := len(d.session.Log())
	d.agent.Handoffs = nil
	if _, err := d.agent.Run(t.Context(), d.session, item.User("more")); err == nil || len(d.session.Log()) != n {
		t.Errorf("%v, %d entries more", err, len(d.session.Log())-n)
	}
}
