// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/antiphon-go/antiphon/item"
)

// New makes a tool from a function. A call needs an approval unless the tool is
// [ReadOnly] or the policy of the agent allows it: see Policy of package agent.
//
// In must be a struct or a map with string keys;
// its JSON Schema is inferred and becomes the tool's parameters. Field names come
// from json tags, a field with omitzero or omitempty is optional, and a jsonschema
// tag is the field's description. Members that In does not have are refused. Other
// keywords have tags of their own names: enum, minimum, maximum, exclusiveMinimum,
// exclusiveMaximum, multipleOf, minLength, maxLength, pattern, format, minItems,
// maxItems, default and examples; enum:"a,b" lists values. Arguments are checked
// against all of these except default and examples; of the formats, date-time, date,
// time, email, uri, uuid, ipv4 and ipv6 are checked. A tag that does not suit its
// field, and a tag of another package such as validate, is an error. A type that
// implements [SchemaOwner] provides its own schema. A time.Time is a text of RFC 3339;
// any other type with MarshalText and UnmarshalText is a text, too. A type that
// contains itself has a schema with references.
//
// Out may be a string, a [Result], an [item.Content], []item.Part, []byte (an
// image or text), or any value that encodes as JSON: an object with a string
// member "output" stands for that string, and every other value is sent as
// compact JSON. An empty or nil value becomes the sentence [output.NoOutput].
//
// New returns an error for a name that the API refuses, a type that has no schema, a
// type whose JSON does not match its schema, a type that has no JSON, such as a channel
// or a function in a field, and options that contradict it.
func New[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) (Tool, error) {
	t := &typed{
		input: func() any { return new(In) },
		fn:    func(ctx context.Context, in any) (any, error) { return fn(ctx, *in.(*In)) },
		none:  func() any { return *new(Out) },
	}
	if err := t.define(name, description, fn != nil, reflect.TypeFor[In](), reflect.TypeFor[Out](), opts); err != nil {
		return nil, err
	}
	return t, nil
}

// Must is like [New] but panics on an error. It is for tools that are known to be
// valid, such as package variables.
func Must[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) Tool {
	t, err := New(name, description, fn, opts...)
	if err != nil {
		panic(err)
	}
	return t
}

// typed is a tool whose function has an input and an output of its own types. It is not
// generic, because the linker includes one copy of generic code per type.
type typed struct {
	def         item.FunctionTool
	annotations Annotations
	schema      *schema

	input func() any // returns a pointer to a new value of the input's type
	fn    func(ctx context.Context, in any) (out any, err error)
	none  func() any // returns the zero value of the output's type
}

// define checks what the tool is made of, and sets all but its functions.
func (t *typed) define(name, description string, hasFunction bool, in, out reflect.Type, opts []Option) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if !hasFunction {
		return fmt.Errorf("tool %s: function is nil", name)
	}
	c, err := configOf(opts)
	if err != nil {
		return fmt.Errorf("tool %s: %w", name, err)
	}
	if c.parameters != "" {
		if t.schema, err = c.compile(c.parameters); err == nil {
			err = checkInput(in)
		}
	} else {
		t.schema, err = infer(in)
	}
	if err == nil {
		err = checkResult(out)
	}
	if err != nil {
		return fmt.Errorf("tool %s: %w", name, err)
	}
	strict := c.strict != nil && *c.strict
	if strict {
		if err := t.schema.form.checkStrict(); err != nil {
			return fmt.Errorf("tool %s: %w", name, err)
		}
	}
	t.annotations = c.annotations
	t.def = item.FunctionTool{Name: name, Description: description, Parameters: t.schema.text, Strict: &strict}
	c.define(&t.def.DeferLoading, &t.def.AllowedCallers)
	return nil
}

func (t *typed) Definition() item.Tool    { return cloneFunction(&t.def) }
func (t *typed) Annotations() Annotations { return t.annotations }

func (t *typed) checksArguments(args string) error {
	_, err := t.read(args)
	return err
}

// read decodes the arguments of a call, and returns a pointer to them.
func (t *typed) read(args string) (in any, err error) {
	in = t.input()
	if !t.schema.quick(args, in) {
		in = t.input()
		err = t.schema.decode(t.def.Name, args, in)
	}
	return in, err
}

func (t *typed) Run(ctx context.Context, call Call) (Result, error) {
	in, err := t.read(call.Arguments)
	if err != nil {
		return Result{}, err
	}
	out, err := t.fn(withCall(ctx, call), in)
	if err == nil {
		return resultOf(out)
	}
	// A function that fails returns a zero value with its error. For a struct this
	// encodes to JSON such as {"count":0}, which is not an output.
	res := beside(out)
	if none := beside(t.none()); none.Text != "" && none.Text == res.Text {
		return Result{}, err
	}
	return res, err
}

// beside returns the result that a function returned beside its error, if there is one.
// A type that writes its own JSON may panic on its zero value, which must not hide the
// error.
func beside(out any) (res Result) {
	defer func() {
		if recover() != nil {
			res = Result{}
		}
	}()
	res, _ = resultOf(out)
	return res
}

// cloneFunction copies a definition, so that callers cannot change the tool's own.
func cloneFunction(d *item.FunctionTool) *item.FunctionTool {
	c := *d
	c.Strict, c.DeferLoading = clonePointer(d.Strict), clonePointer(d.DeferLoading)
	c.AllowedCallers, c.Extra = slices.Clone(d.AllowedCallers), slices.Clone(d.Extra)
	return &c
}

func cloneCustom(d *item.CustomTool) *item.CustomTool {
	c := *d
	c.DeferLoading = clonePointer(d.DeferLoading)
	c.AllowedCallers, c.Extra = slices.Clone(d.AllowedCallers), slices.Clone(d.Extra)
	return &c
}

// cloneHosted copies a definition of one of the API's own tools, by way of its JSON.
func cloneHosted(d item.Tool) item.Tool {
	text, err := item.ToolJSON(d)
	if err != nil {
		return d // it cannot be sent, which the request reports
	}
	c, err := item.ParseTool([]byte(text))
	if err != nil {
		return d
	}
	return c
}

func clonePointer(b *bool) *bool {
	if b == nil {
		return nil
	}
	return new(*b)
}

// Raw makes a tool from a definition and a function that receives the call as the
// model made it. A function tool's schema is sent byte for byte; strict is sent as
// false unless the definition or an option sets it.
//
// Arguments of a function tool must be a JSON object that matches the schema, which
// is JSON Schema 2020-12 or, if it says so, draft 7; otherwise the function does not
// run. Keywords that cannot be checked here (remote references, unevaluated members,
// patterns of another dialect) are not errors: they are left to the model and the
// endpoint. The input of a custom tool is not checked, and neither are calls of the
// API's own tools.
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
		c.define(&f.DeferLoading, &f.AllowedCallers)
		t.function = f
		if t.schema, err = schemaOf(f, goExpressions); err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
	case *item.CustomTool:
		if c.strict != nil {
			return nil, fmt.Errorf("tool %s: option Strict: a custom tool has no schema", name)
		}
		t.custom = cloneCustom(d)
		c.define(&t.custom.DeferLoading, &t.custom.AllowedCallers)
	default:
		if c.strict != nil {
			return nil, fmt.Errorf("tool %s: option Strict: the tool has no schema of ours", name)
		}
		if c.deferred || len(c.callers) > 0 {
			return nil, fmt.Errorf("tool %s: options Deferred and Callers: they are for functions and custom tools", name)
		}
		if field, _ := item.MissingOption(def); field != "" {
			return nil, fmt.Errorf("tool %s: the %T has no %s: set the field", name, def, field)
		}
		t.hosted = cloneHosted(def)
	}
	return t, nil
}

// complete returns a copy of a definition with the members that the API requires:
// parameters, and strict, which is false unless the option or the definition sets
// it.
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
	hosted      item.Tool // a definition of the API's own
	annotations Annotations
	schema      *schema // nil if not a function
	fn          func(context.Context, Call) (Result, error)
}

func (t *raw) Definition() item.Tool {
	if t.function != nil {
		return cloneFunction(t.function)
	}
	if t.hosted != nil {
		return cloneHosted(t.hosted)
	}
	return cloneCustom(t.custom)
}

func (t *raw) Annotations() Annotations { return t.annotations }

func (t *raw) checksArguments(args string) error {
	if t.schema == nil {
		return nil
	}
	return t.schema.check(t.name, args)
}

func (t *raw) Run(ctx context.Context, call Call) (Result, error) {
	if err := t.checksArguments(call.Arguments); err != nil {
		return Result{}, err
	}
	return t.fn(ctx, call)
}
