// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Set is the tools that a model may call, by name, in the order they were
// given. It is immutable and safe for concurrent use. A nil Set has no tools.
type Set struct {
	entries []*entry
	byName  map[string]*entry
	store   output.Store // the store of the set's ReadOutput
}

type entry struct {
	name        string
	tool        Tool
	def         item.Tool
	kind        item.Type // the type of calls of one of the API's own tools, or ""
	annotations Annotations
	// schema checks the arguments, except patterns, of a function tool that does not
	// check them itself. Otherwise it is nil.
	schema *schema
}

// selfChecking is a tool of this package, whose Run checks arguments. The method returns the error with which Run answers those
// that do not fit.
type selfChecking interface{ checksArguments(args string) error }

// keeper is a tool that reads the parts left out of outputs.
type keeper interface{ keeps() output.Store }

// NewSet makes a set. It returns an error for a name that the API would refuse, for
// a duplicate name, and for a definition that is not a function, a custom tool, or
// one of the API's own tools that can run here. Tools made by [New] and [Raw] check
// their arguments completely. For tools of other packages, the set checks arguments
// against the schema, except for patterns.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{byName: make(map[string]*entry, len(tools))}
	for i, t := range tools {
		if nils.Is(t) {
			return nil, fmt.Errorf("tool %d is nil", i+1)
		}
		e, err := newEntry(t)
		if err != nil {
			return nil, err
		}
		if s.byName[e.name] != nil {
			return nil, fmt.Errorf("tool %s is declared twice", e.name)
		}
		if group := e.annotations.Namespace; group != nil {
			for _, other := range s.entries {
				if o := other.annotations.Namespace; o != nil && o.Name == group.Name && o.Description != group.Description {
					return nil, fmt.Errorf("tools %s and %s: the namespace %s has two descriptions", other.name, e.name, group.Name)
				}
			}
		}
		if k, ok := t.(keeper); ok {
			s.store = k.keeps()
		}
		s.byName[e.name] = e
		s.entries = append(s.entries, e)
	}
	return s, nil
}

func newEntry(t Tool) (e *entry, err error) {
	defer func() {
		if v := recover(); v != nil {
			e, err = nil, fmt.Errorf("the tool of type %T cannot be described: its method Definition or Annotations panicked: %v", t, v)
		}
	}()
	def := t.Definition()
	name, err := nameOf(def)
	if err != nil {
		return nil, err
	}
	kind, _ := item.CallKindOf(def)
	own := AnnotationsOf(t)
	if err := own.checkPace(); err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	if err := own.checkNamespace(def); err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	e = &entry{name: name, tool: t, def: def, kind: kind.Call, annotations: own}
	f, isFunction := def.(*item.FunctionTool)
	if !isFunction {
		return e, nil
	}
	f = complete(f, nil)
	e.def = f
	if selfChecked(t) == nil {
		if e.schema, err = schemaOf(f, nil); err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
	}
	return e, nil
}

// selfChecked returns the tool, or the tool that it wraps, that checks its arguments
// and is more lenient than its schema, such as about members that are null; nil if there is none.
func selfChecked(t Tool) selfChecking {
	for !nils.Is(t) {
		if own, ok := t.(selfChecking); ok {
			return own
		}
		wrapper, ok := t.(interface{ Unwrap() Tool })
		if !ok {
			return nil
		}
		t = wrapper.Unwrap()
	}
	return nil
}

func (s *Set) lookup(name string) *entry {
	if s == nil {
		return nil
	}
	return s.byName[name]
}

// kept returns the store for outputs that are too long, or nil.
func (s *Set) kept() output.Store {
	if s == nil {
		return nil
	}
	return s.store
}

// Keeping returns a set that keeps the outputs it shortens in store. With offer, the
// set also has the [ReadOutput] tool for them. Without offer, the marks name a tool
// that is not in the set: the caller must offer it with the next request. Keeping
// returns s itself if s has no tools, a ReadOutput of its own, or another tool of
// that name.
func (s *Set) Keeping(store output.Store, offer bool) (*Set, error) {
	if s.Len() == 0 || s.store != nil || s.lookup(ReadOutputName) != nil {
		return s, nil
	}
	kept := &Set{entries: slices.Clone(s.entries), byName: maps.Clone(s.byName), store: store}
	if offer {
		e, err := newEntry(ReadOutput(store))
		if err != nil {
			return nil, err
		}
		kept.entries, kept.byName[e.name] = append(kept.entries, e), e
	}
	return kept, nil
}

func (s *Set) list() []*entry {
	if s == nil {
		return nil
	}
	return s.entries
}

// Len returns the number of tools.
func (s *Set) Len() int { return len(s.list()) }

// Lookup returns the tool with a name, and whether it exists.
func (s *Set) Lookup(name string) (Tool, bool) {
	if e := s.lookup(name); e != nil {
		return e.tool, true
	}
	return nil, false
}

// Names returns the names in the order of the set.
func (s *Set) Names() []string {
	names := make([]string, 0, s.Len())
	for _, e := range s.list() {
		names = append(names, e.name)
	}
	return names
}

// Definitions returns the definitions for a request, in the order of the set, those of a
// [Namespace] where its first one is. They are shared and must not be changed.
func (s *Set) Definitions() []item.Tool {
	defs := make([]item.Tool, 0, s.Len())
	for _, e := range s.list() {
		defs = grouped(defs, e)
	}
	return defs
}

// All ranges over names and tools in the order of the set.
func (s *Set) All() iter.Seq2[string, Tool] {
	entries := slices.Clone(s.list())
	return func(yield func(string, Tool) bool) {
		for _, e := range entries {
			if !yield(e.name, e.tool) {
				return
			}
		}
	}
}

// notFound returns the text for a model that calls a tool which does not exist, or
// which does not accept calls of that type.
func (s *Set) notFound(call Call) string {
	text := "tool not found: " + output.PlainName(call.Name)
	switch e := s.lookup(call.Name); {
	case s.Len() == 0:
		return text + ". No tools are available."
	case e != nil && e.kind != "":
		text += fmt.Sprintf(" is not a function here; it takes items of type %s", e.kind)
	case e != nil:
		text += fmt.Sprintf(" does not take items of type %s here, but is called like any function", call.Kind)
	}
	return text + ". Available: " + strings.Join(s.Names(), ", ")
}

// Kinds returns the call types of the API's own tools in the set.
func (s *Set) Kinds() (kinds []item.Type) {
	for _, e := range s.list() {
		if e.kind != "" {
			kinds = append(kinds, e.kind)
		}
	}
	return kinds
}

// Grace is how long a tool may take to return after its context has ended. A tool
// can use this time to return the output so far. A tool that does not return is
// abandoned.
const Grace = 50 * time.Millisecond

var (
	errNoReturn   = errors.New("the tool ended its goroutine instead of returning")
	errNilOutcome = errors.New("the tool has not returned")
)

// CheckArguments returns the [ArgumentsError] with which [Set.Invoke] answers a call, or nil. It runs nothing, and knows nothing
// of unknown tools, of tools without a schema and of wrappers that change arguments.
func (s *Set) CheckArguments(call Call) (err error) {
	defer func() {
		if recover() != nil { // a type that decodes itself; Invoke reports it
			err = nil
		}
	}()
	e := s.lookup(call.Name)
	if e == nil || e.kind != call.Kind {
		return nil
	}
	if e.schema != nil {
		return e.schema.check(e.name, call.Arguments)
	}
	if own := selfChecked(e.tool); own != nil {
		return own.checksArguments(call.Arguments)
	}
	return nil
}

// Invoke runs one call and returns the output to send. Whatever the call and the
// tool do, Invoke does not fail, panic or outlast its context by more than [Grace].
// It is safe for concurrent use. If a call cannot run (unknown tool, invalid
// arguments), the output tells the model what it can do instead.
func (s *Set) Invoke(ctx context.Context, call Call, policy output.Policy) Outcome {
	e := s.lookup(call.Name)
	if e == nil || e.kind != call.Kind {
		t := &target{policy: policy, from: output.Source{Name: call.Name, Store: s.kept()}}
		return t.outcome(ctx, Result{Error: s.notFound(call)}, UnknownTool)
	}
	if e.annotations.Envelope {
		policy.Envelope = true
	}
	if e.kind == item.TypeComputerCall {
		policy.Images = nil // the model's coordinates are pixels of the screenshot
	}
	defer reservedIn(ctx).giveBack()
	t := &target{policy: policy, from: output.Source{Name: e.name, Limit: e.annotations.MaxOutput, Usual: e.annotations.UsualOutput, Store: s.kept()}}
	if ctx.Err() != nil {
		return t.outcome(ctx, Result{Error: NotStarted}, NotRun)
	}
	if e.schema != nil {
		if err := e.schema.check(e.name, call.Arguments); err != nil {
			return t.outcome(ctx, call.noted(Result{Error: err.Error()}, BadArguments), BadArguments)
		}
	}
	if e.admit(ctx, false) != nil || !starts(ctx) {
		return t.outcome(ctx, Result{Error: NotStarted}, NotRun)
	}
	for {
		o := s.invoke(ctx, e, call, t)
		if o.NotYet == nil || o.NotYet.After > patience(ctx) {
			return o
		}
		if e.await(ctx, o.NotYet) != nil {
			return t.outcome(ctx, Result{Error: Interrupted}, Cancelled)
		}
	}
}

// invoke runs the tool in its own goroutine, so that a tool that ignores its context
// does not block the caller.
func (s *Set) invoke(ctx context.Context, e *entry, call Call, t *target) Outcome {
	limit := &timeLimit{e.annotations.Timeout}
	ctx, cancel := limit.bound(ctx)
	defer cancel()
	done := make(chan ran, 1)
	go e.run(ctx, call, done)
	r, returned := await(ctx, done)

	if r.err == nil && len(r.res.Found) > 0 {
		if r.err = s.undeclared(r.res.Found); r.err != nil {
			r.res = Result{}
		}
	}
	res, why := r.result(ctx, e, limit, returned)
	res = call.noted(res, why)
	o := t.outcome(ctx, res, why)
	o.Abandoned = !returned
	switch why {
	case Panicked:
		o.Panic, _ = errors.AsType[*PanicError](r.err)
	case Unfinished:
		if n, ok := errors.AsType[*NotYet](r.err); ok {
			o.NotYet = n.whole()
		}
	}
	return o
}

// timeLimit is the time limit of one call. It is the cause of its context's end, so that it
// is told from the limit of a call that this one is inside of.
type timeLimit struct{ of time.Duration }

func (l *timeLimit) Error() string { return "the tool's time limit passed" }

// bound adds the limit to the context, if there is one.
func (l *timeLimit) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.of > 0 {
		return context.WithTimeoutCause(ctx, l.of, l)
	}
	return context.WithCancel(ctx)
}

// passed reports whether it ended the context.
func (l *timeLimit) passed(ctx context.Context) bool { return errors.Is(context.Cause(ctx), l) }

// ran is the result of the tool's goroutine.
type ran struct {
	res Result
	err error
}

func (e *entry) run(ctx context.Context, call Call, done chan<- ran) {
	r := ran{err: errNoReturn}
	defer func() {
		if v := recover(); v != nil {
			r = ran{err: &PanicError{Value: v, Stack: debug.Stack()}}
		}
		done <- r
	}()
	r.res, r.err = e.settle(ctx, call)
	r.err = nils.Err(r.err)
}

// errUnknownFate is wrapped by the error of a call that was started before and that
// nobody can tell the outcome of.
var errUnknownFate = errors.New("the outcome of the call is not known")

// settle runs the tool, unless it can be learnt that the call has run before.
func (e *entry) settle(ctx context.Context, call Call) (Result, error) {
	if asks := e.annotations.Inquirer; call.Again && asks != nil {
		res, fate, err := asks.Inquire(withCall(ctx, call), call)
		switch {
		case err == nil && fate == FateDone:
			return res, nil
		case err == nil && fate == FateNever, e.annotations.Idempotent, e.annotations.Polling:
		case err != nil:
			return Result{}, fmt.Errorf("%w: %w", errUnknownFate, err)
		default:
			return Result{}, errUnknownFate
		}
	}
	return e.attempts(ctx, call)
}

// await returns the tool's result and true, or false if it did not return in time. A
// result that is already there counts even if the context has ended.
func await(ctx context.Context, done <-chan ran) (ran, bool) {
	select {
	case r := <-done:
		return r, true
	case <-ctx.Done():
	}
	grace := time.NewTimer(Grace)
	defer grace.Stop()
	select {
	case r := <-done:
		return r, true
	case <-grace.C:
	}
	select {
	case r := <-done:
		return r, true
	default:
		return ran{err: errNilOutcome}, false
	}
}

// result returns the outcome of a call. A tool that finished its work succeeded even
// if its context ended in the meantime.
func (r ran) result(ctx context.Context, e *entry, limit *timeLimit, returned bool) (Result, Failure) {
	res := r.res
	if r.err == nil {
		return res, NoFailure
	}
	if p, ok := r.err.(*PanicError); ok {
		res.Fail(output.Clip(p.Error(), maxProblemText))
		return res, Panicked
	}
	if a, ok := r.err.(*ArgumentsError); ok && a.Tool == e.name {
		res.Fail(a.Error())
		return res, BadArguments
	}
	if errors.Is(r.err, errUnknownFate) {
		res.Fail(r.err.Error())
		return res, NotRun
	}
	var notYet *NotYet
	if errors.As(r.err, &notYet) && (e.annotations.Polling || e.annotations.Idempotent) {
		res.Fail(notYet.Error())
		return res, Unfinished
	}
	if ctx.Err() == nil {
		res.Fail(r.err.Error())
		return res, ToolError
	}
	why := Cancelled
	text := Interrupted
	if limit.passed(ctx) {
		if waited, ok := r.err.(*waitError); ok {
			res.Fail(waited.ended(limit))
			return res, TimedOut
		}
		why, text = TimedOut, timeoutText(limit.of, returned)
	}
	res.Fail(text)
	if returned && !isContextError(r.err) {
		res.Fail(r.err.Error())
	}
	return res, why
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func timeoutText(limit time.Duration, returned bool) string {
	if returned {
		return fmt.Sprintf("The tool was stopped after its time limit of %v. What it did until then is not known.", limit)
	}
	return fmt.Sprintf("The tool did not finish within its time limit of %v and has not stopped. What it does is not known.", limit)
}

// noted puts a remark before the output of a call whose arguments were edited: the
// model must know that the output does not belong to the arguments it sent.
func (c Call) noted(res Result, why Failure) Result {
	if !c.Edited {
		return res
	}
	arguments, _ := output.Sanitize(c.Arguments)
	if why == BadArguments { // otherwise the error blames the model for the arguments
		res.Error = "The arguments of this call were changed before it could run, and what they were changed to does not fit: " +
			output.Clip(arguments, maxProblemText) + "\n\n" + res.Error
		return res
	}
	note := "Note: the arguments of this call were changed before it ran, to: " + arguments
	switch {
	case res.Text != "" || res.Long != nil:
		note += "\n\n"
	case res.Error == "" && len(res.Parts) == 0:
		note += "\n\n" + output.NoOutput
	}
	return res.Behind(note)
}
