// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// A run stops for a call that needs an approval. What is wanted is plain data;
// the answer can come from anywhere, and changes what the tool is given.
func ExampleDecide() {
	ctx := context.Background()
	remove := tool.Must("remove", "Removes a file.", func(_ context.Context, in struct {
		Path string `json:"path"`
	}) (string, error) {
		return "removed " + in.Path, nil
	})
	a := &agent.Agent{
		Model: &memory{replies: []any{
			[]item.Item{item.Call("call_1", "remove", `{"path":"notes"}`)},
			[]item.Item{item.Assistant("It is gone.")},
		}},
		Tools:  []tool.Tool{remove},
		Policy: agent.Policy{Pause: true},
	}
	store := new(session.Memory)
	s, err := session.Open(ctx, store, "cleaning")
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := a.Run(ctx, s, item.User("Remove my notes."))
	if err != nil {
		fmt.Println(err)
		return
	}
	form, _ := json.Marshal(res.Pending)
	fmt.Println(res.Why, string(form))

	// Elsewhere, later.
	if s, err = session.Open(ctx, store, "cleaning"); err != nil {
		fmt.Println(err)
		return
	}
	err = agent.Decide(ctx, s, agent.Decision{Number: 1, CallID: "call_1", Allow: true, Arguments: `{"path":"old notes"}`, By: "Ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err = a.Run(ctx, s)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Why, res.Text)
	out, _ := item.As[item.FunctionCallOutput](res.Items[0])
	fmt.Println(out.Output.Display())
	// Output:
	// approval_wanted [{"session":"cleaning","number":1,"call_id":"call_1","tool":"remove","arguments":"{\"path\":\"notes\"}","reason":"remove does more than read, and no rule allows it","rules":[{"verdict":"allow","tool":"remove","arguments":"{\"path\":\"notes\"}","definition":"9b74f28164636ff67735b64cb78d9c8d"},{"verdict":"allow","tool":"remove","definition":"9b74f28164636ff67735b64cb78d9c8d"}]}]
	// answered It is gone.
	// Note: the arguments of this call were changed before it ran, to: {"path":"old notes"}
	//
	// removed old notes
}
