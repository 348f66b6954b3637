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
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

func forkCall(id, command string, arguments ...string) item.Item {
	list := make([]string, len(arguments))
	for i, a := range arguments {
		list[i] = string(item.Quote(a))
	}
	return item.Call(id, "fork", fmt.Sprintf(`{"command":%s,"arguments":[%s]}`, item.Quote(command), strings.Join(list, ",")))
}

// forking is a rig whose model echoes, then forks beside another call; the fork
// echoes too before its answer.
func forking(t *testing.T) (*rig, *ledger) {
	r := newRig(t)
	l := new(ledger)
	r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
		body := string(req.Body)
		fork := strings.Contains(body, "You are the fork")
		switch {
		case !strings.Contains(body, `"e0"`):
			return agenttest.Completed(item.Must(&item.Reasoning{ID: "rs_1", Summary: []item.Part{}, EncryptedContent: "gAAA"}), call("e0", "echo", "e0"))
		case !strings.Contains(body, `"f1"`):
			return agenttest.Completed(item.Assistant("I fork."), call("e1", "echo", "e1"), forkCall("f1", "Look into it.", "a", "b"), call("e2", "echo", "e2"))
		case fork && !strings.Contains(body, `"c1"`):
			return agenttest.Completed(call("c1", "echo", "c1"))
		case fork:
			return agenttest.Completed(item.Assistant("It is so."))
		}
		return agenttest.Completed(item.Assistant("All done."))
	})
	r.agent.Tools = []tool.Tool{l.tool("echo"), agent.ForkTool()}
	return r, l
}

// F1 F2 L8: a fork sees the history up to the call, the call's siblings closed,
// and its task; the run gets its answer under its own call id and none of its
// items, which are stored. The fork's request begins with the bytes of the run's.
func TestFork(t *testing.T) {
	r, l := forking(t)
	events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("go")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"e0": 1, "e1": 1, "e2": 1, "c1": 1}, l.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	all := r.inputs()
	fork := all[2]
	want := append(outline(all[1]), "assistant: I fork.", `e1: echo({"text":"e1"})`, `f1: fork({"command":"Look into it.","arguments":["a","b"]})`, `e2: echo({"text":"e2"})`,
		"e1 = error: The call was not run in this fork. It is the business of the conversation that the fork was started from.",
		"f1 = You are the fork that this call started. Your task follows.",
		"e2 = error: The call was not run in this fork. It is the business of the conversation that the fork was started from.",
		"user: Look into it.\n\na\nb")
	if diff := cmp.Diff(want, outline(fork)); diff != "" {
		t.Errorf("fork's request (-want +got):\n%s", diff)
	}
	reqs := r.server.Requests()
	parent, child := reqs[1].Parse(t), reqs[2].Parse(t)
	before := strings.TrimSuffix(parent.Input.JSON(), "]")
	if !strings.HasPrefix(child.Input.JSON(), before) {
		t.Errorf("the fork's history does not begin with the run's:\n%s\n%s", reqs[1].Body, reqs[2].Body)
	}
	rest := func(body []byte, req *api.Request) string {
		return strings.Replace(string(body), req.Input.JSON(), "", 1)
	}
	if diff := cmp.Diff(rest(reqs[1].Body, parent), rest(reqs[2].Body, child)); diff != "" {
		t.Errorf("around the history (-run +fork):\n%s", diff)
	}
	got := outline(r.last())
	if diff := cmp.Diff([]string{"e1 = e1", "f1 = It is so.", "e2 = e2"}, got[len(got)-3:]); diff != "" {
		t.Errorf("the run's last request (-want +got):\n%s", diff)
	}
	for _, line := range got {
		if strings.Contains(line, "c1") || strings.Contains(line, "You are") {
			t.Errorf("the fork's item is in the run's history: %s", line)
		}
	}
	var id string
	for _, e := range r.session.Log() {
		if n, ok := e.Body.(session.SubagentUsage); ok {
			id = n.Session
			if n.CallID != "f1" || n.Turns != 2 || n.Tokens == 0 {
				t.Errorf("entry: %+v", n)
			}
		}
	}
	s, err := session.Open(t.Context(), r.store, id)
	if err != nil {
		t.Fatal(err)
	}
	inside := outline(history(s))
	if last := inside[len(inside)-1]; last != "assistant: It is so." || len(inside) != len(fork)+3 {
		t.Errorf("the fork's session: %q", inside)
	}
	checkNested(t, events, id)
}

// checkNested wants the fork's own events between the start and the end of its
// call, tagged, and its stop among them.
func checkNested(t *testing.T, events []agent.Event, id string) {
	t.Helper()
	inside, stopped := false, false
	var known agent.KnownCalls
	for _, ev := range events {
		switch ev := ev.(type) {
		case agent.Recorded:
			c := known.Add(ev.Entry)
			switch b := ev.Body.(type) {
			case session.CallStarted:
				inside = inside || b.CallID == "f1"
			case session.CallOutput:
				if b.CallID == "f1" {
					inside = false
					if c.Session != id {
						t.Errorf("%+v", c)
					}
				}
			}
		case agent.SubagentEvent:
			if !inside || ev.Depth != 1 || ev.CallID != "f1" || ev.Tool != "fork" || ev.Session != id {
				t.Errorf("inside of it %v: %+v", inside, ev)
			}
			stopped = stopped || nameOf(ev.Event) == "stopped"
		case agent.Progress:
			if n := ev.Totals; n != nil && (n.Turns != 3 || n.Nested.Turns != 2) {
				t.Errorf("totals: %+v", n)
			}
		}
	}
	if !stopped {
		t.Error("the end of the fork is not told of")
	}
}

// F1 L8: beyond the depth a call is an error output; the limit is that of the
// outermost run, for forks and agents alike.
func TestDepth(t *testing.T) {
	for depth := range 4 {
		r := newRig(t)
		most := 0
		r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
			body := string(req.Body)
			most = max(most, strings.Count(body, "You are the fork"))
			if n := strings.Count(body, `"fork"`) - 1; strings.Contains(body, "subagents may be at most") || strings.Contains(body, "fork says") {
				return agenttest.Completed(item.Assistant("fork says"))
			} else {
				return agenttest.Completed(forkCall(fmt.Sprintf("f%d", n), "deeper"))
			}
		})
		r.agent.Tools = []tool.Tool{agent.ForkTool()}
		r.agent.Limits = agent.Limits{MaxDepth: depth, MaxTurns: 20}
		if res := r.run(item.User("go")); res.Text != "fork says" {
			t.Errorf("depth %d: %+v", depth, res)
		}
		if want := max(depth, 1); most != want {
			t.Errorf("depth %d: %d forks deep", depth, most)
		}
		r.inputs()
	}
}

// K8 L8: a subagent that would be too deep is not started: its call is refused before
// anyone is asked about it, or after an answer that came before the limit. Nothing says
// that it started, and the model reads why it did not.
func TestTooDeepIsNotStarted(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			r := newRig(t, agenttest.Completed(forkCall("f0", "Go.")), agenttest.Completed(forkCall("f1", "Deeper.")),
				agenttest.Completed(item.Assistant("inner")), agenttest.Completed(item.Assistant("outer")))
			var hooks, asked []string
			note := func(what string, c *agent.ToolCall) {
				hooks = append(hooks, strings.TrimSpace(fmt.Sprintf("%s %s %s", what, c.Call.ID, c.Failure)))
			}
			r.agent.Hooks = []agent.Hooks{{
				BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
					note("before", c)
					return ctx, nil
				},
				AfterTool:   func(_ context.Context, c *agent.ToolCall) error { note("after", c); return nil },
				CallRefused: func(_ context.Context, c *agent.ToolCall) error { note("refused", c); return nil },
			}}
			r.agent.Tools = []tool.Tool{agent.ForkTool()}
			r.agent.Policy.Ask = []string{"fork"}
			if late {
				r.agent.Limits.MaxDepth, r.agent.Policy.Pause = 2, true
				res := r.run(item.User("go"))
				for _, id := range []string{"f0", "f1"} {
					if len(res.Pending) != 1 || res.Pending[0].CallID != id {
						t.Fatalf("%+v", res)
					}
					if err := agent.Decide(t.Context(), r.session, agent.Decision{Session: res.Pending[0].Session, CallID: id, Allow: true}); err != nil {
						t.Fatal(err)
					}
					if id == "f0" {
						res = r.run()
					}
				}
				hooks, r.agent.Limits.MaxDepth = nil, 1
			} else {
				r.agent.Policy.Approver = func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
					asked = append(asked, q.Call.ID)
					return agent.Decision{Allow: true}, nil
				}
			}
			var input []item.Item
			if !late {
				input = []item.Item{item.User("go")}
			}
			if res := r.run(input...); res.Text != "outer" {
				t.Errorf("%+v", res)
			}
			if diff := cmp.Diff([]string{"before f0", "refused f1 not_run", "after f0"}, hooks); diff != "" {
				t.Errorf("hooks (-want +got):\n%s", diff)
			}
			if !late && !slices.Equal(asked, []string{"f0"}) {
				t.Errorf("asked about %q", asked)
			}
			id := ""
			for _, e := range r.session.Log() {
				if b, ok := e.Body.(session.CallStarted); ok {
					id = b.Session
				}
			}
			inner, err := session.Open(t.Context(), r.store, id)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range inner.Log() {
				if b, ok := e.Body.(session.CallStarted); ok && b.CallID == "f1" {
					t.Errorf("it is said to have started: %+v", b)
				}
			}
			if got, want := outline(history(inner)), "f1 = error: The call was refused: subagents may be at most 1 deep, and that depth is reached. Do the work yourself."; !slices.Contains(got, want) {
				t.Errorf("the model reads %q", got)
			}
			r.inputs()
		})
	}
}

// agents returns an agent with a helper as its tool, on models without a wire.
func agents(t *testing.T, outer, inner *memory, tools ...tool.Tool) (*agent.Agent, *agent.Agent) {
	t.Helper()
	helper := &agent.Agent{Model: inner, Tools: tools}
	asTool, err := agent.AsTool("helper", "Helps.", helper)
	if err != nil {
		t.Fatal(err)
	}
	return &agent.Agent{Model: outer, Tools: append([]tool.Tool{asTool}, tools...)}, helper
}

func task(id, text string) item.Item {
	return item.Call(id, "helper", `{"task":`+string(item.Quote(text))+`}`)
}

// L8: an agent as a tool has its own history, and its answer is the output; what
// it could not do is told.
func TestAgentAsTool(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply []item.Item
		want  string
	}{
		{"answer", []item.Item{item.Assistant("42")}, "h = 42"},
		{"refusal", []item.Item{item.Must(&item.Message{Role: item.RoleAssistant, Content: item.Parts(&item.Refusal{Refusal: "No."})})}, "h = error: the run stopped before it was done: refused"},
	} {
		inner := &memory{replies: []any{c.reply}}
		outer := &memory{replies: []any{[]item.Item{task("h", "What is it?")}, []item.Item{item.Assistant("done")}}}
		a, _ := agents(t, outer, inner)
		s := session.New()
		if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, it := range inner.asked[0].Input.All() {
			lines = append(lines, outline([]item.Item{it})...)
		}
		if diff := cmp.Diff([]string{"user: What is it?"}, lines); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", c.name, diff)
		}
		if got := outline(history(s)); got[2] != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// L4 L8: subagents draw on the budgets around them, each typed, side by side
// too; nothing is lost, and with more the run goes on.
func TestBudgetTree(t *testing.T) {
	price := func(model string) (agent.Price, bool) { return agent.Price{Input: 1e5, Output: 2e5}, true } // 2 a turn
	for _, c := range []struct {
		name   string
		limits agent.Limits
		budget *agent.Budget
		why    agent.StopReason
		asked  int // of outer and inner together
	}{
		{"none", agent.Limits{}, nil, agent.StopEndTurn, 8},
		{"turns", agent.Limits{MaxTurns: 5}, nil, agent.StopMaxTurns, 5},
		{"tokens", agent.Limits{MaxTokens: 60}, nil, agent.StopMaxTokens, 4},
		{"cost", agent.Limits{MaxCost: 5}, nil, agent.StopMaxCost, 3},
		{"shared turns", agent.Limits{}, &agent.Budget{Turns: 6}, agent.StopMaxTurns, 6},
		{"shared tokens", agent.Limits{}, &agent.Budget{Tokens: 16}, agent.StopMaxTokens, 2},
		{"shared cost", agent.Limits{}, &agent.Budget{Cost: 7.9}, agent.StopMaxCost, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner := &memory{replies: []any{[]item.Item{call("e", "echo", "1")}, []item.Item{call("e", "echo", "2")}, []item.Item{item.Assistant("mine")}, []item.Item{call("e", "echo", "1")}, []item.Item{call("e", "echo", "2")}, []item.Item{item.Assistant("mine")}}}
			outer := &memory{replies: []any{[]item.Item{task("h1", "a"), task("h2", "b")}, []item.Item{item.Assistant("done")}}}
			a, helper := agents(t, outer, inner, echo(tool.ReadOnly()))
			a.Limits, a.Budget, a.Prices, helper.Prices, a.Parallel = c.limits, c.budget, price, price, 1
			s := session.New()
			res, err := a.Run(t.Context(), s, item.User("go"))
			if err != nil || res.Why != c.why {
				t.Fatalf("got %+v, %v", res, err)
			}
			if got := len(inner.asked) + len(outer.asked); got != c.asked || res.Turns+res.Nested.Turns != c.asked {
				t.Errorf("asked %d times, %+v, want %d", got, res.Totals, c.asked)
			}
			if want := float64(2 * c.asked); res.Cost+res.Nested.Cost < want-1e-9 || res.Cost+res.Nested.Cost > want+1e-9 {
				t.Errorf("cost %v and %v, want %v", res.Cost, res.Nested.Cost, want)
			}
			if c.budget != nil && c.budget.Used().Turns != c.asked {
				t.Errorf("used: %+v", c.budget.Used())
			}
			checkClosed(t, s, c.name)
			a.Limits, a.Budget = agent.Limits{}, nil
			if c.why != agent.StopEndTurn {
				if res, err := a.Run(t.Context(), s); err != nil || res.Text != "done" && c.asked > 0 {
					t.Errorf("then: %+v, %v", res, err)
				}
			}
		})
	}
}

// L4: a limit of costs needs a price; without one nothing is asked.
func TestUnknownPrice(t *testing.T) {
	for name, set := range map[string]func(*agent.Agent) context.Context{
		"limit":  func(a *agent.Agent) context.Context { a.Limits.MaxCost = 1; return context.Background() },
		"budget": func(a *agent.Agent) context.Context { a.Budget = &agent.Budget{Cost: 1}; return context.Background() },
		"lent": func(a *agent.Agent) context.Context {
			b := &agent.Budget{Cost: 1}
			return agent.WithBudget(context.Background(), b.Child())
		},
	} {
		r := newRig(t)
		ctx := set(r.agent)
		r.agent.Prices = func(string) (agent.Price, bool) { return agent.Price{}, false }
		_, err := r.agent.Run(ctx, r.session, item.User("go"))
		if p, ok := errors.AsType[*agent.PriceError](err); !ok || p.Model != "test-model" {
			t.Errorf("%s: got %v", name, err)
		}
		if len(r.server.Requests()) > 0 || len(r.session.Log()) > 0 {
			t.Errorf("%s: something was done", name)
		}
	}
}

// L4 L8: time is shared and cancels what is nested, which closes its calls.
func TestTimeOfNestedRuns(t *testing.T) {
	for name, set := range map[string]func(*agent.Agent){
		"limit":  func(a *agent.Agent) { a.Limits.MaxTime = 10 * time.Second },
		"budget": func(a *agent.Agent) { a.Budget = &agent.Budget{Time: 10 * time.Second} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := &memory{replies: []any{[]item.Item{call("z", "sleep", "60")}}}
				outer := &memory{replies: []any{[]item.Item{task("h", "a")}, []item.Item{item.Assistant("done")}}}
				a, _ := agents(t, outer, inner, new(gauge).sleeper("sleep", tool.ReadOnly()))
				set(a)
				store := new(session.Memory)
				s, err := session.Open(t.Context(), store, "s")
				if err != nil {
					t.Fatal(err)
				}
				events, err := drain(a.Stream(t.Context(), s, item.User("go")))
				if stop := stopOf(t, events); err != nil || stop.Why != string(agent.StopMaxTime) || !strings.HasPrefix(stop.Detail, "10s have passed") {
					t.Fatalf("%+v, %v", events[len(events)-1], err)
				}
				checkClosed(t, s, "outer")
				for _, n := range told[session.CallStarted](events) {
					in, err := session.Open(t.Context(), store, n.Session)
					if err != nil || n.Session == "" {
						t.Fatal(n, err)
					}
					checkClosed(t, in, "inner")
					contains(t, outputs(history(in))["z"], "interrupted")
				}
			})
		})
	}
}

// L7 L8: an approval wanted inside of a subagent stops the run around it too;
// it is answered there, in another process, and both go on where they were.
func TestNestedRunPauses(t *testing.T) {
	for _, name := range []string{"fork", "agent"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			l := new(ledger)
			write := l.tool("write")
			helper := &agent.Agent{Model: r.client(), Tools: []tool.Tool{write}, Policy: agent.Policy{Pause: true}}
			helper.Request.Model = "test-model"
			asTool, err := agent.AsTool("helper", "Helps.", helper)
			if err != nil {
				t.Fatal(err)
			}
			r.agent.Tools = []tool.Tool{agent.ForkTool(), asTool, write, l.tool("read", tool.ReadOnly())}
			r.agent.Policy = agent.Policy{Pause: true}
			r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
				body := string(req.Body)
				inner := strings.Contains(body, "the inner task\"") && !strings.Contains(body, `"r1"`) || strings.Contains(body, "You are the fork")
				switch {
				case inner && !strings.Contains(body, `"w"`):
					return agenttest.Completed(call("w", "write", "inside"))
				case inner:
					return agenttest.Completed(item.Assistant("inner answer"))
				case !strings.Contains(body, `"n1"`) && name == "fork":
					return agenttest.Completed(forkCall("n1", "the inner task"), call("r1", "read", "r"))
				case !strings.Contains(body, `"n1"`):
					return agenttest.Completed(task("n1", "the inner task"), call("r1", "read", "r"))
				}
				return agenttest.Completed(item.Assistant("done"))
			})
			res := r.run(item.User("go"))
			if res.Why != agent.StopApprovalPending || len(res.Pending) != 1 || !strings.HasPrefix(res.Pending[0].Session, "s/") {
				t.Fatalf("got %+v", res)
			}
			asked := len(r.server.Requests())
			r.reopen()
			if again := r.run(); again.Why != agent.StopApprovalPending || len(again.Pending) != 1 || len(r.server.Requests()) != asked {
				t.Fatalf("unanswered: %+v, %d requests", again, len(r.server.Requests())-asked)
			}
			wanted, err := agent.PendingApprovals(t.Context(), r.session)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(res.Pending, wanted); diff != "" {
				t.Errorf("wanted (-told +log):\n%s", diff)
			}
			p := through(t, wanted[0])
			r.reopen()
			if err := agent.Decide(t.Context(), r.session, agent.Decision{Session: p.Session, Number: p.Number, CallID: p.CallID, Allow: true}); err != nil {
				t.Fatal(err)
			}
			if res := r.run(); res.Why != agent.StopEndTurn || res.Text != "done" {
				t.Fatalf("then: %+v", res)
			}
			if diff := cmp.Diff(map[string]int{"inside": 1, "r": 1}, l.ran); diff != "" {
				t.Errorf("ran (-want +got):\n%s", diff)
			}
			if got := outputs(r.last())["n1"]; got != "inner answer" {
				t.Errorf("output: %q", got)
			}
		})
	}
}

// single is a store that keeps no sessions of subagents, such as a transcript.
type single struct{ session.Store }

// L7 L8 A4: where the session of a subagent is not kept, none of its calls
// waits, however deep: it is refused there, which whoever ranges over the events
// sees. Those of the run itself wait.
func TestNestedRunCannotPause(t *testing.T) {
	later := approver(agent.Decision{Later: true}, nil)
	for name, policy := range map[string]agent.Policy{
		"pause": {Pause: true, Hint: useAllow},
		"later": {Approver: later, Hint: useAllow},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &memory{replies: []any{[]item.Item{call("wi", "write", "inside")}, []item.Item{item.Assistant("mine")}}}
			middle := &memory{replies: []any{[]item.Item{task("m", "b"), call("wm", "write", "between")}, []item.Item{item.Assistant("ours")}}}
			outer := &memory{replies: []any{[]item.Item{item.Call("h", "middle", `{"task":"a"}`)}, []item.Item{call("wo", "write", "outside")}}}
			l := new(ledger)
			between, helper := agents(t, middle, inner, l.tool("write"))
			between.Policy, helper.Policy = policy, policy
			asTool, err := agent.AsTool("middle", "Helps.", between)
			if err != nil {
				t.Fatal(err)
			}
			a := &agent.Agent{Model: outer, Tools: []tool.Tool{asTool, l.tool("write")}, Policy: policy, Limits: agent.Limits{MaxDepth: 2}}
			s, err := session.Open(t.Context(), single{new(session.Memory)}, "s")
			if err != nil {
				t.Fatal(err)
			}
			events, err := drain(a.Stream(t.Context(), s, item.User("go")))
			if err != nil {
				t.Fatal(err)
			}
			refused := map[string]int{}
			unapproved := map[string]bool{}
			for _, ev := range events {
				n, _ := ev.(agent.SubagentEvent)
				if p, ok := n.Event.(agent.Progress); ok && p.Kind == agent.ProgressUnapproved {
					unapproved[p.CallID] = p.Tool == "write"
				}
				for _, c := range told[session.Approval]([]agent.Event{n.Event}) {
					if c.Allowed {
						continue
					}
					refused[c.CallID] = n.Depth
					if !unapproved[c.CallID] || c.Reason != "The call was refused: write needs an approval, and calls of subagents cannot wait for one here. Nothing was done. Use --allow write." {
						t.Errorf("%+v", c)
					}
				}
			}
			if diff := cmp.Diff(map[string]int{"wm": 1, "wi": 2}, refused); diff != "" {
				t.Errorf("refused, and how deep (-want +got):\n%s", diff)
			}
			waiting := progressOf(events, agent.ProgressWaiting)
			if stopOf(t, events).Why != string(agent.StopApprovalPending) || len(waiting) != 1 || waiting[0].Pending.CallID != "wo" || len(l.ran) > 0 {
				t.Errorf("%+v, ran %v", waiting, l.ran)
			}
			if got := outputs(history(s))["h"]; got != "ours" {
				t.Errorf("output: %q", got)
			}
		})
	}
}

// A5 L8: what is denied around a subagent is denied in it.
func TestDenyReachesInside(t *testing.T) {
	inner := &memory{replies: []any{[]item.Item{call("w", "write", "x")}, []item.Item{item.Assistant("mine")}}}
	outer := &memory{replies: []any{[]item.Item{task("h", "a")}, []item.Item{item.Assistant("done")}}}
	l := new(ledger)
	a, helper := agents(t, outer, inner, l.tool("write"))
	helper.Policy.Allow = []string{"*"}
	a.Policy.Deny = []string{"write"}
	if _, err := a.Run(t.Context(), session.New(), item.User("go")); err != nil || len(l.ran) > 0 {
		t.Errorf("ran %v, %v", l.ran, err)
	}
}

// L6 L8: whoever leaves at any event of a run with a fork leaves both logs in
// order, and nothing running.
func TestLeaveAtAnyEventOfFork(t *testing.T) {
	for n := 0; ; n++ {
		r, l := forking(t)
		seen := 0
		for range r.agent.Stream(t.Context(), r.session, item.User("go")) {
			if seen == n {
				break
			}
			seen++
		}
		checkClosed(t, r.session, fmt.Sprintf("event %d", n))
		for _, e := range r.session.Log() {
			if b, ok := e.Body.(session.SubagentUsage); ok {
				s, err := session.Open(t.Context(), r.store, b.Session)
				if err != nil {
					t.Fatal(err)
				}
				checkClosed(t, s, fmt.Sprintf("event %d, the fork", n))
			}
		}
		if seen < n {
			break
		}
		r.reopen()
		if res := r.run(item.User("go on")); res.Why != agent.StopEndTurn {
			t.Fatalf("event %d: then %+v", n, res)
		}
		r.inputs()
		for text, times := range l.ran {
			if times > 1 && text != "c1" {
				t.Errorf("event %d: %s ran %d times", n, text, times)
			}
		}
	}
}

// J1 F2: a crash after any entry of a run with a fork.
func TestCrashWithFork(t *testing.T) {
	whole, _ := forking(t)
	whole.run(item.User("go"))
	log := whole.session.Log()
	for n := range len(log) + 1 {
		r, l := forking(t)
		if err := r.store.Append(t.Context(), "s", 0, log[:n]); err != nil {
			t.Fatal(err)
		}
		r.reopen()
		if res := r.run(item.User("go on")); res.Text != "All done." {
			t.Fatalf("after entry %d: %+v", n, res)
		}
		r.inputs()
		for _, e := range log[:n] {
			if s, ok := e.Body.(session.CallStarted); ok && l.ran[s.CallID] > 0 {
				t.Errorf("after entry %d: %s is run again", n, s.CallID)
			}
		}
	}
}

// J1 F2: a crash after any entry of a fork. The run around it goes on, and so
// does the fork, where it was: what it finished is not run again.
func TestCrashInFork(t *testing.T) {
	whole, _ := forking(t)
	whole.run(item.User("go"))
	log := whole.session.Log()
	var outer, inner []session.Entry
	for i, e := range log {
		if b, ok := e.Body.(session.CallStarted); ok && b.CallID == "f1" {
			outer = log[:i+1]
			s, err := session.Open(t.Context(), whole.store, b.Session)
			if err != nil {
				t.Fatal(err)
			}
			inner = s.Log()
		}
	}
	forked := 0
	for i, e := range inner {
		if b, ok := e.Body.(session.InputItem); ok && b.Item == item.User("Look into it.\n\na\nb") {
			forked = i + 1
		}
	}
	for n := forked; n <= len(inner); n++ {
		r, l := forking(t)
		ran := map[string]int{}
		for _, e := range inner[forked:n] {
			if b, ok := e.Body.(session.CallStarted); ok {
				ran[b.CallID]++
			}
		}
		l.ran = ran
		ctx := t.Context()
		id := outer[len(outer)-1].Body.(session.CallStarted).Session
		if err := errors.Join(r.store.Append(ctx, "s", 0, outer), r.store.Append(ctx, id, 0, inner[:n])); err != nil {
			t.Fatal(err)
		}
		r.reopen()
		if res := r.run(); res.Text != "All done." {
			t.Fatalf("after entry %d: %+v", n, res)
		}
		if got := outputs(r.last())["f1"]; got != "It is so." && n < len(inner)-1 {
			t.Errorf("after entry %d: %q", n, got)
		}
		r.inputs()
		if l.ran["c1"] > 1 {
			t.Errorf("after entry %d: c1 ran %d times", n, l.ran["c1"])
		}
	}
}

// L6 L8: a run is over when what is nested in it is: its log is in order by then,
// however long its tools take to give up.
func TestCancelWaitsForNestedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		defer func() { close(release); synctest.Wait() }()
		deaf := textTool("deaf", func(context.Context, string) (string, error) { cancel(); <-release; return "", nil }, tool.ReadOnly())
		inner := &memory{replies: []any{[]item.Item{call("d", "deaf", "")}}}
		outer := &memory{replies: []any{[]item.Item{task("h1", "a"), task("h2", "b")}}}
		a, _ := agents(t, outer, inner, deaf)
		store := new(session.Memory)
		s, err := session.Open(ctx, store, "s")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Run(ctx, s, item.User("go")); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		checkClosed(t, s, "outer")
		began := 0
		for _, c := range s.Log() {
			b, ok := c.Body.(session.CallStarted)
			if !ok {
				continue
			}
			in, err := session.Open(context.Background(), store, b.Session)
			if err != nil {
				t.Fatal(b, err)
			}
			if len(in.Log()) > 0 { // one may have been cancelled before
				checkClosed(t, in, "inner")
				began++
			}
		}
		if began == 0 {
			t.Error("nothing was nested")
		}
	})
}

// L4: a budget gives a turn only if those around it do, and takes nothing
// otherwise.
func TestBudgetTakes(t *testing.T) {
	outer := &agent.Budget{Turns: 2, Tokens: 100}
	inner := outer.Child()
	inner.Turns = 5
	for range 2 {
		if err := inner.Take(); err != nil {
			t.Fatal(err)
		}
	}
	var b *agent.BudgetError
	if err := inner.Take(); !errors.As(err, &b) || b.Why != agent.StopMaxTurns || inner.Used().Turns != 2 || outer.Used().Turns != 2 {
		t.Errorf("%v: inner %+v, outer %+v", err, inner.Used(), outer.Used())
	}
	inner.Spend(agent.Usage{Tokens: 100, Cost: 3})
	if err := outer.Take(); err == nil || outer.Used() != (agent.Usage{Turns: 2, Tokens: 100, Cost: 3}) {
		t.Errorf("%v: %+v", err, outer.Used())
	}
	if err := (*agent.Budget)(nil).Take(); err != nil {
		t.Error(err)
	}
}
