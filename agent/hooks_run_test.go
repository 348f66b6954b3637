// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// pairing notes befores and afters, the latter with what came of it.
func pairing(notes *[]string) agent.Hooks {
	note := func(format string, args ...any) { *notes = append(*notes, fmt.Sprintf(format, args...)) }
	enter := func(ctx context.Context, what string) context.Context {
		in, _ := ctx.Value(spanKey{}).(string)
		note("%s in %q", what, in)
		return context.WithValue(ctx, spanKey{}, what)
	}
	return agent.Hooks{
		BeforeRun: func(ctx context.Context, c *agent.RunCall) (context.Context, error) {
			return enter(ctx, fmt.Sprintf("run %d", c.Depth)), nil
		},
		AfterRun: func(_ context.Context, c *agent.RunCall) error {
			note("ended %d: %s after %d turns, %v", c.Depth, c.Why, c.Totals.Turns, c.Err)
			return nil
		},
		BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) { return enter(ctx, "ask"), nil },
		AfterModel: func(_ context.Context, c *agent.ModelCall) error {
			note("asked: %s of %s, %d items", c.Status, c.ResponseModel, len(c.Output))
			return nil
		},
		BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
			return enter(ctx, "call "+c.Call.ID), nil
		},
		AfterTool: func(_ context.Context, c *agent.ToolCall) error {
			note("called %s: %s", c.Call.ID, c.Failure)
			return nil
		},
		CallRefused: func(ctx context.Context, c *agent.ToolCall) error {
			note("refused %s of %s in %q: %v", c.Call.ID, c.Call.Name, ctx.Value(spanKey{}), c.Error != "")
			return nil
		},
	}
}

// Hooks see runs, nested ones too, and calls that are refused.
func TestHooksOfRuns(t *testing.T) {
	var notes []string
	r := newRig(t, agenttest.Completed(call("d", "deny", "x")), agenttest.Completed(item.Call("f", "fork", `{"command":"Go."}`)),
		agenttest.Completed(item.Assistant("gone")), agenttest.Completed(item.Assistant("done")))
	r.agent.Tools = []tool.Tool{agent.ForkTool(), textTool("deny", func(context.Context, string) (string, error) { return "", nil })}
	r.agent.Policy.Deny = []string{"deny"}
	r.agent.Hooks = []agent.Hooks{pairing(&notes)}
	r.run(item.User("go"))
	want := []string{
		`run 0 in ""`, `ask in "run 0"`, "asked: completed of test-model, 1 items", `refused d of deny in "run 0": true`,
		`ask in "run 0"`, "asked: completed of test-model, 1 items",
		`call f in "run 0"`, `run 1 in "call f"`, `ask in "run 1"`, "asked: completed of test-model, 1 items", "ended 1: answered after 1 turns, <nil>", "called f: ",
		`ask in "run 0"`, "asked: completed of test-model, 1 items", "ended 0: answered after 3 turns, <nil>",
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A hook may object to a run as a whole, and to how it ended.
func TestHooksVetoRun(t *testing.T) {
	no := errors.New("not today")
	r := hooked(t, agent.Hooks{BeforeRun: func(ctx context.Context, _ *agent.RunCall) (context.Context, error) { return ctx, no }})
	res, err := r.agent.Run(t.Context(), r.session, item.User("go"))
	if !errors.Is(err, no) || res.Why != agent.StopVetoed || len(r.server.Requests()) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	checkClosed(t, r.session, "vetoed")

	r = hooked(t, agent.Hooks{AfterRun: func(context.Context, *agent.RunCall) error { return no }})
	if res, err := r.agent.Run(t.Context(), r.session, item.User("go")); !errors.Is(err, no) || res.Why != agent.StopEndTurn {
		t.Errorf("%+v, %v", res, err)
	}
}

// fullStore fails at each entry of one kind.
type fullStore struct {
	session.Store

	at string
}

func (f *fullStore) Append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	for _, e := range entries {
		if fmt.Sprintf("%T", e.Body) == f.at {
			return errors.New("the disk is full")
		}
	}
	return f.Store.Append(ctx, id, after, entries)
}

// Wherever the store fails, each before has its after.
func TestHooksPair(t *testing.T) {
	for _, at := range []string{"RunStarted", "TurnStarted", "OutputItem", "TurnEnded", "Approval", "CallStarted", "CallOutput", "Stopped"} {
		t.Run(at, func(t *testing.T) {
			began, ended := 0, 0
			before := func(ctx context.Context) (context.Context, error) { began++; return ctx, nil }
			after := func() error { ended++; return nil }
			r := hooked(t, agent.Hooks{
				BeforeRun:   func(ctx context.Context, _ *agent.RunCall) (context.Context, error) { return before(ctx) },
				BeforeModel: func(ctx context.Context, _ *agent.ModelCall) (context.Context, error) { return before(ctx) },
				BeforeTool:  func(ctx context.Context, _ *agent.ToolCall) (context.Context, error) { return before(ctx) },
				AfterRun:    func(context.Context, *agent.RunCall) error { return after() },
				AfterModel:  func(context.Context, *agent.ModelCall) error { return after() },
				AfterTool:   func(context.Context, *agent.ToolCall) error { return after() },
			})
			s, err := session.Open(t.Context(), &fullStore{r.store, "session." + at}, "s")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.agent.Run(t.Context(), s, item.User("go")); err == nil {
				t.Error("the store's error is lost")
			}
			if began != ended || began == 0 {
				t.Errorf("%d befores, %d afters", began, ended)
			}
		})
	}
}
