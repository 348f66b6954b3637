// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agenttest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// A judge that knows nothing of how a session decides tells what is wrong with a
// log: here a call was started again though it had its output.
func ExampleCheckLog() {
	output, err := item.Output("call_1", item.Text("gone"))
	if err != nil {
		log.Fatal(err)
	}
	s := session.New()
	_, err = s.Append(context.Background(),
		session.RunStarted{},
		session.InputItem{Item: item.User("Go.")},
		session.TurnStarted{Turn: 1},
		session.OutputItem{Turn: 1, Item: item.Call("call_1", "go", "{}")},
		session.TurnEnded{Turn: 1, Status: item.StatusCompleted},
		session.CallStarted{CallID: "call_1"},
		session.CallOutput{CallID: "call_1", Item: output},
		session.CallStarted{CallID: "call_1"},
	)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(agenttest.CheckLog(s.Log()))
	// Output:
	// entry 8 (call_started): no call call_1 waits to be started
}
