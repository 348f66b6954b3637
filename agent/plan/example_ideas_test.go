// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// What a log leads to: the fold of its entries names the next effect.
func ExampleState_Next() {
	var state plan.State
	for i, body := range []session.Body{
		session.InputItem{Item: item.User("What time is it?")},
		session.RunStarted{},
		session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: item.Call("call_1", "clock", `{}`)},
		session.TurnEnded{Turn: 1, Status: "completed"},
	} {
		state.Apply(session.Entry{Seq: int64(i + 1), Body: body})
		switch body.(type) {
		case session.InputItem, session.TurnEnded: // between turns
		default:
			continue
		}
		text, err := plan.Marshal(state.Next())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(session.Kind(body), string(text))
	}
	// Output:
	// given {"effect":"ask","turn":1}
	// turn_ended {"effect":"approve","calls":[{"entry":4,"number":1,"call_id":"call_1"}]}
}

// Of the rules about a call deny wins over ask, and ask over allow, in any order.
func ExamplePolicy_Judge() {
	p := plan.Policy{Allow: []string{"*"}, Ask: []string{"send_*"}, Deny: []string{"delete"}}
	for _, name := range []string{"read", "send_mail", "delete"} {
		fmt.Println(name, p.Judge(plan.Question{Tool: name, Arguments: "{}"}, nil).Verdict)
	}
	// Output:
	// read allow
	// send_mail ask
	// delete deny
}

// Without a rule, tools that only read run, and all others ask.
func ExamplePolicy_Judge_default() {
	var p plan.Policy
	fmt.Println(p.Judge(plan.Question{Tool: "read", ReadOnly: true}, nil).Verdict)
	fmt.Println(p.Judge(plan.Question{Tool: "write"}, nil).Verdict)
	// Output:
	// allow
	// ask
}

// The rules that a person who allows a call may want to remember, the narrowest first.
func ExampleSuggest() {
	for _, rule := range plan.Suggest(plan.Question{Tool: "write_file", Arguments: `{"path":"notes/today.txt"}`}) {
		fmt.Println(rule)
	}
	// Output:
	// allow write_file where the arguments are {"path":"notes/today.txt"}
	// allow write_file
}

// A stop says why, and a limit says which.
func ExampleLimits_Reached() {
	stop, reached := plan.Limits{MaxTokens: 1000}.Reached(plan.Usage{Turns: 3, Tokens: 1200}, "")
	fmt.Println(reached, stop.Why)
	// Output:
	// true max_tokens
}
