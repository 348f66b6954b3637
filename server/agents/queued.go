// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/nils"
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
	// errBroken is that of one that could not be left as work, or not be followed.
	errBroken = errors.New("the store failed")
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
		if m, ok := t.(*item.MCPTool); ok && !namesAgent(m, r.Model) {
			return server.Invalid("unsupported_value", fmt.Sprintf("tools[%d]", i), "Unsupported value: workers make the responses of this server, and the token of a caller is not stored for them.")
		} else if ok {
			continue
		}
		if _, err := clientTool(t); err != nil {
			return wrongTool(i, err)
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

// taken returns an error if a tool of a request has the name of a tool that the agent's file declares. Those of MCP servers
// are known to workers alone.
func (b *Backend) taken(ctx context.Context, a *Agent, h *host.Host, r *api.Request) error {
	if len(clientTools(r)) == 0 {
		return nil
	}
	shown, err := host.Preview(ctx, h.File, h.Store, h.Session, host.FrontEnd{})
	if err != nil {
		return b.unopened(a, err)
	}
	set, err := shown.ToolSet(ctx)
	if err != nil {
		return err
	}
	for i, def := range r.Tools {
		if err := taken(set, i, def); err != nil {
			return err
		}
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
	return nils.Lock(ctx, b.store(), fmt.Sprintf("%s/%d-.served", in, seq))
}

// queues leaves a response that has begun to a worker, and shows what that does.
func (b *Backend) queues(ctx context.Context, a *Agent, run *active, s *shown, w *server.Writer, r *api.Request) error {
	f, err := b.follower(run, s, w, int64(len(run.host.Session.Log())))
	if f.live = r.Stream != nil && *r.Stream; err == nil && f.live {
		err = f.store.Create(ctx, session.Info{ID: deltasID(f.in, run.seq), Parent: f.in, At: run.seq, Nested: true, Owner: b.owner(), Tags: []string{tagEvents}})
	}
	if err != nil {
		return b.fail(run, w, err)
	}
	if err := b.settle(ctx, run.host.Session.ID(), false); err != nil { // otherwise work that has lost its worker goes on with its own file
		return b.fail(run, w, err)
	}
	if err := b.release(run); err != nil { // before a worker looks for it
		return err
	}
	if err := b.leaves(ctx, a, run); err != nil {
		if ctx.Err() == nil {
			b.report(err)
		}
		return f.halt(failing(ctx, errBroken))
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
	_, err = worker.Submit(ctx, worker.Job{Config: cfg, ByID: true, Tenant: info.Owner, Upgrade: true})
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

// takesUp goes on with a response of a server that has ended.
func (b *Backend) takesUp(ctx context.Context, a *Agent, r *api.Response, w *server.Writer) error {
	id := r.ID
	unlock, err := b.serves(ctx, id)
	if errors.Is(err, session.ErrBusy) { // its server lives
		in, _, _ := parseID(id)
		b.leaveAlone(in, id)
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
	ctx, run.end = context.WithCancelCause(ctx)
	defer run.end(nil)
	if err := b.enter(run); err != nil {
		return server.ErrLeft
	}
	defer b.leave(run, func() {})
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
	if run.cancelled, err = wasCancelled(ctx, s, id); err != nil {
		return leftOr(ctx, err)
	}
	if !run.background {
		run.end(errOrphan)
	} else if run.cancelled {
		run.end(server.ErrCancelled)
	} else if again, err := b.unleft(ctx, a, run, req); err != nil {
		return leftOr(ctx, err)
	} else if again {
		if err := b.leaves(ctx, a, run); err != nil { // its file, usually
			return b.notResumed(ctx, a, r, err, b.finishLater)
		}
	}
	if err := w.Begin(id); err != nil && ctx.Err() == nil {
		return leftOr(ctx, err)
	}
	shows := newShown(b.inner(ctx, b.store()), w, a.Name, id, clientTools(req), s.Log()[:seq-1])
	shows.files = true
	for _, e := range s.Log()[seq:] {
		shows.entry(e)
	}
	f, err := b.follower(run, shows, w, int64(len(s.Log())))
	if err != nil {
		return leftOr(ctx, err)
	}
	f.live = streams(p.begin.Request)
	return leftOr(ctx, f.follow(ctx))
}

// unleft reports whether the server of a response ended before it left it as work, perhaps before it had recorded the
// answers of the request. It records them.
func (b *Backend) unleft(ctx context.Context, a *Agent, run *active, req *api.Request) (bool, error) {
	q, err := store.As[queues](b.store(), "keep work")
	if err != nil {
		return false, err
	}
	log := run.host.Session.Log()[run.seq:]
	row, err := q.Work(ctx, run.host.Session.ID())
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return false, err
	}
	if _, stopped := stopOf(log); err == nil && (stopped || row.State != queue.Done) || runOf(log) > 0 {
		return false, nil
	}
	s, unlock, err := b.locked(ctx, run.host.Session.ID())
	if err != nil {
		b.report(err)
		return false, server.ErrLeft
	}
	run.host = &host.Host{Session: s, Store: b.store()}
	err = b.decideAgain(ctx, run, a, req, lastID(s.Log()[:run.seq-1]))
	return true, errors.Join(err, unlock())
}

// Prepare gives the agent of a session what the request of its last response asks for, before a
// worker runs it: see [worker.Worker]. The error wraps [worker.ErrOver] if that response has ended. A
// session that no response is made in is left as it is. What live is told of the run reaches the client of a
// stream; live is nil if no such client is there.
func Prepare(ctx context.Context, h *host.Host) (live func(agent.Event), err error) {
	if h == nil || h.Session == nil {
		return nil, errors.New("agents: Prepare needs an open host")
	}
	log := h.Session.Log()
	_, seq, _ := parseID(lastID(log))
	p := partOf(log, seq)
	switch {
	case p.from == 0 || !p.begin.Queued:
		return nil, nil
	case p.ended || p.deleted:
		return nil, fmt.Errorf("the response %s has ended: %w", p.begin.ResponseID, worker.ErrOver)
	}
	cancelled, err := wasCancelled(ctx, h.Session, p.begin.ResponseID)
	if cancelled {
		err = fmt.Errorf("the response %s was cancelled: %w", p.begin.ResponseID, worker.ErrOver)
	}
	if err != nil {
		return nil, err
	}
	req, err := api.ParseRequest(p.begin.Request)
	if err != nil {
		return nil, fmt.Errorf("agents: the note about %s: %w", p.begin.ResponseID, err)
	}
	for _, e := range log[p.from:] {
		if _, ok := e.Body.(session.CallStarted); ok && req.MaxToolCalls != nil {
			req.MaxToolCalls = new(max(*req.MaxToolCalls-1, 0))
		}
	}
	ag, err := h.Agent(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := adapt(ctx, ag, &server.Request{Request: req, Stored: true}); err != nil {
		return nil, &host.ConfigError{Err: err} // another attempt changes nothing
	}
	if req.Stream == nil || !*req.Stream {
		return nil, nil
	}
	return keepDeltas(ctx, h, p.begin.ResponseID)
}
