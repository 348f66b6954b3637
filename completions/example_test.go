// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/item"
)

// A conversation from elsewhere becomes items; what they have no place for is
// named.
func ExampleToItems() {
	items, losses, err := completions.ToItems([]byte(`[
		{"role": "user", "name": "eve", "content": "What is 2+2?"},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":2,\"b\":2}"}}]},
		{"role": "tool", "tool_call_id": "call_1", "content": "4"}
	]`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, it := range items {
		fmt.Println(it)
	}
	for _, l := range losses {
		fmt.Println("lost:", l)
	}
	// Output:
	// message user
	// function_call add call_1
	// function_call_output call_1
	// lost: messages[0].name: has no counterpart
}

// Items become a conversation that other programs read.
func ExampleFromItems() {
	list := item.NewList(
		item.User("What is 2+2?"),
		item.Call("call_1", "add", `{"a":2,"b":2}`),
	)
	out, err := item.Output("call_1", item.Text("4"))
	if err != nil {
		fmt.Println(err)
		return
	}
	list.Append(out)
	messages, losses, err := completions.FromItems(list, completions.Options{Plain: true})
	fmt.Println(string(messages), losses, err)
	// Output:
	// [{"role":"user","content":"What is 2+2?"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":2,\"b\":2}"}}]},{"role":"tool","tool_call_id":"call_1","content":"4"}] [] <nil>
}

// A client of Chat Completions is used like one of the Responses API.
func ExampleClient() {
	c := &completions.Client{BaseURL: "http://localhost:11434"}
	req := &api.Request{Model: "qwen3", Input: item.NewList(item.User("hello"))}
	for ev, err := range c.Stream(context.Background(), req) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if ev.Type == api.EventTextDelta {
			fmt.Print(ev.Delta)
		}
	}
}
