// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// What is here carries out the objections of hooks to what was said. An objection
// holds: what it is about leaves the view with the same append that ends the run,
// so that no later request carries it and no later run stops at it again. G2

// InputCall is input that is about to be recorded, as hooks see it.
type InputCall struct {
	Session string
	Depth   int
	// Input is what the caller gave. It is the caller's, and must not be changed.
	Input []item.Item
	// History is what the session sends so far, without it. It must not be changed.
	History *item.List
}

// StopError is the error of a hook that ends the run and does not object to what
// was said: nothing is withdrawn, and the next run goes on where this one
// stopped.
type StopError struct{ Err error }

func (e *StopError) Error() string {
	if e.Err == nil {
		return "a hook asked to stop"
	}
	return e.Err.Error()
}
func (e *StopError) Unwrap() error { return e.Err }

// ItemsWithdrawn says that a hook objected to input or to a reply: no request
// carries those items any more, and the log keeps them. The run stops with
// [Vetoed].
type ItemsWithdrawn struct {
	// Seqs are the numbers of the entries that hold them.
	Seqs []int64 `json:"seqs"`
	// Input says that they are what the model was to be sent, not what it said.
	Input  bool   `json:"input,omitempty"`
	Reason string `json:"reason"`
	// By is the name of the Hooks.
	By string `json:"by,omitempty"`
	// Shown says that events before this one held some of a reply's text or items,
	// so that a person may have read it: take it off the screen. With
	// [Agent].HoldOutput it is false.
	Shown bool `json:"shown,omitempty"`
}

// Name implements [Event].
func (ItemsWithdrawn) Name() string { return "items_withdrawn" }

// objection is the first error of a hook that objects to what the hook was shown,
// nil if none does: each hook speaks for itself, so that one which only stops the
// run takes back nothing that another says. A hook that panicked has not agreed,
// which counts only where no later run will look again.
func objection(err error, panics bool) *HookError {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			if h := objection(one, panics); h != nil {
				return h
			}
		}
		return nil
	}
	var stop *StopError
	var hook *HookError
	if errors.As(err, &hook) && !errors.As(err, &stop) && (panics || hook.Stack == nil) {
		return hook
	}
	return nil
}

func objects(err error, panics bool) bool { return objection(err, panics) != nil }

// interrupted reports a hook that failed because the run's context ended: it has
// neither agreed nor objected, and is asked again before anything is sent.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// uninterrupted is what those hooks said that were not interrupted, nil if they
// said nothing. All says that there are no others.
func uninterrupted(ctx context.Context, err error) (said error, all bool) {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil, true
	case !ok && interrupted(ctx, err):
		return nil, false
	case !ok:
		return err, true
	}
	all = true
	var rest []error
	for _, one := range joined.Unwrap() {
		if interrupted(ctx, one) {
			all = false
			continue
		}
		rest = append(rest, one)
	}
	if all {
		return err, true
	}
	return errors.Join(rest...), false
}

// guardInput lets hooks see input before it is recorded.
func (r *Run) guardInput(ctx context.Context, input []item.Item) error {
	if len(input) == 0 {
		return nil
	}
	for i := range r.agent.Hooks {
		h := &r.agent.Hooks[i]
		if h.BeforeInput == nil {
			continue
		}
		seen := InputCall{Session: r.session.ID(), Depth: r.depth, Input: slices.Clone(input), History: r.state.View().Items().Clone()}
		if err := guarded(h, "BeforeInput", func() error { return h.BeforeInput(ctx, &seen) }); err != nil {
			return err
		}
	}
	return nil
}

// give records input, with bodies before and after it in the same append. What a
// hook objects to is withdrawn in there too: it is never in the view.
func (r *Run) give(ctx context.Context, before []session.Body, input []item.Item, behind ...session.Body) error {
	veto := r.guardInput(ctx, input)
	bodies, first := before, r.nextSeq()+int64(len(before))
	var seqs []int64
	for i, it := range input {
		bodies = append(bodies, session.Given{Item: it})
		if !it.Instructs() {
			seqs = append(seqs, first+int64(i))
		}
	}
	bodies = append(bodies, behind...)
	if veto == nil && len(bodies) == 0 {
		return nil
	}
	if veto == nil {
		return r.record(bodies...)
	}
	r.failure = veto
	var w *session.ItemsWithdrawn
	if objects(veto, true) && len(seqs) > 0 {
		w = withdrawal(veto, seqs)
		bodies = append(bodies, *w)
	}
	if err := r.record(append(bodies, vetoed(veto))...); err != nil {
		return err
	}
	r.tellWithdrawn(w, true)
	return nil
}

// nextSeq is the number of the log's next entry.
func (r *Run) nextSeq() int64 { return int64(len(r.session.Log())) + 1 }

// vetoRequest stops the run for a hook that objects to a request. Of that, what
// no reply has followed yet is withdrawn: the rest was agreed to before. The
// caller gets also what the hooks after it said, which changes nothing of that.
func (r *Run) vetoRequest(veto, also error) error {
	var err error
	if objects(veto, false) {
		err = r.withdraw(veto, unanswered(r.session.Log()), true)
	} else {
		err = r.stopFor(veto)
	}
	if r.failure != nil {
		r.failure = errors.Join(r.failure, also)
	}
	return err
}

// vetoReply stops the run for a hook that objects to a reply. Calls that were
// started while it came get their outputs first: what tools did is in the log.
func (r *Run) vetoReply(ctx context.Context, veto error) error {
	if err := r.endEarly(ctx); err != nil {
		return err
	}
	if !objects(veto, true) {
		return r.stopFor(veto)
	}
	return r.withdraw(veto, saidIn(r.session.Log()), false)
}

// endEarly waits for the calls that were started while the reply came.
func (r *Run) endEarly(ctx context.Context) error {
	if len(r.early) == 0 {
		return nil
	}
	var calls []plan.CallRef
	for _, c := range r.state.View().Open() {
		if r.early[c.Seq] {
			calls = append(calls, plan.CallRef{Seq: c.Seq, Number: c.Number, CallID: c.CallID})
		}
	}
	return r.call(ctx, calls)
}

// withdraw records an objection, what it takes out of the view, and that the run
// should end.
func (r *Run) withdraw(veto error, seqs []int64, input bool) error {
	if len(seqs) == 0 {
		return r.stopFor(veto)
	}
	r.failure = veto
	w := withdrawal(veto, seqs)
	if err := r.record(*w, vetoed(veto)); err != nil {
		return err
	}
	r.tellWithdrawn(w, input)
	return nil
}

func (r *Run) tellWithdrawn(w *session.ItemsWithdrawn, input bool) {
	if w != nil {
		r.emit(ItemsWithdrawn{Seqs: w.Seqs, Input: input, Reason: w.Reason, By: w.By, Shown: !input && !r.quiet && !r.agent.HoldOutput})
	}
}

func vetoed(veto error) session.StopAsked {
	return session.StopAsked{Why: string(Vetoed), Detail: veto.Error()}
}

// withdrawal is the entry for an objection. Its reason is what the hook says: of
// a panic nothing.
func withdrawal(veto error, seqs []int64) *session.ItemsWithdrawn {
	w := &session.ItemsWithdrawn{Seqs: seqs}
	if hook := objection(veto, true); hook != nil {
		w.By, veto = hook.Name, hook
	}
	w.Reason, _ = tool.Sanitize(hookText(veto))
	return w
}

// errCrashed is why a reply that the log holds has no end.
var errCrashed = errors.New("the run ended before the reply did")

// toJudge returns the last reply of the log if there are hooks to judge it and they
// have not; nil else.
func (r *Run) toJudge() *ModelCall {
	if !slices.ContainsFunc(r.agent.Hooks, func(h Hooks) bool { return h.AfterModel != nil }) {
		return nil
	}
	return unjudged(r.session.Log())
}

// judgeStored lets the hooks see a reply of the log, because the run that recorded
// it ended before they had judged it, and returns what they said. G2
func (r *Run) judgeStored(ctx context.Context, seen *ModelCall) error {
	if seen == nil {
		return nil
	}
	seen.Session, seen.Depth, seen.Request = r.session.ID(), r.depth, r.request()
	seen.Request.Input = item.NewList()
	for i, it := range r.state.View().Items().All() {
		if seq, _ := r.state.View().Seq(i); seq >= r.state.TurnEntry() {
			break
		}
		seen.Request.Input.Append(it)
	}
	return after(ctx, "AfterModel", r.agent.Hooks, afterModel, seen)
}

// notJudged says in the log that a reply is still to be judged, since hooks were
// interrupted: the next run asks them.
var notJudged = session.Noticed{
	Kind: session.NoticeNotJudged,
	Text: "the run ended while its hooks looked at the reply; the next run asks them before anything is sent",
}

// leaveUnjudged ends a turn whose reply not all hooks could judge. Said is what the
// others said, who do not object to it. Calls of the reply do not run: the run ends
// for what ended its context.
func (r *Run) leaveUnjudged(ctx context.Context, said error) error {
	if err := r.endEarly(ctx); err != nil {
		return err
	}
	n := notJudged
	n.Turn = r.asked.Turn
	if err := r.record(n); err != nil {
		return err
	}
	r.emit(Noticed(n))
	if said == nil {
		return nil
	}
	return r.stopFor(said)
}

// withdrawStored records an objection to a stored reply, with bodies before and
// after it.
func (r *Run) withdrawStored(veto error, before []session.Body, behind ...session.Body) error {
	var w *session.ItemsWithdrawn
	if objects(veto, true) {
		w = withdrawal(veto, saidIn(r.session.Log()))
		before = append(before, *w)
	}
	if bodies := append(before, behind...); len(bodies) > 0 {
		if err := r.record(bodies...); err != nil {
			return err
		}
	}
	r.tellWithdrawn(w, false)
	return nil
}

// unjudged returns the log's last reply, nil if hooks have judged it: a run writes
// nothing of what follows from a reply before they have. What may stand after it
// all the same comes from others, belongs to the turn's end, is the output of a
// call that was started while the reply came, or is the end of a run that says it
// could not wait for them.
func unjudged(log []session.Entry) *ModelCall {
	first := len(log) - 1
	for ; first >= 0; first-- {
		if _, begun := log[first].Body.(session.TurnStarted); begun {
			break
		}
	}
	if first < 0 {
		return nil
	}
	seen := &ModelCall{Stored: true, Status: item.StatusFailed, Reason: errCrashed.Error(), Err: errCrashed}
	ended, left, judged, early := false, false, false, map[string]bool{}
	for _, e := range log[first:] {
		switch b := e.Body.(type) {
		case session.TurnStarted:
			seen.Turn = b.Turn
		case session.Received:
			seen.Output = append(seen.Output, b.Item)
		case session.TurnEnded:
			ended = true
			seen.ended(b)
		case session.CallStarted:
			if ended {
				return nil
			}
			early[b.CallID] = true
		case session.Answered:
			if !early[b.CallID] && !left {
				return nil
			}
		case session.RunStarted:
			left, judged = false, true // unless that run was interrupted, too
		case session.Given, session.StopAsked, session.Stopped, session.Withdrawn:
			if !left {
				return nil
			}
		case session.Noticed:
			switch b.Kind {
			case session.NoticeNotJudged:
				left, judged = true, false
			case session.NoticeJudged:
				return nil
			}
		case session.Approval, session.Note, session.Nested, session.ReasoningDropped, session.Quarantined, session.Restored:
		default:
			return nil
		}
	}
	if judged || len(seen.Output) == 0 {
		return nil
	}
	return seen
}

// ended takes what the log says of a turn's end.
func (c *ModelCall) ended(b session.TurnEnded) {
	c.ResponseID, c.ResponseModel, c.Status, c.Reason, c.Class, c.Usage, c.Cost = b.ResponseID, b.Model, b.Status, b.Reason, b.Class, b.Usage, b.Cost
	c.Err = nil
	if b.BrokeOff() {
		c.Err = errors.New(b.Reason)
	}
}

// saidIn returns the entries of the items of the last turn, outputs included.
func saidIn(log []session.Entry) (seqs []int64) {
	for i := len(log) - 1; i >= 0; i-- {
		switch log[i].Body.(type) {
		case session.TurnStarted:
			slices.Reverse(seqs)
			return seqs
		case session.Received, session.Answered:
			seqs = append(seqs, log[i].Seq)
		}
	}
	return nil
}

// unanswered returns the entries of the items at the end of the log that wait for
// a reply: outputs, and what others than the model said. Instructions stay, for
// whatever comes next.
func unanswered(log []session.Entry) (seqs []int64) {
	gone := map[int64]bool{}
	for _, e := range slices.Backward(log) {
		switch b := e.Body.(type) {
		case session.ItemsWithdrawn:
			for _, seq := range b.Seqs {
				gone[seq] = true
			}
		case session.Answered:
			seqs = append(seqs, e.Seq)
		case session.Given:
			switch {
			case gone[e.Seq], b.Item.Instructs():
			case b.Item.IsOutput(), b.Item.Type() == item.TypeMessage && b.Item.Role() != item.RoleAssistant:
				seqs = append(seqs, e.Seq)
			default:
				return seqs
			}
		case session.Received:
			if !gone[e.Seq] {
				return seqs
			}
		}
	}
	return seqs
}

// release yields the events that were held back while the reply came and hooks
// looked at it. Those that hold what was said are left out if they object.
func (r *Run) release(agreed bool) {
	events := r.waiting
	r.holding, r.waiting = false, nil
	for _, ev := range events {
		switch ev := ev.(type) {
		case TextDelta, ReasoningDelta, ModelEvent, ItemDone:
			if !agreed {
				continue
			}
		case Noticed:
			if !agreed && quotes(ev.Kind) {
				continue
			}
		}
		r.emit(ev)
	}
}
