// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// compact does what a [Compact] asks for and records the outcome, all or
// nothing: until then nothing has changed. The error is the store's.
func (r *Run) compact(ctx context.Context, e plan.Compact) error {
	seen := &CompactCall{Session: r.session.ID(), Depth: r.depth, By: e.By, Before: e.Before, Started: time.Now(), kept: e.Kept}
	for i, it := range r.state.View().Replaceable(e.Through) {
		if seq, _ := r.state.View().Seq(i); !slices.Contains(e.Kept, seq) {
			seen.Replaced = append(seen.Replaced, it)
		}
		seen.all = append(seen.all, it)
	}
	r.emit(Compacting{By: e.By, Tokens: e.Before, Items: len(seen.Replaced)})
	inner, n, err := before(ctx, "BeforeCompact", r.agent.Hooks, beforeCompact, seen)
	if err == nil && seen.Items == nil {
		err = r.shorten(inner, seen)
	}
	seen.After = r.remains(e, seen)
	seen.Ended, seen.Err = time.Now(), cmp.Or(err, seen.worth())
	objection := after(inner, "AfterCompact", r.agent.Hooks[:n], afterCompact, seen)
	if err == nil {
		err = objection
	}
	if err == nil {
		seen.After = r.remains(e, seen)
		err = seen.worth()
	}
	if err != nil && ctx.Err() != nil && seen.Usage == nil {
		return nil // the run is over, and nothing was compacted
	}
	return r.compacted(e, seen, err)
}

// compacted records and reports the outcome of a compaction.
func (r *Run) compacted(e plan.Compact, seen *CompactCall, failure error) error {
	r.compactErr = failure
	b := session.Compacted{Through: e.Through, Kept: seen.kept, By: seen.By, Items: seen.Items, Before: e.Before, After: seen.After, Usage: seen.Usage, Cost: seen.Cost}
	if failure != nil {
		b.Failure, b.Items, b.Kept, b.After = failure.Error(), nil, nil, e.Before
	}
	if err := r.record(b); err != nil {
		return err
	}
	r.totals.Compactions++
	r.totals.Cost += b.Cost
	if u := b.Usage; u != nil {
		r.totals.count(u)
		r.budget.Spend(Spent{Tokens: u.TotalTokens, Cost: b.Cost})
	}
	r.shortened = Compacted{
		Seq: r.lastEntry(), By: b.By, Items: len(seen.Replaced), Before: b.Before, After: b.After,
		Usage: b.Usage, Cost: b.Cost, Failure: b.Failure,
	}
	r.emit(r.shortened)
	if seen.instead && failure == nil {
		return r.notice(r.uncancelled, Noticed{Kind: session.NoticeSummaryInstead, Text: SummaryInstead})
	}
	return nil
}

// SummaryInstead is the text of a notice of the kind [session.NoticeSummaryInstead].
const SummaryInstead = "the endpoint has no compaction of its own, so the model wrote a summary"

// remains estimates what a request carries after a compaction.
func (r *Run) remains(e plan.Compact, seen *CompactCall) int64 {
	gone := e.Replaced
	if len(seen.kept) == 0 {
		gone = r.weigh(seen.all)
	}
	return max(e.Before-gone, 0) + r.weigh(seen.Items)
}

// worth returns an error for a compaction that saves too little.
func (c *CompactCall) worth() error {
	if c.Before-c.After < c.Before/plan.Worthwhile {
		return fmt.Errorf("it would make %d tokens out of %d: too little to gain", c.After, c.Before)
	}
	return nil
}

// weigh estimates items, as the endpoint's reports correct it.
func (r *Run) weigh(items []item.Item) (tokens int64) {
	for _, it := range items {
		tokens += r.state.Room.Tokens(it)
	}
	return r.state.Corrected(tokens)
}

// shorten makes what is sent instead of the items.
func (r *Run) shorten(ctx context.Context, seen *CompactCall) error {
	if seen.By == session.ByDropping {
		seen.Items = []item.Item{item.User(fmt.Sprintf(droppedText, len(seen.Replaced)))}
		return nil
	}
	if seen.By == session.ByEndpoint {
		done, err := r.byEndpoint(ctx, seen)
		if done || err != nil {
			return err
		}
		seen.By, seen.instead = session.BySummary, true
	}
	if seen.By != session.BySummary {
		return fmt.Errorf("agent: Compaction.By is %q: want %q, %q or %q", seen.By, session.BySummary, session.ByEndpoint, session.ByDropping)
	}
	return r.bySummary(ctx, seen)
}

// droppedText is the remark that is sent instead of what was left out.
const droppedText = "[%d earlier items of this conversation are left out here: it has become too long for the context. It goes on below.]"

// byEndpoint has the endpoint make the history shorter. It reports false if that
// cannot do so. What it returns holds what the user said too.
func (r *Run) byEndpoint(ctx context.Context, seen *CompactCall) (done bool, err error) {
	c, ok := r.agent.Model.(Compacter)
	if !ok {
		return false, nil
	}
	req := &item.CompactRequest{Model: r.agent.Request.Model, Input: item.NewList(seen.all...), Instructions: r.agent.Request.Instructions}
	seen.Model = req.Model
	resp, err := c.Compact(endpoint.WithBudget(ctx, r.patience(r.agent.Model)), req)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return false, nil
	case err != nil:
		return false, err
	case len(resp.Output) == 0:
		return false, errors.New("the endpoint's compaction is empty")
	}
	seen.spend(resp.Usage, r.price)
	seen.Items, seen.kept = resp.Output, nil
	return true, nil
}

// spend counts what a request took.
func (c *CompactCall) spend(u *item.Usage, p Price) {
	u, _ = plan.Counted(u)
	if u == nil {
		return
	}
	c.Cost += p.Of(u)
	if c.Usage == nil {
		c.Usage = u
		return
	}
	sum := item.Usage{
		InputTokens: c.Usage.InputTokens + u.InputTokens, OutputTokens: c.Usage.OutputTokens + u.OutputTokens, TotalTokens: c.Usage.TotalTokens + u.TotalTokens,
		InputDetails:  &item.InputTokensDetails{CachedTokens: c.Usage.Cached() + u.Cached()},
		OutputDetails: &item.OutputTokensDetails{ReasoningTokens: c.Usage.Reasoning() + u.Reasoning()},
	}
	c.Usage = &sum
}

// patience returns the budget of retries for a request that is not a turn.
func (r *Run) patience(m Model) *endpoint.Budget {
	if r.borrowed {
		return r.retries
	}
	return r.agent.retryBudget(m)
}

// ErrNothingToCompact is what [Agent.Compact] returns if there is nothing, or too
// little, that something shorter could stand for.
var ErrNothingToCompact = errors.New("there is too little in the session that something shorter could stand for")

// Compact makes what a session sends shorter now, whether it is near any limit
// or not, in the way that the agent's Compaction says. No run may be under way.
// Where it fails, nothing has changed, and the error says why; what it cost is
// recorded. It is the error of an AfterModel hook if that objects to a reply that it
// had not seen yet.
func (a *Agent) Compact(ctx context.Context, s *session.Session) (done *Compacted, err error) {
	release, err := s.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, release()) }()
	return a.compact(ctx, s)
}

func (a *Agent) compact(ctx context.Context, s *session.Session) (*Compacted, error) {
	r := a.Start(s)
	r.uncancelled = context.WithoutCancel(ctx)
	r.retries = endpoint.BudgetFrom(ctx)
	r.borrowed = r.retries != nil
	r.yield = func(Event, error) bool { return true }
	r.openBudget(ctx)
	if err := r.findPrice(a.Request.Model); err != nil {
		return nil, err
	}
	if err := r.equip(ctx); err != nil {
		return nil, err
	}
	now := *a
	now.Compaction.Auto = true
	r.fold(&now)
	if err := r.whole(); err != nil {
		return nil, err
	}
	switch veto, judged := uninterrupted(ctx, r.judgeStored(ctx, r.toJudge())); {
	case veto != nil:
		return nil, cmp.Or(r.withdrawStored(veto, nil), veto)
	case !judged:
		return nil, context.Cause(ctx)
	}
	state := &r.state
	plan, ok := state.Shorten(min(state.Room.Keep, state.Tokens()/4))
	if !ok {
		return nil, ErrNothingToCompact
	}
	if err := r.compact(ctx, plan); err != nil {
		return nil, err
	}
	done := r.shortened
	switch {
	case ctx.Err() != nil && (done.Seq == 0 || done.Failure != ""):
		return nil, context.Cause(ctx)
	case done.Failure != "":
		return &done, fmt.Errorf("the session was not compacted: %w", r.compactErr)
	}
	return &done, nil
}

// fold reads the log, as an agent's configuration has it.
func (r *Run) fold(a *Agent) {
	r.state.Limits, r.state.Room = a.Limits.plan(), a.room()
	r.measure()
	if r.agent.CollapseReads {
		r.state.ReadKey = r.readKey
	}
	_, resumes := r.agent.Model.(Resumer)
	r.state.Keep = resumes || r.agent.Request.Conversation != ""
	for e := range r.session.Entries() {
		r.state.Apply(e)
	}
	r.recall()
}

// measure estimates what the tools take of the context.
func (r *Run) measure() {
	if m := &r.state.Room; m.Measures() {
		b, _ := (&item.Request{Tools: append(r.tools.Definitions(), r.agent.Request.Tools...)}).AppendJSON(nil)
		m.Around = int64(plan.EstimateText(r.agent.Request.Instructions) + plan.EstimateText(string(b)))
	}
}

// lastEntry returns the number of the log's last entry.
func (r *Run) lastEntry() int64 {
	log := r.session.Log()
	return log[len(log)-1].Seq
}

// Restore takes back the compaction of the entry seq, and those after it, so that
// the session sends again what they stand for; 0 takes back all. It returns the
// compaction that is in force then, 0 if none is. One that is not in force is an
// error.
func Restore(ctx context.Context, s *session.Session, seq int64) (left int64, err error) {
	release, err := s.Hold(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = cmp.Or(err, release()) }()
	var v session.View
	for e := range s.Entries() {
		v.Apply(e)
	}
	inForce := v.Compactions()
	if len(inForce) == 0 {
		return 0, fmt.Errorf("session %q: no compaction is in force", s.ID())
	}
	seq = cmp.Or(seq, inForce[0])
	i := slices.Index(inForce, seq)
	if i < 0 {
		return 0, fmt.Errorf("session %q: entry %d is not a compaction in force; these are: %v", s.ID(), seq, inForce)
	}
	if _, err := s.Append(ctx, session.Restored{Seq: seq}); err != nil {
		return 0, err
	}
	if i > 0 {
		left = inForce[i-1]
	}
	return left, nil
}
