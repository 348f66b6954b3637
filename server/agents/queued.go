// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/store"
	"github.com/antiphon-go/antiphon/worker"
)

// With Backend.Queue, workers make the runs. The server writes the beginning of a response and its
// input into the session, and leaves the session as work. Then it reads the log as the worker
// writes it, shows it by the code that shows a run of its own, and writes the end when the queue
// says that the run has ended. So what a worker is, where it runs and how often it dies makes
// no difference to the client.
//
// The server that serves a response holds a lock beside the session, because the worker holds the
// session itself. If the server dies, another one finds the lock free: it goes on with a
// background response, and stops the run of one whose client is gone with the server.

const (
	// rowPause is the time between two looks at the row of work. When a run has ended, its worker
	// usually gives the work up at once: then soonLooks looks have endPause between them.
	rowPause  = time.Second
	endPause  = 20 * time.Millisecond
	soonLooks = 25
	// noWorkerTime is how long a client waits while no worker runs.
	noWorkerTime = 10 * time.Second
	// askAgain is the pause after which a run is asked again to stop.
	askAgain = 500 * time.Millisecond
)

var (
	// errOrphan is the cause of the end of a run whose client was gone with its server.
	errOrphan = errors.New("the server of the response ended")
	// errNoWorker is that of one while no worker runs.
	errNoWorker = errors.New("no worker runs")
	// errNotLeft is that of one that could not be left as work.
	errNotLeft = errors.New("the response could not be left as work")
)

// queues are the abilities of a store whose runs workers make.
type queues interface {
	store.Store
	session.Watcher
	session.Inbox
	queue.Queue
}

// unqueued returns an error for what a request asks for and a worker does not do. V1
func (b *Backend) unqueued(ctx context.Context, a *Agent, r *server.Request) error {
	if !r.Stored {
		return server.Invalid("unsupported_value", "store", "Unsupported value: workers make the responses of this server, so 'store' cannot be false, and Chat Completions are not served.")
	}
	for i, t := range r.Tools {
		if m, ok := t.(*item.MCPTool); !ok || !namesAgent(m, r.Model) {
			return server.Invalid("unsupported_value", fmt.Sprintf("tools[%d]", i), "Unsupported value: workers make the responses of this server. They run the agent's own tools, and neither tools of the request nor servers with the caller's token.")
		}
	}
	in, err := store.As[queues](b.store(), "keep work")
	if err != nil {
		return err
	}
	cfg := a.Config
	cfg.Trust = nil // the operator of the worker is asked
	if _, _, err := host.Pack(ctx, cfg); err != nil {
		return b.unopened(a, err)
	}
	if r.Background != nil && *r.Background {
		return nil // it waits for a worker
	}
	if none, err := noWorker(ctx, in); none || err != nil {
		if err != nil {
			return err
		}
		return &server.Error{Status: http.StatusServiceUnavailable, Code: "no_worker", Message: "No worker runs that could make the response. A response with 'background' waits for one.", Header: http.Header{"Retry-After": {"15"}}}
	}
	return nil
}

// noWorker reports whether it is certain that no worker runs.
func noWorker(ctx context.Context, in store.Store) (bool, error) {
	cards, known, err := worker.Running(ctx, in)
	return known && len(cards) == 0, err
}

// serves locks what only the server that serves a response locks.
func (b *Backend) serves(ctx context.Context, id string) (unlock func() error, err error) {
	in, seq, _ := parseID(id)
	return b.store().Lock(ctx, fmt.Sprintf("%s/%d-.served", in, seq))
}

// queues leaves a response that has begun to a worker, and shows what that does.
func (b *Backend) queues(ctx context.Context, a *Agent, run *active, s *shown, w *server.Writer) error {
	f, err := b.follower(run, s, w, int64(len(run.host.Session.Log())))
	if err != nil {
		return b.fail(run, w, err)
	}
	if err := b.release(run); err != nil { // before a worker looks for it
		return err
	}
	if err := b.leaves(ctx, a, run); err != nil {
		if ctx.Err() == nil {
			b.report(err)
		}
		return f.halt(failing(ctx, errNotLeft))
	}
	return f.follow(ctx)
}

// leaves leaves a response that has begun as work. The file is the one that the agent has now, as for a run
// that the server makes.
func (b *Backend) leaves(ctx context.Context, a *Agent, run *active) error {
	in := run.host.Session.ID()
	info, err := b.info(ctx, b.store(), in)
	if err != nil {
		return err
	}
	cfg := a.Config
	cfg.Store, cfg.Session, cfg.Owner, cfg.Tags = b.store(), in, info.Owner, nil
	receipt, err := worker.Submit(ctx, worker.Job{Config: cfg, Tenant: info.Owner, Upgrade: true})
	if err == nil && receipt.Session.ID != in {
		err = fmt.Errorf("agents: the work of %s went to the session %s", run.id, receipt.Session.ID)
	}
	return err
}

// release closes the host of a response that a worker goes on with.
func (b *Backend) release(run *active) error {
	run.away = true
	err := run.host.Close()
	s, opened := session.Open(context.Background(), b.store(), run.host.Session.ID())
	if opened == nil {
		run.host = &host.Host{Session: s, Store: b.store()}
	}
	return errors.Join(err, opened)
}

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
	soon  int       // how many looks follow soon, because a run has ended
	busy  time.Time // when a worker ran last
}

func (f *follower) follow(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	entries, failed := make(chan session.Entry), make(chan error, 1)
	go func() {
		defer close(entries)
		for e, err := range f.store.Watch(watching, f.in, f.shown) {
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
				return f.failed(errors.Join(errors.New("agents: the log of a worker cannot be watched"), first(failed)))
			}
			if f.show(e); f.soon > 0 {
				look.Reset(endPause)
			}
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
func (f *follower) failed(err error) error {
	if f.run.background {
		f.b.report(err)
		return server.ErrLeft
	}
	return f.b.fail(f.run, f.w, err)
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
	f.run.cancelled = f.run.cancelled || cancels(e, f.run.id)
	f.s.entry(e)
}

// look looks at the row of work. It reports done when the response has ended.
func (f *follower) look(ctx context.Context) (done bool, err error) {
	row, err := f.store.Work(ctx, f.in)
	if err != nil {
		return f.unseen(ctx, err)
	}
	if underWay(row) {
		if f.run.background { // it waits for a worker
			return false, nil
		}
		none, err := noWorker(ctx, f.store)
		if err != nil || !none {
			f.busy = time.Now()
		}
		if time.Since(f.busy) > noWorkerTime {
			return true, f.halt(failing(ctx, errNoWorker))
		}
		return false, nil
	}
	log, unlock, err := f.b.locked(ctx, f.in)
	if errors.Is(err, errLocked) { // somebody has it open for a while
		return false, nil
	}
	if err != nil {
		return f.unseen(ctx, err)
	}
	row, err = f.store.Work(ctx, f.in)
	if err == nil && underWay(row) { // something was delivered meanwhile
		return false, unlock()
	}
	if err == nil {
		err = f.end(ctx, log, row)
	}
	f.b.report(unlock())
	return true, err
}

// unseen is the result of a look that failed. If somebody has ended the response meanwhile, that is
// no failure: follow stops the run.
func (f *follower) unseen(ctx context.Context, err error) (done bool, _ error) {
	if ctx.Err() != nil {
		return false, nil
	}
	return true, f.failed(err)
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
	key := "end of " + f.run.id
	if f.b.mu.Lock(); f.run.decided != nil { // its client has read that it is cancelled, also if this server ends now
		key = cancelKey(f.run.id)
	}
	f.b.mu.Unlock()
	log, unlock, err := f.b.halted(context.WithoutCancel(ctx), f.in, key)
	if err != nil {
		f.b.report(fmt.Errorf("agents: the run of %s cannot be stopped: %w", f.run.id, err))
		return err
	}
	row, err := f.store.Work(context.WithoutCancel(ctx), f.in)
	if err == nil || errors.Is(err, session.ErrNotFound) {
		err = f.end(ctx, log, row)
	}
	f.b.report(unlock())
	return err
}

// halted stops the run of a session, and locks the session. key is that of the first delivery that
// asks for it.
func (b *Backend) halted(ctx context.Context, in, key string) (s *session.Session, unlock func() error, err error) {
	ctx, stop := context.WithTimeout(ctx, lockTime)
	defer stop()
	var asked time.Time
	for n := 0; ; {
		if s, err = b.read(ctx, b.store(), in); err != nil {
			return nil, nil, err
		}
		if unlock, err = s.Lock(ctx); !errors.Is(err, session.ErrBusy) {
			return s, unlock, err
		}
		// The request is for this run alone: it cannot stop a later one. A run that has only just begun
		// may not know its number yet, and overlooks it.
		if run := runOf(s.Log()); run > 0 && time.Since(asked) > askAgain {
			d := session.Delivery{Delivered: session.Delivered{Key: key, From: "the server"}, Bodies: []session.Body{session.StopAsked{Run: run, Detail: "its client does not wait for it any more"}}}
			n, asked, key = n+1, time.Now(), fmt.Sprintf("end of run %d: %d", run, n+1)
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

// end writes the end of a response whose run has ended. The caller has the lock of the session.
// ctx has ended if somebody ended the response.
func (f *follower) end(ctx context.Context, log *session.Session, row queue.Work) error {
	f.run.host, f.run.away = &host.Host{Session: log, Store: f.store}, false
	defer func() { f.run.away = true }()
	for _, e := range log.Log()[min(f.shown, int64(len(log.Log()))):] {
		f.show(e)
	}
	res, stopped := stopOf(log.Log()[f.run.seq:])
	p := partOf(log.Log(), f.run.seq)
	f.w.Usage(usageOf(log.Log()[f.run.seq:])) // it counts however the response ends
	f.w.Cost, f.w.Model = pricesOf(log.Log()[f.run.seq:])
	var err error
	switch why := context.Cause(ctx); {
	case p.ended: // by another server
		f.run.ended = true
		var r *api.Response
		if r, err = responseOf(f.b.inner(ctx, f.store), log.Log(), &p); err == nil {
			f.s.finish(nil)
			err = f.w.EndAs(r)
		}
	case errors.Is(why, errNotLeft):
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
	case why == nil && row.State == queue.Parked && stopped && res.Why == agent.StopCancelled:
		f.s.finish(nil)
		err = f.b.ends(ctx, f.run, f.w, func() error {
			return f.w.Interrupt("server_error", "The agent stopped before its answer: an operator stopped it.")
		})
	case why == nil && row.State == queue.Parked && !stopped:
		err = f.parked(ctx, row)
	default:
		err = f.b.closes(ctx, f.run, f.s, f.w, res, nil)
	}
	return errors.Join(err, f.settle(context.WithoutCancel(ctx), row))
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
	f.b.report(fmt.Errorf("agents: the work of %s is parked: %s", f.run.id, row.Reason))
	f.s.finish(nil)
	f.run.parked = true
	message := "The agent failed at its worker. The operator finds the reason with antiphon work status."
	if worker.Lacks(row) != "" {
		message = "No worker can run the agent. The operator finds with antiphon work status what is missing."
	}
	return f.b.ends(ctx, f.run, f.w, func() error { return f.w.Fail("server_error", message) })
}

// told begins the reason of parked work whose client has read that it failed. No worker makes such
// work ready again.
const told = "its client was told that it failed: "

// settle leaves the work of a response that has ended: nothing goes on with it before the next
// request. Work that is parked stays, so that its operator reads the reason.
func (f *follower) settle(ctx context.Context, row queue.Work) error {
	for {
		to, reason := queue.Done, "its response has ended"
		switch {
		case row.Session == "" || row.State == queue.Done || !f.run.ended:
			return nil
		case row.State == queue.Parked && strings.HasPrefix(row.Reason, told):
			return nil
		case row.State == queue.Parked && f.run.parked:
			to, reason = queue.Parked, told+row.Reason
		}
		err := f.store.Move(ctx, row, to, reason)
		if !errors.Is(err, queue.ErrChanged) {
			return err
		}
		if row, err = f.store.Work(ctx, f.in); errors.Is(err, session.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// takesUp goes on with a response of a server that has ended.
func (b *Backend) takesUp(ctx context.Context, a *Agent, id string, w *server.Writer) error {
	unlock, err := b.serves(ctx, id)
	if errors.Is(err, session.ErrBusy) { // its server lives
		in, _, _ := parseID(id)
		b.leaveAlone(in)
		return server.ErrLeft
	}
	if err != nil {
		return leftOr(ctx, err)
	}
	defer func() { b.report(unlock()) }()
	in, seq, _ := parseID(id)
	s, err := b.read(ctx, b.store(), in)
	if err != nil {
		return leftOr(ctx, err)
	}
	if left, err := b.unfinished(ctx, s.Log()); left != id || err != nil { // somebody was faster
		return errors.Join(err, server.ErrLeft)
	}
	p := partOf(s.Log(), seq)
	req, err := api.ParseRequest(p.begin.Request)
	if err != nil {
		return fmt.Errorf("agents: the note about %s: %w", id, err)
	}
	run := &active{id: id, seq: seq, host: &host.Host{Session: s, Store: b.store()}, queued: true, away: true, background: p.begin.Background, streams: p.begin.Background && streams(p.begin.Request), done: make(chan struct{})}
	if err := b.enter(run); err != nil {
		return server.ErrLeft
	}
	defer b.leave(run, func() {})
	ctx, run.end = context.WithCancelCause(ctx)
	defer run.end(nil)
	if run.streams {
		events, over, err := b.takeStream(ctx, id)
		if err != nil {
			return leftOr(ctx, err)
		}
		if !over {
			w.Replay(events)
		}
	}
	if p.ended {
		return leftOr(ctx, b.endsAgain(run, a, req, &p, w))
	}
	if !run.background {
		run.end(errOrphan)
	} else if err := b.leftAsWork(ctx, a, run); err != nil {
		return leftOr(ctx, err)
	}
	if err := w.Begin(id); err != nil && ctx.Err() == nil {
		return leftOr(ctx, err)
	}
	shows := newShown(b.inner(ctx, b.store()), w, a.Name, id, nil, s.Log()[:seq-1])
	shows.files = true
	for _, e := range s.Log()[seq:] {
		run.cancelled = run.cancelled || cancels(e, id)
		shows.entry(e)
	}
	f, err := b.follower(run, shows, w, int64(len(s.Log())))
	if err != nil {
		return leftOr(ctx, err)
	}
	return leftOr(ctx, f.follow(ctx))
}

// leftAsWork leaves a response as work whose server ended before it did so.
func (b *Backend) leftAsWork(ctx context.Context, a *Agent, run *active) error {
	q, err := store.As[queues](b.store(), "keep work")
	if err != nil {
		return err
	}
	log := run.host.Session.Log()[run.seq:]
	row, err := q.Work(ctx, run.host.Session.ID())
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return err
	}
	if _, stopped := stopOf(log); err == nil && (stopped || row.State != queue.Done) || runOf(log) > 0 {
		return nil
	}
	return b.leaves(ctx, a, run)
}

// Prepare gives the agent of a session what the request of its last response asks for, before a
// worker runs it: see [worker.Worker]. The error wraps [worker.ErrOver] if that response has ended. A
// session that no response is made in is left as it is.
func Prepare(ctx context.Context, h *host.Host) error {
	if h == nil || h.Session == nil {
		return errors.New("agents: Prepare needs an open host")
	}
	log := h.Session.Log()
	_, seq, _ := parseID(lastID(log))
	p := partOf(log, seq)
	switch {
	case p.from == 0 || !p.begin.Queued:
		return nil
	case p.ended || p.deleted:
		return fmt.Errorf("the response %s has ended: %w", p.begin.ResponseID, worker.ErrOver)
	}
	req, err := api.ParseRequest(p.begin.Request)
	if err != nil {
		return fmt.Errorf("agents: the note about %s: %w", p.begin.ResponseID, err)
	}
	for _, e := range log[p.from:] {
		if _, ok := e.Body.(session.CallStarted); ok && req.MaxToolCalls != nil {
			req.MaxToolCalls = new(max(*req.MaxToolCalls-1, 0))
		}
	}
	ag, err := h.Agent(ctx)
	if err != nil {
		return err
	}
	if _, err := adapt(ctx, ag, &server.Request{Request: req, Stored: true}); err != nil {
		return &host.ConfigError{Err: err} // another attempt changes nothing
	}
	return nil
}
