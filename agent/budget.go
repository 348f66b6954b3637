// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/session"
)

// Budget bounds the total usage of several runs. Set it on the agents that share it,
// or pass it to runs with [WithBudget]. Budgets form a tree: subagents and forks draw
// also on their parent's budgets. A run draws on each budget once, whichever way it got
// it. Zero means no limit, and a negative limit is used up. Retries of requests have a separate budget, an
// [endpoint.Budget].
//
// A Budget counts in the memory of one process. A run that [Agent.Step] takes over
// first draws the usage in its log, subagents included, so a Budget of a single run
// holds across processes. The usage of other runs in other processes is in other
// logs: if runs share a Budget and move between processes, the caller must keep their
// sum and draw it with [Budget.Spend].
//
// The fields must not change after the first run draws on the budget. A Budget must
// not be copied. It is safe for concurrent use.
type Budget struct {
	// Turns bounds the number of requests to models.
	Turns int
	// Time bounds the wall time from the start of the first run. The start of a run
	// that Step takes over is read from its log.
	Time time.Duration
	// Tokens bounds the total tokens that endpoints report, and Cost their cost by
	// [Agent.Prices]. Both are checked before a turn, so the last turn may exceed
	// them.
	Tokens int64
	Cost   float64

	around []*Budget
	mu     sync.Mutex
	used   Usage
	began  time.Time
	drawn  map[string]drawn // usage of unfinished runs that no call in this process performs now, by session
}

// drawn is the usage that one run and its subagents have drawn from a budget.
type drawn struct {
	run int64 // the entry that started the run
	Usage
}

// Child returns an unused budget that also draws on b. The caller sets its limits.
func (b *Budget) Child() *Budget { return &Budget{around: []*Budget{b}} }

// Used returns the usage so far.
func (b *Budget) Used() Usage {
	if b == nil {
		return Usage{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// BudgetError reports the limit of a budget that forbids another turn.
type BudgetError struct {
	Why    StopReason
	Detail string
}

func (e *BudgetError) Error() string { return fmt.Sprintf("%s: %s", e.Why, e.Detail) }

// Take draws one turn from the budget and all its ancestors. If a limit forbids the
// turn, it draws nothing and returns a [*BudgetError]. A nil Budget has no limits.
func (b *Budget) Take() error {
	if b == nil {
		return nil
	}
	return takeAll(b.all())
}

// takeAll draws one turn from each budget, or from none.
func takeAll(list []*Budget) error {
	for i, b := range list {
		if err := b.take(); err != nil {
			for _, taken := range list[:i] {
				taken.spendHere(Usage{Turns: -1})
			}
			return err
		}
	}
	return nil
}

func (b *Budget) take() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if stop, reached := b.limits().Reached(b.used, byAll); reached {
		return &BudgetError{stop.Why, stop.Detail}
	}
	b.used.Add(Usage{Turns: 1})
	return nil
}

// Spend draws known usage from the budget and all its ancestors, even if it exceeds
// their limits. A negative count, and a cost that is NaN, counts as 0.
func (b *Budget) Spend(s Usage) {
	if b == nil {
		return
	}
	s.Turns, s.Tokens = max(s.Turns, 0), max(s.Tokens, 0)
	if !(s.Cost >= 0) { // a NaN would end all limits, and a negative cost would give money back
		s.Cost = 0
	}
	b.draw(s)
}

// draw adds usage, which may be negative, to the budget and all its ancestors.
func (b *Budget) draw(s Usage) {
	for _, o := range b.all() {
		o.spendHere(s)
	}
}

func (b *Budget) spendHere(s Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used.Add(s)
}

// carry draws the usage that the session's log records for a run, except for what the
// budget has already counted.
func (b *Budget) carry(session string, run int64, used Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if had := b.drawn[session]; had.run == run {
		used.Turns = max(0, used.Turns-had.Turns)
		used.Tokens = max(0, used.Tokens-had.Tokens)
		used.Cost = max(0, used.Cost-had.Cost)
	}
	b.used.Add(used)
}

// leave records the usage that a run has drawn, for another call that takes the run
// over. It keeps nothing for a run that has stopped.
func (b *Budget) leave(session string, run int64, used Usage, stopped bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case stopped:
		delete(b.drawn, session)
		return
	case b.drawn == nil:
		b.drawn = map[string]drawn{}
	}
	b.drawn[session] = drawn{run, used}
}

// all returns the budget and its ancestors, each once: a run may draw on two budgets
// that have an ancestor in common.
func (b *Budget) all() []*Budget {
	list := []*Budget{b}
	for i := 0; i < len(list); i++ {
		for _, o := range list[i].around {
			if !slices.Contains(list, o) {
				list = append(list, o)
			}
		}
	}
	return list
}

// start records when a run began, and returns when the budget's time is over, and how
// much it was. The zero Time means never.
func (b *Budget) start(now time.Time) (end time.Time, limit time.Duration) {
	for _, o := range b.all() {
		if own := o.startHere(now); !own.IsZero() && (end.IsZero() || own.Before(end)) {
			end, limit = own, o.Time
		}
	}
	return end, limit
}

func (b *Budget) startHere(now time.Time) (end time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.began.IsZero() || now.Before(b.began) {
		b.began = now
	}
	if b.Time == 0 {
		return end
	}
	return b.began.Add(b.Time)
}

func (b *Budget) limitsCost() bool {
	return slices.ContainsFunc(b.all(), func(o *Budget) bool { return o.Cost > 0 })
}

type budgetKey struct{}

// WithBudget returns a context whose runs draw on the budget.
func WithBudget(ctx context.Context, b *Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// openBudget creates the run's own budget, which counts subagents against the run's
// limits. Its parents are the budgets that the run draws on: the parent run's,
// the context's and the agent's.
func (r *Run) openBudget(ctx context.Context) {
	var list []*Budget
	if r.around != nil {
		list = append(list, r.around.run.budget)
	}
	fromContext, _ := ctx.Value(budgetKey{}).(*Budget)
	for _, b := range []*Budget{fromContext, r.agent.Budget} {
		if b != nil {
			list = append(list, b)
		}
	}
	l := r.agent.Limits
	r.budget = &Budget{Turns: cmp.Or(l.MaxTurns, plan.DefaultMaxTurns), Tokens: l.MaxTokens, Cost: l.MaxCost, around: list}
}

// carryBudget draws, for a run that is taken over, the usage in its log. The logs of
// interrupted subagents hold usage that this log does not have yet. For a subagent it
// fills only its own budget, because the outermost run has drawn the rest.
func (r *Run) carryBudget(ctx context.Context) error {
	used := r.state.Used()
	more, err := unreported(ctx, r.session, r.state.View().Open())
	if err != nil {
		return err
	}
	used.Add(more)
	r.budget.spendHere(used)
	if r.around == nil {
		for _, b := range r.shared() {
			b.carry(r.session.ID(), r.state.RunEntry(), used)
		}
	}
	return nil
}

// leaveBudget records the usage that the run has drawn, for the call that takes it
// over.
func (r *Run) leaveBudget() {
	if r.around != nil || r.state.RunEntry() == 0 {
		return
	}
	for _, b := range r.shared() {
		b.leave(r.session.ID(), r.state.RunEntry(), r.budget.Used(), r.why.Why != "")
	}
}

// shared returns the budgets that the run draws on besides its own, each once.
func (r *Run) shared() []*Budget { return r.budget.all()[1:] }

// take draws one turn for this run. The State checks the run's own limits.
func (r *Run) take() error {
	if err := takeAll(r.shared()); err != nil {
		return err
	}
	r.budget.spendHere(Usage{Turns: 1})
	return nil
}

// lastTurn reports whether the turn that is about to begin, and is drawn already, is
// expected to be the last one before a limit, and returns the notice that says so.
func (r *Run) lastTurn(ctx context.Context) (last session.Noticed, isLast bool) {
	if !r.agent.Limits.AnswerNow {
		return last, false
	}
	why, near := r.state.AnswerNow()
	for _, b := range r.shared() {
		if !near {
			why, near = b.near(r.state.LastReply())
		}
	}
	if end, ok := ctx.Deadline(); ok && !near {
		left := time.Until(end)
		if need := 2*r.pace.reply + r.pace.calls; need > 0 && left <= need {
			why, near = fmt.Sprintf("the model had to answer, because only %v of the time of the run is left", max(0, left).Round(time.Millisecond)), true
		}
	}
	return session.Noticed{Kind: session.NoticeAnswerNow, Text: why}, near
}

// near reports whether the budget is expected to allow no turn after the one that is
// drawn already, and why.
func (b *Budget) near(last Usage) (why string, near bool) {
	used := b.Used()
	used.Turns--
	return b.limits().Near(used, last, byAll)
}

// byAll says who used a budget.
const byAll = " by all runs that share the budget"

func (b *Budget) limits() plan.Limits {
	return plan.Limits{MaxTurns: b.Turns, MaxTokens: b.Tokens, MaxCost: b.Cost}
}

// pace measures the last round of a run: how long its last complete reply took, and its
// calls. Time in which calls waited for an approval before the first of them started does
// not count. Clocks of several processes may differ, so a duration is never negative.
type pace struct {
	asked, called time.Time // when the turn began, and when the first of its calls did
	reply, calls  time.Duration
}

func (p *pace) apply(e session.Entry) {
	switch b := e.Body.(type) {
	case session.RunStarted:
		if !b.Resumes {
			*p = pace{}
		}
	case session.TurnStarted:
		p.asked = e.Time
	case session.TurnEnded:
		if !b.BrokeOff() && !p.asked.IsZero() { // a store in memory knows no times
			p.reply, p.calls, p.called = max(0, e.Time.Sub(p.asked)), 0, time.Time{}
		}
	case session.CallStarted:
		if p.called.IsZero() {
			p.called = e.Time
		}
	case session.CallOutput:
		if !p.called.IsZero() {
			p.calls = max(0, e.Time.Sub(p.called))
		}
	}
}

// Price is the price of a million tokens of a model, in any currency: costs and limits of
// costs are in the same one.
type Price struct {
	// Input is the price of the tokens of a request that were not in the cache, Cached of
	// those that were, and Output that of the tokens of a reply, with its reasoning.
	Input, Cached, Output float64
}

// Of returns the cost of the usage. Cached tokens are included in input tokens, and
// reasoning tokens in output tokens.
func (p Price) Of(u *api.Usage) float64 {
	if u == nil {
		return 0
	}
	cached := min(max(u.Cached(), 0), u.InputTokens)
	return (float64(u.InputTokens-cached)*p.Input + float64(cached)*p.Cached + float64(u.OutputTokens)*p.Output) / 1e6
}

// valid reports whether a cost can be counted with the price. A NaN would pass every
// limit, and a negative price would give money back.
func (p Price) valid() bool {
	for _, n := range []float64{p.Input, p.Cached, p.Output} {
		if !(n >= 0) || math.IsInf(n, 1) {
			return false
		}
	}
	return true
}

// PriceError reports that costs cannot be counted: a cost limit is set and the
// model's price is unknown, or the price is negative, infinite or NaN. No request was
// made.
type PriceError struct {
	Model string
	// Price is the invalid price, or zero if the price is unknown.
	Price Price
}

func (e *PriceError) Error() string {
	if p := e.Price; !p.valid() {
		return fmt.Sprintf("agent: the price of model %q is input %v, cached %v, output %v: want finite numbers that are not negative",
			e.Model, p.Input, p.Cached, p.Output)
	}
	return fmt.Sprintf("agent: a cost limit is set, but the price of model %q is unknown: set Agent.Prices", e.Model)
}

// findPrice looks up the model's price. An invalid price is an error, and so is a
// missing price if costs are limited.
func (r *Run) findPrice(model string) error {
	price, err := r.priceOf(r.agent, model)
	if err == nil {
		r.price, r.priced = price, model
	}
	return err
}

func (r *Run) priceOf(a *Agent, model string) (price Price, err error) {
	known := false
	if a.Prices != nil {
		price, known = a.Prices(model)
	}
	switch {
	case !known && r.budget.limitsCost():
		return Price{}, &PriceError{Model: model}
	case !known:
		return Price{}, nil
	case !price.valid():
		return Price{}, &PriceError{model, price}
	}
	return price, nil
}
