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

// A function chooses the agent for each input. The session belongs to no agent, so all of
// them go on from the same history, and the log says which one answered.
func ExampleAgent_Run_route() {
	poet := &agent.Agent{Model: said([]item.Item{item.Assistant("Roses are red.")})}
	clerk := &agent.Agent{Model: said([]item.Item{item.Assistant("Form 12 is on its way.")})}
	route := func(text string) *agent.Agent {
		if strings.Contains(text, "poem") {
			return poet
		}
		return clerk
	}

	s := session.New()
	for _, text := range []string{"I need a form.", "And a poem."} {
		res, err := route(text).Run(context.Background(), s, item.User(text))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Text)
	}
	// Output:
	// Form 12 is on its way.
	// Roses are red.
}

// A hook chooses the model for each request: a small one reads the outputs of tools. The
// log records the choice for the turn, and Agent.Prices gets the chosen name.
func ExampleHooks_route() {
	model := said([]item.Item{call("c1", "echo", "a long text")}, []item.Item{item.Assistant("Read.")})
	a := &agent.Agent{Model: model, Tools: []tool.Tool{echo()}, Policy: agent.Policy{Allow: []string{"echo"}}}
	a.Request.Model = "large"
	a.Hooks = append(a.Hooks, agent.Hooks{
		Name: "route",
		BeforeModel: func(ctx context.Context, c *agent.ModelCall) (context.Context, error) {
			if n := c.Request.Input.Len(); n > 0 && c.Request.Input.At(n-1).IsOutput() {
				c.Request.Model = "small"
			}
			return ctx, nil
		},
	})
	if _, err := a.Run(context.Background(), session.New(), item.User("Read it.")); err != nil {
		log.Fatal(err)
	}
	for _, req := range model.asked {
		fmt.Println(req.Model)
	}
	// Output:
	// large
	// small
}
