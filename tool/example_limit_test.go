// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/tool"
)

// A limit on outputs, and a place to keep what is left out: the model reads on
// with read_output.
func ExampleReadOutput() {
	count := tool.Must("count", "Count.", func(context.Context, struct{}) (string, error) {
		var b strings.Builder
		for n := range 1000 {
			fmt.Fprintf(&b, "%d of many lines\n", n)
		}
		return b.String(), nil
	})
	set, err := tool.NewSet(count, tool.ReadOutput(new(tool.MemorySpill)))
	if err != nil {
		panic(err)
	}
	shape := tool.Shape{Limit: tool.Limit{Bytes: 1024, Mode: tool.Head}}
	out := set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: "count"}, shape)

	lines := strings.Split(out.Content.Text, "\n")
	fmt.Println(lines[0])
	fmt.Println(lines[len(lines)-1])
	// Output:
	// 0 of many lines
	// [17067 of 17890 bytes left out here (lines 50 to 1000 of 1000). To read them, call read_output with id e56f79fd5715d1a80265702117ba0358fd7404efa926af2fb37d68a0870aaa50 and offset 823]
}

// Two outputs of one turn share its limit: what the small one leaves goes to
// the other.
func ExampleShape_Fit() {
	say := tool.Must("say", "Say it many times.", func(_ context.Context, in struct {
		Times int `json:"times"`
	}) (string, error) {
		return strings.Repeat("all work and no play\n", in.Times), nil
	})
	set, err := tool.NewSet(say)
	if err != nil {
		panic(err)
	}
	shape := tool.Shape{Turn: tool.Limit{Bytes: 4096}}
	ctx := context.Background()
	small := set.Invoke(ctx, tool.Call{Name: "say", Arguments: `{"times":10}`}, shape)
	large := set.Invoke(ctx, tool.Call{Name: "say", Arguments: `{"times":1000}`}, shape)
	fmt.Println(shape.Settled(&small, 2), shape.Settled(&large, 2))
	shape.Fit(ctx, &small, &large)
	fmt.Println(len(small.Content.Text), len(large.Content.Text), len(small.Content.Text)+len(large.Content.Text) <= 4096)
	// Output:
	// true false
	// 210 3868 true
}
