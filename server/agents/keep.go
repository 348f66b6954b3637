// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/kept"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// interrupted is what clients read about a response whose server ended.
const interrupted = "The server stopped before the response was complete. What was complete is kept, and the response can be continued."

// Put implements [server.Store]. The first Put of a response writes its beginning, and the
// last one its end, unless the response is still being ended here.
func (b *Backend) Put(ctx context.Context, rec server.StoredObject) error {
	if rec.Conversation != nil {
		return b.putConversation(ctx, rec)
	}
	if rec.Response == nil {
		return errors.New("agents: neither a response nor a conversation")
	}
	b.mu.Lock()
	run := b.active[rec.Response.ID]
	b.mu.Unlock()
	final := ended(rec.Response)
	switch {
	case run != nil && run.seq == 0:
		return b.begin(ctx, run, rec.Response, rec.Background)
	case run != nil && rec.Response.Status == item.StatusCancelled: // the run is told, and writes the end
		if run.queued { // also if this server ends before the worker has read it
			if err := b.asksEnd(ctx, run.id); err != nil && !errors.Is(err, server.ErrNotFound) { // deleted at another server
				return err
			}
		}
		b.mu.Lock()
		run.decided = &rec
		b.mu.Unlock()
		return nil
	case run != nil && final:
		return b.ended(ctx, run, rec.Response)
	case run != nil:
		return nil
	}
	return b.finishLater(ctx, rec.Response)
}

func ended(r *api.Response) bool {
	switch r.Status {
	case "", item.StatusQueued, item.StatusInProgress:
		return false
	}
	return true
}

// begin writes the beginning of a response and what its request adds to the session. The
// host holds the session.
func (b *Backend) begin(ctx context.Context, run *active, r *api.Response, background bool) error {
	head, err := headOf(r)
	if err != nil {
		return err
	}
	n := note{Kind: kindBegin, ResponseID: run.id, Response: head, Background: background, Queued: run.queued, Request: run.request}
	if background || run.queued {
		caller, _ := server.CallerOf(ctx)
		n.Key, n.KeyID, n.Files = caller.Key, caller.KeyID, run.files
		if err := run.host.Store.Label(ctx, run.host.Session.ID(), session.Labels{Tags: []string{tagBackground}}); err != nil {
			return err
		}
	}
	if background {
		if err := b.owe(ctx, run.id); err != nil {
			return err
		}
	}
	bodies := []session.Body{n.body()}
	between, err := saidBetween(ctx, run.host.Session)
	if err != nil {
		return err
	}
	bodies = slices.Concat(bodies, between, run.input)
	if lastID(run.host.Session.Log()) != "" {
		taken, err := lapsed(ctx, run.host.Session, stops(run.host.Session))
		if err != nil { // an earlier request to stop would end this response
			return err
		}
		bodies = append(bodies, taken...)
	}
	entries, err := run.host.Session.Append(ctx, bodies...)
	if err != nil {
		return err
	}
	if err := b.stillNamed(ctx, run.id); err != nil {
		_, gone := run.host.Session.Append(context.WithoutCancel(ctx), note{Kind: kindDeleted, ResponseID: run.id}.body())
		return errors.Join(err, gone)
	}
	run.seq = entries[0].Seq
	return nil
}

// saidBetween returns the entries that take out of the inbox what was said after the last response, so that it comes
// before the input of the next one. While a call is open, what waits is left to the run, which takes it behind the output.
func saidBetween(ctx context.Context, s *session.Session) (bodies []session.Body, _ error) {
	if lastID(s.Log()) == "" {
		return nil, nil
	}
	for d, err := range s.Deliveries(ctx) {
		if err != nil {
			return nil, err
		}
		said := !d.Queued && !slices.ContainsFunc(d.Bodies, func(b session.Body) bool {
			in, ok := b.(session.InputItem)
			return !ok || in.Item.Type() != item.TypeMessage || in.Item.Role() != item.RoleUser
		})
		if said {
			d.Entries = len(d.Bodies)
			bodies = append(append(bodies, d.Delivered), d.Bodies...)
		}
	}
	if len(bodies) == 0 || callsOpen(s) {
		return nil, nil
	}
	return bodies, nil
}

// callsOpen reports whether a call of a session has no output yet.
func callsOpen(s *session.Session) bool {
	var view session.View
	for e := range s.Entries() {
		view.Apply(e)
	}
	return len(view.Open()) > 0
}

// ended writes the end of a response. The host holds the session.
func (b *Backend) ended(ctx context.Context, run *active, r *api.Response) error {
	if run.ended || run.seq == 0 {
		return nil
	}
	if run.away {
		return fmt.Errorf("%w: a worker has the session", server.ErrLeft)
	}
	n, err := endOf(run.id, r)
	if err != nil {
		return err
	}
	n.Asked = run.asked
	ctx = context.WithoutCancel(ctx)
	bodies := []session.Body{n.body()}
	if run.background || run.queued {
		bodies = b.alsoLapsed(ctx, run.host.Session, n.body())
	}
	if _, err = run.host.Session.Append(ctx, bodies...); err == nil {
		run.ended = true
		if (run.background || run.queued) && !run.streams { // otherwise the events come first
			b.report(run.host.Store.Label(ctx, run.host.Session.ID(), session.Labels{Untag: []string{tagBackground}}))
		}
	} else if run.background && errors.Is(err, session.ErrLost) {
		err = fmt.Errorf("%w: %w", server.ErrLeft, err)
	}
	return err
}

// endOf returns the note for the end of a response.
func endOf(id string, r *api.Response) (note, error) {
	head, err := headOf(r)
	return note{Kind: kindEnd, ResponseID: id, Response: head, Asks: new(kept.Asks(r.Output))}, err
}

// finishLater writes the end of a response that is not being made here any more.
func (b *Backend) finishLater(ctx context.Context, r *api.Response) error {
	in, seq, ok := parseID(r.ID)
	if !ok {
		return server.ErrNotFound
	}
	s, unlock, err := b.locked(ctx, in)
	if err != nil {
		return err
	}
	if p := partOf(s.Log(), seq); p.from != 0 && !p.ended {
		err = b.endsAs(ctx, s, &p, r)
	}
	return errors.Join(err, unlock())
}

// endsAs writes the end of a response that nobody makes. The caller has the lock of the session.
func (b *Backend) endsAs(ctx context.Context, s *session.Session, p *part, r *api.Response) error {
	n, err := endOf(r.ID, r)
	if err != nil {
		return err
	}
	if _, err = s.Append(ctx, b.alsoLapsed(ctx, s, n.body())...); err == nil && p.begin.Queued {
		b.report(b.settle(ctx, s.ID(), false))
	}
	return err
}

// locked opens a stored session for writing. It waits while another writer has it.
func (b *Backend) locked(ctx context.Context, in string) (*session.Session, func() error, error) {
	s, err := b.read(ctx, b.store(), in)
	if err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithTimeout(ctx, lockTime)
	defer stop()
	unlock, err := s.WaitLock(ctx)
	if errors.Is(err, session.ErrBusy) {
		err = errLocked
	}
	return s, unlock, err
}

// lockNow locks a stored session, unless another writer has it.
func (b *Backend) lockNow(ctx context.Context, in string) (*session.Session, func() error, error) {
	s, err := b.read(ctx, b.store(), in)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := s.Lock(ctx)
	if errors.Is(err, session.ErrBusy) {
		err = errLocked
	}
	return s, unlock, err
}

// lockTime is how long a request waits for a session that is written to.
const lockTime = 10 * time.Second

// read opens a session that this package made, to read it.
func (b *Backend) read(ctx context.Context, in store.Store, id string) (*session.Session, error) {
	if _, err := b.info(ctx, in, id); err != nil {
		return nil, err
	}
	return session.Open(ctx, in, id)
}

// info describes a session. One of another owner is not found. V3
func (b *Backend) info(ctx context.Context, in store.Store, id string) (session.Info, error) {
	info, err := in.Info(ctx, id)
	if errors.Is(err, session.ErrNotFound) || err == nil && b.Owner != "" && info.Owner != b.Owner {
		return session.Info{}, server.ErrNotFound
	}
	return info, err
}

// Get implements [server.Store].
func (b *Backend) Get(ctx context.Context, id string) (rec server.StoredObject, err error) {
	if strings.HasPrefix(id, "conv_") {
		return b.getConversation(ctx, id)
	}
	in, seq, ok := parseID(id)
	if !ok {
		return rec, server.ErrNotFound
	}
	s, err := b.read(ctx, b.store(), in)
	if err != nil {
		return rec, err
	}
	p := partOf(s.Log(), seq)
	if p.from == 0 || p.deleted || p.begin.ResponseID != id {
		return rec, server.ErrNotFound
	}
	if !p.ended && !b.busy(in) && (!goesOn(&p) || !p.last) {
		if s, err = b.recover(ctx, s, id, &p); err != nil {
			return rec, err
		}
	}
	if rec.Response, err = responseOf(b.inner(ctx, b.store()), s.Log(), &p); err != nil {
		return rec, err
	}
	rec.Background = p.begin.Background
	if rec.Background {
		rec.Streamed = streams(p.begin.Request)
		rec.Caller = server.Caller{Project: b.Owner, Key: p.begin.Key, KeyID: p.begin.KeyID}
	}
	return rec, nil
}

// goesOn reports whether another server goes on with a response whose server ended, or ends it.
func goesOn(p *part) bool { return p.begin.Background || p.begin.Queued }

// recover ends a response whose process ended before it did: nobody has its session
// open. It changes nothing if another process makes it. V2
func (b *Backend) recover(ctx context.Context, s *session.Session, id string, p *part) (*session.Session, error) {
	if !p.last { // another response followed; it is not written to any more
		p.end.Response = p.begin.Response
		return s, nil
	}
	unlock, err := s.Lock(ctx)
	if errors.Is(err, session.ErrBusy) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if *p = partOf(s.Log(), p.from); !p.ended && p.last {
		r, err := api.ParseResponse(p.begin.Response)
		if err == nil {
			interrupt(r)
			var n note
			if n, err = endOf(id, r); err == nil {
				_, err = s.Append(context.WithoutCancel(ctx), n.body())
			}
		}
		if err != nil {
			return s, errors.Join(err, unlock())
		}
		*p = partOf(s.Log(), p.from)
	}
	return s, unlock()
}

// interrupt sets the state of a response whose server ended.
func interrupt(r *api.Response) {
	r.Status = item.StatusIncomplete
	r.Error = &api.APIError{Code: "server_error", Message: interrupted}
	r.Extra.Delete("error")
}

// responseOf makes a response again from its log.
func responseOf(in inner, log []session.Entry, p *part) (*api.Response, error) {
	return (&reading{in: in, log: log}).response(p)
}

// reading makes responses again from a log, in their order, in one pass over it.
type reading struct {
	in     inner
	log    []session.Entry
	at     int64 // how many of the entries are in before
	before before
}

func (r *reading) response(p *part) (*api.Response, error) {
	head := p.begin.Response
	if p.ended {
		head = p.end.Response
	}
	made, err := api.ParseResponse(head)
	if err != nil {
		return nil, fmt.Errorf("agents: the note about %s: %w", p.begin.ResponseID, err)
	}
	switch {
	case !p.ended && !p.last:
		interrupt(made)
	case !p.ended && made.Status == item.StatusQueued:
		made.Status = item.StatusInProgress
	}
	w := server.NewWriter(api.Response{ID: p.begin.ResponseID}, func(api.Event) error { return nil })
	_ = w.Begin("")
	r.show(w, made.Model, clientNames(made), p)
	made.Output = w.Response().Output
	return made, nil
}

// show writes what clients see of a response.
func (r *reading) show(w *server.Writer, label string, names []string, p *part) {
	for _, e := range r.log[r.at:p.from] {
		r.before.add(e)
	}
	r.at = p.from
	s := shownAfter(r.in, w, label, p.begin.ResponseID, names, &r.before)
	s.files = true
	for _, e := range r.log[p.from:p.to] {
		s.entry(e)
	}
	if p.ended {
		s.finish(nil)
		for _, it := range p.end.requests() {
			_ = w.Item(it)
		}
	}
}

// clientNames returns the names of the tools that the request of a response declared.
func clientNames(r *api.Response) (names []string) {
	tools, err := r.ToolList()
	if err != nil {
		return nil
	}
	for _, t := range tools {
		if name := nameOf(t); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Waiting implements [server.Keeper].
func (b *Backend) Waiting(ctx context.Context, id string) (calls []item.Item, err error) {
	var in store.Store
	var sess string
	var seq int64
	if talk, ok := conversationSession(id); ok {
		in, sess = b.store(), talk
	} else if in, sess, seq, err = b.find(id); err != nil {
		return nil, err
	}
	s, err := b.read(ctx, in, sess)
	if errors.Is(err, server.ErrNotFound) && seq == 0 {
		return nil, nil // no agent has answered in the conversation
	}
	if err != nil {
		return nil, err
	}
	log := s.Log()
	if seq == 0 {
		_, seq, _ = parseID(lastID(log))
	}
	p := partOf(log, seq)
	if p.from == 0 {
		return nil, nil
	}
	r, err := responseOf(b.inner(ctx, in), log, &p)
	if err != nil {
		return nil, err
	}
	for _, it := range r.Output {
		if it.IsCall() {
			calls = append(calls, it)
		}
	}
	return calls, nil
}

// Items implements [server.Store].
func (b *Backend) Items(ctx context.Context, id string) ([]item.Item, error) {
	if talk, ok := conversationSession(id); ok {
		return b.conversationItems(ctx, id, talk)
	}
	in, seq, ok := parseID(id)
	if !ok {
		return nil, server.ErrNotFound
	}
	s, err := b.read(ctx, b.store(), in)
	if err != nil {
		return nil, err
	}
	p := partOf(s.Log(), seq)
	if p.from == 0 || p.deleted || p.begin.ResponseID != id {
		return nil, server.ErrNotFound
	}
	items, err := visible(b.inner(ctx, b.store()), s.Log()[:p.from-1])
	return append(items, inputOf(s.Log()[p.from:p.to])...), err
}

// visible returns what clients see of a log: the input and the output of its responses.
func visible(in inner, log []session.Entry) (items []item.Item, err error) {
	all := reading{in: in, log: log}
	for _, p := range partsOf(log) {
		r, err := all.response(&p)
		if err != nil {
			return nil, err
		}
		items = append(append(items, inputOf(log[p.from:p.to])...), r.Output...)
	}
	return items, nil
}

// inputOf returns the input of a response, whose entries these are.
func inputOf(entries []session.Entry) (items []item.Item) {
	for i, e := range entries {
		switch b := e.Body.(type) {
		case session.InputItem:
			if b.Own {
				continue
			}
			if i > 0 {
				if n, ok := noteOf(entries[i-1]); ok && n.Kind == kindInstructions {
					continue
				}
			}
			it, err := b.Item.Whole()
			if err != nil {
				it = b.Item
			}
			items = append(items, it)
		case session.Approval:
			if id, ok := strings.CutPrefix(b.From, fromClient); ok {
				items = append(items, item.Must(&item.MCPApprovalResponse{ApprovalRequestID: id, Approve: b.Allowed}))
			}
		}
	}
	return items
}

// Item implements [server.Store].
func (b *Backend) Item(ctx context.Context, id string) (item.Item, error) {
	_, rest, _ := strings.Cut(id, "_")
	end := strings.LastIndexByte(rest, '_')
	if end < 0 {
		return item.Item{}, server.ErrNotFound
	}
	name := "resp_" + strings.TrimPrefix(rest[:end], "resp_")
	rec, err := b.Get(ctx, name)
	if err != nil {
		return item.Item{}, err
	}
	for _, it := range rec.Response.Output {
		if it.ID() == id {
			return it, nil
		}
	}
	return item.Item{}, server.ErrNotFound
}

// Delete implements [server.Store]. A response that is being made here ends before. The
// session of a response goes with its last response. Until then the response is not found any
// more, but later responses of the session still continue it.
func (b *Backend) Delete(ctx context.Context, id string) error {
	if talk, ok := conversationSession(id); ok {
		return b.deleteConversation(ctx, id, talk)
	}
	b.mu.Lock()
	run := b.active[id]
	b.mu.Unlock()
	if run != nil {
		if !run.background { // otherwise the server has cancelled it
			run.end(errDeleted)
		}
		select {
		case <-run.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	in, seq, ok := parseID(id)
	if !ok {
		return server.ErrNotFound
	}
	s, unlock, err := b.locked(ctx, in)
	if err != nil {
		return err
	}
	p := partOf(s.Log(), seq)
	if p.from == 0 || p.deleted || p.begin.ResponseID != id {
		return errors.Join(server.ErrNotFound, unlock())
	}
	if _, err = s.Append(ctx, note{Kind: kindDeleted, ResponseID: id}.body()); err == nil && atWorker(&p) && p.last {
		b.report(b.settle(ctx, in, false))
	}
	left := false
	for _, other := range partsOf(s.Log()) {
		owner, _, _ := parseID(other.begin.ResponseID)
		left = left || owner == in && !other.deleted
	}
	if gone := b.store().Delete(ctx, eventsID(in, seq)); !errors.Is(gone, session.ErrNotFound) {
		err = errors.Join(err, gone)
	}
	if err = errors.Join(err, unlock()); err == nil && !left && !b.isConversation(ctx, in) {
		err = b.remove(ctx, in)
	}
	return err
}

// Forget implements [server.Keeper].
func (b *Backend) Forget(id string) {
	b.mu.Lock()
	in, known := b.unstored[id]
	delete(b.unstored, id)
	for _, other := range b.unstored {
		if other == in {
			known = false
		}
	}
	b.mu.Unlock()
	if known {
		_ = b.memory.Delete(context.Background(), in) // it is in memory
	}
}
