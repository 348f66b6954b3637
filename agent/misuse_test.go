// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

type modelFunc func(context.Context, *api.Request) iter.Seq2[api.Event, error]

func (f modelFunc) Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
	return f(ctx, req)
}

// unfilled is a tool whose embedded interface was forgotten.
type unfilled struct{ tool.Tool }

// Mistakes of a program are errors that say what to do. G8
func TestMisuse(t *testing.T) {
	none := modelFunc(func(context.Context, *api.Request) iter.Seq2[api.Event, error] { return nil })
	agree := func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) { return nil, nil }
	for want, a := range map[string]*agent.Agent{
		"the Stream of the Model agent_test.modelFunc returned nil": {Model: none},
		"candidate 1": {Model: agent.Fallback{{Model: agent.Fallback{{Model: none}}}}},
		"the Stream of the Model agent_test.modelFunc returned nil: want": {Model: agent.Fallback{{Model: none}}},
		"the tool of type agent_test.unfilled cannot be described":        {Model: none, Tools: []tool.Tool{unfilled{}}},
		"has the Timeout -1ns: want a positive one":                       {Model: none, Guards: []agent.Guard{{Timeout: -1, Input: agree}}},
	} {
		if _, err := a.Run(t.Context(), session.New(), item.User("go")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A panic of a Model reaches the caller, and the session goes on: it is not locked, and nothing was
// lost. J1
func TestModelPanics(t *testing.T) {
	store := new(session.Memory)
	broken := true
	right := agenttest.Script(t, agenttest.Completed(item.Assistant("done")))
	a := &agent.Agent{Model: modelFunc(func(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error] {
		if broken {
			panic("boom")
		}
		return right.Stream(ctx, req)
	})}
	run := func(input ...item.Item) (res *agent.Result, panicked any, err error) {
		defer func() { panicked = recover() }()
		s, err := session.Open(t.Context(), store, "s")
		if err != nil {
			t.Fatal(err)
		}
		res, err = a.Run(t.Context(), s, input...)
		return res, nil, err
	}
	if _, panicked, _ := run(item.User("go")); panicked != "boom" {
		t.Errorf("%v", panicked)
	}
	broken = false
	if res, _, err := run(); err != nil || res.Text != "done" {
		t.Errorf("%+v, %v", res, err)
	}
}
