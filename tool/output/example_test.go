// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package output_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// A secret that a tool puts out does not reach the model, nor anything that keeps
// what the model was given.
func ExamplePolicy() {
	const key = "sk-0123456789"
	env := tool.Must("env", "Shows the environment.", func(context.Context, struct{}) (string, error) {
		return "HOME=/home/ada\nOPENAI_API_KEY=" + key, nil
	})
	set, err := tool.NewSet(env)
	if err != nil {
		log.Fatal(err)
	}
	out := set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: "env", Arguments: "{}"}, output.Policy{Secrets: []string{key}})
	fmt.Println(out.Content.Display())
	// Output:
	// HOME=/home/ada
	// OPENAI_API_KEY=[redacted]
}

// Two outputs of one turn share its limit: what the small one leaves goes to
// the other.
func ExamplePolicy_FitTurn() {
	say := tool.Must("say", "Say it many times.", func(_ context.Context, in struct {
		Times int `json:"times"`
	}) (string, error) {
		return strings.Repeat("all work and no play\n", in.Times), nil
	})
	set, err := tool.NewSet(say)
	if err != nil {
		panic(err)
	}
	policy := output.Policy{PerTurn: &output.Limit{Bytes: 4096}}
	ctx := context.Background()
	small := set.Invoke(ctx, tool.Call{Name: "say", Arguments: `{"times":10}`}, policy)
	large := set.Invoke(ctx, tool.Call{Name: "say", Arguments: `{"times":1000}`}, policy)
	fmt.Println(policy.WithinTurn(&small.Output, 2), policy.WithinTurn(&large.Output, 2))
	policy.FitTurn(ctx, &small.Output, &large.Output)
	fmt.Println(len(small.Content.Text), len(large.Content.Text), len(small.Content.Text)+len(large.Content.Text) <= 4096)
	// Output:
	// true false
	// 210 3868 true
}
