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
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// compact performs a [plan.Compact] and records the outcome, including a failure.
// The history does not change before the outcome is recorded. The returned error is
// the store's.
func (r *Run) compact(ctx context.Context, e plan.Compact) error { return r.compactFor(ctx, e, nil) }

// compactFor is compact for a handoff, or for none. A handoff that does not pass on the
// whole history must not do so if its summary fails or is not short: the rest is then
// dropped.
func (r *Run) compactFor(ctx context.Context, e plan.Compact, h *Handoff) error {
	seen := &CompactionCall{Session: r.session.ID(), Depth: r.depth, Speaker: r.speaker(), By: e.By, Before: e.Before, Started: time.Now(), kept: e.Kept}
	for i, it := range r.state.View().Replaceable(e.Through) {
		if seq, _ := r.state.View().Seq(i); !slices.Contains(e.Kept, seq) {
			seen.Replaced = append(seen.Replaced, it)
		}
		seen.all = append(seen.all, it)
	}
	if err := r.barrier(); err != nil {
		return err
	}
	r.progress(Progress{Kind: ProgressCompacting, By: e.By, Tokens: e.Before, Items: len(seen.Replaced)})
	inner, n, err := before(ctx, "BeforeCompact", r.agent.Hooks, beforeCompact, seen)
	if h != nil {
		seen.head = handoffHead
	}
	switch {
	case err != nil || seen.Items != nil:
	case h != nil && e.By == session.ByDropping:
		seen.Items = []item.Item{item.User(cutText(h, seen.Replaced))}
	default:
		// A hook may have chosen another model for the last request.
		if err = r.findPrice(r.agent.Request.Model); err == nil {
			err = r.shorten(inner, seen)
		}
	}
	worth := func() error {
		if h != nil {
			return nil
		}
		return seen.worth()
	}
	seen.After = r.remains(e, seen)
	seen.Ended, seen.Err = time.Now(), cmp.Or(err, worth())
	objection := after(inner, "AfterCompact", r.agent.Hooks[:n], afterCompact, seen)
	if err == nil {
		err = objection
	}
	if err == nil {
		// The hook may have changed the items.
		seen.After = r.remains(e, seen)
		err = worth()
	}
	if err != nil && ctx.Err() != nil && seen.Usage == nil {
		return nil // the run was cancelled before anything was compacted
	}
	if err != nil && h != nil {
		seen.By, seen.Items, err = session.ByDropping, []item.Item{item.User(cutText(h, seen.Replaced))}, nil
		seen.After = r.remains(e, seen)
	}
	return r.compacted(e, seen, err)
}

// compacted records the outcome of a compaction and counts its usage, also after a
// failure, because the requests were made.
func (r *Run) compacted(e plan.Compact, seen *CompactionCall, failure error) error {
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
		r.budget.Spend(Usage{Tokens: u.TotalTokens, Cost: b.Cost})
	}
	seen.Before, seen.After, seen.Err, seen.Entry = b.Before, b.After, failure, r.lastEntry()
	r.shortened = seen
	if seen.instead && failure == nil {
		return r.notice(r.uncancelled, session.Noticed{Kind: session.NoticeSummaryInstead, Text: SummaryInstead})
	}
	return nil
}

// SummaryInstead is the text of a notice of the kind [session.NoticeSummaryInstead].
const SummaryInstead = "the endpoint has no compaction of its own, so the model wrote a summary"

// remains estimates the size of a request after a compaction. If nothing is kept, as
// after a compaction by the endpoint, the user's messages are gone, too.
func (r *Run) remains(e plan.Compact, seen *CompactionCall) int64 {
	gone := e.Replaced
	if len(seen.kept) == 0 {
		gone = r.weigh(seen.all)
	}
	return max(e.Before-gone, 0) + r.weigh(seen.Items)
}

// worth returns an error for a compaction that saves too little: see
// [plan.Worthwhile].
func (c *CompactionCall) worth() error {
	if c.Before-c.After < c.Before/plan.Worthwhile {
		return fmt.Errorf("it would save too little: %d tokens would become %d", c.Before, c.After)
	}
	return nil
}

// weigh estimates items, corrected by the endpoint's reports.
func (r *Run) weigh(items []item.Item) (tokens int64) {
	for _, it := range items {
		tokens += r.state.Room.Tokens(it)
	}
	return r.state.Corrected(tokens)
}

// shorten creates the items that replace the older ones, in the way that seen.By
// names. It falls back from the endpoint's compaction to a summary.
func (r *Run) shorten(ctx context.Context, seen *CompactionCall) error {
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

// droppedText is the text that is sent in place of dropped items.
const droppedText = "[%d earlier items of this conversation are left out here: it has become too long for the context. It goes on below.]"

// byEndpoint lets the endpoint compact the history, including the user's messages. It
// reports false if the endpoint does not support it.
func (r *Run) byEndpoint(ctx context.Context, seen *CompactionCall) (done bool, err error) {
	c, ok := r.agent.Model.(Compactor)
	if !ok {
		return false, nil
	}
	req := &api.CompactRequest{Model: r.agent.Request.Model, Input: item.NewList(seen.all...), Instructions: r.agent.Request.Instructions}
	seen.Model, seen.Endpoint = req.Model, r.agent.endpoint()
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

// spend adds the usage of a request to the compaction, which may need several.
func (c *CompactionCall) spend(u *api.Usage, p Price) {
	u, _ = plan.Counted(u)
	if u == nil {
		return
	}
	c.Cost += p.Of(u)
	if c.Usage == nil {
		c.Usage = u
		return
	}
	sum := api.Usage{
		InputTokens: c.Usage.InputTokens + u.InputTokens, OutputTokens: c.Usage.OutputTokens + u.OutputTokens, TotalTokens: c.Usage.TotalTokens + u.TotalTokens,
		InputDetails:  &api.InputTokensDetails{CachedTokens: c.Usage.Cached() + u.Cached()},
		OutputDetails: &api.OutputTokensDetails{ReasoningTokens: c.Usage.Reasoning() + u.Reasoning()},
	}
	c.Usage = &sum
}

// patience returns the retry budget for a request that is not a turn: a new one by
// the model's policy, unless the caller set one budget for the whole run.
func (r *Run) patience(m Model) *endpoint.Budget {
	if r.borrowed {
		return r.retries
	}
	return r.agent.retryBudget(m)
}

// ErrNothingToCompact is the error of [Agent.Compact] if the session holds too little
// that a compaction could replace.
var ErrNothingToCompact = errors.New("the session holds too little that a compaction could replace")

// Compact compacts a session now, in the way that the agent's Compaction sets, even
// if the session is far from any limit. No run may be in progress. If it fails, the
// history is unchanged and the error says why; its cost is recorded. If an AfterModel
// hook or a guard objects to something that it had not seen yet, its error is
// returned.
func (a *Agent) Compact(ctx context.Context, s *session.Session) (done *CompactionCall, err error) {
	release, err := s.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, release()) }()
	return a.compact(ctx, s)
}

func (a *Agent) compact(ctx context.Context, s *session.Session) (*CompactionCall, error) {
	r := a.Start(s)
	r.uncancelled = context.WithoutCancel(ctx)
	r.retries = endpoint.BudgetFrom(ctx)
	r.borrowed = r.retries != nil
	r.quiet, r.yield = true, func(Event, error) bool { return true }
	r.openBudget(ctx)
	if err := r.checkHandoffs(); err != nil {
		return nil, err
	}
	if err := r.findPrice(r.agent.Request.Model); err != nil {
		return nil, err
	}
	if err := r.equip(ctx); err != nil {
		return nil, err
	}
	// The copy turns compaction on, because the caller asked for it explicitly.
	now := *r.agent
	now.Compaction.Auto = true
	r.fold(&now)
	if err := r.undamaged(); err != nil {
		return nil, err
	}
	if err := r.takeUp(ctx); err != nil {
		return nil, err
	}
	now = *r.agent
	now.Compaction.Auto = true
	r.state.Room = now.room()
	r.measure()
	if err := r.judgeFirst(ctx); err != nil {
		return nil, err
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
	case ctx.Err() != nil && (done == nil || done.Err != nil):
		return nil, endOfContext(ctx)
	case done.Err != nil:
		return done, fmt.Errorf("the session was not compacted: %w", r.compactErr)
	}
	return done, nil
}

// judgeFirst has the hooks and guards judge what they have not seen yet. It returns their objection.
func (r *Run) judgeFirst(ctx context.Context) error {
	switch veto, judged := uninterrupted(ctx, r.judgeStored(ctx, r.toJudge())); {
	case veto != nil:
		return cmp.Or(r.withdrawStored(veto, nil), veto)
	case !judged:
		return endOfContext(ctx)
	}
	veto, gone, err := r.guardNow(ctx, anyGuard)
	switch {
	case err != nil:
		return err
	case len(gone) > 0:
		return cmp.Or(r.record(withdrawal(veto, gone)), veto)
	}
	return veto
}

// fold applies the log to the state with the agent's configuration. The
// configuration is set first, because applying an entry depends on it.
func (r *Run) fold(a *Agent) {
	r.state.Limits, r.state.Room = a.Limits.plan(), a.room()
	r.measure()
	r.state.Polls = r.polls
	if r.agent.CollapseReads {
		r.state.ReadKey = r.readKey
	}
	r.state.Keep = r.first.Request.Conversation != ""
	for _, c := range r.first.models() {
		_, resumes := c.Model.(Resumer)
		r.state.Keep = r.state.Keep || resumes
	}
	for e := range r.session.Entries() {
		r.state.Apply(e)
		r.pace.apply(e)
	}
	r.recall()
}

// measure estimates the size of the instructions and tools.
func (r *Run) measure() {
	if m := &r.state.Room; m.Measures() {
		b, _ := (&api.Request{Tools: append(r.tools.Definitions(), r.agent.Request.Tools...)}).AppendJSON(nil)
		m.Around = int64(plan.EstimateText(r.agent.Request.Instructions) + plan.EstimateText(string(b)))
	}
}

// lastEntry returns the number of the log's last entry.
func (r *Run) lastEntry() int64 {
	log := r.session.Log()
	return log[len(log)-1].Seq
}

// Restore undoes the compaction of entry seq and all later ones, so that the session
// sends the replaced items again. If seq is 0, it undoes all. It returns the entry of
// the compaction that is then in force, or 0. It is an error if seq is not a
// compaction in force.
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
