// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
)

// Hooks look at a run from inside, and may interfere. Each is optional. They
// are called one at a time by the run that they belong to; those of parallel
// nested runs may be called at the same time. A hook must not keep what it is
// given, and a panic in one counts as its error.
//
// Of several Hooks, the befores are called in order and the afters in reverse,
// so that the first is outermost. A context that a before returns, which must
// come of the one it got, is that of what follows: a span of a trace.
type Hooks struct {
	// Name says whose hooks they are, in errors, events and the log.
	Name string
	// BeforeRun is called when a run begins, also one that is nested. The context
	// is that of all that the run does. An error ends the run with [Vetoed].
	BeforeRun func(ctx context.Context, c *RunCall) (context.Context, error)
	// AfterRun is called when a run and all that it started have ended, however
	// they did. An error is the run's, unless that has one.
	AfterRun func(ctx context.Context, c *RunCall) error
	// BeforeInput is called when input is about to be recorded: what the run was
	// started with, or what [Run.Say] added. An error, or a panic, ends the run with
	// [Vetoed]; the input is recorded as withdrawn and no request carries it, now or
	// later, but for messages of the system and the developer, which are the
	// program's. For an error that does not object to the input, see [StopError].
	BeforeInput func(ctx context.Context, c *InputCall) error
	// BeforeModel is called when the model is about to be asked. It may change
	// the request, which is this turn's own, but for its Input. An error keeps
	// the model from being asked and ends the run with [Vetoed]. It also withdraws
	// what the request carries for the first time: the user's messages, and of
	// outputs the content; so a hook that reads the whole history does not meet it
	// again. A [StopError] or a panic withdraws nothing, and neither does the error
	// of a context that ended: the next run asks again.
	BeforeModel func(ctx context.Context, c *ModelCall) (context.Context, error)
	// AfterModel is called when the reply and the turn's end are recorded, also
	// for a reply that broke off, and when they could not be recorded. An error, or
	// a panic, ends the run with [Vetoed] and withdraws the reply: it is not in the
	// [Result], no request carries it, and its calls are not started, but for those
	// that were while it came (see tool.Annotations.EarlyStart). What was yielded by then
	// was shown, unless [Agent].HoldOutput is set. A [StopError] withdraws nothing,
	// and neither does the error of a context that ended. A reply that this hook has
	// not judged, for that reason or because the process ended before it was called,
	// is shown to it by the next run, before anything else; see [ModelCall].Stored.
	AfterModel func(ctx context.Context, c *ModelCall) error
	// BeforeTool is called when a call that may run is about to. It may change
	// Call.Arguments, which is recorded and which the model sees. An error
	// refuses the call; the model reads that too.
	BeforeTool func(ctx context.Context, c *ToolCall) (context.Context, error)
	// AfterTool is called before the output is recorded. It may change Output.
	// An error withholds the output: the model gets the error in its place.
	AfterTool func(ctx context.Context, c *ToolCall) error
	// CallRefused is called when the refusal of a call is recorded, whoever
	// refused it. Error is the reason. There was no BeforeTool for it, unless it
	// was a hook. An error ends the run with [Vetoed].
	CallRefused func(ctx context.Context, c *ToolCall) error
	// Noticed is called when a notice is recorded. An error ends the run with
	// [Vetoed].
	Noticed func(ctx context.Context, n *Noticed) error
	// BeforeCompact is called when something shorter is about to be put in the
	// place of older items. It may set Items, which then stand there, and nobody
	// else is asked. An error keeps all as it is; the run goes on if it can.
	BeforeCompact func(ctx context.Context, c *CompactCall) (context.Context, error)
	// AfterCompact is called when that is done, or has failed, and before it is
	// recorded. It may change Items. An error keeps all as it is.
	AfterCompact func(ctx context.Context, c *CompactCall) error
}

// RunCall is one run, as hooks see it. It is an argument of hooks, not a call that
// a model made.
type RunCall struct {
	Session string
	Depth   int
	// Model is that of the agent's requests.
	Model          string
	Started, Ended time.Time
	// What follows is set for AfterRun. Why is empty if the run broke off, by a
	// store that failed or a panic. Err is the error that it ends with.
	Why    StopReason
	Detail string
	Err    error
	Totals Totals
}

// ModelCall is one question to the model, as hooks see it. It is an argument of
// hooks, not a call that a model made.
type ModelCall struct {
	// Session is the session's id, Depth 0 but for nested runs.
	Session string
	Depth   int
	Turn    int
	Request *item.Request
	// Stored says that an earlier run recorded the reply and ended, by a crash say,
	// before its hooks had judged it. Such a call had no BeforeModel in this run, its
	// Request is what this run would have sent, and the times are zero.
	Stored bool
	// Started and Ended are readings of the clock; the first Output came at
	// First. What follows is set for AfterModel.
	Started, First, Ended time.Time
	ResponseID            string
	// ResponseModel is the model that the endpoint says it was.
	ResponseModel  string
	Status, Reason string
	// Output are the items of the reply, as far as it came.
	Output []item.Item
	// Class is the kind of error that broke the reply off, as package endpoint
	// names it, and Err the error.
	Class string
	Err   error
	Usage *item.Usage
	Cost  float64
	// Cache compares the request with the one before; nil for the first.
	Cache *Cache
}

// ToolCall is one call of a tool, as hooks see it.
type ToolCall struct {
	Session     string
	Depth       int
	Turn        int
	Call        tool.Call
	Annotations tool.Annotations
	// Started and Ended are readings of the clock. What follows is set for
	// AfterTool.
	Started, Ended time.Time
	// Output is what the model gets. Failure and Error tell of what the tool
	// did, whatever becomes of Output; Paused says that the call is to go on
	// later, so that there is no output yet.
	Output  item.Content
	Failure tool.Failure
	Error   string
	Paused  bool
}

// CompactCall is one compaction, as hooks see it.
type CompactCall struct {
	Session string
	Depth   int
	// By says how, as session.Compacted has it.
	By string
	// Replaced are the items that will not be sent any more, as they are sent now.
	Replaced []item.Item
	// Before and After are estimates of what a request takes, in tokens.
	Before, After int64
	// Started and Ended are readings of the clock. What follows is set for
	// AfterCompact, unless BeforeCompact did it.
	Started, Ended time.Time
	// Items are sent instead of those that are replaced.
	Items []item.Item
	// Model is the one that was asked for them, "" if none was.
	Model string
	// Usage and Cost are what the requests took, all of them.
	Usage *item.Usage
	Cost  float64
	// Err is why it failed.
	Err error

	all  []item.Item // with what is kept
	kept []int64
	// instead: the endpoint could not do it.
	instead bool
}

// HookError is an error of a hook, or its panic.
type HookError struct {
	Hook string
	// Name is that of the [Hooks].
	Name string
	Err  error
	// Stack is that of a panic.
	Stack []byte
}

func (e *HookError) Error() string {
	if e.Name != "" {
		return fmt.Sprintf("hook %s of %s: %v", e.Hook, e.Name, e.Err)
	}
	return fmt.Sprintf("hook %s: %v", e.Hook, e.Err)
}
func (e *HookError) Unwrap() error { return e.Err }

// guarded calls a hook.
func guarded(of *Hooks, name string, hook func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &HookError{name, of.Name, fmt.Errorf("it panicked: %v", v), debug.Stack()}
		}
	}()
	if err := hook(); err != nil {
		return &HookError{Hook: name, Name: of.Name, Err: err}
	}
	return nil
}

// before calls hooks in order until one objects. The number of those that were
// called and did not object is how many afters are due.
func before[T any](ctx context.Context, name string, hooks []Hooks, pick func(*Hooks) func(context.Context, T) (context.Context, error), arg T) (context.Context, int, error) {
	for i := range hooks {
		hook := pick(&hooks[i])
		if hook == nil {
			continue
		}
		err := guarded(&hooks[i], name, func() error {
			inner, err := hook(ctx, arg)
			if inner != nil && err == nil {
				ctx = inner
			}
			return err
		})
		if err != nil {
			return ctx, i, err
		}
	}
	return ctx, len(hooks), nil
}

// after calls hooks in reverse, all of them, and returns what they said: one that
// stops the run does not speak for another that objects.
func after[T any](ctx context.Context, name string, hooks []Hooks, pick func(*Hooks) func(context.Context, T) error, arg T) error {
	var said []error
	for i := len(hooks) - 1; i >= 0; i-- {
		hook := pick(&hooks[i])
		if hook == nil {
			continue
		}
		if err := guarded(&hooks[i], name, func() error { return hook(ctx, arg) }); err != nil {
			said = append(said, err)
		}
	}
	if len(said) == 1 {
		return said[0]
	}
	return errors.Join(said...)
}

func beforeRun(h *Hooks) func(context.Context, *RunCall) (context.Context, error) {
	return h.BeforeRun
}
func afterRun(h *Hooks) func(context.Context, *RunCall) error     { return h.AfterRun }
func callRefused(h *Hooks) func(context.Context, *ToolCall) error { return h.CallRefused }
func noticed(h *Hooks) func(context.Context, *Noticed) error      { return h.Noticed }
func beforeModel(h *Hooks) func(context.Context, *ModelCall) (context.Context, error) {
	return h.BeforeModel
}
func afterModel(h *Hooks) func(context.Context, *ModelCall) error { return h.AfterModel }
func beforeCompact(h *Hooks) func(context.Context, *CompactCall) (context.Context, error) {
	return h.BeforeCompact
}
func afterCompact(h *Hooks) func(context.Context, *CompactCall) error { return h.AfterCompact }
func beforeTool(h *Hooks) func(context.Context, *ToolCall) (context.Context, error) {
	return h.BeforeTool
}
func afterTool(h *Hooks) func(context.Context, *ToolCall) error { return h.AfterTool }
