// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/tool"
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
	out := set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: "weather", Arguments: `{"city":"Bergen"}`}, tool.Shape{})
	fmt.Println(out.Content.Display())

	out = set.Invoke(context.Background(), tool.Call{ID: "call_2", Name: "whether"}, tool.Shape{})
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
