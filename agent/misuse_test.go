// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/base64"
	"iter"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
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
	fits, err := tool.NewSchema[struct{ N int }]()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.AsTool("ask", "", &agent.Agent{Model: none}, nil); err == nil || !strings.Contains(err.Error(), "option 1 is nil") {
		t.Error(err)
	}
	if _, err := agent.PendingApprovals(t.Context(), nil); err == nil {
		t.Error("nothing waits in no session")
	}
	for want, a := range map[string]*agent.Agent{
		"the Stream of the Model agent_test.modelFunc returned nil": {Model: none},
		"candidate 1": {Model: agent.Fallback{{Model: agent.Fallback{{Model: none}}}}},
		"the Stream of the Model agent_test.modelFunc returned nil: want": {Model: agent.Fallback{{Model: none}}},
		"the tool of type agent_test.unfilled cannot be described":        {Model: none, Tools: []tool.Tool{unfilled{}}},
		"Output.PerTurn: output limit: a size is negative":                {Model: none, Output: output.Policy{PerTurn: &output.Limit{Tokens: -1}}},
		"Output.Limit: output limit: unknown mode":                        {Model: none, Output: output.Policy{Limit: &output.Limit{Bytes: 1, Mode: "middle"}}},
		"Answer.Name is \"my answer\"":                                    {Model: none, Answer: &agent.Answer{Name: "my answer", Schema: fits}},
		"has the Timeout -1ns: want a positive one":                       {Model: none, Guards: []agent.Guard{{Timeout: -1, Input: agree}}},
	} {
		if _, err := a.Run(t.Context(), session.New(), item.User("go")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// mute is an error whose text cannot be got of a nil pointer.
type mute struct{ text string }

func (e *mute) Error() string { return e.text }

// A function that returns a nil pointer as an error has an error: of its call, its hook or its run.
// It does not end the program. T15 G8
func TestErrorsWithoutText(t *testing.T) {
	const want = "a nil *agent_test.mute, which is not a nil error"
	none := error((*mute)(nil))
	stops := func(context.Context, *api.Request) iter.Seq2[api.Event, error] {
		return func(yield func(api.Event, error) bool) { yield(api.Event{}, none) }
	}
	for name, change := range map[string]func(a *agent.Agent){
		"BeforeInput": func(a *agent.Agent) {
			a.Hooks = []agent.Hooks{{BeforeInput: func(context.Context, *agent.InputCall) error { return none }}}
		},
		"AfterModel": func(a *agent.Agent) {
			a.Hooks = []agent.Hooks{{AfterModel: func(context.Context, *agent.ModelCall) error { return none }}}
		},
		"Guard": func(a *agent.Agent) {
			a.Guards = []agent.Guard{{Input: func(context.Context, *agent.GuardCall) (*agent.Tripwire, error) { return nil, none }}}
		},
		"ToolSource": func(a *agent.Agent) {
			a.ToolSource = func(context.Context) ([]tool.Tool, error) { return nil, none }
		},
		"Model":    func(a *agent.Agent) { a.Model = modelFunc(stops) },
		"Fallback": func(a *agent.Agent) { a.Model = agent.Fallback{{Model: modelFunc(stops)}} },
	} {
		a := &agent.Agent{Model: agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply { return agenttest.Completed(item.Assistant("hi")) })}
		change(a)
		if res, err := a.Run(t.Context(), session.New(), item.User("go")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v", name, res.Why, err)
		}
	}
	for name, change := range map[string]func(a *agent.Agent) tool.Tool{
		"Tool": func(*agent.Agent) tool.Tool {
			return tool.Must("do", "", func(context.Context, struct{}) (string, error) { return "", none })
		},
		"BeforeTool": func(a *agent.Agent) tool.Tool {
			a.Hooks = []agent.Hooks{{BeforeTool: func(ctx context.Context, _ *agent.ToolCall) (context.Context, error) { return ctx, none }}}
			return tool.Must("do", "", func(context.Context, struct{}) (string, error) { return "", nil })
		},
		"Approver": func(a *agent.Agent) tool.Tool {
			a.Policy = agent.Policy{Approver: func(context.Context, agent.ApprovalRequest) (agent.Decision, error) {
				return agent.Decision{Allow: true}, none
			}}
			return tool.Must("do", "", func(context.Context, struct{}) (string, error) { t.Error("it ran"); return "", nil })
		},
	} {
		r := newRig(t, agenttest.Completed(item.Call("c1", "do", "{}")), agenttest.Completed(item.Assistant("done")))
		r.agent.Tools = []tool.Tool{change(r.agent)}
		if res := r.run(item.User("go")); res.Text != "done" || res.FailedCalls+res.RefusedCalls != 1 {
			t.Errorf("%s: %+v", name, res)
		}
		contains(t, string(r.server.Requests()[1].Body), want)
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

// breaks panics wherever an output is written.
type breaks struct{}

func (breaks) Count(string) int                            { panic("no counter") }
func (breaks) Fit([]byte) ([]byte, string, error)          { panic("no imager") }
func (breaks) Put(context.Context, []byte) (string, error) { panic("no store") }
func (breaks) Get(context.Context, string, int, int) ([]byte, int, error) {
	panic("no store")
}

// What a program brings to write outputs may panic: the call fails, its sibling does not, and the
// program goes on. T15 G8
func TestOutputPanics(t *testing.T) {
	for what, set := range map[string]func(a *agent.Agent){
		"no counter": func(a *agent.Agent) { a.Output = output.Policy{Tokens: breaks{}, Limit: &output.Limit{Tokens: 500}} },
		"no imager":  func(a *agent.Agent) { a.Output.Images = breaks{} },
		"no store":   func(a *agent.Agent) { a.OutputStore, a.Output.Limit = breaks{}, &output.Limit{Bytes: 1000} },
	} {
		r := newRig(t, agenttest.Completed(item.Call("c1", "show", "{}"), item.Call("c2", "fine", "{}")), agenttest.Completed(item.Assistant("done")))
		set(r.agent)
		r.agent.Tools = []tool.Tool{
			tool.Must("show", "", func(context.Context, struct{}) (tool.Result, error) {
				return tool.Result{Text: strings.Repeat("long ", 1000), Parts: []item.Part{&item.InputImage{ImageURL: "data:image/png;base64," + base64.StdEncoding.EncodeToString(shot(t))}}}, nil
			}),
			tool.Must("fine", "", func(context.Context, struct{}) (tool.Result, error) { return tool.Result{Text: "all right"}, nil }, tool.MaxOutput(output.Limit{})),
		}
		if res := r.run(item.User("go")); res.Text != "done" || res.Calls != 2 || res.FailedCalls == 0 {
			t.Errorf("%s: %+v", what, res)
		}
		contains(t, string(r.server.Requests()[1].Body), what, "all right")
	}
}
