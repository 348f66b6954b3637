// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"iter"
	"runtime"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// This file connects a run to its log and to its reader, all in the run's own
// goroutine. record hands entries over without waiting, and the session writes them
// while the reply is still arriving. An event is yielded once all entries recorded
// before it are durable, and always in order: if a Recorded came after the deltas of
// the next item, every renderer would have to sort. A barrier waits for the entries
// before a tool starts, before a person is asked, before a request is sent, and
// before the run ends.

// unsaid is an event that waits until the log is durable up to entry seq.
type unsaid struct {
	seq int64
	ev  Event
}

// record hands bodies over to the log and folds their entries into the state, so
// that the run can continue. It records what has happened even if the run's context
// has ended. An entry gets the current time if the session does not know its time:
// readers want to see how long calls take, and so does the end of a run that is near
// its time limit.
func (r *Run) record(bodies ...session.Body) error {
	entries, err := r.session.Write(r.uncancelled, bodies...)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Time.IsZero() {
			e.Time = time.Now().UTC()
		}
		r.state.Apply(e)
		r.pace.apply(e)
		r.recorded(e)
	}
	return nil
}

// recorded emits the event of an entry. The entry of a message waits until the text
// of the message has been emitted.
func (r *Run) recorded(e session.Entry) {
	if len(r.pending) > 0 || r.session.Durable() < e.Seq {
		r.behind = true
		r.pending = append(r.pending, e)
	} else {
		r.result.add(e)
	}
	if r.quiet {
		return
	}
	if b, ok := e.Body.(session.OutputItem); ok && b.Item.Type() == item.TypeMessage && len(r.heard.messages) > 0 {
		number := r.heard.messages[0]
		r.heard.messages = r.heard.messages[1:]
		r.heard.order.ended(number, Recorded{e})
		return
	}
	r.emit(Recorded{e})
}

// progress emits a Progress. Its pointers must refer to values that do not change
// afterwards.
func (r *Run) progress(p Progress) {
	if !r.quiet {
		r.emit(p)
	}
}

// barrier waits until everything recorded is durable, and then yields the waiting
// events. If it returns an error, the events of entries that are not durable are not
// yielded.
func (r *Run) barrier() error {
	if len(r.pending) == 0 {
		return nil
	}
	err := r.session.Sync()
	r.tellDurable()
	return err
}

// tellDurable yields the waiting events whose entries are durable by now. It does
// not wait.
func (r *Run) tellDurable() {
	durable, n := r.session.Durable(), 0
	for ; n < len(r.pending) && r.pending[n].Seq <= durable; n++ {
		r.result.add(r.pending[n])
	}
	if r.pending = r.pending[n:]; len(r.pending) == 0 {
		r.pending = nil
	}
	for len(r.outbox) > 0 && r.outbox[0].seq <= durable {
		ev := r.outbox[0].ev
		// Clear the slot, so that the slice does not keep the event alive.
		r.outbox[0] = unsaid{}
		if r.outbox = r.outbox[1:]; len(r.outbox) == 0 {
			r.outbox = nil
		}
		r.deliver(ev)
	}
}

// emit passes an event to the caller that ranges over the run, as soon as the
// entries recorded before it are durable.
func (r *Run) emit(ev Event) {
	switch {
	case r.holding:
		r.waiting = append(r.waiting, ev)
	case len(r.pending) > 0:
		r.outbox = append(r.outbox, unsaid{seq: r.pending[len(r.pending)-1].Seq, ev: ev})
		r.tellDurable()
	default:
		r.deliver(ev)
	}
}

// deliver yields an event. If the caller stops iterating, the run is cancelled and
// continues without yielding until its log is in order.
func (r *Run) deliver(ev Event) {
	if r.left || r.yield(ev, nil) {
		return
	}
	r.left = true
	r.cancel()
}

// telling yields the events of a reply. While the model is silent, it also yields
// waiting events as they become durable, because a person may be watching. If the
// store is immediate, no event waits, and the reply is returned unchanged.
func (r *Run) telling(reply iter.Seq2[api.Event, error]) iter.Seq2[api.Event, error] {
	if r.quiet || !r.behind && r.beside.deciding() == nil {
		return reply
	}
	return func(yield func(api.Event, error) bool) {
		next, stop := iter.Pull2(reply)
		defer stop()
		for {
			if ev, err, ok := r.await(next); !ok || !yield(ev, err) {
				return
			}
		}
	}
}

// await waits for the next event of a reply. It needs a second goroutine only while
// events wait, for the store or for guards. await ends like next does, also if next panics or calls
// runtime.Goexit.
func (r *Run) await(next func() (api.Event, error, bool)) (ev api.Event, err error, ok bool) {
	if len(r.outbox) == 0 && r.beside.deciding() == nil {
		return next()
	}
	came, returned := make(chan struct{}), false
	var panicked any
	go func() {
		defer close(came)
		defer func() {
			if !returned {
				panicked = recover()
			}
		}()
		ev, err, ok = next()
		returned = true
	}()
	defer func() { // the caller's loop may panic in tellDurable, and next must not outlive this call
		select {
		case <-came:
		default:
			r.cancel()
			<-came
		}
	}()
	for {
		written := r.session.Written()
		r.tellDurable()
		select {
		case <-written:
		case <-r.beside.deciding():
			_ = r.answered() // a veto ends the request's context, and so the reply
		case <-came:
			switch {
			case panicked != nil:
				panic(panicked)
			case !returned:
				runtime.Goexit()
			}
			return ev, err, ok
		}
	}
}

// release yields the events that were held back while the hooks examined the reply.
// If the hooks did not agree, it drops the events that quote the reply.
func (r *Run) release(agreed bool) {
	events := r.waiting
	if r.holding && !agreed {
		r.result.withdraw()
	}
	r.holding, r.waiting = false, nil
	for _, ev := range events {
		if agreed || !quotes(ev) {
			r.emit(ev)
		}
	}
}

// quotes reports whether an event contains text of the reply.
func quotes(ev Event) bool {
	switch ev := ev.(type) {
	case Delta:
		return true
	case Progress:
		return ev.Kind == ProgressModel
	case Recorded:
		switch b := ev.Body.(type) {
		case session.OutputItem:
			return true
		case session.Noticed:
			switch b.Kind {
			case session.NoticeTextDiffers, session.NoticeReasoningDiffers, session.NoticeArgumentsDiffer, session.NoticeFinalDiffers,
				session.NoticeTextLost, session.NoticeItemMissing, session.NoticeSameCallID, session.NoticeEventSkipped:
				return true
			}
		}
	}
	return false
}

// Result returns the result of the run after its events have ended, as [Agent.Run]
// does. During the run it returns the result so far, and may be called only between
// two events.
func (r *Run) Result() *Result {
	res := r.result
	res.Totals = r.totals
	// An append of the caller must not write where the run goes on writing.
	res.Items, res.Partial = slices.Clip(res.Items), slices.Clip(res.Partial)
	res.Pending, res.Cache = slices.Clip(res.Pending), slices.Clip(res.Cache)
	if !res.said.IsZero() && res.said == res.read {
		res.Text = res.readText
	} else if m, err := item.As[item.Message](res.said); err == nil {
		res.Text = m.Content.Display()
	}
	return &res
}

// add updates the result with an entry of the run.
func (res *Result) add(e session.Entry) {
	switch b := e.Body.(type) {
	case session.TurnStarted:
		res.turn, res.whole, res.first = len(res.Items), false, 0
	case session.TurnEnded:
		if res.broke = b.BrokeOff(); res.broke {
			res.Partial = append(res.Partial, res.Items[res.turn:]...)
		}
	case session.OutputItem:
		if res.first == 0 {
			res.first = e.Seq
		}
		res.Items = append(res.Items, b.Item)
		// A fragment does not replace the complete message of the same turn.
		if b.Item.Type() == item.TypeMessage && (!b.Partial || !res.whole) && !b.Item.FromSubagent() {
			res.said, res.whole = b.Item, !b.Partial
		}
	case session.CallOutput:
		res.Items = append(res.Items, b.Item)
	case session.ItemsWithdrawn:
		for _, seq := range b.Seqs {
			if seq == res.first { // the reply is withdrawn, not input
				res.withdraw()
			}
		}
	case session.Stopped:
		res.Why, res.Detail = StopReason(b.Why), b.Detail
	}
}

// withdraw removes the last reply from the result.
func (res *Result) withdraw() {
	if n := len(res.Items) - res.turn; n > 0 && len(res.Partial) >= n && res.broke {
		res.Partial = res.Partial[:len(res.Partial)-n]
	}
	res.Items, res.said = res.Items[:res.turn], item.Item{}
}
