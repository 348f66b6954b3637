// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// An agent can be another's tool. What both use comes out of one budget.
func ExampleAsTool() {
	librarian := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("Shelf 12.")}}}}
	ask, err := agent.AsTool("librarian", "Knows where books are.", librarian)
	if err != nil {
		fmt.Println(err)
		return
	}
	budget := &agent.Budget{Turns: 10}
	a := &agent.Agent{
		Model: &memory{replies: []any{
			[]item.Item{item.Call("call_1", "librarian", `{"task":"Where is Emma?"}`)},
			[]item.Item{item.Assistant("On shelf 12.")},
		}},
		Tools:  []tool.Tool{ask},
		Budget: budget,
	}
	for ev, err := range a.Stream(context.Background(), session.New(), item.User("I look for Emma.")) {
		who := "the run"
		if inner, ok := ev.(agent.SubagentEvent); ok {
			who, ev = "inside of "+inner.Tool, inner.Event
		}
		if e, ok := ev.(agent.Recorded); ok {
			if said, ok := e.Body.(session.OutputItem); ok {
				fmt.Println(who+":", said.Item)
			}
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("turns:", budget.Used().Turns)
	// Output:
	// the run: function_call librarian call_1
	// inside of librarian: message assistant
	// the run: message assistant
	// turns: 3
}
