// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Grace is how long a tool has to return once its context has ended. A tool
// that makes use of it can still hand over the output so far; one that does not
// return is left behind.
const Grace = 50 * time.Millisecond

var (
	errTimeout    = errors.New("the tool's time limit passed")
	errNoReturn   = errors.New("the tool ended its goroutine instead of returning")
	errNilOutcome = errors.New("the tool has not returned")
)

// Invoke runs one call and returns what to send as its output. It does not
// fail, panic or outlast its context by more than [Grace], whatever the call
// and the tool do, and is safe for concurrent use. A call that cannot be run
// (no such tool, arguments that do not fit) becomes an output that tells the
// model what it can do instead.
func (s *Set) Invoke(ctx context.Context, call Call, shape Shape) Outcome {
	e := s.lookup(call.Name)
	if e == nil || e.kind != call.Kind {
		return (&target{shape: shape, name: call.Name, spill: s.kept()}).outcome(ctx, Result{Error: s.notFound(call)}, UnknownTool)
	}
	if e.annotations.Envelope {
		shape.Envelope = true
	}
	t := &target{shape: shape, name: e.name, own: e.annotations.MaxOutput, usual: e.annotations.UsualOutput, spill: s.kept()}
	if ctx.Err() != nil {
		return t.outcome(ctx, Result{Error: NotStarted}, NotRun)
	}
	if e.schema != nil {
		if err := e.schema.check(e.name, call.Arguments); err != nil {
			return t.outcome(ctx, call.noted(Result{Error: err.Error()}, BadArguments), BadArguments)
		}
	}
	return e.invoke(ctx, call, t)
}

// invoke runs the tool beside the caller, so that one that ignores its context
// holds nobody up.
func (e *entry) invoke(ctx context.Context, call Call, t *target) Outcome {
	ctx, cancel := e.bound(ctx)
	defer cancel()
	done := make(chan ran, 1)
	go e.run(ctx, call, done)
	r, returned := await(ctx, done)

	res, why := r.result(ctx, e, returned)
	res = call.noted(res, why)
	o := t.outcome(ctx, res, why)
	o.Abandoned = !returned
	var p *PanicError
	if errors.As(r.err, &p) && why == Panicked {
		o.Panic = p
	}
	return o
}

// bound gives the context the tool's own time limit.
func (e *entry) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.annotations.Timeout > 0 {
		return context.WithTimeoutCause(ctx, e.annotations.Timeout, errTimeout)
	}
	return context.WithCancel(ctx)
}

// ran is what came out of the tool's goroutine.
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
	r.res, r.err = e.tool.Run(ctx, call)
}

// await returns what the tool returned and true, or false if it did not return
// in time. What is there already wins over a context that ended.
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

// result says what happened. A tool that finished its work is a success even if
// its context ended meanwhile: the work is done.
func (r ran) result(ctx context.Context, e *entry, returned bool) (Result, Failure) {
	res := r.res
	if r.err == nil {
		return res, NoFailure
	}
	if p, ok := r.err.(*PanicError); ok {
		res.fail(shorten(p.Error(), maxProblemText))
		return res, Panicked
	}
	if a, ok := r.err.(*ArgumentsError); ok && a.Tool == e.name {
		res.fail(a.Error())
		return res, BadArguments
	}
	if ctx.Err() == nil {
		res.fail(r.err.Error())
		return res, ToolError
	}
	why := Cancelled
	text := Interrupted
	if errors.Is(context.Cause(ctx), errTimeout) {
		why, text = TimedOut, timeoutText(e.annotations.Timeout, returned)
	}
	res.fail(text)
	if returned && !isContextError(r.err) {
		res.fail(r.err.Error())
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
