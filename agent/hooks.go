// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Hooks observe a run, and can change or stop it. Each hook is optional. A run calls
// its hooks one at a time; the hooks of concurrent subagents may run at the same
// time. A hook must not keep its arguments. A panic in a hook counts as its error.
//
// With several Hooks, the before hooks are called in order and the after hooks in
// reverse, so that the first is outermost. A before hook may return a context derived
// from the one that it got; it is the context of what follows, such as a span of a
// trace.
type Hooks struct {
	// Name identifies the hooks in errors, events and the log.
	Name string
	// BeforeRun is called when a run begins, including a subagent's. The returned
	// context is used for the whole run. An error ends the run with [StopVetoed].
	BeforeRun func(ctx context.Context, c *RunCall) (context.Context, error)
	// AfterRun is called when a run and everything that it started have ended, for
	// any reason. Its error becomes the run's error, unless the run already has one.
	AfterRun func(ctx context.Context, c *RunCall) error
	// BeforeInput is called with input that no request has carried yet: with the input of
	// the run, or of [Run.Say], before it is recorded, and with what other programs
	// appended to the log, before the model is asked. Messages that a program appended
	// together with a reply to them are history and are not passed to the hook, except
	// after an import. The own hooks of an agent that gets the conversation by a [Handoff]
	// are called with what was said before. An error or a panic ends the run with
	// [StopVetoed]; the input is recorded as withdrawn, and no request carries it. System
	// and developer messages are the program's own and are not withdrawn. To stop without
	// objecting to the input, return a [StopError].
	BeforeInput func(ctx context.Context, c *InputCall) error
	// BeforeModel is called before the model is asked. It may change the request,
	// which belongs to this turn, except for its Input; the tools in it are shared, so a
	// hook replaces one and does not change it. An error prevents the request
	// and ends the run with [StopVetoed]. It also withdraws the input that the request
	// would carry for the first time: the user's messages, and the content of
	// outputs; so a hook that reads the whole history does not meet it again. A
	// [StopError], a panic, and the error of a context that ended withdraw nothing:
	// the next run asks again.
	BeforeModel func(ctx context.Context, c *ModelCall) (context.Context, error)
	// AfterModel is called after the reply and the turn's end are recorded, including
	// a reply that broke off, and after recording failed. An error or a panic ends
	// the run with [StopVetoed] and withdraws the reply: it is not in the [Result], no
	// request carries it, and its calls are not started, except those that started
	// early (see tool.Annotations.EarlyStart). Events that were already yielded have
	// been seen, unless [Agent].HoldOutput is set. A [StopError] and the error of a
	// context that ended withdraw nothing. If the hook has not judged a reply, for
	// this reason or because the process ended first, the next run shows it to the
	// hook before anything else; see [ModelCall].Stored.
	AfterModel func(ctx context.Context, c *ModelCall) error
	// BeforeTool is called before an allowed call runs. It may change Call.Arguments;
	// the change is recorded, and the model sees it. An error refuses the call; the
	// model reads the error.
	BeforeTool func(ctx context.Context, c *ToolCall) (context.Context, error)
	// AfterTool is called before the output is recorded. It may change Output. An
	// error withholds the output, and the model reads the error instead.
	AfterTool func(ctx context.Context, c *ToolCall) error
	// CallRefused is called after the refusal of a call is recorded, for any kind of
	// refusal. Error is the reason. BeforeTool was not called for it, unless a
	// BeforeTool hook refused the call. An error ends the run with [StopVetoed].
	CallRefused func(ctx context.Context, c *ToolCall) error
	// Noticed is called after a notice is recorded. An error ends the run with
	// [StopVetoed].
	Noticed func(ctx context.Context, n *session.Noticed) error
	// BeforeCompact is called before a compaction. It may set Items, which then
	// replace the older items without asking a model. An error cancels the
	// compaction; the run continues if it can.
	BeforeCompact func(ctx context.Context, c *CompactionCall) (context.Context, error)
	// AfterCompact is called after a compaction was made or has failed, and before it
	// is recorded. It may change Items. An error cancels the compaction.
	AfterCompact func(ctx context.Context, c *CompactionCall) error
}

// RunCall describes a run to hooks. It is an argument of hooks, not a call that a
// model made.
type RunCall struct {
	Session string
	Depth   int
	// Model is the model of the agent's requests.
	Model          string
	Started, Ended time.Time
	// The following fields are set for AfterRun. Why is empty if the run broke off,
	// because the store failed or by a panic. Err is the error that the run returns.
	Why    StopReason
	Detail string
	Err    error
	Totals Totals
}

// ModelCall describes one request to the model to hooks. It is an argument of hooks,
// not a call that a model made.
type ModelCall struct {
	// Session is the session's id. Depth is 0, or higher in subagents.
	Session string
	Depth   int
	Turn    int
	// Speaker is the name of the [Handoff] to the agent that asks; "" means the first
	// agent.
	Speaker string
	Request *api.Request
	// Endpoint is the URL that the Model reports for its requests, without secrets; ""
	// if it is not a [Describer].
	Endpoint string
	// Stored means that an earlier run recorded the reply, but ended, for example by
	// a crash, before its hooks had judged it. BeforeModel was not called for it in
	// this run, Request is what this run would have sent, and the times are zero.
	Stored bool
	// Started and Ended are wall-clock times; First is the time of the first Output.
	// The fields from here on are set for AfterModel.
	Started, First, Ended time.Time
	ResponseID            string
	// ResponseModel is the model that the endpoint reports.
	ResponseModel  string
	Status, Reason string
	// Output holds the items of the reply that were received.
	Output []item.Item
	// Class is the class, as in package endpoint, of the error that broke the reply
	// off, and Err is the error.
	Class string
	Err   error
	Usage *api.Usage
	Cost  float64
	// Cache compares the request with the previous one; nil for the first.
	Cache *Cache
}

// ToolCall describes one call of a tool to hooks.
type ToolCall struct {
	Session string
	Depth   int
	Turn    int
	// Speaker names the agent whose call it is, as in [ModelCall].
	Speaker     string
	Call        tool.Call
	Annotations tool.Annotations
	// Verdict says who or which rule allowed or refused the call.
	Verdict session.Approval
	// Started and Ended are readings of the clock. What follows is set for
	// AfterTool.
	Started, Ended time.Time
	// Output is the output that the model gets. Failure and Error describe the tool's
	// own outcome, regardless of Output. Paused means that the call continues later
	// and has no output yet.
	Output  item.Content
	Failure tool.Failure
	Error   string
	Paused  bool

	tool tool.Tool
}

// Sandbox returns the name of the profile of the sandbox in which the call starts programs,
// or "" if it starts none.
func (c *ToolCall) Sandbox() string { return sandboxOf(c.tool, c.Call) }

// CompactionCall describes one compaction to hooks.
type CompactionCall struct {
	Session string
	Depth   int
	// Speaker names the agent whose history it is, as in [ModelCall]. For a handoff that
	// is the agent that hands over.
	Speaker string
	// By is the way of compacting, as in session.Compacted.
	By string
	// Replaced holds the items that will be replaced, as they are sent now.
	Replaced []item.Item
	// Before and After estimate the request size, in tokens.
	Before, After int64
	// Started and Ended are readings of the clock. What follows is set for
	// AfterCompact, unless BeforeCompact did it.
	Started, Ended time.Time
	// Entry is the number of the entry that records the outcome. [Agent.Compact] sets
	// it.
	Entry int64
	// Items replace the Replaced items.
	Items []item.Item
	// Model is the model that wrote Items, or "", and Endpoint is where it was asked, as
	// in [ModelCall].
	Model, Endpoint string
	// Usage and Cost are the totals of all requests.
	Usage *api.Usage
	Cost  float64
	// Err is the reason for a failure.
	Err error

	all  []item.Item // including kept items
	head string      // begins the summary, if it is not summaryHead
	kept []int64
	// instead means that the endpoint does not support compaction and a summary was
	// written.
	instead bool
}

// HookError is an error or a panic of a hook, or of a [Guard] that could not decide.
type HookError struct {
	// Hook is the name of the hook's field, or "input" or "output" for a guard.
	Hook string
	// Name is the name of the [Hooks] or the [Guard].
	Name string
	Err  error
	// Stack is the stack of a panic.
	Stack []byte

	guard bool // of a [Guard]; Hook is its stage
}

func (e *HookError) Error() string {
	if e.guard {
		if t := tripped(e.Err); t != nil {
			return t.Error()
		}
		return fmt.Sprintf("guard %s could not decide about the %s: %v", e.Name, e.Hook, e.Err)
	}
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
			err = &HookError{Hook: name, Name: of.Name, Err: fmt.Errorf("it panicked: %v", v), Stack: debug.Stack()}
		}
	}()
	if err := nils.Err(hook()); err != nil {
		return &HookError{Hook: name, Name: of.Name, Err: err}
	}
	return nil
}

// before calls hooks in order until one objects. It returns the number of hooks that
// did not object, for which after hooks are due.
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

// after calls all hooks in reverse and returns their errors joined: a hook that only
// stops the run must not hide another that objects.
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
func afterRun(h *Hooks) func(context.Context, *RunCall) error        { return h.AfterRun }
func callRefused(h *Hooks) func(context.Context, *ToolCall) error    { return h.CallRefused }
func noticed(h *Hooks) func(context.Context, *session.Noticed) error { return h.Noticed }
func beforeModel(h *Hooks) func(context.Context, *ModelCall) (context.Context, error) {
	return h.BeforeModel
}
func afterModel(h *Hooks) func(context.Context, *ModelCall) error { return h.AfterModel }
func beforeCompact(h *Hooks) func(context.Context, *CompactionCall) (context.Context, error) {
	return h.BeforeCompact
}
func afterCompact(h *Hooks) func(context.Context, *CompactionCall) error { return h.AfterCompact }
func beforeTool(h *Hooks) func(context.Context, *ToolCall) (context.Context, error) {
	return h.BeforeTool
}
func afterTool(h *Hooks) func(context.Context, *ToolCall) error { return h.AfterTool }

// ofTurn makes a request the property of one turn: what its fields point to is copied, so
// that a hook does not change the agent and all its runs.
func ofTurn(r *api.Request) {
	r.ParallelToolCalls, r.Stream, r.Store, r.Background = copied(r.ParallelToolCalls), copied(r.Stream), copied(r.Store), copied(r.Background)
	r.MaxOutputTokens, r.MaxToolCalls, r.TopLogprobs = copied(r.MaxOutputTokens), copied(r.MaxToolCalls), copied(r.TopLogprobs)
	r.Temperature, r.TopP = copied(r.Temperature), copied(r.TopP)
	r.Include, r.Extra, r.Spelled = slices.Clone(r.Include), slices.Clone(r.Extra), slices.Clone(r.Spelled)
	if r.StreamOptions = copied(r.StreamOptions); r.StreamOptions != nil {
		o := r.StreamOptions
		o.IncludeObfuscation, o.Extra = copied(o.IncludeObfuscation), slices.Clone(o.Extra)
	}
	if r.Reasoning = copied(r.Reasoning); r.Reasoning != nil {
		r.Reasoning.Extra = slices.Clone(r.Reasoning.Extra)
	}
	if r.Prompt = copied(r.Prompt); r.Prompt != nil {
		r.Prompt.Extra = slices.Clone(r.Prompt.Extra)
	}
	if r.PromptCacheOptions = copied(r.PromptCacheOptions); r.PromptCacheOptions != nil {
		r.PromptCacheOptions.Extra = slices.Clone(r.PromptCacheOptions.Extra)
	}
	r.ContextManagement = slices.Clone(r.ContextManagement)
	for i := range r.ContextManagement {
		c := &r.ContextManagement[i]
		c.CompactThreshold, c.Extra = copied(c.CompactThreshold), slices.Clone(c.Extra)
	}
	if r.Moderation = copied(r.Moderation); r.Moderation != nil {
		m := r.Moderation
		m.Extra = slices.Clone(m.Extra)
		if m.Policy = copied(m.Policy); m.Policy != nil {
			p := m.Policy
			p.Extra = slices.Clone(p.Extra)
			for _, mode := range []**api.ModerationMode{&p.Input, &p.Output} {
				if *mode = copied(*mode); *mode != nil {
					(*mode).Extra = slices.Clone((*mode).Extra)
				}
			}
		}
	}
}

// copied returns a pointer to a copy of a value, or nil.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
