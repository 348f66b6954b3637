// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// This file takes what others leave in the session's inbox into the log. A delivery and
// what it says are recorded together, and the store removes it from the inbox in the
// same append. So a run that dies before has not taken it, and one that dies after has.

// mail is a run's side of the inbox of its session.
type mail struct {
	arrived atomic.Bool // the inbox may hold something that was not read
	queued  bool        // it holds input that waits for the answer of the run
	next    bool        // such input is what the run begins with: the answer for which it waited was stopped
	// taken are the keys of the deliveries that the run has taken. The inbox holds them
	// until the entries are durable.
	taken map[string]bool
	// halt ends the work in progress, because a request to stop waits in the inbox.
	halt context.CancelCauseFunc
	// asking is the question that the approver is asked now and that others may answer, or
	// nil.
	asking atomic.Pointer[asking]
	// open is, of the outermost run, the question that is asked now in any of its runs, or
	// nil: it ends when the session goes on elsewhere.
	open atomic.Pointer[asking]
	// began is the number of the run's [session.RunStarted], by which a request to stop
	// names it, or 0 before.
	began atomic.Int64
	// peeks are the goroutines that look for such a request, and for such an answer.
	peeks sync.WaitGroup
}

// asking is a question to the approver.
type asking struct {
	ref      plan.CallRef
	answered context.CancelCauseFunc // ends it
}

// errMoves is the cause for which a question ends if the session goes on elsewhere, where
// others answer it.
var errMoves = errors.New("the session goes on elsewhere, and the call waits there")

// leave leaves input of this process in the inbox, and reports whether the store has one
// for the session.
func (r *Run) leave(input []item.Item) (kept bool, err error) {
	d := session.Delivery{Delivered: session.Delivered{Key: rand.Text(), From: "agent.Run.Say"}}
	for _, it := range input {
		d.Bodies = append(d.Bodies, session.InputItem{Item: it})
	}
	_, err = r.session.Deliver(context.Background(), d)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, session.ErrNotFound) {
		return false, nil
	}
	return true, err
}

// errHalted is the cause of a context that ended because a delivery asks the run to
// stop.
var errHalted = errors.New("a delivery asks the run to stop")

// listen tells the run of deliveries until close is called. The returned context also
// ends when one of them asks the run to stop now.
func (r *Run) listen(ctx context.Context) (halted context.Context, end func()) {
	halted, r.mail.halt = context.WithCancelCause(ctx)
	r.mail.arrived.Store(true) // what came before is read first
	stop := r.session.Notify(func() {
		r.mail.arrived.Store(true)
		r.mail.peeks.Go(func() { r.peek(ctx) })
	})
	return halted, func() {
		stop()
		r.mail.halt(nil)
		r.mail.peeks.Wait()
	}
}

// peek ends the work in progress if a request to stop waits, and the question to the
// approver if an answer waits. Everything else waits for the end of the current effect.
func (r *Run) peek(ctx context.Context) {
	for d, err := range r.session.Deliveries(ctx) {
		if err != nil {
			return // the run itself reports it, when it takes the deliveries
		}
		for _, b := range d.Bodies {
			switch b := b.(type) {
			case session.StopAsked:
				if r.elsewhere(b) {
					continue
				}
				if !b.AfterTurn {
					r.mail.halt(errHalted)
					return
				}
				if q := r.mail.open.Load(); q != nil && b.Run != 0 {
					q.answered(errMoves)
				}
			case session.Approval:
				if q := r.mail.asking.Load(); q != nil && q.ref.CallID == b.CallID && q.ref.Number == b.Number {
					b.By, b.From = cmp.Or(b.By, d.By), cmp.Or(b.From, d.From)
					q.answered(&AnsweredError{b})
				}
			}
		}
	}
}

// elsewhere reports whether a request to stop is for another run.
func (r *Run) elsewhere(b session.StopAsked) bool { return b.Run != 0 && b.Run != r.mail.began.Load() }

// noteStart notes by which number requests to stop name the run.
func (r *Run) noteStart() {
	for _, e := range slices.Backward(r.session.Log()) {
		if _, ok := e.Body.(session.RunStarted); ok {
			r.mail.began.Store(e.Seq)
			return
		}
	}
}

// afterStop reports whether somebody stopped the run before, which had no answer yet, and not for it to go on elsewhere, and
// whether nothing was said since. Then this run has no answer to wait for, unless it has input of its own. A run whose context ended
// goes on in this one, as that of a worker that ends, unless the log says that a person stopped it.
func (r *Run) afterStop() bool {
	if len(r.input) > 0 || r.takesOver {
		return false
	}
	begun, byPerson, ended, cancelled := false, false, false, false
	for _, e := range slices.Backward(r.session.Log()) {
		switch b := e.Body.(type) {
		case session.RunStarted:
			if !b.Resumes && (begun || ended || cancelled) {
				return false
			}
			begun = begun || !b.Resumes // it is this run
		case session.TurnStarted:
			return false
		case session.InputItem:
			if !b.Own {
				return false
			}
		case session.Noticed:
			byPerson = byPerson || b.Kind == session.NoticeStoppedByPerson
		case session.Stopped:
			why := StopReason(b.Why)
			ended = why == StopRequested || why == StopCancelled && byPerson
			if cancelled = why == StopCancelled && !byPerson; !ended && !cancelled {
				return false
			}
		case session.StopAsked:
			switch {
			case ended:
				return !b.AfterTurn && b.Run == 0
			case cancelled:
				return b.Why == string(StopCancelled) && b.Detail == session.DetailStoppedByPerson
			}
		}
	}
	return false
}

// shares reports whether others may answer a call while the approver is asked.
func (r *Run) shares(judged *plan.Ruling) bool {
	p, root := &r.agent.Policy, r.root()
	return p.Shared && p.Approver != nil && judged.Verdict == session.Ask && (root == r || root.session.KeepsNested())
}

// askAlong asks the approver about a call whose question is recorded. It reports answered
// if somebody else was faster: then the log has the verdict.
func (r *Run) askAlong(ctx context.Context, ref plan.CallRef, ask func(context.Context) (a session.Approval, later, unasked bool)) (a session.Approval, later, unasked, answered bool, err error) {
	for {
		a, later, unasked = session.Approval{}, false, false
		inner, end := context.WithCancelCause(ctx)
		question, root := &asking{ref, end}, r.root()
		r.mail.asking.Store(question)
		root.mail.open.Store(question)
		r.peek(ctx) // what was delivered since the last effect has told of no question
		if root != r {
			root.peek(ctx)
		}
		if inner.Err() == nil {
			a, later, unasked = ask(inner)
		}
		r.mail.asking.Store(nil)
		root.mail.open.CompareAndSwap(question, nil)
		others := new(AnsweredError)
		cause := context.Cause(inner)
		faster := errors.As(cause, &others)
		end(nil)
		if none := a.Decided == "" || a.Decided == session.DeciderNobody; errors.Is(cause, errMoves) && none && ctx.Err() == nil {
			return session.Approval{}, true, false, false, nil
		}
		// An answer that the approver gave all the same is the first in the log.
		if !faster || ctx.Err() != nil || !later && a.Decided != "" && a.Decided != session.DeciderNobody {
			return a, later, unasked, false, nil
		}
		r.mail.arrived.Store(true)
		if err := r.takeMail(ctx); err != nil {
			return a, false, false, false, err
		}
		c, open := r.state.Call(ref)
		switch {
		case !open:
			return a, false, false, true, nil
		case c.Verdict == nil:
			continue // the answer was of no use, as the log says
		case !c.Verdict.Allowed:
			err = r.refused(ctx, c, *c.Verdict)
		}
		return a, false, false, true, err
	}
}

// takeMail takes all deliveries but input that waits for the answer of the run.
func (r *Run) takeMail(ctx context.Context) error {
	if !r.mail.arrived.Swap(false) {
		return nil
	}
	list, err := r.deliveries(ctx)
	if err != nil {
		return err
	}
	if r.mail.next && len(list) > 0 && !slices.ContainsFunc(list, func(d session.Delivery) bool { return !waits(d) }) {
		if err := r.takeOne(ctx, list[0]); err != nil {
			return err
		}
		list = list[1:]
	}
	r.mail.next = false
	r.mail.queued = slices.ContainsFunc(list, waits)
	for _, d := range list {
		if waits(d) {
			continue
		}
		if err := r.takeOne(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// takeQueued takes the first input that waited for the answer of the run, and reports
// whether there was one.
func (r *Run) takeQueued(ctx context.Context, stop *plan.Stop) (took bool, err error) {
	if !r.mail.queued || stop.Why != StopEndTurn && stop.Why != StopNothingToSend {
		return false, nil
	}
	list, err := r.deliveries(ctx)
	if err != nil {
		return false, err
	}
	queued := slices.DeleteFunc(list, func(d session.Delivery) bool { return !waits(d) })
	r.mail.queued = len(queued) > 1
	if len(queued) == 0 {
		return false, nil
	}
	return true, r.takeOne(ctx, queued[0])
}

// waits reports whether a delivery waits for the answer of the run. Only input can.
func waits(d session.Delivery) bool {
	return d.Queued && !slices.ContainsFunc(d.Bodies, func(b session.Body) bool { _, input := b.(session.InputItem); return !input })
}

// deliveries reads the inbox without what the run has taken, even if ctx has ended: what
// was delivered counts as said.
func (r *Run) deliveries(ctx context.Context) (list []session.Delivery, err error) {
	for d, err := range r.session.Deliveries(context.WithoutCancel(ctx)) {
		if err != nil {
			return nil, err
		}
		if !r.mail.taken[d.Key] {
			list = append(list, d)
		}
	}
	return list, nil
}

// takeOne records a delivery. One that cannot be used is recorded with the reason, which
// its sender finds in the log.
func (r *Run) takeOne(ctx context.Context, d session.Delivery) error {
	if r.mail.taken == nil {
		r.mail.taken = map[string]bool{}
	}
	r.mail.taken[d.Key] = true
	input, bodies, err := r.use(d)
	head := d.Delivered
	if err != nil {
		head.Problem = err.Error()
		return r.record(head)
	}
	head.Entries = len(input) + len(bodies)
	return r.give(ctx, []session.Body{head}, input, bodies...)
}

// use returns the input of a delivery and the other bodies to record for it.
func (r *Run) use(d session.Delivery) (input []item.Item, bodies []session.Body, err error) {
	for _, b := range d.Bodies {
		switch b := b.(type) {
		case session.InputItem:
			input = append(input, b.Item)
		case session.StopAsked:
			if r.elsewhere(b) {
				return nil, nil, errors.New("the run that it was for has ended")
			}
			if b.Why != "" { // it is to stop, and not to go on elsewhere
				b.Run = 0
			}
			b.Why, b.Detail = string(StopRequested), cmp.Or(b.Detail, "asked"+session.DecidedBy(d.By, d.From, ""))
			bodies = append(bodies, b)
		case session.Approval:
			if b.From = cmp.Or(b.From, d.From); b.Decided != session.DeciderUnanswered {
				b.By = cmp.Or(b.By, d.By)
			}
			a, known, err := decisionOf(b).find(r.session, r.state.View())
			if err != nil {
				return nil, nil, err
			}
			if !known {
				bodies = append(bodies, a)
			}
		}
	}
	return input, bodies, checkInput(input)
}

// decisionOf returns the decision that an approval records. That nobody answered is no
// decision of its sender.
func decisionOf(a session.Approval) Decision {
	d := Decision{Number: a.Number, CallID: a.CallID, Allow: a.Allowed, Reason: a.Reason, Arguments: a.Edited, Remember: a.Remember, By: a.By, From: a.From}
	if a.Decided == session.DeciderUnanswered {
		d.Decided = a.Decided
	}
	return d
}

// whoWaits names the sender of a delivery that waits, for an error: "" if it is not there any more, or
// cannot be read.
func whoWaits(ctx context.Context, s *session.Session, key string) string {
	for d, err := range s.Deliveries(ctx) {
		if err == nil && d.Key == key {
			return session.DecidedBy(d.By, d.From, "")
		}
	}
	return ""
}

// deliverTo leaves decisions for the run that is writing to the session. Each is checked
// against the log, but only the run can say whether another answer was faster.
func deliverTo(ctx context.Context, s *session.Session, decisions []Decision) error {
	view := fold(s).View()
	for _, d := range decisions {
		a, known, err := d.find(s, view)
		if err != nil {
			return &DecisionError{d, err}
		}
		if known {
			continue
		}
		// The same decision again is the same delivery.
		head := session.Delivered{By: d.By, From: d.From, Key: session.OwnKey("decision about call %d", a.Number)}
		if d.Shown != "" {
			head.Shown = fmt.Sprintf("%x", sha256.Sum256([]byte(d.Shown)))
		}
		_, err = s.Deliver(ctx, session.Delivery{Delivered: head, Bodies: []session.Body{a}})
		if errors.Is(err, session.ErrKeyUsed) {
			return &DecisionError{d, fmt.Errorf("%w: an answer%s waits for the run to take it", ErrDecided, whoWaits(ctx, s, head.Key))}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
