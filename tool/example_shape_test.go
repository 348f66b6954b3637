// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"fmt"
	"log"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
)

// A secret that a tool puts out does not reach the model, nor anything that keeps
// what the model was given.
func ExampleShape() {
	const key = "sk-0123456789"
	env := tool.Must("env", "Shows the environment.", func(context.Context, struct{}) (string, error) {
		return "HOME=/home/ada\nOPENAI_API_KEY=" + key, nil
	})
	set, err := tool.NewSet(env)
	if err != nil {
		log.Fatal(err)
	}
	out := set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: "env", Arguments: "{}"}, tool.Shape{Secrets: []string{key}})
	fmt.Println(out.Content.Display())
	// Output:
	// HOME=/home/ada
	// OPENAI_API_KEY=[redacted]
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
	out := set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: "local_shell", Kind: item.TypeLocalShellCall, Arguments: `{"command":["ls"]}`}, tool.Shape{})
	fmt.Println(out.Content.Display())
	// Output:
	// [local_shell] [local_shell_call]
	// would run {"command":["ls"]}
}
