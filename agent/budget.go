// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
)

// Budget bounds what several runs use together. Set it on the agents that share
// it, or lend it to runs with [WithBudget]. Budgets are a tree: what a run uses,
// nested runs and forks draw from the budgets of the run around them too. Zero
// means no limit. The retries of requests have a budget of their own, which is an
// [endpoint.Budget].
//
// The fields must not change once a run draws on it. A Budget must not be
// copied; it is safe for concurrent use.
type Budget struct {
	// Turns bounds how often models are asked.
	Turns int
	// Time bounds the wall time from the first run's start.
	Time time.Duration
	// Tokens bounds the total tokens that endpoints report, and Cost what they
	// cost by [Agent.Prices]. Both are looked at before a turn, so the last one
	// may go beyond them.
	Tokens int64
	Cost   float64

	around []*Budget
	mu     sync.Mutex
	used   Spent
	began  time.Time
}

// Child returns an empty budget that draws on b too. The caller sets its
// limits.
func (b *Budget) Child() *Budget { return &Budget{around: []*Budget{b}} }

// Used returns what was drawn so far.
func (b *Budget) Used() Spent {
	if b == nil {
		return Spent{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// BudgetError says which limit of a budget forbids another turn.
type BudgetError struct {
	Why    StopReason
	Detail string
}

func (e *BudgetError) Error() string { return fmt.Sprintf("%s: %s", e.Why, e.Detail) }

// Take draws one turn from the budget and all those around it, or from none of
// them, and says then which limit it would break: the error is a
// [*BudgetError]. A nil Budget gives all.
func (b *Budget) Take() error {
	if b == nil {
		return nil
	}
	if err := b.take(); err != nil {
		return err
	}
	if err := takeAll(b.around); err != nil {
		b.spendHere(Spent{Turns: -1})
		return err
	}
	return nil
}

func takeAll(list []*Budget) error {
	for i, b := range list {
		if err := b.Take(); err != nil {
			for _, taken := range list[:i] {
				taken.Spend(Spent{Turns: -1})
			}
			return err
		}
	}
	return nil
}

func (b *Budget) take() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.Turns > 0 && b.used.Turns >= b.Turns:
		return &BudgetError{MaxTurns, fmt.Sprintf("%d of the %d turns that runs share are used", b.used.Turns, b.Turns)}
	case b.Tokens > 0 && b.used.Tokens >= b.Tokens:
		return &BudgetError{MaxTokens, fmt.Sprintf("%d tokens were used, of %d that runs share", b.used.Tokens, b.Tokens)}
	case b.Cost > 0 && b.used.Cost >= b.Cost:
		return &BudgetError{MaxCost, fmt.Sprintf("%.6g was spent, of %.6g that runs share", b.used.Cost, b.Cost)}
	}
	b.used.Turns++
	return nil
}

// Spend draws what is known to be used from the budget and all those around
// it, even if it is more than there is.
func (b *Budget) Spend(s Spent) {
	if b == nil {
		return
	}
	b.spendHere(s)
	for _, o := range b.around {
		o.Spend(s)
	}
}

func (b *Budget) spendHere(s Spent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used.Add(s)
}

// all visits the budget and those around it.
func (b *Budget) all(visit func(*Budget)) {
	visit(b)
	for _, o := range b.around {
		o.all(visit)
	}
}

// start notes when the first run began, and returns when the budget's time is
// over; the zero Time is never.
func (b *Budget) start(now time.Time) (end time.Time) {
	b.all(func(b *Budget) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.began.IsZero() {
			b.began = now
		}
		if own := b.began.Add(b.Time); b.Time > 0 && (end.IsZero() || own.Before(end)) {
			end = own
		}
	})
	return end
}

// has reports whether other is b or one around it.
func (b *Budget) has(other *Budget) (found bool) {
	b.all(func(b *Budget) { found = found || b == other })
	return found
}

func (b *Budget) limitsCost() (limited bool) {
	b.all(func(b *Budget) { limited = limited || b.Cost > 0 })
	return limited
}

type budgetKey struct{}

// WithBudget returns a context whose runs draw on the budget.
func WithBudget(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// openBudget makes the run's own budget, which counts what nested runs may use
// of the run's limits. Around it are those that the run draws on, none twice:
// that of the run around it, the context's and the agent's.
func (r *Run) openBudget(ctx context.Context) {
	var list []*Budget
	add := func(b *Budget) {
		if b == nil || slices.ContainsFunc(list, func(o *Budget) bool { return o.has(b) }) {
			return
		}
		list = append(slices.DeleteFunc(list, func(o *Budget) bool { return b.has(o) }), b)
	}
	if r.around != nil {
		add(r.around.run.budget)
	}
	lent, _ := ctx.Value(budgetKey{}).(*Budget)
	add(lent)
	add(r.agent.Budget)
	l := r.agent.Limits
	r.budget = &Budget{Turns: cmp.Or(l.MaxTurns, plan.DefaultMaxTurns), Tokens: l.MaxTokens, Cost: l.MaxCost, around: list}
}

// take draws one turn for this run. Whether its own limits allow one is the
// State's business.
func (r *Run) take() error {
	if err := takeAll(r.budget.around); err != nil {
		return err
	}
	r.budget.spendHere(Spent{Turns: 1})
	return nil
}

// Price is what a model's tokens cost, by the million.
type Price struct {
	Input, Cached, Output float64
}

// Of returns what the usage costs. Cached tokens are input tokens too, and
// reasoning tokens are output tokens.
func (p Price) Of(u *item.Usage) float64 {
	if u == nil {
		return 0
	}
	cached := min(max(u.Cached(), 0), u.InputTokens)
	return (float64(u.InputTokens-cached)*p.Input + float64(cached)*p.Cached + float64(u.OutputTokens)*p.Output) / 1e6
}

// PriceError says that a limit of costs cannot be kept, for the model has no
// known price. No request was made.
type PriceError struct{ Model string }

func (e *PriceError) Error() string {
	return fmt.Sprintf("agent: a limit of costs is set, and the price of model %q is not known", e.Model)
}

// price looks the model's price up. It must be known where costs are limited.
func (r *Run) findPrice(model string) error {
	known := false
	if r.agent.Prices != nil {
		r.price, known = r.agent.Prices(model)
	}
	if known {
		return nil
	}
	r.price = Price{}
	if r.budget.limitsCost() {
		return &PriceError{model}
	}
	return nil
}
