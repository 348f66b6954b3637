// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// hooked is a rig with one call of echo and then an answer.
func hooked(t *testing.T, hooks ...agent.Hooks) *rig {
	r := newRig(t, agenttest.Completed(call("c", "echo", "hi")), agenttest.Completed(item.Assistant("done")), agenttest.Completed(item.Assistant("again")))
	r.agent.Tools = []tool.Tool{echo()}
	r.agent.Hooks = hooks
	return r
}

type spanKey struct{}

// tracer notes its calls, and the span it is in.
func tracer(name string, notes *[]string) agent.Hooks {
	note := func(ctx context.Context, what string) context.Context {
		in, _ := ctx.Value(spanKey{}).(string)
		*notes = append(*notes, name+" "+what+" in "+in)
		return context.WithValue(ctx, spanKey{}, strings.TrimPrefix(in+">"+name, ">"))
	}
	return agent.Hooks{
		BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) { return note(ctx, "ask"), nil },
		AfterModel:  func(ctx context.Context, c *agent.ModelCall) error { note(ctx, c.Status); return nil },
		BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
			return note(ctx, c.Call.Name), nil
		},
		AfterTool: func(ctx context.Context, c *agent.ToolCall) error { note(ctx, c.Output.Display()); return nil },
	}
}

// Hooks nest, and what they open is around what they look at. They see all that
// a trace needs.
func TestHooksCompose(t *testing.T) {
	var notes []string
	var asked []agent.ModelCall
	var called []agent.ToolCall
	r := hooked(t, tracer("a", &notes), agent.Hooks{
		AfterModel: func(_ context.Context, c *agent.ModelCall) error { asked = append(asked, *c); return nil },
		AfterTool:  func(_ context.Context, c *agent.ToolCall) error { called = append(called, *c); return nil },
	}, tracer("b", &notes))
	r.run(item.User("go"))
	want := []string{
		"a ask in ", "b ask in a", "b completed in a>b", "a completed in a>b",
		"a echo in ", "b echo in a", "b hi in a>b", "a hi in a>b",
		"a ask in ", "b ask in a", "b completed in a>b", "a completed in a>b",
	}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m, c := asked[0], called[0]
	if m.Session != "s" || m.Turn != 1 || m.Request.Model != "test-model" || m.Usage == nil || m.ResponseID == "" || m.Err != nil ||
		m.First.Before(m.Started) || m.Ended.Before(m.First) || asked[1].Cache == nil {
		t.Errorf("model call: %+v", m)
	}
	if c.Turn != 1 || c.Call.ID != "c" || c.Failure != "" || c.Ended.Before(c.Started) {
		t.Errorf("tool call: %+v", c)
	}
}

// A hook that refuses, or panics, does so as a value: to whoever runs, or to the
// model. The history stays valid, and without the hook the run goes on.
func TestHooksVeto(t *testing.T) {
	no := errors.New("not on my watch")
	for _, c := range []struct {
		name  string
		hooks agent.Hooks
		why   agent.StopReason
		asked int
		out   string
	}{
		{"before model", agent.Hooks{BeforeModel: func(ctx context.Context, _ *agent.ModelCall) (context.Context, error) { return ctx, no }}, agent.StopVetoed, 0, ""},
		{"before model, panic", agent.Hooks{BeforeModel: func(context.Context, *agent.ModelCall) (context.Context, error) { panic(no) }}, agent.StopVetoed, 0, ""},
		{"before model, input", agent.Hooks{BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
			c.Request.Input.Append(item.User("psst"))
			return ctx, nil
		}}, agent.StopVetoed, 0, ""},
		{"after model", agent.Hooks{AfterModel: func(context.Context, *agent.ModelCall) error { return no }}, agent.StopVetoed, 1, ""},
		{"before tool", agent.Hooks{BeforeTool: func(ctx context.Context, _ *agent.ToolCall) (context.Context, error) { return ctx, no }}, agent.StopEndTurn, 2, "error: The call was refused by a check: not on my watch. Nothing was done."},
		{"before tool, panic", agent.Hooks{BeforeTool: func(context.Context, *agent.ToolCall) (context.Context, error) { panic("secret") }}, agent.StopEndTurn, 2, "error: The call was refused by a check: the check itself failed. Nothing was done."},
		{"after tool", agent.Hooks{AfterTool: func(context.Context, *agent.ToolCall) error { return no }}, agent.StopEndTurn, 2, "error: The output of this call was withheld by a check: not on my watch."},
		{"after tool, panic", agent.Hooks{AfterTool: func(context.Context, *agent.ToolCall) error { panic("secret") }}, agent.StopEndTurn, 2, "error: The output of this call was withheld by a check: the check itself failed."},
	} {
		t.Run(c.name, func(t *testing.T) {
			ended := 0
			outer := agent.Hooks{AfterModel: func(context.Context, *agent.ModelCall) error { ended++; return nil }, AfterTool: func(context.Context, *agent.ToolCall) error { ended += 10; return nil }}
			r := hooked(t, outer, c.hooks)
			res, err := r.agent.Run(t.Context(), r.session, item.User("go"))
			if res.Why != c.why || len(r.server.Requests()) != c.asked {
				t.Errorf("%s after %d requests: %v", res.Why, len(r.server.Requests()), err)
			}
			h, typed := errors.AsType[*agent.HookError](err)
			if typed != (c.why == agent.StopVetoed) {
				t.Errorf("the error is %v", err)
			}
			if typed && strings.Contains(c.name, "panic") != (h.Stack != nil) {
				t.Errorf("stack: %q", h.Stack)
			}
			if want := map[agent.StopReason]int{agent.StopVetoed: 1, agent.StopEndTurn: 12}[c.why]; ended != want {
				t.Errorf("afters: %d, want %d", ended, want)
			}
			if got := outputs(history(r.session))["c"]; got != c.out {
				t.Errorf("output %q, want %q", got, c.out)
			}
			checkClosed(t, r.session, c.name)
			r.agent.Hooks = nil
			r.reopen()
			if res, err := r.agent.Run(t.Context(), r.session, item.User("on")); err != nil || res.Why != agent.StopEndTurn {
				t.Errorf("then: %+v, %v", res, err)
			}
			r.inputs()
		})
	}
}

// What a hook changes is recorded as what was run and sent, and the model is
// told of its arguments. What rules deny stays denied.
func TestHooksRewrite(t *testing.T) {
	rewrite := agent.Hooks{
		BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
			c.Call.Arguments = `{"text":"ho"}`
			return ctx, nil
		},
		AfterTool: func(_ context.Context, c *agent.ToolCall) error {
			c.Output = item.Text(c.Output.Display() + "!")
			return nil
		},
	}
	r := hooked(t, rewrite)
	events, err := drain(r.agent.Stream(t.Context(), r.session, item.User("go")))
	if err != nil {
		t.Fatal(err)
	}
	if got := outputs(r.last())["c"]; got != "Note: the arguments of this call were changed before it ran, to: {\"text\":\"ho\"}\n\nho!" {
		t.Errorf("output %q", got)
	}
	var known agent.KnownCalls
	for _, ev := range events {
		if e, ok := ev.(agent.Recorded); ok {
			c := known.Add(e.Entry)
			if _, started := e.Body.(session.CallStarted); started && (!c.Edited || c.Arguments != `{"text":"ho"}` || c.Tool != "echo" || c.Begun.IsZero()) {
				t.Errorf("started: %+v", c)
			}
		}
	}
	if done := told[session.CallOutput](events)[0]; !done.Edited {
		t.Errorf("done: %+v", done)
	}
	var begun session.CallStarted
	var answered session.CallOutput
	for _, e := range r.session.Log() {
		switch b := e.Body.(type) {
		case session.CallStarted:
			begun = b
		case session.CallOutput:
			answered = b
		}
	}
	if begun.Arguments != `{"text":"ho"}` || !answered.Edited {
		t.Errorf("log: %+v, %+v", begun, answered)
	}
	r = hooked(t, rewrite)
	r.agent.Policy.Rules = []session.Rule{{Verdict: session.Deny, Tool: "*", Member: "text", Under: "ho"}}
	r.run(item.User("go"))
	contains(t, outputs(r.last())["c"], "a rule denies echo")
}

// A hook that changes the request of a turn does not change the agent's, whatever it
// changes.
func TestHookChangesOnlyItsTurn(t *testing.T) {
	request := func() api.Request {
		yes, n, f := true, int64(7), 0.5
		extra := item.Extra{{Name: "x", Value: "1"}}
		return api.Request{
			Model: "m", ParallelToolCalls: &yes, Store: &yes, StreamOptions: &api.StreamOptions{IncludeObfuscation: &yes, Extra: extra},
			Include: make([]string, 1, 4), MaxOutputTokens: &n, MaxToolCalls: &n, TopLogprobs: &n, Temperature: &f, TopP: &f,
			Reasoning: &api.ReasoningConfig{Effort: "low", Extra: extra}, Prompt: &api.Prompt{ID: "p", Extra: extra},
			ContextManagement: []api.ContextManagement{{Type: "compaction", CompactThreshold: &n, Extra: extra}}, PromptCacheOptions: &api.PromptCacheOptions{TTL: "30m", Extra: extra},
			Moderation: &api.ModerationConfig{Model: "m", Policy: &api.ModerationPolicy{Input: &api.ModerationMode{Mode: "score", Extra: extra}, Output: &api.ModerationMode{Mode: "block"}, Extra: extra}, Extra: extra},
			Extra:      extra, Spelled: extra,
		}
	}
	a := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("hi")}}}, Request: request()}
	a.Hooks = []agent.Hooks{{BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
		input := c.Request.Input
		c.Request.Input = nil
		overwrite(reflect.ValueOf(c.Request).Elem())
		c.Request.Input = input
		_ = append(c.Request.Include, "more")
		return ctx, nil
	}}}
	if _, err := a.Run(t.Context(), session.New(), item.User("go")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(request(), a.Request); diff != "" || a.Request.Include[:2][1] != "" {
		t.Errorf("the agent's request has changed (-before +after):\n%s", diff)
	}
}

// overwrite sets everything that a value leads to zero.
func overwrite(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			overwrite(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			overwrite(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "Model" {
				overwrite(v.Field(i))
			}
		}
	default:
		v.SetZero()
	}
}
