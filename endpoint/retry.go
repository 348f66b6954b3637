// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Defaults of [Retry].
const (
	DefaultRetries  = 2
	DefaultBase     = 500 * time.Millisecond
	DefaultCap      = 8 * time.Second
	DefaultMaxAfter = time.Minute
	DefaultMaxWait  = 3 * time.Minute // long enough for both retries to wait DefaultMaxAfter
)

// Retry says how often a failed request is repeated, and how long to wait in between. A zero field
// means its default.
type Retry struct {
	// Max is the maximum number of retries over all requests that share a [Budget]. Negative means
	// no retries.
	Max int
	// Base is the wait before the first retry. The wait doubles for each further retry, up to Cap,
	// and is shortened at random by up to half.
	Base, Cap time.Duration
	// MaxAfter is the longest wait that a server may request. A failure that requests a longer wait
	// is not retried, since the server would only refuse again; [Error.RetryAfter] tells the caller
	// when to come back.
	MaxAfter time.Duration
	// MaxWait limits the sum of all waits.
	MaxWait time.Duration
	// Rand returns a random number in [0,1). Sleep waits, and returns early with the context's
	// error when the context ends. Both are for tests and replay, and must be safe for concurrent
	// use.
	Rand  func() float64
	Sleep func(context.Context, time.Duration) error
}

// IsZero reports whether no field is set, so that all defaults apply.
func (r *Retry) IsZero() bool {
	return r.Max == 0 && r.Base == 0 && r.Cap == 0 && r.MaxAfter == 0 && r.MaxWait == 0 && r.Rand == nil && r.Sleep == nil
}

// Budget counts the retries of one task over all layers and requests that share it. It does not
// limit tokens or money; for these see Budget in package agent. A nil Budget has no retries. It is
// safe for concurrent use.
type Budget struct {
	retry Retry

	mu     sync.Mutex
	used   int
	waited time.Duration
}

// Budget returns a new budget with no retries used.
func (r Retry) Budget() *Budget { return &Budget{retry: r} }

// Refill resets the budget for the next task.
func (b *Budget) Refill() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used, b.waited = 0, 0
}

// Next takes one retry for err out of the budget and returns how long to wait before it. The caller
// waits with [Budget.Sleep]. Next returns false if err is not an [*Error] that is safe to retry, if
// err requests a longer wait than MaxAfter, or if the budget is spent.
func (b *Budget) Next(err error) (wait time.Duration, ok bool) {
	var e *Error
	if b == nil || !errors.As(err, &e) || !e.SafeToRetry() {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used >= cmp.Or(b.retry.Max, DefaultRetries) || e.RetryAfter > cmp.Or(b.retry.MaxAfter, DefaultMaxAfter) {
		return 0, false
	}
	wait = b.retry.wait(b.used, e.RetryAfter)
	if b.waited+wait > cmp.Or(b.retry.MaxWait, DefaultMaxWait) {
		return 0, false
	}
	b.used++
	b.waited += wait
	return wait, true
}

// Take takes one retry out of the budget for a caller that has changed the request after an error
// that the same request would only cause again. The changed request is a history without its
// reasoning (R4), a compacted history (E5), or a history without an item that the endpoint rejects
// (T12). No wait is needed. Take returns false if the budget is spent; the caller then reports its
// error.
func (b *Budget) Take() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used >= cmp.Or(b.retry.Max, DefaultRetries) {
		return false
	}
	b.used++
	return true
}

// Used returns the number of retries taken.
func (b *Budget) Used() int {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// wait returns the pause before retry n, counted from 0.
func (r Retry) wait(n int, asked time.Duration) time.Duration {
	chance := rand.Float64
	if r.Rand != nil {
		chance = r.Rand
	}
	if asked > 0 {
		// Wait at least as long as the server asks, and a little longer at random, so that clients
		// with the same wait do not all come back at once.
		return asked + time.Duration(chance()*float64(asked)/10)
	}
	top := cmp.Or(r.Cap, DefaultCap)
	d := cmp.Or(r.Base, DefaultBase)
	for range n {
		if d >= top {
			break
		}
		d *= 2
	}
	d = min(d, top)
	return d - time.Duration(chance()*float64(d)/2)
}

// Sleep waits for d. If ctx is done first, Sleep returns its error.
func (b *Budget) Sleep(ctx context.Context, d time.Duration) error {
	if b != nil && b.retry.Sleep != nil {
		return b.retry.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type budgetKey struct{}

// WithBudget returns a context whose requests use b, so that a loop, its turns and the client below
// them share one budget.
func WithBudget(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// BudgetFrom returns the budget of the context, or nil.
func BudgetFrom(ctx context.Context) *Budget {
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}
