// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// gauge counts how many calls run at the same time.
type gauge struct {
	running, most atomic.Int64
	alone         atomic.Bool // an exclusive call saw no other
}

func (g *gauge) enter() { g.most.Store(max(g.most.Load(), g.running.Add(1))) }

// sleeper is a tool that takes as many seconds as its text says.
func (g *gauge) sleeper(name string, opts ...tool.Option) tool.Tool {
	return textTool(name, func(ctx context.Context, s string) (string, error) {
		g.enter()
		defer g.running.Add(-1)
		n, err := strconv.Atoi(s)
		if err != nil {
			return "", err
		}
		select {
		case <-time.After(time.Duration(n) * time.Second):
			return s, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, opts...)
}

// sleepers are calls c1, c2 … that take n seconds, n-1 seconds …
func sleepers(n int, name string) (calls []item.Item) {
	for i := range n {
		calls = append(calls, call(fmt.Sprintf("c%d", i+1), name, strconv.Itoa(n-i)))
	}
	return calls
}

// L3 L2: calls run at once up to the bound; outputs come in call order though
// the calls finish in another. The time is a bubble's.
func TestParallelUpToTheBound(t *testing.T) {
	for _, c := range []struct{ parallel, calls, want int }{
		{0, 12, 8}, {0, 3, 3}, {2, 6, 2}, {1, 4, 1}, {-1, 4, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := new(gauge)
			m := &memory{replies: []any{sleepers(c.calls, "sleep"), []item.Item{item.Assistant("done")}}}
			a := &agent.Agent{Model: m, Tools: []tool.Tool{g.sleeper("sleep", tool.ReadOnly())}, Parallel: c.parallel}
			events, err := drain(a.Stream(t.Context(), session.New(), item.User("go")))
			if err != nil {
				t.Fatal(err)
			}
			if got := int(g.most.Load()); got != c.want {
				t.Errorf("bound %d: %d of %d calls ran at once, want %d", c.parallel, got, c.calls, c.want)
			}
			var ids, want []string
			for _, it := range m.asked[1].Input.All() {
				if it.IsOutput() {
					ids = append(ids, it.CallID())
				}
			}
			for i := range c.calls {
				want = append(want, fmt.Sprintf("c%d", i+1))
			}
			if diff := cmp.Diff(want, ids); diff != "" {
				t.Errorf("bound %d: outputs (-want +got):\n%s", c.parallel, diff)
			}
			if done := told[session.CallOutput](events); c.want > 1 && done[0].CallID == "c1" {
				t.Errorf("bound %d: the longest call was done first", c.parallel)
			}
		})
	}
}

// L3: parallel_tool_calls false is one after the other, in order.
func TestSequential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(gauge)
		m := &memory{replies: []any{sleepers(4, "sleep"), []item.Item{item.Assistant("done")}}}
		a := &agent.Agent{Model: m, Tools: []tool.Tool{g.sleeper("sleep", tool.ReadOnly())}}
		a.Request.ParallelToolCalls = new(bool)
		events, err := drain(a.Stream(t.Context(), session.New(), item.User("go")))
		if err != nil {
			t.Fatal(err)
		}
		if got := g.most.Load(); got != 1 {
			t.Errorf("%d calls ran at once", got)
		}
		for i, d := range told[session.CallOutput](events) {
			if want := fmt.Sprintf("c%d", i+1); d.CallID != want {
				t.Errorf("call %d to be done is %s", i, d.CallID)
			}
		}
	})
}

// L3: an exclusive tool runs alone, others before and behind it side by side.
func TestExclusiveRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(gauge)
		g.alone.Store(true)
		exclusive := textTool("exclusive", func(context.Context, string) (string, error) {
			if g.running.Load() != 0 {
				g.alone.Store(false)
			}
			g.running.Add(1)
			defer g.running.Add(-1)
			time.Sleep(time.Second)
			if g.running.Load() != 1 {
				g.alone.Store(false)
			}
			return "ok", nil
		}, tool.ReadOnly(), tool.Exclusive())
		m := &memory{replies: []any{
			[]item.Item{call("c1", "sleep", "3"), call("c2", "sleep", "2"), call("c3", "exclusive", ""), call("c4", "exclusive", ""), call("c5", "sleep", "2"), call("c6", "sleep", "1")},
			[]item.Item{item.Assistant("done")},
		}}
		a := &agent.Agent{Model: m, Tools: []tool.Tool{g.sleeper("sleep", tool.ReadOnly()), exclusive}}
		if _, err := a.Run(t.Context(), session.New(), item.User("go")); err != nil {
			t.Fatal(err)
		}
		if !g.alone.Load() {
			t.Error("the exclusive tool did not run alone")
		}
		if got := g.most.Load(); got != 2 {
			t.Errorf("%d of the other calls ran at once, want 2", got)
		}
	})
}

// T15: a call that runs out of its own time does not touch the others.
func TestTimeoutOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(gauge)
		m := &memory{replies: []any{
			[]item.Item{call("c1", "hasty", "60"), call("c2", "sleep", "30")},
			[]item.Item{item.Assistant("done")},
		}}
		a := &agent.Agent{Model: m, Tools: []tool.Tool{
			g.sleeper("hasty", tool.ReadOnly(), tool.Timeout(10*time.Second)), g.sleeper("sleep", tool.ReadOnly()),
		}}
		s := session.New()
		if _, err := a.Run(t.Context(), s, item.User("go")); err != nil {
			t.Fatal(err)
		}
		got := outputs(history(s))
		contains(t, got["c1"], "error: ", "10s")
		if got["c2"] != "30" {
			t.Errorf("the sibling's output: %q", got["c2"])
		}
	})
}

// L4: the time limit ends what is under way, a call or a reply; the history is
// valid and a second run goes on.
func TestTimeLimit(t *testing.T) {
	waiting := listen(func(ctx context.Context, yield func(api.Event, error) bool) {
		yield(event(`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","status":"in_progress","content":[]}}`), nil)
		yield(event(`{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"So fa"}`), nil)
		<-ctx.Done()
		yield(api.Event{}, ctx.Err())
	})
	for name, c := range map[string]struct {
		reply any
		want  string
	}{
		"in a call":  {[]item.Item{call("c1", "sleep", "3600")}, "c1 = error: " + tool.Interrupted},
		"in a reply": {waiting, "assistant: So fa (incomplete)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				m := &memory{replies: []any{c.reply, []item.Item{item.Assistant("done")}}}
				a := &agent.Agent{Model: m, Tools: []tool.Tool{new(gauge).sleeper("sleep", tool.ReadOnly())}, Limits: agent.Limits{MaxTime: time.Minute}}
				s := session.New()
				res, err := a.Run(t.Context(), s, item.User("go"))
				if err != nil || res.Why != agent.StopMaxTime || res.Detail != "1m0s have passed" {
					t.Errorf("got %v %q, %v", res.Why, res.Detail, err)
				}
				if took := time.Since(began); took < time.Minute || took > time.Minute+time.Second {
					t.Errorf("it took %v", took)
				}
				got := outline(history(s))
				if last := len(got) - 1; got[last] == brokenOff {
					got = got[:last]
				}
				if got[len(got)-1] != c.want {
					t.Errorf("history: %q", got)
				}
				if res, err = a.Run(t.Context(), s); err != nil || res.Why != agent.StopEndTurn {
					t.Errorf("then got %v, %v", res.Why, err)
				}
			})
		})
	}
}

// L6: a cancel ends calls within the time that a tool is given, even one that
// does not listen.
func TestCancelOfDeafTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		defer func() { close(release); synctest.Wait() }()
		deaf := textTool("deaf", func(context.Context, string) (string, error) { cancel(); <-release; return "", nil }, tool.ReadOnly())
		m := &memory{replies: []any{[]item.Item{call("c1", "deaf", ""), call("c2", "deaf", "")}}}
		a := &agent.Agent{Model: m, Tools: []tool.Tool{deaf}, Parallel: 1}
		s := session.New()
		began := time.Now()
		res, err := a.Run(ctx, s, item.User("go"))
		if !errors.Is(err, context.Canceled) || res.Why != agent.StopCancelled {
			t.Errorf("got %v, %v", res.Why, err)
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		got := outputs(history(s))
		contains(t, got["c1"], "interrupted")
		contains(t, got["c2"], "not started")
	})
}

// T7 L3: the outputs of a turn share its limit. Small ones are recorded as they
// come, large ones when all are there, in call order.
func TestOutputsShareTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := textTool("large", func(_ context.Context, s string) (string, error) {
			n, _ := strconv.Atoi(s)
			time.Sleep(time.Duration(10-n) * time.Second)
			return strings.Repeat(s, 50_000), nil
		}, tool.ReadOnly())
		m := &memory{replies: []any{
			[]item.Item{call("c1", "large", "1"), call("c2", "sleep", "2"), call("c3", "large", "3"), call("c4", "large", "4")},
			[]item.Item{item.Assistant("done")},
		}}
		a := &agent.Agent{Model: m, Tools: []tool.Tool{large, new(gauge).sleeper("sleep", tool.ReadOnly())}}
		a.Output.PerTurn = &output.Limit{Bytes: 60_000}
		s := session.New()
		events, err := drain(a.Stream(t.Context(), s, item.User("go")))
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, d := range told[session.CallOutput](events) {
			order = append(order, d.CallID)
		}
		if diff := cmp.Diff([]string{"c2", "c1", "c3", "c4"}, order); diff != "" {
			t.Errorf("done (-want +got):\n%s", diff)
		}
		total := 0
		for id, out := range outputs(history(s)) {
			total += len(out)
			if id != "c2" && (len(out) < 10_000 || len(out) > 25_000) {
				t.Errorf("%s: %d bytes", id, len(out))
			}
		}
		if total > 61_000 {
			t.Errorf("%d bytes together", total)
		}
	})
}
