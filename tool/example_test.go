// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// A tool from a Go function: the struct is the schema, the result is the text.
func ExampleNew() {
	type input struct {
		City string `json:"city" jsonschema:"a city's name"`
	}
	weather, err := tool.New("weather", "Tell the weather.",
		func(_ context.Context, in input) (string, error) { return "It rains in " + in.City + ".", nil },
		tool.ReadOnly())
	if err != nil {
		panic(err)
	}
	set, err := tool.NewSet(weather)
	if err != nil {
		panic(err)
	}
	out := set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: "weather", Arguments: `{"city":"Bergen"}`}, output.Policy{})
	fmt.Println(out.Content.Display())

	out = set.Invoke(context.Background(), tool.Call{ID: "call_2", Name: "whether"}, output.Policy{})
	fmt.Println(out.Content.Display())
	// Output:
	// It rains in Bergen.
	// status:
	// error
	//
	// toolName:
	// whether
	//
	// error:
	// tool not found: whether. Available: weather
	//
	// output:
}

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
	set, err := tool.NewSet(count, tool.ReadOutput(new(output.MemoryStore)))
	if err != nil {
		panic(err)
	}
	shape := output.Policy{Limit: &output.Limit{Bytes: 1024, Mode: output.Head}}
	out := set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: "count"}, shape)

	lines := strings.Split(out.Content.Text, "\n")
	fmt.Println(lines[0])
	fmt.Println(lines[len(lines)-1])
	// Output:
	// 0 of many lines
	// [17067 of 17890 bytes left out here (lines 50 to 1000 of 1000). To read them, call read_output with id e56f79fd5715d1a80265702117ba0358fd7404efa926af2fb37d68a0870aaa50 and offset 823]
}

// A definition of the API's own makes a tool whose calls come in another form.
// Models that know it have learned it.
func ExampleRaw_hosted() {
	shell, err := tool.Raw(new(item.LocalShellTool), func(_ context.Context, call tool.Call) (tool.Result, error) {
		return tool.Result{Text: "would run " + call.Arguments}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	set, err := tool.NewSet(shell)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(set.Names(), set.Kinds())
	out := set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: "local_shell", Kind: item.TypeLocalShellCall, Arguments: `{"command":["ls"]}`}, output.Policy{})
	fmt.Println(out.Content.Display())
	// Output:
	// [local_shell] [local_shell_call]
	// would run {"command":["ls"]}
}
