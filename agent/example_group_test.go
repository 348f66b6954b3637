// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Several questions at once, over one budget; the answers come in their order.
func ExampleGroup() {
	translator := &agent.Agent{Model: agenttest.ModelFunc(func(_ context.Context, req *api.Request) agenttest.Reply {
		m, _ := item.As[item.Message](req.Input.At(0))
		return agenttest.Completed(item.Assistant(map[string]string{"one": "en", "two": "to", "three": "tre"}[m.Content.Display()]))
	})}
	var tasks []agent.Task
	for _, word := range []string{"one", "two", "three"} {
		tasks = append(tasks, agent.Task{Agent: translator, Session: session.New(), Input: []item.Item{item.User(word)}})
	}
	group := agent.Group{Budget: &agent.Budget{Turns: 10}}
	for i, r := range group.Run(context.Background(), tasks...) {
		fmt.Println(i+1, r.Text, r.Err)
	}
	fmt.Println(group.Budget.Used().Turns, "turns")
	// Output:
	// 1 en <nil>
	// 2 to <nil>
	// 3 tre <nil>
	// 3 turns
}
