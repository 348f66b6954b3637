// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// lostCall is a session that a crash ended while the tool of call c1 ran, as
// often as that.
func lostCall(t *testing.T, times int, repeatable bool) (*rig, *ledger) {
	t.Helper()
	r, l := newRig(t, agenttest.Completed(item.Assistant("done"))), new(ledger)
	log := []session.Body{
		session.RunStarted{}, session.InputItem{Item: item.User("go")},
		session.TurnStarted{Turn: 1}, session.OutputItem{Turn: 1, Item: call("c1", "work", "x")},
		session.TurnEnded{Turn: 1, Status: item.StatusCompleted}, session.Approval{CallID: "c1", Allowed: true},
	}
	for n := range times {
		if n > 0 {
			log = append(log, session.RunStarted{})
		}
		log = append(log, session.CallStarted{CallID: "c1", Repeatable: repeatable})
	}
	if _, err := r.session.Append(t.Context(), log...); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	return r, l
}

// J1: what may have run is run again only if its tool declares that this does no
// harm, by the log and by now, and not for ever.
func TestLostCall(t *testing.T) {
	for name, c := range map[string]struct {
		starts     int
		repeatable bool
		opts       []tool.Option
		ran        int
	}{
		"not declared":          {starts: 1},
		"declared":              {starts: 1, repeatable: true, opts: []tool.Option{tool.Idempotent()}, ran: 1},
		"lost twice":            {starts: 2, repeatable: true, opts: []tool.Option{tool.Idempotent()}, ran: 1},
		"lost three times":      {starts: 3, repeatable: true, opts: []tool.Option{tool.Idempotent()}},
		"declared in time only": {starts: 1, repeatable: true},
		"declared too late":     {starts: 1, opts: []tool.Option{tool.Idempotent()}},
	} {
		r, l := lostCall(t, c.starts, c.repeatable)
		r.agent.Tools = []tool.Tool{l.tool("work", c.opts...)}
		if res := r.run(); res.Text != "done" {
			t.Errorf("%s: %+v", name, res)
		}
		out := outputs(r.last())["c1"]
		if l.ran["x"] != c.ran || c.ran == 1 != (out == "x") || c.ran == 0 != strings.Contains(out, "Whether it took effect is not known.") {
			t.Errorf("%s: it ran %d times, its output is %q", name, l.ran["x"], out)
		}
	}
}

// J1: a call that was lost and may be repeated is not said to be untouched when
// nobody repeats it.
func TestLostCallIsNotRepeated(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	refuse := agent.Hooks{BeforeTool: func(ctx context.Context, _ *agent.ToolCall) (context.Context, error) {
		return ctx, errors.New("not now")
	}}
	for name, c := range map[string]struct {
		ctx   context.Context
		tools func(*ledger) []tool.Tool
		hooks []agent.Hooks
	}{
		"cancelled": {ended, func(l *ledger) []tool.Tool { return []tool.Tool{l.tool("work", tool.Idempotent())} }, nil},
		"refused":   {t.Context(), func(l *ledger) []tool.Tool { return []tool.Tool{l.tool("work", tool.Idempotent())} }, []agent.Hooks{refuse}},
		"no tool":   {t.Context(), func(*ledger) []tool.Tool { return nil }, nil},
	} {
		r, l := lostCall(t, 1, true)
		r.agent.Tools, r.agent.Hooks = c.tools(l), c.hooks
		if _, err := r.agent.Run(c.ctx, r.session); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if out := outputs(history(r.session))["c1"]; l.ran["x"] > 0 || !strings.Contains(out, "Whether it took effect is not known.") {
			t.Errorf("%s: it ran %d times, its output is %q", name, l.ran["x"], out)
		}
	}
}

// F3 J1: a fork of a session in which a subagent waits does not do again what
// that run did, nor answer for it.
func TestForkWhileNestedRunWaits(t *testing.T) {
	r, l := newRig(t), new(ledger)
	inner := &agent.Agent{Model: r.client(), Tools: []tool.Tool{l.tool("read", tool.ReadOnly()), l.tool("write")}, Policy: agent.Policy{Pause: true}}
	helper, err := agent.AsTool("helper", "Helps.", inner)
	if err != nil {
		t.Fatal(err)
	}
	r.agent.Tools = []tool.Tool{helper}
	r.server.Otherwise(func(_ int, req agenttest.Request) agenttest.Reply {
		switch body := string(req.Body); {
		case strings.Contains(body, `"n1"`):
			return agenttest.Completed(item.Assistant("done"))
		case strings.Contains(body, "the inner task"):
			return agenttest.Completed(call("r", "read", "r"), call("w", "write", "w"))
		}
		return agenttest.Completed(task("n1", "the inner task"))
	})
	if res := r.run(item.User("go")); res.Why != agent.StopApprovalPending {
		t.Fatalf("got %+v", res)
	}
	fork, err := r.session.Fork(t.Context(), int64(len(r.session.Log())), "f")
	if err != nil {
		t.Fatal(err)
	}
	if wanted, err := agent.PendingApprovals(t.Context(), fork); err != nil || len(wanted) > 0 {
		t.Errorf("the fork wants %v, %v", wanted, err)
	}
	res, err := r.agent.Run(t.Context(), fork)
	if err != nil || res.Text != "done" {
		t.Fatalf("the fork: %+v, %v", res, err)
	}
	if out := outputs(history(fork))["n1"]; l.ran["r"] != 1 || !strings.Contains(out, "belongs to another session") {
		t.Errorf("read ran %d times, the output is %q", l.ran["r"], out)
	}
	if wanted, err := agent.PendingApprovals(t.Context(), r.session); err != nil || len(wanted) != 1 {
		t.Errorf("the session wants %v, %v", wanted, err)
	}
}

// J1: a call that is started again and comes to nothing is not said to be
// untouched: it may have run the first time.
func TestRepeatedCallComesToNothing(t *testing.T) {
	for name, change := range map[string]func(ctx context.Context, cancel func(), c *agent.ToolCall){
		"cancelled":     func(_ context.Context, cancel func(), _ *agent.ToolCall) { cancel() },
		"bad arguments": func(_ context.Context, _ func(), c *agent.ToolCall) { c.Call.Arguments = "{" },
	} {
		r, l := lostCall(t, 1, true)
		ctx, cancel := context.WithCancel(t.Context())
		r.agent.Tools = []tool.Tool{l.tool("work", tool.Idempotent())}
		r.agent.Hooks = []agent.Hooks{{BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
			change(ctx, cancel, c)
			return ctx, nil
		}}}
		if _, err := r.agent.Run(ctx, r.session); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if out := outputs(history(r.session))["c1"]; l.ran["x"] > 0 || !strings.Contains(out, "Whether it took effect is not known.") {
			t.Errorf("%s: it ran %d times, its output is %q", name, l.ran["x"], out)
		}
	}
}
