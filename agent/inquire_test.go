// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// A call whose process ended is asked about by its key: what is known of it becomes
// its output, and only a call that had no effect runs again.
func TestInquire(t *testing.T) {
	const unknown = "Whether it took effect is not known."
	for name, c := range map[string]struct {
		fate       tool.Fate
		err        error
		panics     bool
		idempotent bool
		output     string
		runs       int
	}{
		"done":                 {fate: tool.FateDone, output: "it was sent"},
		"never":                {fate: tool.FateNever, output: "sent now", runs: 1},
		"unknown":              {fate: tool.FateUnknown, output: unknown},
		"an error":             {fate: tool.FateDone, err: errors.New("the service is away"), output: unknown},
		"a panic":              {panics: true, output: "panicked"},
		"unknown, but no harm": {fate: tool.FateUnknown, idempotent: true, output: "sent now", runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, agenttest.Completed(item.Assistant("done")))
			var first tool.Call
			runs := 0
			options := []tool.Option{tool.Inquire(func(_ context.Context, call tool.Call) (tool.Result, tool.Fate, error) {
				if first = call; c.panics {
					panic("no idea")
				}
				return tool.Result{Text: "it was sent"}, c.fate, c.err
			})}
			if c.idempotent {
				options = append(options, tool.Idempotent())
			}
			r.agent.Tools = []tool.Tool{textTool("send", func(ctx context.Context, _ string) (string, error) {
				runs++
				if call, ok := tool.FromContext(ctx); !ok || call.Key() != first.Key() || !call.Again {
					t.Errorf("it runs as %+v, and was asked about as %+v", call, first)
				}
				return "sent now", nil
			}, options...)}
			_, err := r.session.Append(t.Context(), session.RunStarted{}, session.InputItem{Item: item.User("go")}, session.TurnStarted{Turn: 1},
				session.OutputItem{Turn: 1, Item: call("c1", "send", "x")}, session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
				session.Approval{CallID: "c1", Allowed: true}, session.CallStarted{CallID: "c1", Repeatable: true})
			if err != nil {
				t.Fatal(err)
			}
			if res := r.run(); res.Why != agent.StopEndTurn {
				t.Fatalf("%+v", res)
			}
			contains(t, outputs(r.last())["c1"], c.output)
			if runs != c.runs || len(first.Key()) != 32 || first.Session != "s" || first.Number != 1 {
				t.Errorf("it ran %d times, want %d; asked about %+v", runs, c.runs, first)
			}
		})
	}
}

// The key of a call is the same in each process, and that of no other call: of another
// number, session, or fork.
func TestCallKey(t *testing.T) {
	one := tool.Call{ID: "c1", Session: "s", Number: 1, Arguments: "{}"}
	again := one
	again.Again, again.Edited, again.Arguments = true, true, `{"a":1}`
	if one.Key() == "" || again.Key() != one.Key() {
		t.Errorf("%q and then %q", one.Key(), again.Key())
	}
	seen := map[string]bool{one.Key(): true}
	for _, other := range []tool.Call{{ID: "c1", Session: "s", Number: 2}, {ID: "c2", Session: "s", Number: 1}, {ID: "c1", Session: "s/1", Number: 1}, {ID: `c1" of "s`, Session: "", Number: 1}, {ID: "c1", Session: `s" of "s`, Number: 1}} {
		if key := other.Key(); seen[key] {
			t.Errorf("%+v has the key of another", other)
		} else if other.Session != "" {
			seen[key] = true
		}
	}
}
