// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Retry repeats a call whose function returned an error. It is only for tools that are
// declared as [ReadOnly] or [Idempotent]. Arguments that do not fit, panics, timeouts and
// a [Result] with an Error are not repeated, and neither are runs of agents.
// [Annotations.Timeout] bounds all attempts together.
type Retry struct {
	// Max bounds the repetitions of a call: 1 or more.
	Max int
	// Wait is the pause before the first repetition: 0 means half a second. It doubles
	// each time, up to 30 seconds.
	Wait time.Duration
	// If reports whether an error may go away; nil means that any may.
	If func(error) bool
}

const (
	defaultWait = 500 * time.Millisecond
	longestWait = 30 * time.Second
)

// pause returns the wait before repetition n, counted from 0.
func (r *Retry) pause(n int) time.Duration {
	d := cmp.Or(r.Wait, defaultWait)
	for range n {
		if d *= 2; d >= longestWait {
			break
		}
	}
	return min(d, max(longestWait, r.Wait))
}

// Rate bounds how often tools start. Tools that use the same service can share one Rate.
// It counts in the memory of one process, over all runs. A Rate must not be copied after
// its first use, and its fields must not change. It is safe for concurrent use.
type Rate struct {
	// Calls is the number of calls that may start within any period of length Per.
	Calls int
	Per   time.Duration

	mu sync.Mutex
	// starts are those that can still be in one period with a later one, oldest first.
	// Some of them are in the future.
	starts []time.Time
}

// reserve returns when the next call may start.
func (r *Rate) reserve() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := time.Now()
	// A start is forgotten by its age alone: a later one may be given back, and then
	// the older ones count again.
	old := 0
	for old < len(r.starts) && !r.starts[old].Add(r.Per).After(at) {
		old++
	}
	r.starts = slices.Delete(r.starts, 0, old)
	n := len(r.starts)
	if n > 0 && r.starts[n-1].After(at) {
		at = r.starts[n-1] // nobody overtakes
	}
	if n >= r.Calls {
		if free := r.starts[n-r.Calls].Add(r.Per); free.After(at) {
			at = free
		}
	}
	r.starts = append(r.starts, at)
	return at
}

// reason says why a call of a tool waits.
func (r *Rate) reason(name string) string {
	if r.Calls == 1 {
		return fmt.Sprintf("%s may start once in %v", name, r.Per)
	}
	return fmt.Sprintf("%s may start %d times in %v", name, r.Calls, r.Per)
}

// free gives a reserved start back. Calls that wait already keep their starts.
func (r *Rate) free(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.starts, at); i >= 0 {
		r.starts = slices.Delete(r.starts, i, i+1)
	}
}

// Wait describes a wait before a call runs, or runs again.
type Wait struct {
	// Reason is the reason, for people.
	Reason string
	For    time.Duration
	// Again means that the call has run before, and returned an error.
	Again bool
	// NotYet means that the call has run before, and returned a [NotYet].
	NotYet bool
}

type waitKey struct{}

// WithWait returns a context whose calls report each wait for a [Rate] or a [Retry]. The
// function is called before the wait, possibly by several goroutines at once, and the
// function that it returns is called after it; that may be nil.
func WithWait(ctx context.Context, tell func(Wait) (over func())) context.Context {
	return context.WithValue(ctx, waitKey{}, tell)
}

type startKey struct{}

// WithStart returns a context whose calls report that they start now: after the wait for
// their [Rate] and the check of their arguments, and before the tool runs. The function
// is called once for each call, possibly by several goroutines at once; nil does nothing. If it returns
// false, the tool does not run. A [Retry] is not a start of its own.
func WithStart(ctx context.Context, start func() bool) context.Context {
	return context.WithValue(ctx, startKey{}, start)
}

// starts reports whether a call may start now.
func starts(ctx context.Context) bool {
	start, ok := ctx.Value(startKey{}).(func() bool)
	return !ok || start == nil || start()
}

// wait waits until a time. If ctx ends first, it returns the context's error.
func wait(ctx context.Context, until time.Time, w Wait) error {
	w.For = time.Until(until)
	if w.For <= 0 {
		return ctx.Err()
	}
	if tell, ok := ctx.Value(waitKey{}).(func(Wait) func()); ok {
		if over := tell(w); over != nil {
			defer over()
		}
	}
	timer := time.NewTimer(w.For)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// place is the start of a call that was reserved before the call was made.
type place struct {
	rate  *Rate
	at    time.Time
	taken bool
}

type placeKey struct{}

// Reserve returns a context for one call of [Set.Invoke], which holds the call's place in
// the [Rate] of its tool. Calls that wait at the same time start in the order in which their
// places were reserved; without a place, in any order. A place that is not used is given
// back. Without a Rate, or if the arguments do not fit, Reserve returns ctx.
func (s *Set) Reserve(ctx context.Context, call Call) context.Context {
	e := s.lookup(call.Name)
	if e == nil || e.kind != call.Kind || e.annotations.Rate == nil || ctx.Err() != nil {
		return ctx
	}
	if e.schema != nil && e.schema.check(e.name, call.Arguments) != nil {
		return ctx
	}
	r := e.annotations.Rate
	return context.WithValue(ctx, placeKey{}, &place{rate: r, at: r.reserve()})
}

// reservedIn returns the place that a context holds, or nil.
func reservedIn(ctx context.Context) *place {
	p, _ := ctx.Value(placeKey{}).(*place)
	return p
}

// take returns the reserved start, once.
func (p *place) take(r *Rate) (at time.Time, ok bool) {
	if p == nil || p.taken || p.rate != r {
		return at, false
	}
	p.taken = true
	return p.at, true
}

// giveBack frees a start that no call took.
func (p *place) giveBack() {
	if p != nil && !p.taken {
		p.taken = true
		p.rate.free(p.at)
	}
}

// admit waits until the tool's rate allows a call to start.
func (e *entry) admit(ctx context.Context, again bool) error {
	r := e.annotations.Rate
	if r == nil {
		return nil
	}
	at, reserved := reservedIn(ctx).take(r)
	if !reserved {
		at = r.reserve()
	}
	err := wait(ctx, at, Wait{Reason: r.reason(e.name), Again: again})
	if err != nil {
		r.free(at)
	}
	return err
}

// attempts runs the tool, and again while its Retry says so.
func (e *entry) attempts(ctx context.Context, call Call) (Result, error) {
	for n := 0; ; n++ {
		res, err := e.tool.Run(ctx, call)
		if !e.retries(ctx, n, err) {
			if err != nil && n > 0 {
				err = fmt.Errorf("%w (%d attempts)", err, n+1)
			}
			return res, err
		}
		until := time.Now().Add(e.annotations.Retry.pause(n))
		if wait(ctx, until, Wait{Reason: err.Error(), Again: true}) != nil || e.admit(ctx, true) != nil {
			return res, &waitError{err, n + 1}
		}
	}
}

// waitError is the error of the last attempt of a call whose context ended while it waited
// for another one.
type waitError struct {
	err      error
	attempts int
}

func (w *waitError) Error() string { return w.err.Error() }

func (w *waitError) Unwrap() error { return w.err }

// ended returns what the model reads if the time limit passed during the wait: the tool was
// not running, so what it did is known.
func (w *waitError) ended(limit *timeLimit) string {
	attempts := "1 attempt"
	if w.attempts > 1 {
		attempts = fmt.Sprintf("%d attempts", w.attempts)
	}
	return fmt.Sprintf("%v (%s; the time limit of %v passed before the next one)", w.err, attempts, limit.of)
}

// retries reports whether a call runs again after n repetitions.
func (e *entry) retries(ctx context.Context, n int, err error) bool {
	r := e.annotations.Retry
	if r == nil || err == nil || n >= r.Max || ctx.Err() != nil {
		return false
	}
	var arguments *ArgumentsError
	var notYet *NotYet
	return !errors.As(err, &arguments) && !errors.As(err, &notYet) && (r.If == nil || r.If(err))
}

// checkPace returns an error for a Retry or a Rate that cannot be used.
func (a *Annotations) checkPace() error {
	if r := a.Retry; r != nil {
		switch {
		case a.Subagent:
			return errors.New("retry: a call that is a run of an agent is not repeated: the agent's own requests and tools have retries")
		case r.Max < 0 || r.Wait < 0:
			return fmt.Errorf("retry: Max %d and Wait %v must not be negative", r.Max, r.Wait)
		case r.Max == 0:
			return errors.New("retry: Max is 0, so no call would be repeated: set it, or leave the Retry out")
		case !a.ReadOnly && !a.Idempotent:
			return errors.New("retry: the tool would run again after an error: declare it as ReadOnly or Idempotent")
		}
	}
	if r := a.Rate; r != nil && (r.Calls <= 0 || r.Per <= 0) {
		return fmt.Errorf("rate: %d calls in %v: want both greater than 0", r.Calls, r.Per)
	}
	return nil
}
