// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"
	"reflect"

	"github.com/antiphon-go/antiphon/item"
)

// New makes a tool from a function. In must be a struct or a map with string
// keys; its JSON Schema is inferred and becomes the tool's parameters. Field
// names come from json tags, a field with omitzero or omitempty is optional,
// and a jsonschema tag is the field's description. Members that In does not
// have are refused. The tags enum, minimum, maximum, minLength, maxLength,
// pattern, format, default and examples set the keywords of those names (a list
// has commas between its values); arguments are held to them, but for pattern and
// format, which the model is told. A type that is a [SchemaOwner] says itself what
// its JSON looks like.
//
// Out may be a string, a [Result], an [item.Content], []item.Part, []byte (an
// image or text), or any value that encodes as JSON: an object with a string
// member "output" stands for that string, and every other value is sent as
// compact JSON. An empty or nil value becomes the sentence [NoOutput].
//
// New fails on a name the API refuses, on a type that has no schema, on a type
// whose JSON does not fit its schema, and on options that contradict it.
func New[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) (Tool, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if fn == nil {
		return nil, fmt.Errorf("tool %s: function is nil", name)
	}
	c, err := configOf(opts)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	var s *schema
	if c.parameters != "" {
		s, err = c.compile(c.parameters)
	} else {
		s, err = infer[In]()
	}
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	strict := c.strict != nil && *c.strict
	if strict {
		if err := s.form.checkStrict(); err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
	}
	def := item.FunctionTool{Name: name, Description: description, Parameters: s.text, Strict: &strict}
	return &typed[In, Out]{def: def, annotations: c.annotations, schema: s, fn: fn}, nil
}

// Must is [New] for tools that are known to be right, such as package
// variables; it panics where New fails.
func Must[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) Tool {
	t, err := New(name, description, fn, opts...)
	if err != nil {
		panic(err)
	}
	return t
}

type typed[In, Out any] struct {
	def         item.FunctionTool
	annotations Annotations
	schema      *schema
	fn          func(context.Context, In) (Out, error)
}

func (t *typed[In, Out]) Definition() item.Tool    { return cloneFunction(&t.def) }
func (t *typed[In, Out]) Annotations() Annotations { return t.annotations }
func (t *typed[In, Out]) checksArguments()         {}

func (t *typed[In, Out]) Run(ctx context.Context, call Call) (Result, error) {
	var in In
	if !t.schema.quick(call.Arguments, &in) {
		in = *new(In)
		if err := t.schema.decode(t.def.Name, call.Arguments, &in); err != nil {
			return Result{}, err
		}
	}
	out, err := t.fn(withCall(ctx, call), in)
	if err != nil && reflect.ValueOf(new(out)).Elem().IsZero() {
		return Result{}, err
	}
	res, encErr := resultOf(out)
	if err != nil {
		return res, err
	}
	return res, encErr
}

// cloneFunction copies a definition, so that nobody changes a tool's own.
func cloneFunction(d *item.FunctionTool) *item.FunctionTool {
	c := *d
	if d.Strict != nil {
		strict := *d.Strict
		c.Strict = &strict
	}
	return &c
}
