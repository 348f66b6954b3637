// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Tools may come while a run is under way: the source is asked before each
// request.
func ExampleAgent_toolSource() {
	open := false
	unlock := tool.Must("unlock", "Opens the workshop.", func(context.Context, struct{}) (string, error) {
		open = true
		return "There is a saw.", nil
	}, tool.ReadOnly())
	saw := tool.Must("saw", "Saws a plank.", func(context.Context, struct{}) (string, error) {
		return "Two halves.", nil
	}, tool.ReadOnly())

	model := &memory{replies: []any{
		[]item.Item{item.Call("call_1", "unlock", `{}`)},
		[]item.Item{item.Call("call_2", "saw", `{}`)},
		[]item.Item{item.Assistant("Done.")},
	}}
	a := &agent.Agent{
		Model: model,
		Tools: []tool.Tool{unlock},
		ToolSource: func(context.Context) ([]tool.Tool, error) {
			if !open {
				return nil, nil
			}
			return []tool.Tool{saw}, nil
		},
	}
	res, err := a.Run(context.Background(), session.New(), item.User("Saw the plank."))
	if err != nil {
		log.Fatal(err)
	}
	for i, req := range model.asked {
		fmt.Println("request", i+1, "has tools:", len(req.Tools))
	}
	fmt.Println(res.Text)
	// Output:
	// request 1 has tools: 1
	// request 2 has tools: 2
	// request 3 has tools: 2
	// Done.
}
