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
	"github.com/antiphon-go/antiphon/tool"
)

// observed is an agent that asks for the weather once.
func observed() *agent.Agent {
	model := agenttest.ModelFunc(func(_ context.Context, req *api.Request) agenttest.Reply {
		if req.Input.Len() == 1 {
			return agenttest.Completed(item.Call("call_1", "weather", `{"city":"Bergen"}`))
		}
		return agenttest.Completed(item.Assistant("Take an umbrella."))
	})
	type place struct {
		City string `json:"city"`
	}
	weather := tool.Must("weather", "Tell the weather in a city.", func(_ context.Context, p place) (string, error) {
		return "It rains in " + p.City + ".", nil
	}, tool.ReadOnly())
	a := &agent.Agent{Model: model, Tools: []tool.Tool{weather}}
	a.Request.Model = "gpt-5"
	return a
}

// What a session has used, by agent and by tool.
func ExampleAccountOf() {
	ctx, a, s := context.Background(), observed(), session.New()
	if _, err := a.Run(ctx, s, item.User("Do I need an umbrella in Bergen?")); err != nil {
		fmt.Println("error:", err)
	}

	account, err := agent.AccountOf(ctx, s)
	if err != nil {
		fmt.Println("error:", err)
	}
	fmt.Println("turns:", account.All().Turns)
	for _, one := range account.Agents {
		fmt.Printf("agent %q: %d turns, some tokens: %v\n", one.Agent, one.Turns, one.Tokens > 0)
	}
	for _, one := range account.Tools {
		fmt.Printf("tool %q: %d calls, %d failed\n", one.Tool, one.Calls, one.Failed)
	}
	// Output:
	// turns: 2
	// agent "": 2 turns, some tokens: true
	// tool "weather": 1 calls, 0 failed
}
