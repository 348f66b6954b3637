// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/worker"
)

// follower returns what shows the work on a response, and ends the response when the work has ended. shown is the last
// entry that was shown.
func (b *Backend) follower(run *active, s *shown, w *server.Writer, shown int64) (*follower, error) {
	in, err := store.As[queues](b.store(), "keep work")
	return &follower{b: b, run: run, s: s, w: w, store: in, in: run.host.Session.ID(), shown: shown, busy: time.Now()}, err
}

// follower follows the run of a response at a worker.
type follower struct {
	b     *Backend
	run   *active
	s     *shown
	w     *server.Writer
	store queues
	in    string
	shown int64

	live      bool    // its client reads text before it is complete
	textEnded int64   // the last entry that was shown and ends a text
	waiting   []piece // of text whose entries before were not shown yet

	soon int       // how many looks follow soon, because a run has ended
	over bool      // somebody else has ended or deleted the response
	busy time.Time // when a worker ran last
}

func (f *follower) follow(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	entries, failed := make(chan session.Entry), make(chan error, 1)
	go func() {
		defer close(entries)
		for e, err := range nils.Each(f.store, "Watch", f.store.Watch(watching, f.in, f.shown)) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case entries <- e:
			case <-watching.Done():
				return
			}
		}
	}()
	text := make(chan piece)
	if f.live {
		go func() {
			f.watch(watching, text)
		}()
	}
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return f.halt(ctx)
		case e, ok := <-entries:
			if !ok {
				if ctx.Err() != nil {
					return f.halt(ctx)
				}
				return f.failed(ctx, errors.Join(errors.New("agents: the log of a worker cannot be watched"), first(failed)))
			}
			switch f.show(e); {
			case f.run.cancelled:
				return f.halt(failing(ctx, server.ErrCancelled))
			case f.over:
				look.Reset(0)
			case f.soon > 0:
				look.Reset(endPause)
			}
		case p := <-text:
			f.pieces(p)
		case <-look.C:
			done, err := f.look(ctx)
			if done || err != nil && ctx.Err() == nil {
				return err
			}
			look.Reset(rowPause)
			if f.soon > 0 {
				f.soon--
				look.Reset(endPause)
			}
		}
	}
}

// failed ends the work of this server on a response, because the store failed. Somebody goes on with a
// background response later.
func (f *follower) failed(ctx context.Context, err error) error {
	f.b.report(err)
	if f.run.background {
		return server.ErrLeft
	}
	return f.halt(failing(ctx, errBroken))
}

func first(failed chan error) error {
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// show shows an entry that a worker, or this server, has written.
func (f *follower) show(e session.Entry) {
	if e.Seq <= f.shown {
		return
	}
	f.shown = e.Seq
	switch e.Body.(type) {
	case session.RunStarted:
		f.soon = 0
	case session.Stopped:
		f.soon = soonLooks
	}
	if n, ok := noteOf(e); ok && (n.Kind == kindEnd || n.Kind == kindDeleted) && n.ResponseID == f.run.id {
		f.over = true
	}
	f.run.cancelled = f.run.cancelled || cancels(e, f.run.id)
	if endsText(e) {
		f.textEnded = e.Seq
	}
	f.s.entry(e)
	f.pieces()
}

// look looks at the row of work. It reports done when the response has ended.
func (f *follower) look(ctx context.Context) (done bool, err error) {
	row, err := f.store.Work(ctx, f.in)
	if err != nil {
		return f.unseen(ctx, err)
	}
	if underWay(row) && !f.over {
		return f.waits(ctx)
	}
	log, unlock, err := f.b.locked(ctx, f.in)
	if errors.Is(err, errLocked) { // somebody has it open for a while
		return false, nil
	}
	if err != nil {
		return f.unseen(ctx, err)
	}
	row, err = f.store.Work(ctx, f.in)
	if err == nil && underWay(row) && !f.over { // something was delivered meanwhile
		return false, unlock()
	}
	cancelled := false
	if err == nil {
		cancelled, err = wasCancelled(ctx, log, f.run.id)
	}
	if err != nil { // nothing is written yet
		f.b.report(unlock())
		return f.unseen(ctx, err)
	}
	err = f.end(ctx, log, row, cancelled)
	f.b.report(unlock())
	return true, err
}

// waits looks for a worker, unless the response waits for one.
func (f *follower) waits(ctx context.Context) (done bool, _ error) {
	if f.run.background {
		return false, nil
	}
	none, err := noWorker(ctx, f.store)
	if err != nil || !none {
		f.busy = time.Now()
	}
	if time.Since(f.busy) < noWorkerTime {
		return false, nil
	}
	none, err = f.stop(failing(ctx, errNoWorker))
	if errors.Is(err, session.ErrBusy) { // the lease of a worker that has died: it ends
		return false, nil
	}
	return true, f.unstopped(ctx, none, err)
}

// unseen is the result of a look that failed. If somebody has ended the response meanwhile, that is
// no failure: follow stops the run.
func (f *follower) unseen(ctx context.Context, err error) (done bool, _ error) {
	if ctx.Err() != nil {
		return false, nil
	}
	return true, f.failed(ctx, err)
}

// underWay reports whether a worker runs the work, or will without anybody's doing.
func underWay(w queue.Work) bool {
	return w.State == queue.Ready || w.State == queue.Running || w.State == queue.Waiting && !worker.AwaitsApproval(w)
}

// failing returns a context that has ended for a reason.
func failing(ctx context.Context, why error) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	end(why)
	return ctx
}

// halt stops the run of a response that is not to go on, and ends the response. A background
// response whose server ends goes on.
func (f *follower) halt(ctx context.Context) error {
	if f.run.background && left(ctx) {
		return server.ErrLeft
	}
	stopped, err := f.stop(ctx)
	return f.unstopped(ctx, stopped, err)
}

// unstopped returns the result of halt. If the run was not stopped, a client that waits is told of a failure;
// for others, the next look at responses that nobody makes takes it up.
func (f *follower) unstopped(ctx context.Context, stopped bool, err error) error {
	why := context.Cause(ctx)
	switch {
	case stopped:
		return err
	case errors.Is(err, server.ErrNotFound): // the session is deleted
		f.run.ended = true
		f.s.finish(nil)
		return f.w.Interrupt("server_error", wasDeleted)
	case f.run.background, errors.Is(why, errOrphan), errors.Is(why, context.Canceled):
		f.b.report(err)
		return server.ErrLeft
	}
	return err // the server ends the response once nobody has the session
}

// stop does what halt says, if the run can be stopped.
func (f *follower) stop(ctx context.Context) (stopped bool, _ error) {
	log, unlock, err := f.b.halted(context.WithoutCancel(ctx), f.in, f.run)
	if err != nil {
		return false, fmt.Errorf("agents: the run of %s cannot be stopped: %w", f.run.id, err)
	}
	defer func() { f.b.report(unlock()) }()
	cancelled, err := wasCancelled(context.WithoutCancel(ctx), log, f.run.id)
	if err != nil {
		return false, err
	}
	return true, f.end(ctx, log, queue.Work{}, cancelled)
}

// halted stops the run of a response at its worker, and locks the session.
func (b *Backend) halted(ctx context.Context, in string, of *active) (s *session.Session, unlock func() error, err error) {
	ctx, stop := context.WithTimeout(ctx, lockTime)
	defer stop()
	var asked time.Time
	if of.cancelled { // the worker has read it
		asked = time.Now()
	}
	for {
		if s, err = b.read(ctx, b.store(), in); err != nil {
			return nil, nil, err
		}
		if unlock, err = s.Lock(ctx); !errors.Is(err, session.ErrBusy) {
			return s, unlock, err
		}
		// The request is for this run alone: it cannot stop a later one. A run that has only just begun
		// may not know its number yet, and overlooks it.
		if run := runOf(s.Log()); run > 0 && time.Since(asked) > askAgain {
			asked = time.Now()
			d := session.Delivery{Delivered: session.Delivered{Key: fmt.Sprintf("%s, run %d: %d", endKey(of.id), run, asked.UnixNano()), From: fromServer}, Bodies: []session.Body{session.StopAsked{Run: run, Detail: "its client does not wait for it any more"}}}
			if _, err := s.Deliver(ctx, d); err != nil && !errors.Is(err, session.ErrKeyUsed) {
				return nil, nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// runOf returns the entry that began the run that is under way, or 0.
func runOf(log []session.Entry) (run int64) {
	for _, e := range log {
		switch e.Body.(type) {
		case session.RunStarted:
			run = e.Seq
		case session.Stopped:
			run = 0
		}
	}
	return run
}

// end writes the end of a response whose run has ended, and that was cancelled or not. The caller has the lock of the
// session. ctx has ended if somebody ended the response; then the row is not needed.
func (f *follower) end(ctx context.Context, log *session.Session, row queue.Work, cancelled bool) (err error) {
	f.run.host, f.run.away = &host.Host{Session: log, Store: f.store}, false
	defer func() { f.run.away = true }()
	for _, e := range log.Log()[min(f.shown, int64(len(log.Log()))):] {
		f.show(e)
	}
	p := partOf(log.Log(), f.run.seq)
	lost := false // what a client has seen of a text is only in the session with the deltas
	if f.live && !p.ended && !p.deleted {
		if _, _, err := endText(context.WithoutCancel(ctx), f.store, log, f.run.id); err != nil {
			f.b.report(err)
			lost = true
		}
		for _, e := range log.Log()[min(f.shown, int64(len(log.Log()))):] {
			f.show(e)
		}
	}
	res, stopped := stopOf(log.Log()[f.run.seq:])
	f.b.tellUsage(f.w, f.w.Response().Model, log.Log(), f.run.seq, nil) // it counts however the response ends; the prices are the worker's
	f.run.cancelled = f.run.cancelled || cancelled
	parked := row.State == queue.Parked && context.Cause(ctx) == nil && !f.run.cancelled // and not by this server
	if parked {
		f.b.report(fmt.Errorf("agents: the work of %s is parked: %s", f.run.id, row.Reason))
	}
	switch why := context.Cause(ctx); {
	case p.ended: // by another server
		f.run.ended = true
		var r *api.Response
		if r, err = responseOf(f.b.inner(ctx, f.store), log.Log(), &p); err == nil {
			f.s.finish(nil)
			err = f.w.EndAs(r)
		}
	case p.deleted: // likewise
		f.s.finish(nil)
		err = f.b.ends(context.WithoutCancel(ctx), f.run, f.w, func() error {
			return f.w.Interrupt("server_error", wasDeleted)
		})
	case errors.Is(why, errBroken):
		f.s.finish(nil)
		err = f.b.ends(context.WithoutCancel(ctx), f.run, f.w, func() error {
			return f.w.Fail("server_error", "The server had an error while processing your request.")
		})
	case errors.Is(why, errOrphan):
		f.s.finish(nil)
		err = f.b.ends(context.WithoutCancel(ctx), f.run, f.w, func() error { return f.w.Interrupt("server_error", interrupted) })
	case errors.Is(why, errNoWorker):
		f.s.finish(nil)
		err = f.b.ends(context.WithoutCancel(ctx), f.run, f.w, func() error {
			return f.w.Fail("server_error", "No worker runs that could go on with the response. What was complete is kept, and the response can be continued.")
		})
	case parked && stopped && res.Why == agent.StopCancelled:
		f.s.finish(nil)
		err = f.b.ends(ctx, f.run, f.w, func() error {
			return f.w.Interrupt("server_error", "The agent stopped before its answer: an operator stopped it.")
		})
	case parked && (!stopped || res.Why == agent.StopNotYet):
		err = f.parked(ctx, row)
	default:
		err = f.b.closes(ctx, f.run, f.s, f.w, res, failureOf(res, log.Log()[f.run.seq:]))
	}
	if f.run.ended && f.live && !lost {
		if err := f.store.Delete(context.WithoutCancel(ctx), deltasID(f.in, f.run.seq)); !errors.Is(err, session.ErrNotFound) {
			f.b.report(err)
		}
	}
	if f.run.ended {
		f.b.report(f.b.settle(context.WithoutCancel(ctx), f.in, parked))
	}
	return err
}

// stopOf returns how the last run of a part of a log ended.
func stopOf(log []session.Entry) (res *agent.Result, stopped bool) {
	res = &agent.Result{}
	for _, e := range log {
		switch b := e.Body.(type) {
		case session.RunStarted:
			res, stopped = &agent.Result{}, false
		case session.Stopped:
			res, stopped = &agent.Result{Why: agent.StopReason(b.Why), Detail: b.Detail}, true
		}
	}
	return res, stopped
}

// parked ends a response whose work no worker can do, or that an operator or a failure has parked.
func (f *follower) parked(ctx context.Context, row queue.Work) error {
	f.s.finish(nil)
	message := "The agent failed at its worker, or an operator stopped it. The operator finds the reason with antiphon work status."
	if worker.Lacks(row) != "" {
		message = "No worker can run the agent. The operator finds with antiphon work status what is missing."
	}
	return f.b.ends(ctx, f.run, f.w, func() error { return f.w.Fail("server_error", message) })
}

// failureOf returns how the endpoint of an agent's model failed, if that ended the last run of a part of a log.
func failureOf(res *agent.Result, log []session.Entry) error {
	if end, ok := lastTurn(log); res.Why == agent.StopProviderError && !ok && end.Class != "" {
		return &endpoint.Error{Class: endpoint.Class(end.Class), Message: res.Detail}
	}
	return nil
}

// told begins the reason of parked work whose client has read that its response has ended. No worker makes such
// work ready again.
const told = "its client was told that it ended: "

// settle leaves the work of a session whose last response has ended: nothing goes on with it before the next
// request. With keep, work that is parked stays, so that its operator reads the reason. The caller has the
// lock of the session, so work that is running has lost its worker.
func (b *Backend) settle(ctx context.Context, in string, keep bool) error {
	q, err := store.As[queue.Queue](b.store(), "keep work")
	if err != nil {
		return err
	}
	for {
		row, err := q.Work(ctx, in)
		to, reason := queue.Done, "its response has ended"
		switch {
		case errors.Is(err, session.ErrNotFound):
			return nil
		case err != nil:
			return err
		case row.State == queue.Done, row.State == queue.Parked && strings.HasPrefix(row.Reason, told):
			return nil
		case row.State == queue.Parked && keep:
			to, reason = queue.Parked, told+row.Reason
		}
		if err = q.Move(ctx, row, to, reason); !errors.Is(err, queue.ErrChanged) {
			return err
		}
	}
}
