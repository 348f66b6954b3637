// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// said is a model that gives these replies, one after another, and the last one again.
func said(replies ...[]item.Item) *memory {
	m := new(memory)
	for _, r := range replies {
		m.replies = append(m.replies, r)
	}
	return m
}

// One question and its answer, without looking at the events.
func ExampleAgent_Run() {
	a := &agent.Agent{Model: said([]item.Item{item.Assistant("Oslo.")})}
	res, err := a.Run(context.Background(), session.New(), item.User("What is the capital of Norway?"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Why, res.Text)
	// Output:
	// answered Oslo.
}

// A conversation is one session: each run sends what was said before.
func ExampleAgent_Run_conversation() {
	model := said([]item.Item{item.Assistant("Oslo.")}, []item.Item{item.Assistant("700 000.")})
	a := &agent.Agent{Model: model}
	s := session.New()
	for _, text := range []string{"What is the capital of Norway?", "How many live there?"} {
		if _, err := a.Run(context.Background(), s, item.User(text)); err != nil {
			log.Fatal(err)
		}
	}
	for _, req := range model.asked {
		fmt.Println(req.Input.Len(), "item(s)")
	}
	// Output:
	// 1 item(s)
	// 3 item(s)
}

// Leaving the range ends the run. What was recorded stays, and the next run goes on
// from there.
func ExampleAgent_Stream_break() {
	a := &agent.Agent{Model: said([]item.Item{item.Assistant("Oslo.")})}
	s := session.New()
	for ev, err := range a.Stream(context.Background(), s, item.User("What is the capital of Norway?")) {
		if err != nil {
			log.Fatal(err)
		}
		if e, ok := ev.(agent.Recorded); ok && session.Kind(e.Body) == "turn_started" {
			break
		}
	}
	res, err := a.Run(context.Background(), s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Why, res.Text)
	// Output:
	// answered Oslo.
}

// A run that reaches a limit stops with a reason, not with an error.
func ExampleLimits() {
	again := tool.Must("again", "Does it again.", func(context.Context, struct{}) (string, error) { return "once more", nil }, tool.ReadOnly())
	a := &agent.Agent{
		Model:  said([]item.Item{item.Call("call_1", "again", `{}`)}),
		Tools:  []tool.Tool{again},
		Limits: agent.Limits{MaxTurns: 3},
	}
	res, err := a.Run(context.Background(), session.New(), item.User("Go."))
	fmt.Println(res.Why, res.Turns, err)
	// Output:
	// max_turns 3 <nil>
}

// A policy lets some calls run and refuses others. The model reads why, and goes on.
func ExamplePolicy() {
	act := func(name string) tool.Tool {
		return tool.Must(name, "Acts.", func(context.Context, struct{}) (string, error) { return "done", nil })
	}
	a := &agent.Agent{
		Model:  said([]item.Item{item.Call("call_1", "write", `{}`), item.Call("call_2", "delete", `{}`)}, []item.Item{item.Assistant("Written.")}),
		Tools:  []tool.Tool{act("write"), act("delete")},
		Policy: agent.Policy{Allow: []string{"*"}, Deny: []string{"del*"}},
	}
	for ev, err := range a.Stream(context.Background(), session.New(), item.User("Go.")) {
		if err != nil {
			log.Fatal(err)
		}
		if e, ok := ev.(agent.Recorded); ok {
			if b, ok := e.Body.(session.Approval); ok {
				fmt.Println(b.CallID, b.Allowed)
			}
		}
	}
	// Output:
	// call_1 true
	// call_2 false
}

// An approver is asked, while the run waits, for each call that needs it.
func ExampleApprover() {
	write := tool.Must("write", "Writes.", func(context.Context, struct{}) (string, error) { return "written", nil })
	a := &agent.Agent{
		Model: said([]item.Item{item.Call("call_1", "write", `{}`)}, []item.Item{item.Assistant("It is there.")}),
		Tools: []tool.Tool{write},
		Policy: agent.Policy{Approver: func(_ context.Context, q agent.ApprovalRequest) (agent.Decision, error) {
			return agent.Decision{Allow: true, By: "ann"}, nil
		}},
	}
	res, err := a.Run(context.Background(), session.New(), item.User("Write it."))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Calls, res.Text)
	// Output:
	// 1 It is there.
}

// A hook changes the arguments of a call before it runs. The log and the model see the
// change.
func ExampleHooks_arguments() {
	greet := tool.Must("greet", "Greets.", func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "Hello, " + in.Name, nil
	}, tool.ReadOnly())
	a := &agent.Agent{
		Model: said([]item.Item{item.Call("call_1", "greet", `{"name":"ann"}`)}, []item.Item{item.Assistant("Done.")}),
		Tools: []tool.Tool{greet},
		Hooks: []agent.Hooks{{
			BeforeTool: func(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
				c.Call.Arguments = strings.ReplaceAll(c.Call.Arguments, "ann", "Ann")
				return ctx, nil
			},
			AfterTool: func(_ context.Context, c *agent.ToolCall) error {
				fmt.Println(c.Call.Arguments)
				return nil
			},
		}},
	}
	if _, err := a.Run(context.Background(), session.New(), item.User("Greet ann.")); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"name":"Ann"}
}

// One budget bounds all runs of the agents that share it.
func ExampleBudget() {
	a := &agent.Agent{
		Model:  said([]item.Item{item.Assistant("Yes.")}),
		Budget: &agent.Budget{Turns: 2},
	}
	for range 3 {
		res, err := a.Run(context.Background(), session.New(), item.User("Ready?"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Why)
	}
	// Output:
	// answered
	// answered
	// max_turns
}

// A person says something while the run is under way: the model reads it with its
// next turn.
func ExampleRun_Say() {
	look := tool.Must("look", "Looks.", func(context.Context, struct{}) (string, error) { return "A saw.", nil }, tool.ReadOnly())
	model := said([]item.Item{item.Call("call_1", "look", `{}`)}, []item.Item{item.Assistant("A saw, and I hurry.")})
	a := &agent.Agent{Model: model, Tools: []tool.Tool{look}}
	run := a.Start(session.New(), item.User("What is there?"))
	for ev, err := range run.Events(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		if e, ok := ev.(agent.Recorded); ok && session.Kind(e.Body) == "call_started" {
			if err := run.Say(item.User("Hurry up.")); err != nil {
				log.Fatal(err)
			}
		}
	}
	for _, req := range model.asked {
		fmt.Println(req.Input.Len(), "item(s)")
	}
	// Output:
	// 1 item(s)
	// 4 item(s)
}

// A run is asked to stop after the turn: its calls get their outputs, and the model is
// not asked again.
func ExampleRun_StopAfterTurn() {
	look := tool.Must("look", "Looks.", func(context.Context, struct{}) (string, error) { return "A saw.", nil }, tool.ReadOnly())
	a := &agent.Agent{Model: said([]item.Item{item.Call("call_1", "look", `{}`)}), Tools: []tool.Tool{look}}
	run := a.Start(session.New(), item.User("What is there?"))
	for ev, err := range run.Events(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		if e, ok := ev.(agent.Recorded); ok && session.Kind(e.Body) == "call_started" {
			run.StopAfterTurn()
		}
	}
	fmt.Println(run.Result().Why, run.Result().Turns)
	// Output:
	// stopped 1
}

// A preview is the request that the next run would send. Nothing is sent.
func ExampleAgent_Preview() {
	a := &agent.Agent{Model: said()}
	a.Request.Model, a.Request.Instructions = "gpt-5.1", "Be brief."
	s := session.New()
	if _, err := s.Append(context.Background(), session.InputItem{Item: item.User("Hello?")}); err != nil {
		log.Fatal(err)
	}
	req, _, err := a.Preview(context.Background(), s)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(req.Model, req.Instructions, req.Input.Len())
	// Output:
	// gpt-5.1 Be brief. 1
}

// Events travel to another program as JSON, one a line.
func ExampleAppendEvent() {
	line, err := agent.AppendEvent(nil, agent.Delta{Kind: agent.DeltaText, ItemID: "msg_1", Text: "Take an "})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
	ev, err := agent.ParseEvent(line)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ev.(agent.Delta).Text)
	// Output:
	// {"type":"delta","kind":"text","item_id":"msg_1","text":"Take an "}
	// Take an
}

// A reader that was away goes on behind the last entry that it saw.
func ExampleWatch() {
	ctx := context.Background()
	s, err := session.Open(ctx, new(session.Memory), "ann")
	if err != nil {
		log.Fatal(err)
	}
	a := &agent.Agent{Model: said([]item.Item{item.Assistant("Oslo.")})}
	if _, err := a.Run(ctx, s, item.User("What is the capital of Norway?")); err != nil {
		log.Fatal(err)
	}
	const seen = 3
	for ev, err := range agent.Watch(ctx, s, seen) {
		if err != nil {
			log.Fatal(err)
		}
		e := ev.(agent.Recorded)
		fmt.Println(e.Seq, session.Kind(e.Body))
		if _, ended := e.Body.(session.Stopped); ended {
			break
		}
	}
	// Output:
	// 4 received
	// 5 turn_ended
	// 6 stopped
}
