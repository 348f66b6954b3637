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
	"github.com/antiphon-go/antiphon/tool/output"
)

// This file carries out the objections of hooks. An objection is final: the entry
// that ends the run also removes the item from the view, so that no later request
// carries it and no later run stops at it again.

// InputCall describes input that is about to be recorded to hooks.
type InputCall struct {
	Session string
	Depth   int
	// Input is the caller's input, and must not be changed.
	Input []item.Item
	// History is the history without the input. It must not be changed.
	History *item.List
}

// StopError is the error of a hook that stops the run without objecting to an item:
// nothing is withdrawn, and the next run continues.
type StopError struct{ Err error }

func (e *StopError) Error() string {
	if e.Err == nil {
		return "a hook asked to stop"
	}
	return e.Err.Error()
}
func (e *StopError) Unwrap() error { return e.Err }

// objection returns the first error of a hook that objects, or nil. Joined errors are
// examined separately, so that a hook that only stops the run does not cancel
// another's objection. Panics reports whether a panic counts as an objection; it must
// if no later run will call the hook again.
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

// interrupted reports whether a hook failed because the run's context ended. It has
// then neither agreed nor objected, and is called again before anything is sent.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// uninterrupted returns the errors of the hooks that were not interrupted, or nil.
// All reports whether all hooks have decided: none was interrupted, and no guard
// failed.
func uninterrupted(ctx context.Context, err error) (said error, all bool) {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil, true
	case !ok && interrupted(ctx, err):
		return nil, false
	case !ok:
		return err, !undecided(err)
	}
	all = true
	var rest []error
	for _, one := range joined.Unwrap() {
		said, decided := uninterrupted(ctx, one)
		all = all && decided
		if said != nil {
			rest = append(rest, said)
		}
	}
	if all {
		return err, true
	}
	return errors.Join(rest...), false
}

// give records input, with bodies before and after it in the same append. If a hook
// objects, the same append withdraws the input, so that it is never in the view.
func (r *Run) give(ctx context.Context, before []session.Body, input []item.Item, behind ...session.Body) error {
	return r.giveAs(ctx, false, before, input, behind...)
}

// giveAs is give for input that perhaps nobody said: see [session.InputItem].
func (r *Run) giveAs(ctx context.Context, own bool, before []session.Body, input []item.Item, behind ...session.Body) error {
	veto := r.showInput(ctx, r.inputHooks(), input, r.state.View().Items())
	bodies, first := before, r.nextSeq()+int64(len(before))
	var seqs []int64
	for i, it := range input {
		bodies = append(bodies, session.InputItem{Item: it, Own: own})
		if !it.Instructs() {
			seqs = append(seqs, first+int64(i))
		}
	}
	bodies = append(bodies, behind...)
	if veto == nil && len(bodies) == 0 {
		return nil
	}
	if veto == nil {
		for i := range input {
			r.shown.given = append(r.shown.given, first+int64(i))
		}
		return r.record(bodies...)
	}
	r.failure = veto
	if objects(veto, true) && len(seqs) > 0 {
		bodies = append(bodies, withdrawal(veto, seqs))
	}
	return r.record(append(bodies, vetoed(veto))...)
}

// nextSeq returns the number of the log's next entry.
func (r *Run) nextSeq() int64 { return int64(len(r.session.Log())) + 1 }

// vetoRequest stops the run because a hook objects to a request. It withdraws what no
// reply has answered yet; the hooks agreed to earlier items before. Also holds the errors
// of the other hooks, which the caller gets in addition.
func (r *Run) vetoRequest(veto, also error) error {
	var err error
	if objects(veto, false) {
		unread := unreadIn(r.session.Log()).without(isInstruction)
		err = r.withdraw(veto, withReply(unread.seqs(), r.session.Log()))
	} else {
		err = r.stopFor(veto)
	}
	if r.failure != nil {
		r.failure = errors.Join(r.failure, also)
	}
	return err
}

// vetoReply stops the run because a hook objects to a reply. Calls that started early
// get their outputs first, so that the log records what the tools did.
func (r *Run) vetoReply(ctx context.Context, veto error) error {
	if err := r.endEarly(ctx); err != nil {
		return err
	}
	if !objects(veto, true) {
		return r.stopFor(veto)
	}
	return r.withdraw(veto, saidIn(r.session.Log()))
}

// endEarly waits for the calls that started while the reply was arriving.
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

// withdraw records an objection, the items that it withdraws, and that the run should
// end.
func (r *Run) withdraw(veto error, seqs []int64) error {
	if len(seqs) == 0 {
		return r.stopFor(veto)
	}
	r.failure = veto
	r.announce(veto)
	return r.record(withdrawal(veto, seqs), vetoed(veto))
}

// announce yields the objection of a guard, before it is recorded.
func (r *Run) announce(veto error) {
	hook := objection(veto, true)
	if hook == nil {
		return
	}
	if t := tripped(hook); t != nil {
		r.progress(Progress{Kind: ProgressTripped, Turn: r.state.Turn(), Tripwire: t})
	}
}

func vetoed(veto error) session.StopAsked {
	return session.StopAsked{Why: string(StopVetoed), Detail: veto.Error()}
}

// withdrawal returns the entry for an objection. Its reason is the hook's error; the
// text of a panic is left out.
func withdrawal(veto error, seqs []int64) session.ItemsWithdrawn {
	w := session.ItemsWithdrawn{Seqs: seqs}
	var failed *HookError
	switch hook := objection(veto, true); {
	case hook != nil:
		w.By, veto = hook.Name, hook
	case errors.As(veto, &failed) && failed.guard:
		w.By, veto = failed.Name, failed
	}
	w.Reason, _ = output.Sanitize(hookText(veto))
	return w
}

// errCrashed is the reason why a reply in the log has no end.
var errCrashed = errors.New("the run ended before the reply did")

// toJudge returns the last reply of the log if there are hooks that have not judged
// it; otherwise nil.
func (r *Run) toJudge() *ModelCall {
	if !r.agent.judgesOutput() && !slices.ContainsFunc(r.agent.Hooks, func(h Hooks) bool { return h.AfterModel != nil }) {
		return nil
	}
	return unjudged(r.session.Log())
}

// judgeStored shows the hooks a reply of the log that they have not judged, because
// the run that recorded it ended first. It returns their error.
func (r *Run) judgeStored(ctx context.Context, seen *ModelCall) error {
	if seen == nil {
		return nil
	}
	seen.Session, seen.Depth, seen.Speaker, seen.Request = r.session.ID(), r.depth, r.speaker(), r.request()
	seen.Request.Input = item.NewList()
	for i, it := range r.state.View().Items().All() {
		if seq, _ := r.state.View().Seq(i); seq >= r.state.TurnEntry() {
			break
		}
		seen.Request.Input.Append(it)
	}
	said := after(ctx, "AfterModel", r.agent.Hooks, afterModel, seen)
	return joined(said, r.guardReply(ctx, seen.Output, seen.Turn, true))
}

// joined is like errors.Join, but keeps a single error as it is.
func joined(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return errors.Join(a, b)
}

// notJudged records that a reply is not judged, because hooks were interrupted. The
// next run calls them.
var notJudged = session.Noticed{
	Kind: session.NoticeNotJudged,
	Text: "the run ended while its hooks looked at the reply; the next run asks them before anything is sent",
}

// leaveUnjudged ends a turn whose reply not all hooks could judge. Said is the error
// of the others, which do not object. Calls of the reply do not run: the run ends
// with the reason why its context ended.
func (r *Run) leaveUnjudged(ctx context.Context, said error) error {
	if err := r.endEarly(ctx); err != nil {
		return err
	}
	n := notJudged
	// notJudged is a shared value; n is a copy.
	n.Turn = r.asked.Turn
	if err := r.record(n); err != nil {
		return err
	}
	if said == nil {
		return nil
	}
	return r.stopFor(said)
}

// withdrawStored records an objection to a stored reply, with bodies before and after
// it.
func (r *Run) withdrawStored(veto error, before []session.Body, behind ...session.Body) error {
	if objects(veto, true) {
		r.announce(veto)
		before = append(before, withdrawal(veto, saidIn(r.session.Log())))
	}
	if bodies := append(before, behind...); len(bodies) > 0 {
		return r.record(bodies...)
	}
	return nil
}

// unjudged returns the log's last reply, or nil if hooks have judged it. A run writes
// no consequence of a reply before the hooks have judged it. Other entries may follow
// a reply that was not judged: entries of other programs, such as input, of the turn's
// end, outputs of calls that started early, and the end of a run that could not wait for
// its hooks. Only entries that a run writes after it has judged count, because to judge
// a reply twice does no harm.
//
// Nothing that was imported shows that hooks of this program have judged the reply.
func unjudged(log []session.Entry) *ModelCall {
	first, imported := lastTurn(log), importedIn(log)
	if first < 0 {
		return nil
	}
	seen := &ModelCall{Stored: true, Status: item.StatusFailed, Reason: errCrashed.Error(), Err: errCrashed}
	ended, left, judged, early := false, false, false, map[string]bool{}
	gone := withdrawnIn(log[first:])
	for i, e := range log[first:] {
		switch b := e.Body.(type) {
		case session.TurnStarted:
			seen.Turn = b.Turn
			continue
		case session.OutputItem:
			if !gone[e.Seq] || !imported.has(first+i) {
				seen.Output = append(seen.Output, b.Item)
			}
			continue
		case session.TurnEnded:
			ended = true
			seen.ended(b)
			continue
		}
		if imported.has(first + i) {
			continue
		}
		switch b := e.Body.(type) {
		case session.CallStarted:
			if ended {
				return nil
			}
			early[b.CallID] = true
		case session.CallOutput:
			if !early[b.CallID] && !left {
				return nil
			}
		case session.RunStarted:
			left, judged = false, true // unless that run was interrupted, too
		case session.Stopped, session.CallDropped:
			if !left {
				return nil
			}
		case session.ItemsWithdrawn, session.Paused:
			return nil
		case session.Noticed:
			switch b.Kind {
			case session.NoticeNotJudged:
				left, judged = true, false
			case session.NoticeJudged:
				return nil
			}
		}
	}
	if judged || len(seen.Output) == 0 {
		return nil
	}
	return seen
}

// lastTurn returns the index of the entry that begins the last turn, or -1.
func lastTurn(log []session.Entry) int {
	for i, e := range slices.Backward(log) {
		if _, begun := e.Body.(session.TurnStarted); begun {
			return i
		}
	}
	return -1
}

// ended copies the entry of a turn's end.
func (c *ModelCall) ended(b session.TurnEnded) {
	c.ResponseID, c.ResponseModel, c.Status, c.Reason, c.Class, c.Usage, c.Cost = b.ResponseID, b.Model, b.Status, b.Reason, b.Class, b.Usage, b.Cost
	c.Err = nil
	if b.BrokeOff() {
		c.Err = errors.New(b.Reason)
	}
}

// saidIn returns the entries of the items of the last turn, including outputs and what the run
// told the model about calls.
func saidIn(log []session.Entry) (seqs []int64) {
	for i := len(log) - 1; i >= 0; i-- {
		switch b := log[i].Body.(type) {
		case session.TurnStarted:
			slices.Reverse(seqs)
			return seqs
		case session.OutputItem, session.CallOutput:
			seqs = append(seqs, log[i].Seq)
		case session.InputItem:
			if b.Own {
				seqs = append(seqs, log[i].Seq)
			}
		}
	}
	return nil
}
