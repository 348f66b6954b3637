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

// The answer is a Go value. An answer that does not fit goes back to the model with
// the reason.
func ExampleRunAs() {
	type Invoice struct {
		Vendor string  `json:"vendor" jsonschema:"who sent it"`
		Total  float64 `json:"total" minimum:"0"`
		State  string  `json:"state" enum:"open,paid"`
	}
	replies := []string{`{"vendor":"Harbour Tea","total":"41,50","state":"open"}`, `{"vendor":"Harbour Tea","total":41.5,"state":"open"}`}
	model := agenttest.ModelFunc(func(_ context.Context, req *api.Request) agenttest.Reply { // a responses.Client in a program
		return agenttest.Completed(item.Assistant(replies[req.Input.Len()/2]))
	})
	a := &agent.Agent{Model: model}
	invoice, err := agent.RunAs[Invoice](context.Background(), a, session.New(), item.User("Harbour Tea wants 41,50 €."))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+v after %d repair\n", invoice.Value, invoice.Repairs)
	// Output: {Vendor:Harbour Tea Total:41.5 State:open} after 1 repair
}

// The answer is drawn while it arrives.
func ExampleStreamAs() {
	type Trip struct {
		City  string   `json:"city"`
		Stops []string `json:"stops"`
	}
	model := agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply {
		return agenttest.Completed(item.Assistant(`{"city":"Lisbon","stops":["Alfama","Belém"]}`))
	})
	a := &agent.Agent{Model: model}
	for ev, err := range agent.StreamAs[Trip](context.Background(), a, session.New(), item.User("A day in Lisbon?")) {
		switch {
		case err != nil:
			fmt.Println(err)
		case ev.Partial != nil:
			fmt.Println("so far", *ev.Partial)
		case ev.Final != nil:
			fmt.Println("at last", ev.Final.Value)
		}
	}
	// Output:
	// so far {Lisbon []}
	// so far {Lisbon [Alfama]}
	// so far {Lisbon [Alfama Belém]}
	// at last {Lisbon [Alfama Belém]}
}
