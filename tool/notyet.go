// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"
)

// NotYet is the error that a polling tool returns while its result is not available, for example while a
// job is still running. The call is made again later without asking the model: see [WithPatience]. A tool
// that is [Idempotent] but does not poll may also return it, for example for a question while nobody is
// present: this run does not wait, and a later run makes the call again. From any other tool it is an
// ordinary failure.
type NotYet struct {
	// After is how long to wait before the call is made again: 0 means a second.
	After time.Duration
	// Reason says what the call waits for, for people: "" means the result.
	Reason string
}

// Error returns one sentence, which a model reads if nobody makes the call again.
func (e *NotYet) Error() string {
	e = e.whole()
	return fmt.Sprintf("not yet: it waits for %s; ask again in %v", e.Reason, e.After)
}

// whole returns e with the usual values for what it leaves out.
func (e *NotYet) whole() *NotYet {
	w := NotYet{time.Second, cmp.Or(e.Reason, "the result")}
	if e.After > 0 {
		w.After = e.After
	}
	return &w
}

type patienceKey struct{}

// WithPatience returns a context in which [Set.Invoke] repeats a call whose tool returns a
// [NotYet], after the wait that it asks for, as long as each wait is at most the given time.
// If most is 0, Invoke waits however long it takes; if it is negative, it never waits, as
// without WithPatience. When Invoke does not wait, [Outcome].NotYet is set.
func WithPatience(ctx context.Context, most time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, cmp.Or(most, math.MaxInt64))
}

// patience returns the longest time to wait, which is negative if there is none.
func patience(ctx context.Context) time.Duration {
	if most, ok := ctx.Value(patienceKey{}).(time.Duration); ok {
		return most
	}
	return -1
}

// await waits as long as a call asks for, and until the tool's rate allows another one.
func (e *entry) await(ctx context.Context, n *NotYet) error {
	w := Wait{Reason: n.Reason, Again: true, NotYet: true}
	if err := wait(ctx, time.Now().Add(n.After), w); err != nil {
		return err
	}
	return e.admit(ctx, true)
}
