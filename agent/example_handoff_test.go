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
)

// A front desk hands the conversation to another agent, which answers this question and
// the next one.
func ExampleHandoff() {
	bills := &agent.Agent{Model: said([]item.Item{item.Assistant("Your bill is 12.50.")}, []item.Item{item.Assistant("It is due on Friday.")})}
	bills.Request.Instructions = "You know all bills."

	front := &agent.Agent{Model: said([]item.Item{item.Call("call_1", "to_bills", `{"reason":"a question about a bill"}`)})}
	front.Handoffs = []agent.Handoff{{
		Name:        "to_bills",
		Description: "Hands the conversation to somebody who knows all bills.",
		Agent:       bills,
	}}

	s := session.New()
	for _, question := range []string{"What is my bill?", "When is it due?"} {
		res, err := front.Run(context.Background(), s, item.User(question))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Speaker, res.Text)
	}
	// Output:
	// to_bills Your bill is 12.50.
	// to_bills It is due on Friday.
}
