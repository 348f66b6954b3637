// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// Search makes the API's own tool search from a function that finds tools, for searches that
// the client performs. The model gets the definitions of the tools that find returns, and may
// call them from then on. They must be among the tools of the agent too, with [Deferred],
// so that the model does not know them before. No tools are an answer: there is none.
//
// The Execution of def is [item.ExecutionClient]. Its Parameters are the JSON Schema of the
// arguments, which find gets as the model sent them, unchecked, and its Description says what
// to search for.
//
// A search only reads, so it runs without an approval unless a rule asks about it. The
// answer has no place for an error: after an error of find, and after a refusal, the model
// gets no tools.
func Search(def *item.ToolSearchTool, find func(ctx context.Context, arguments string) ([]Tool, error), opts ...Option) (Tool, error) {
	switch {
	case def == nil:
		return nil, fmt.Errorf("tool %s: definition is nil", item.ToolToolSearch)
	case def.Execution != item.ExecutionClient:
		return nil, fmt.Errorf("tool %s: Execution is %q: want %q; a search that the endpoint performs belongs into the Request.Tools of the agent", item.ToolToolSearch, def.Execution, item.ExecutionClient)
	case find == nil:
		return nil, fmt.Errorf("tool %s: function is nil", item.ToolToolSearch)
	}
	return Raw(def, func(ctx context.Context, call Call) (Result, error) {
		found, err := find(ctx, call.Arguments)
		if err != nil {
			return Result{}, err
		}
		set, err := NewSet(found...)
		if err != nil {
			return Result{}, err
		}
		defs := set.Definitions()
		for _, def := range defs {
			switch def.(type) {
			case *item.FunctionTool, *item.CustomTool, *item.NamespaceTool:
			default:
				return Result{}, fmt.Errorf("a search finds functions and custom tools, not %s", def.ToolType())
			}
		}
		text := "no tools were found"
		if len(defs) > 0 {
			text = "found: " + strings.Join(set.Names(), ", ")
		}
		return Result{Text: text, Found: defs}, nil
	}, append([]Option{ReadOnly(), Idempotent()}, opts...)...)
}
