// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// A background response goes on in any server over the same store: its run is resumed
// from the log, by the one that gets the lock of the session. The note about its
// beginning has the request without its input, which the log has.

const (
	// tagBackground marks sessions that may have an unfinished background response.
	tagBackground = "responses-background"
	// mostTakenUp is how often a response is taken up. One that ends its server each time
	// fails then. D4
	mostTakenUp = 5
	// mostRefused is how often this server tries to open the agent of a response.
	mostRefused = 3
	// busyTime is how long a session that another process writes to is left alone.
	busyTime = 5 * time.Second
)

// keptRequest returns the part of a background request that the log does not have otherwise: all
// but the input, and answers to approvals.
func keptRequest(r *server.Request) (jsontext.Value, error) {
	var answers []item.Item
	for _, it := range r.Items {
		if it.Type() == item.TypeMCPApprovalResponse {
			answers = append(answers, it)
		}
	}
	list, err := listJSON(answers)
	if err != nil {
		return nil, err
	}
	object, err := r.Object.With("input", item.JSON(list))
	return jsontext.Value(object.JSON()), err
}

// Unfinished implements [server.Resumer]. A session that cannot be read hides no other.
func (b *Backend) Unfinished(ctx context.Context) (ids []string, err error) {
	var list []session.Info
	var problems []error
	for info, err := range nils.Each(b.store(), "List", b.store().List(ctx, session.Query{Tags: []string{tagBackground}, Owner: b.owner()})) {
		if err != nil {
			problems = append(problems, err)
			break
		}
		list = append(list, info)
	}
	problems = append(problems, b.sweep(ctx))
	now, there := time.Now(), make(map[string]bool, len(list))
	for _, info := range list {
		there[info.ID] = true
	}
	b.mu.Lock()
	maps.DeleteFunc(b.elsewhere, func(in string, _ elsewhere) bool { return !there[in] })
	b.mu.Unlock()
	for _, info := range list {
		if b.busy(info.ID) || b.isElsewhere(ctx, info.ID, now) {
			continue
		}
		s, err := b.read(ctx, b.store(), info.ID)
		if errors.Is(err, server.ErrNotFound) {
			continue
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		id, err := b.unfinished(ctx, s.Log())
		if id != "" {
			ids = append(ids, id)
		} else if err == nil {
			err = b.unmark(ctx, s)
		}
		problems = append(problems, err)
	}
	return ids, errors.Join(problems...)
}

// streams reports whether a request is for a stream.
func streams(request jsontext.Value) bool {
	r, err := api.ParseRequest(request)
	return err == nil && r.Stream != nil && *r.Stream
}

// unfinished returns the last response of a log if it is a background response that has
// not ended.
func unfinished(log []session.Entry) string {
	id := lastID(log)
	_, seq, _ := parseID(id)
	if p := partOf(log, seq); p.from != 0 && p.begin.ResponseID == id && goesOn(&p) && !p.ended && !p.deleted {
		return id
	}
	return ""
}

// unmark removes the mark of a session without an unfinished response. A response that
// begins meanwhile holds the lock.
func (b *Backend) unmark(ctx context.Context, s *session.Session) error {
	unlock, err := s.Lock(ctx)
	if errors.Is(err, session.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	if id, failed := b.unfinished(ctx, s.Log()); failed != nil {
		err = failed
	} else if id == "" {
		err = b.store().Label(ctx, s.ID(), session.Labels{Untag: []string{tagBackground}})
	}
	return errors.Join(err, unlock())
}

// left reports whether a run ended because its server does.
func left(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, server.ErrLeft) || errors.Is(cause, errDrained)
}

// Resume implements [server.Resumer].
func (b *Backend) Resume(ctx context.Context, id string, w *server.Writer) error {
	in, seq, ok := parseID(id)
	if !ok || w == nil {
		return server.ErrNotFound
	}
	s, err := b.read(ctx, b.store(), in)
	if err != nil {
		return leftOr(ctx, err)
	}
	if left, err := b.unfinished(ctx, s.Log()); left != id {
		return cmp.Or(err, server.ErrLeft)
	}
	p := partOf(s.Log(), seq)
	r, err := api.ParseResponse(p.begin.Response)
	if err != nil {
		return err
	}
	a, err := b.named(r.Model)
	if err != nil {
		return server.ErrLeft // by a server that has this agent
	}
	if p.begin.Queued {
		return b.takesUp(ctx, a, r, w)
	}
	req, err := api.ParseRequest(p.begin.Request)
	if err != nil {
		return fmt.Errorf("agents: the note about %s: %w", id, err)
	}
	h, err := b.openHost(ctx, a, b.store(), in, &lent{tools: req.Tools})
	if errors.Is(err, session.ErrBusy) {
		b.leaveAlone(in, "")
		return server.ErrLeft
	}
	if err != nil {
		return b.notResumed(ctx, a, r, err, b.finishLater)
	}
	run := &active{id: id, seq: seq, host: h, background: true, streams: streams(p.begin.Request), done: make(chan struct{})}
	if left, err := b.unfinished(ctx, h.Session.Log()); left != id { // somebody was faster
		b.report(h.Close())
		return cmp.Or(err, server.ErrLeft)
	}
	if err := b.enter(run); err != nil {
		b.report(h.Close())
		return server.ErrLeft
	}
	err = b.resume(ctx, a, run, req, w)
	b.leave(run, func() {})
	return leftOr(ctx, err)
}

// leaveAlone notes that another server has a session. served is the response that it serves while workers make
// it, or "".
func (b *Backend) leaveAlone(in, served string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.elsewhere == nil {
		b.elsewhere = map[string]elsewhere{}
	}
	b.elsewhere[in] = elsewhere{time.Now().Add(busyTime), served}
}

// isElsewhere reports whether another server has a session, as far as is known without reading it.
func (b *Backend) isElsewhere(ctx context.Context, in string, now time.Time) bool {
	b.mu.Lock()
	known := b.elsewhere[in]
	if !known.until.After(now) {
		delete(b.elsewhere, in)
	}
	b.mu.Unlock()
	if later := known.until.After(now); later || known.served == "" {
		return later
	}
	unlock, err := b.serves(ctx, known.served)
	if errors.Is(err, session.ErrBusy) {
		b.leaveAlone(in, known.served)
		return true
	}
	if err == nil {
		b.report(unlock())
	}
	return false
}

// leftOr returns the error of a response whose server may end.
func leftOr(ctx context.Context, err error) error {
	if err != nil && left(ctx) {
		return server.ErrLeft
	}
	return err
}

// notResumed reports that the agent of a response cannot be opened. After some attempts
// the response has failed, which write stores.
func (b *Backend) notResumed(ctx context.Context, a *Agent, r *api.Response, err error, write func(context.Context, *api.Response) error) error {
	if ctx.Err() != nil {
		return server.ErrLeft
	}
	b.report(notOpened(a, err))
	b.mu.Lock()
	if b.refused == nil {
		b.refused = map[string]int{}
	}
	b.refused[r.ID]++
	last := b.refused[r.ID] >= mostRefused
	b.mu.Unlock()
	if last {
		r.Status = item.StatusFailed
		r.Error = &api.APIError{Code: "server_error", Message: "The server that made the response ended, and the agent cannot be opened to go on."}
		r.Extra.Delete("error")
		b.report(write(ctx, r))
	}
	return server.ErrLeft
}

// resume makes the rest of a response with an open host.
func (b *Backend) resume(ctx context.Context, a *Agent, run *active, req *api.Request, w *server.Writer) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	run.end = end
	h := run.host
	earlier, taken := h.Session.Log()[:run.seq-1], 0
	before := plainState{}
	for _, e := range h.Session.Log()[run.seq:] {
		if n, ok := noteOf(e); ok && n.Kind == kindTakenUp {
			taken++
		}
		if _, ok := e.Body.(session.CallStarted); ok && req.MaxToolCalls != nil {
			req.MaxToolCalls = new(max(*req.MaxToolCalls-1, 0))
		}
		before.apply(e, run.id)
	}
	p := partOf(h.Session.Log(), run.seq)
	if run.streams {
		events, over, err := b.takeStream(ctx, run.id)
		if err != nil {
			return err
		}
		if !over {
			w.Replay(events)
		}
	}
	if p.ended {
		return b.endsAgain(run, a, req, &p, w)
	}
	if _, err := h.Session.Append(ctx, note{Kind: kindTakenUp, ResponseID: run.id}.body()); err != nil {
		return err
	}
	names, changed := clientTools(req), false
	ag, err := h.Agent(ctx) // without tokens of callers, which are not stored
	if err == nil {
		changed = p.begin.Files != "" && p.begin.Files != filesOf(ag)
	}
	if err == nil && !changed {
		names, err = adapt(ctx, ag, &server.Request{Request: req, Stored: true})
	}
	if err != nil {
		r := w.Response()
		r.ID = run.id
		return b.notResumed(ctx, a, r, err, func(ctx context.Context, r *api.Response) error { return b.ended(ctx, run, r) })
	}
	ag.Hooks, run.prices = slices.Concat(a.Hooks, ag.Hooks), ag.Prices
	s := newShown(b.inner(ctx, h.Store), w, a.Name, run.id, names, earlier)
	s.files = true
	if err := w.Begin(run.id); err != nil {
		return err
	}
	for _, e := range h.Session.Log()[run.seq:] {
		s.entry(e)
	}
	if err := b.broken(ctx, run, s, w); err != nil {
		return err
	}
	shown := len(h.Session.Log())
	switch {
	case before.cancelled:
		run.cancelled = true
		return b.closes(ctx, run, s, w, &agent.Result{}, nil)
	case before.stopped != "":
		return b.closes(ctx, run, s, w, &agent.Result{Why: before.stopped, Detail: before.detail}, nil)
	case changed:
		b.report(fmt.Errorf("agents: the response %s ends as incomplete: the file of the agent %s has changed since the response began", run.id, a.Name))
		s.finish(nil)
		return b.ends(ctx, run, w, func() error {
			return w.Interrupt("server_error", "The server stopped before the response was complete, and the file of the agent has changed since it began. What was complete is kept, and the response can be continued.")
		})
	case taken >= mostTakenUp:
		b.report(fmt.Errorf("agents: %s was taken up %d times, and its server ended each time", run.id, taken))
		s.finish(nil)
		return b.ends(ctx, run, w, func() error {
			return w.Fail("server_error", fmt.Sprintf("The server ended %d times while it made the response.", taken+1))
		})
	}
	if err := b.decideAgain(ctx, run, a, req, lastID(earlier)); err != nil {
		return b.fail(run, w, err)
	}
	for _, e := range h.Session.Log()[shown:] {
		s.entry(e)
	}
	return b.runs(ctx, run, s, w)
}

// filesOf identifies an agent's file and what it imports by their contents. A response goes on
// only with the files that it began with. D3
func filesOf(a *agent.Agent) string {
	var list []string
	for _, f := range a.Setup.Files {
		list = append(list, f.Name, f.Hash)
	}
	return session.Fingerprint(strings.Join(list, "\x00"))
}

// endsAgain writes the end of a response that the log has, and its stream has not.
func (b *Backend) endsAgain(run *active, a *Agent, req *api.Request, p *part, w *server.Writer) error {
	log := reading{in: b.inner(context.Background(), run.host.Store), log: run.host.Session.Log()}
	r, err := log.response(p)
	if err != nil {
		return err
	}
	run.ended = true
	if err := w.Begin(run.id); err != nil {
		return err
	}
	log.show(w, a.Name, clientTools(req), p)
	return w.EndAs(r)
}

// clientTools returns the names of the tools of a request.
func clientTools(req *api.Request) (names []string) {
	for _, t := range req.Tools {
		if name := nameOf(t); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// unfinished returns the last response of a log if it is a background response that has not
// ended, or whose stream has not.
func (b *Backend) unfinished(ctx context.Context, log []session.Entry) (string, error) {
	if id := unfinished(log); id != "" {
		return id, nil
	}
	id := lastID(log)
	_, seq, _ := parseID(id)
	p := partOf(log, seq)
	if p.from == 0 || p.begin.ResponseID != id || !p.begin.Background || p.deleted || !streams(p.begin.Request) {
		return "", nil
	}
	kept, over, err := b.streamed(ctx, id)
	if err != nil || over || !kept {
		return "", err
	}
	return id, nil
}

// decideAgain records the answers to approvals of the request that are not recorded yet. of
// is the response that it continues.
func (b *Backend) decideAgain(ctx context.Context, run *active, a *Agent, req *api.Request, of string) error {
	items := req.InputItems()
	if len(items) == 0 {
		return nil
	}
	pending, err := agent.PendingApprovals(ctx, run.host.Session)
	if err != nil {
		return err
	}
	var answers []answered
	for _, it := range items {
		given, err := item.As[item.MCPApprovalResponse](it)
		if err != nil {
			return err
		}
		n := slices.IndexFunc(pending, func(p agent.PendingApproval) bool {
			return approvalID(of, run.host.Session.ID(), &p) == given.ApprovalRequestID
		})
		if n >= 0 {
			answers = append(answers, answered{pending[n], given})
		}
	}
	return b.decide(ctx, run, a, answers)
}

// plainState is what the log says about the end of a run.
type plainState struct {
	asked     int64            // the last entry of a delivery
	byOther   bool             // somebody asked for the end
	stopped   agent.StopReason // why the run ended, if it did and is not to go on
	detail    string
	cancelled bool
}

func (p *plainState) apply(e session.Entry, id string) {
	switch b := e.Body.(type) {
	case session.Delivered:
		p.asked = e.Seq + int64(b.Entries)
		p.cancelled = p.cancelled || cancels(e, id)
	case session.StopAsked:
		p.byOther = p.byOther || e.Seq <= p.asked
	case session.RunStarted:
		p.stopped = ""
	case session.Stopped:
		p.stopped, p.detail = agent.StopReason(b.Why), b.Detail
		if why := p.stopped; (why == agent.StopCancelled || why == agent.StopRequested) && !p.byOther {
			p.stopped = "" // its server ended
		}
	}
}

var _ server.Resumer = (*Backend)(nil)
