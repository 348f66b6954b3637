// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tracing"
)

// long is a traced agent on a session that is to be compacted.
func long(t *testing.T, o tracing.Options, answers ...agenttest.Reply) *rig {
	t.Helper()
	r := newRig(t, o, answers...)
	r.agent.Prices = func(string) (agent.Price, bool) { return agent.Price{Input: 1000, Cached: 100, Output: 2000}, true }
	r.agent.Compaction = agent.Compaction{At: 2000, Keep: 400}
	for range 8 {
		if _, err := r.session.Append(t.Context(), session.InputItem{Item: item.User("and then?")}, session.InputItem{Item: item.Assistant(strings.Repeat("blue whale ", 200))}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestCompaction(t *testing.T) {
	for _, content := range []bool{false, true} {
		r := long(t, tracing.Options{Content: content}, agenttest.Completed(item.Assistant("a narwhal")), agenttest.Completed(item.Assistant("done")))
		if res, err := r.run("go"); err != nil || res.Why != agent.StopEndTurn || res.Compactions != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		want := `caller
  invoke_agent why=answered
    compact attempts=1
    chat test-model finish_reasons=["stop"] attempts=1
`
		if diff := cmp.Diff(want, r.tree()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		got := attrs(r.named("compact")[0].Attributes)
		for key, want := range map[string]string{
			"gen_ai.operation.name": "compact", "gen_ai.conversation.id": "memory", "gen_ai.request.model": "test-model", "antiphon.depth": "0",
			"antiphon.compact.by": session.BySummary, "antiphon.request_id": "req_0", "http.response.status_code": "200",
		} {
			if got[key] != want {
				t.Errorf("%s is %q, want %q", key, got[key], want)
			}
		}
		for _, key := range []string{"antiphon.compact.replaced_items", "antiphon.compact.before_tokens", "antiphon.compact.after_tokens", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "antiphon.cost"} {
			if got[key] == "" || got[key] == "0" {
				t.Errorf("%s is %q", key, got[key])
			}
		}
		if strings.Contains(r.all(), "narwhal") != content {
			t.Errorf("Content %v: the summary is told: %v", content, !content)
		}
		if n := attrs(r.named("invoke_agent")[0].Attributes)["antiphon.run.compactions"]; n != "1" {
			t.Errorf("%s compactions", n)
		}
	}
}

// What a summary takes is counted once, as the run counts it.
func TestCompactionMetrics(t *testing.T) {
	r := long(t, tracing.Options{}, agenttest.Completed(item.Assistant("a narwhal")), agenttest.Completed(item.Assistant("done")))
	if _, err := r.run("go"); err != nil {
		t.Fatal(err)
	}
	text, sums := r.metrics()
	want := `antiphon.calls antiphon.compact.by=summary operation.name=compact provider.name=openai request.model=test-model: 1
client.inference.duration antiphon.compact.by=summary operation.name=compact provider.name=openai request.model=test-model: 1
client.inference.operation.input_tokens antiphon.compact.by=summary operation.name=compact provider.name=openai request.model=test-model: 1
client.inference.operation.output_tokens antiphon.compact.by=summary operation.name=compact provider.name=openai request.model=test-model: 1
`
	got := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "gen_ai.", "")) {
		if strings.Contains(line, "=compact ") {
			got += line
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	n := r.totals
	if all := sums["gen_ai.client.inference.usage.input_tokens"] + sums["gen_ai.client.inference.usage.output_tokens"]; int64(all) != n.TotalTokens || all == 0 {
		t.Errorf("%v tokens, but the run counts %+v", all, n)
	}
	if math.Abs(sums["antiphon.cost"]-n.Cost) > 1e-9 || n.Cost == 0 {
		t.Errorf("cost %v, but the run counts %+v", sums["antiphon.cost"], n)
	}
}

// A compaction that fails is a failure in the trace, whoever finds it so.
func TestCompactionFails(t *testing.T) {
	for _, c := range []struct {
		name, want string
		answer     agenttest.Reply
		hook       func(context.Context, *agent.CompactionCall) error
	}{
		{"refused", "compact attempts=1 type=auth", agenttest.Failure(401, "invalid_api_key", "no"), nil},
		{"nothing gained", "compact attempts=1 type=_OTHER", agenttest.Completed(item.Assistant(strings.Repeat("narwhal ", 4000))), nil},
		{"vetoed", "compact type=vetoed", agenttest.Reply{}, func(context.Context, *agent.CompactionCall) error { return errors.New("no") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := []agenttest.Reply{c.answer, agenttest.Completed(item.Assistant("done"))}
			if c.hook != nil {
				answers = answers[1:]
			}
			r := long(t, tracing.Options{}, answers...)
			if c.hook != nil {
				r.agent.Hooks = append(r.agent.Hooks, agent.Hooks{BeforeCompact: func(ctx context.Context, call *agent.CompactionCall) (context.Context, error) {
					return ctx, c.hook(ctx, call)
				}})
			}
			if res, err := r.run("go"); err != nil || res.Why != agent.StopEndTurn {
				t.Fatalf("%+v, %v", res, err)
			}
			if tree := r.tree(); !strings.Contains(tree, c.want+"\n") {
				t.Errorf("want %q in\n%s", c.want, tree)
			}
			text, _ := r.metrics()
			if !strings.Contains(text, "antiphon.failures ") {
				t.Errorf("no failure is counted:\n%s", text)
			}
		})
	}
}

// A compaction outside of a run is below the caller's span.
func TestCompactionAlone(t *testing.T) {
	r := long(t, tracing.Options{})
	r.agent.Compaction.By = session.ByDropping
	ctx, span := r.traces.Tracer("caller").Start(t.Context(), "caller")
	if _, err := r.agent.Compact(ctx, r.session); err != nil {
		t.Fatal(err)
	}
	span.End()
	if diff := cmp.Diff("caller\n  compact\n", r.tree()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := attrs(r.named("compact")[0].Attributes); got["antiphon.compact.by"] != session.ByDropping || got["gen_ai.request.model"] != "" {
		t.Errorf("%v", got)
	}
}
