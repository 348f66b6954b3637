// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// What a guard objects to is not sent, now or later. The session goes on without
// it.
func ExampleHooks_guard() {
	check := func(items ...item.Item) error {
		for _, it := range items {
			if strings.Contains(it.JSON(), "hunter2") {
				return errors.New("it holds a password")
			}
		}
		return nil
	}
	a := &agent.Agent{Model: &memory{replies: []any{[]item.Item{item.Assistant("Hello.")}}}}
	a.Hooks = append(a.Hooks, agent.Hooks{
		Name:        "police",
		BeforeInput: func(ctx context.Context, c *agent.InputCall) error { return check(c.Input...) },
		AfterModel:  func(ctx context.Context, c *agent.ModelCall) error { return check(c.Output...) },
	})
	a.HoldOutput = true // yield nothing of a reply before AfterModel agreed

	s := session.New()
	for _, text := range []string{"My password is hunter2.", "Hello?"} {
		res, err := a.Run(context.Background(), s, item.User(text))
		fmt.Println(res.Why, res.Guard, res.Text, err)
	}
	// Output:
	// vetoed police  hook BeforeInput of police: it holds a password
	// answered  Hello. <nil>
}
