// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	"fmt"

	"github.com/antiphon-go/antiphon/item"
)

// Raw makes a tool from a definition and a function that gets the call as the
// model made it. A function tool's schema is sent byte for byte; strict is
// written as false unless the definition or an option says otherwise.
//
// Arguments of a function tool must be a JSON object that matches the schema, of
// JSON Schema 2020-12 or, if it says so, draft 7; otherwise the function does
// not run. What cannot be checked here (remote references, unevaluated members,
// patterns of another dialect) is not an error: it is for the model and the
// endpoint. A custom tool's input is not checked, nor are calls of the API's own
// tools.
func Raw(def item.Tool, fn func(context.Context, Call) (Result, error), opts ...Option) (Tool, error) {
	name, err := nameOf(def)
	if err != nil {
		return nil, err
	}
	if fn == nil {
		return nil, fmt.Errorf("tool %s: function is nil", name)
	}
	c, err := configOf(opts)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	if c.parameters != "" {
		return nil, fmt.Errorf("tool %s: option Parameters: the definition holds the schema", name)
	}
	t := &raw{name: name, annotations: c.annotations, fn: fn}
	switch d := def.(type) {
	case *item.FunctionTool:
		f := complete(d, c.strict)
		t.function = f
		if t.schema, err = schemaOf(f, goExpressions); err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
	case *item.CustomTool:
		if c.strict != nil {
			return nil, fmt.Errorf("tool %s: option Strict: a custom tool has no schema", name)
		}
		custom := *d
		t.custom = &custom
	default:
		if c.strict != nil {
			return nil, fmt.Errorf("tool %s: option Strict: the tool has no schema of ours", name)
		}
		t.hosted = def
	}
	return t, nil
}

// complete returns a copy of a definition with the members that the API asks
// for: strict, as the option or the definition says and otherwise false, and
// parameters.
func complete(d *item.FunctionTool, strict *bool) *item.FunctionTool {
	c := cloneFunction(d)
	v := *cmp.Or(strict, c.Strict, new(bool))
	c.Strict = &v
	c.Parameters = cmp.Or(c.Parameters, anyObject)
	return c
}

type raw struct {
	name        string
	function    *item.FunctionTool
	custom      *item.CustomTool
	hosted      item.Tool // of the API's own
	annotations Annotations
	schema      *schema // nil for all but functions
	fn          func(context.Context, Call) (Result, error)
}

func (t *raw) Definition() item.Tool {
	if t.function != nil {
		return cloneFunction(t.function)
	}
	if t.hosted != nil {
		return t.hosted
	}
	c := *t.custom
	return &c
}

func (t *raw) Annotations() Annotations { return t.annotations }
func (t *raw) checksArguments()         {}

func (t *raw) Run(ctx context.Context, call Call) (Result, error) {
	if t.schema != nil {
		if err := t.schema.check(t.name, call.Arguments); err != nil {
			return Result{}, err
		}
	}
	return t.fn(ctx, call)
}
