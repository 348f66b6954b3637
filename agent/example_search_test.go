// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// The model sees a search in place of many tools, and a function of the program finds those
// that the model needs.
func ExampleAgent_toolSearch() {
	type pair struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	type ticker struct {
		Symbol string `json:"symbol"`
	}
	known := []struct {
		about string
		tool  tool.Tool
	}{
		{"exchange rate of two currencies", tool.Must("get_rate", "Looks up an exchange rate.", func(context.Context, pair) (string, error) { return "0.92", nil }, tool.ReadOnly(), tool.Deferred())},
		{"price of a stock", tool.Must("get_price", "Looks up the price of a stock.", func(context.Context, ticker) (string, error) { return "17", nil }, tool.ReadOnly(), tool.Deferred())},
	}
	search, err := tool.Search(&item.ToolSearchTool{
		Execution: item.ExecutionClient, Description: "Finds tools for rates and prices.",
		Parameters: `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`,
	}, func(_ context.Context, arguments string) (found []tool.Tool, err error) {
		var in struct{ Query string }
		if err := json.Unmarshal([]byte(arguments), &in); err != nil {
			return nil, err
		}
		for _, one := range known {
			if strings.Contains(one.about, in.Query) {
				found = append(found, one.tool)
			}
		}
		return found, nil
	})
	if err != nil {
		log.Fatal(err)
	}

	turn := 0
	model := agenttest.ModelFunc(func(context.Context, *api.Request) agenttest.Reply { // a real one is a responses.Client
		switch turn++; turn {
		case 1:
			return agenttest.Completed(item.Must(&item.ToolSearchCall{CallID: "call_1", Execution: item.ExecutionClient, Arguments: `{"query":"exchange"}`}))
		case 2:
			return agenttest.Completed(item.Must(&item.FunctionCall{CallID: "call_2", Name: "get_rate", Arguments: `{"from":"USD","to":"EUR"}`}))
		}
		return agenttest.Completed(item.Assistant("A dollar is 0.92 euros."))
	})
	a := &agent.Agent{Model: model, Tools: []tool.Tool{search}}
	for _, one := range known { // always in the same order, which keeps the prompt cache
		a.Tools = append(a.Tools, one.tool)
	}
	s := session.New()
	result, err := a.Run(context.Background(), s, item.User("What is a dollar in euros?"))
	if err != nil {
		log.Fatal(err)
	}
	for _, it := range result.Items {
		if it.Type() == item.TypeToolSearchOutput {
			out, err := item.As[item.ToolSearchOutput](it)
			if err != nil {
				log.Fatal(err)
			}
			for _, def := range out.Tools {
				if f, ok := def.(*item.FunctionTool); ok {
					fmt.Println("found", f.Name)
				}
			}
		}
	}
	fmt.Println(result.Text)
	// Output:
	// found get_rate
	// A dollar is 0.92 euros.
}
