// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// Tool is something that a model can call by name. An implementation must be
// safe for concurrent use: calls of one turn run at the same time unless its
// annotations say [Annotations.Exclusive].
type Tool interface {
	// Definition returns what the model sees: an [*item.FunctionTool], an
	// [*item.CustomTool], or one of the API's own tools that are run here (see
	// [item.Type.Tool]). It must return an equal value every time; the caller
	// may keep it.
	Definition() item.Tool

	// Run performs one call. A failure that the model should read is either an
	// error or a [Result] with an Error; with both, what Text and Parts hold is
	// the output so far and is kept. Run must return soon after ctx ends.
	Run(ctx context.Context, call Call) (Result, error)
}

// Call is one call as the model made it.
type Call struct {
	// ID is the call id that joins the call and its output.
	ID string
	// Name is the tool's name.
	Name string
	// Arguments is the JSON text as the model sent it, or, for a custom tool,
	// its input. Nothing about it is certain.
	Arguments string
	// Kind is the type of a call of the API's own tools, and "" for all others.
	// Its Arguments are the JSON of its operation or action.
	Kind item.Type
	// Custom says that Arguments is the free text of a custom tool call.
	Custom bool
	// Edited says that Arguments is not what the model sent: somebody changed
	// it. The output tells the model.
	Edited bool
}

// Annotations are what a caller may know about a tool before running it. The zero
// value claims nothing: the tool may write, and running it twice may do harm.
type Annotations struct {
	// ReadOnly: it changes nothing outside of itself, so that running it needs
	// no approval where reading is allowed.
	ReadOnly bool
	// Exclusive: no other call may run beside it.
	Exclusive bool
	// Idempotent: running the same call again after a crash does no harm.
	Idempotent bool
	// Nested: a call is a run of its own, and needs to know of the one around it.
	// Package agent sets it, on tools that it makes.
	Nested bool
	// EarlyStart: a call may start as soon as it is complete, while the reply
	// that makes it still comes. If the reply breaks off, it has run all the
	// same.
	EarlyStart bool
	// Envelope: successes are wrapped like failures. See [Envelope].
	Envelope bool
	// Timeout bounds one call. Zero: only the caller's context does.
	Timeout time.Duration
	// MaxOutput bounds the text of its outputs in place of [Shape.Limit].
	MaxOutput Limiter
	// UsualOutput bounds it where neither MaxOutput nor [Shape.Limit] does.
	UsualOutput Limiter
	// ReadKey names what its calls read. nil: it does not say.
	ReadKey ReadKeyer
	// Approval is the declaring file's rule for calls to this tool: "allow", "ask"
	// or "deny", one rule beside those of an agent's policy; "" means no rule.
	Approval string
}

// ReadKeyer tells what calls of a tool read.
type ReadKeyer interface {
	// ReadKey names what a call with such arguments, as the tool gets them, reads,
	// and reports whether it reads such a thing at all. Calls of the same tool with
	// the same key bring the same, as long as that does not change. It must be
	// quick.
	ReadKey(arguments string) (key string, ok bool)
}

// Annotated is the optional interface of a [Tool] that has annotations.
type Annotated interface {
	Annotations() Annotations
}

// AnnotationsOf returns t's annotations, or none if it does not tell.
func AnnotationsOf(t Tool) Annotations {
	if tr, ok := t.(Annotated); ok {
		return tr.Annotations()
	}
	return Annotations{}
}

type callKey struct{}

// FromContext returns the call that is being run, for a typed function that
// needs its id. It reports false outside of a tool's run.
func FromContext(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callKey{}).(*callContext)
	if !ok {
		return Call{}, false
	}
	return c.call, true
}

// callContext is a context that knows the call.
type callContext struct {
	context.Context
	call Call
}

// Value implements [context.Context].
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func withCall(ctx context.Context, c Call) context.Context { return &callContext{ctx, c} }

// CheckName reports a tool name that the API would refuse: it must be 1 to 64
// letters, digits, underscores and hyphens.
func CheckName(name string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	if name == "" || len(name) > 64 || strings.Trim(name, letters) != "" {
		return fmt.Errorf("tool name %q: want 1 to 64 letters, digits, '_' and '-'", name)
	}
	return nil
}

// nameOf returns the name that a definition is called by.
func nameOf(def item.Tool) (string, error) {
	var name string
	switch d := def.(type) {
	case *item.FunctionTool:
		if d == nil {
			return "", fmt.Errorf("tool: definition is nil")
		}
		name = d.Name
	case *item.CustomTool:
		if d == nil {
			return "", fmt.Errorf("tool: definition is nil")
		}
		name = d.Name
	default:
		kind, ok := item.CallKindOf(def)
		if name = kind.Tool; !ok {
			return "", fmt.Errorf("tool: definition is %T: want a function, a custom tool, or apply_patch, shell or local_shell of the API", def)
		}
	}
	return name, CheckName(name)
}
