// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// A run, effect by effect. Another process could perform each of them.
func ExampleAgent_Step() {
	ctx := context.Background()
	model := &memory{replies: []any{
		[]item.Item{item.Call("call_1", "look", `{}`)},
		[]item.Item{item.Assistant("There is a saw.")},
	}}
	look := tool.Must("look", "Looks around.", func(context.Context, struct{}) (string, error) { return "A saw.", nil }, tool.ReadOnly())
	a := &agent.Agent{Model: model, Tools: []tool.Tool{look}}
	s := session.New()
	if _, err := s.Append(ctx, session.InputItem{Item: item.User("What is there?")}); err != nil {
		log.Fatal(err)
	}
	run := func() error {
		for {
			effect, err := a.Step(ctx, s)
			if _, stopped := effect.(plan.Stop); stopped || err != nil {
				return err
			}
			text, _ := plan.Marshal(effect)
			fmt.Println(string(text))
		}
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"effect":"ask","turn":1}
	// {"effect":"approve","calls":[{"entry":4,"number":1,"call_id":"call_1"}]}
	// {"effect":"call","calls":[{"entry":4,"number":1,"call_id":"call_1"}]}
	// {"effect":"ask","turn":2}
}
