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
	DefaultMaxWait  = 3 * time.Minute // both retries may wait for DefaultMaxAfter
)

// Retry says how often and how patiently a failed request is repeated. The zero
// value works; each field has its default.
type Retry struct {
	// Max is how often at most, over all requests that share a [Budget].
	// Negative means never.
	Max int
	// Base is the wait before the first retry. It doubles from one to the next
	// up to Cap; chance takes off up to half.
	Base, Cap time.Duration
	// MaxAfter is the longest wait that a server may ask for. A failure that asks
	// for more is not retried: the server would refuse again, and the caller can
	// read in [Error.RetryAfter] when to come back.
	MaxAfter time.Duration
	// MaxWait bounds all waits together.
	MaxWait time.Duration
	// Rand gives the chance, in [0,1), and Sleep waits, returning early with
	// the context's error: for tests and for replay. They must be safe for
	// concurrent use.
	Rand  func() float64
	Sleep func(context.Context, time.Duration) error
}

// IsZero reports whether nothing is said, so that all is as it is by default.
func (r *Retry) IsZero() bool {
	return r.Max == 0 && r.Base == 0 && r.Cap == 0 && r.MaxAfter == 0 && r.MaxWait == 0 && r.Rand == nil && r.Sleep == nil
}

// Budget counts the retries of one piece of work, over all layers and requests
// that share it. It is not about tokens or money, for which package agent has a
// Budget. It is safe for concurrent use.
type Budget struct {
	retry Retry

	mu     sync.Mutex
	used   int
	waited time.Duration
}

// Budget returns a budget with nothing used.
func (r Retry) Budget() *Budget { return &Budget{retry: r} }

// Refill takes back all that was used: another piece of work begins.
func (b *Budget) Refill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used, b.waited = 0, 0
}

// Next takes one retry after err out of the budget and returns how long to wait
// before it; the caller waits with [Budget.Sleep]. It returns false when err is
// no [*Error] that is safe to retry, when it asks for a longer wait than
// MaxAfter, or when the budget is spent.
func (b *Budget) Next(err error) (wait time.Duration, ok bool) {
	var e *Error
	if !errors.As(err, &e) || !e.SafeToRetry() {
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

// Take takes one retry out of the budget for a decision that is not the
// client's: the error is of the kind that doing the very same again would only
// repeat, but the caller has changed the request. These are a history without
// its reasoning (R4), one that was compacted (E5), and one without an item that
// the endpoint refuses (T12). There is nothing to wait for. It returns false
// when the budget is spent; the caller then reports the error it has.
func (b *Budget) Take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used >= cmp.Or(b.retry.Max, DefaultRetries) {
		return false
	}
	b.used++
	return true
}

// Used is how many retries were taken.
func (b *Budget) Used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// wait is the pause before retry n, counted from 0.
func (r Retry) wait(n int, asked time.Duration) time.Duration {
	chance := rand.Float64
	if r.Rand != nil {
		chance = r.Rand
	}
	if asked > 0 {
		// Never before the server's time; a little after it, so that all who
		// were told the same do not come at once.
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

// Sleep waits for d, or until the context ends, whose error it returns then.
func (b *Budget) Sleep(ctx context.Context, d time.Duration) error {
	if b.retry.Sleep != nil {
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

// WithBudget returns a context whose requests draw on b, so that a loop, its
// turns and the client below them share one budget.
func WithBudget(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// BudgetFrom returns the context's budget, or nil.
func BudgetFrom(ctx context.Context) *Budget {
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}
