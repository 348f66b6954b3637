// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/kept"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// Store is a [server.ProgressStore] over a store of sessions, so that responses and
// conversations survive the server. Each is a session of its own. A response that continues
// something is a fork of it, which shares the log up to there. The process that makes a
// response holds its session, so others know that it is being made. Items are added to the
// log as they are complete. The events of a stream are kept in a nested session until the
// response has ended.
//
// Set the fields before the first use; then it is safe for concurrent use. Close it after
// the server.
type Store struct {
	// In keeps the sessions. The Store does not close it.
	In store.Store
	// Owner is the owner of the sessions. If it is not "", objects of others are not
	// found (rule V3 in docs/rules.md).
	Owner string
	// KeepKeys is how long an Idempotency-Key is remembered; 0 means a day (rule V4 in docs/rules.md).
	KeepKeys time.Duration
	// Webhook is told when background responses have ended, and when approvals are wanted. Nil
	// means nobody. Call [Store.SendWebhooks] too.
	Webhook *server.Webhook
	// Log receives errors that no request waits for. It may be nil.
	Log func(error)

	once     sync.Once
	book     *kept.Book
	sweeping sync.WaitGroup
	closed   context.CancelFunc // ends the sweeping

	mu    sync.Mutex
	swept time.Time         // when old keys were looked for
	held  map[string]*held  // the responses that are being made here
	gone  map[string]error  // those that another server has written to: why they are not written here any more
	ready map[string]*ready // the sessions of responses that have not begun yet
	found map[string]string // the objects of items, by their ids
	order []string          // the ids in found, oldest first

	makers   makers
	learning sync.Mutex // guards the times and sessions of makers

	old untouched
}

var errNoSessions = errors.New("gateway: the Store has no store of sessions")

// held is the session of a response that is being made.
type held struct {
	session *session.Session
	unlock  func() error // nil if it was not begun here

	mu     sync.Mutex // guards the session, which several goroutines write to
	note   string     // how it is made, until it is stored
	events int64      // the entries of the session with the events
	over   bool       // nothing is added any more
	owed   bool       // the webhook is told of the end
}

// ready is a response that is stored before it begins.
type ready struct {
	*held
	rec    server.StoredObject
	err    error
	begins *time.Timer   // to make it
	made   chan struct{} // closed when it is made, or err is set
}

const (
	tag       = "gateway"
	tagEvents = "gateway-events"
	lockTime  = 10 * time.Second
	// maxFound is how many items are found by their id without reading the store, and
	// maxSearched how many objects are read for others.
	maxFound    = 50_000
	maxSearched = 500
	// pageBytes is the size of events from which they are written.
	pageBytes = 128 << 10
)

// open reads the session of an object.
func (s *Store) open(ctx context.Context, id string) (*session.Session, folded, error) {
	if nils.Is(s.In) {
		return nil, folded{}, errNoSessions
	}
	in := sessionOf(id)
	if info, err := s.In.Info(ctx, in); errors.Is(err, session.ErrNotFound) || err == nil && s.Owner != "" && info.Owner != s.Owner {
		return nil, folded{}, server.ErrNotFound
	} else if err != nil {
		return nil, folded{}, err
	}
	log, err := session.Open(ctx, s.In, in)
	if err != nil {
		return nil, folded{}, err
	}
	f, err := fold(log.Log())
	if err == nil && f.begin.ID != id && f.talk.ID != id {
		err = server.ErrNotFound // it was being created when its process ended
	}
	return log, f, err
}

// Get implements [server.Store].
func (s *Store) Get(ctx context.Context, id string) (rec server.StoredObject, err error) {
	_, f, err := s.open(ctx, id)
	if err != nil {
		return rec, err
	}
	rec, err = s.object(ctx, id, f)
	if rec.Response == nil || final(rec.Response) || err == nil && (!rec.Background || rec.Events != nil) {
		return rec, err
	}
	// The response may have ended after its log was read: then its live events are gone.
	_, f, again := s.open(ctx, id)
	switch {
	case again != nil:
		return server.StoredObject{}, again
	case f.end.ID == id:
		return s.object(ctx, id, f)
	}
	return rec, err
}

// object returns an object from what its log says.
func (s *Store) object(ctx context.Context, id string, f folded) (rec server.StoredObject, err error) {
	if f.begin.ID != id {
		rec.Conversation, err = api.ParseConversation(f.talk.Object)
		rec.Note = item.JSON(f.talk.Made)
		return rec, err
	}
	head := f.begin
	if f.end.ID == id {
		head = f.end
	}
	if rec.Response, err = api.ParseResponse(head.Object); err != nil {
		return rec, err
	}
	rec.Response.Output = append([]item.Item{}, f.items[f.input:]...)
	rec.Previous, rec.Before, rec.Background, rec.Streamed, rec.Note = f.begin.Previous, f.begin.Before, f.begin.Background, f.begin.Streamed, item.JSON(head.Made)
	rec.Input = f.items[f.input-f.own : f.input]
	for _, text := range f.end.Events {
		ev, err := api.ParseEventString(text)
		if err != nil {
			return rec, err
		}
		rec.Events = append(rec.Events, ev)
	}
	if f.begin.Background && !final(rec.Response) {
		rec.Events, _, err = s.EventsSince(ctx, id, 0)
		if errors.Is(err, server.ErrNotFound) {
			err = nil
		}
		if rec.Response.Status == item.StatusQueued && working(rec) {
			rec.Response.Status = item.StatusInProgress
		}
	}
	return rec, err
}

// working reports whether there is something of a response that waited.
func working(rec server.StoredObject) bool {
	return len(rec.Response.Output) > 0 || slices.ContainsFunc(rec.Events, func(ev api.Event) bool { return ev.Type == api.EventInProgress })
}

// Items implements [server.Store].
func (s *Store) Items(ctx context.Context, id string) ([]item.Item, error) {
	_, f, err := s.open(ctx, id)
	if err != nil {
		return nil, err
	}
	if f.begin.ID == id {
		return slices.Clip(f.items[:f.input]), nil
	}
	return f.items, nil
}

// Put implements [server.Store].
func (s *Store) Put(ctx context.Context, rec server.StoredObject) error {
	switch {
	case nils.Is(s.In):
		return errNoSessions
	case rec.ID() == "":
		return errors.New("gateway: a StoredObject needs a Response or a Conversation with an id")
	case rec.Conversation != nil:
		return s.putConversation(ctx, rec)
	}
	s.mu.Lock()
	h, lost := s.held[rec.ID()], s.gone[rec.ID()]
	s.mu.Unlock()
	if lost != nil {
		return s.lostTo(ctx, rec.ID(), lost)
	}
	if h != nil {
		err := s.end(ctx, h, rec)
		switch {
		case errors.Is(err, session.ErrLost), errors.Is(err, session.ErrConflict):
			s.let(rec.ID(), h, err)
			return s.lostTo(ctx, rec.ID(), err)
		case err == nil && final(rec.Response):
			s.let(rec.ID(), h, nil)
		}
		return err
	}
	if r := s.prepared(rec.ID()); r != nil {
		if <-r.made; r.err == nil && same(r.rec, rec) {
			return s.hold(ctx, r.held, rec)
		}
		if err := s.drop(ctx, r); err != nil {
			return err
		}
	}
	_, err := s.In.Info(ctx, sessionOf(rec.ID()))
	switch {
	case errors.Is(err, session.ErrNotFound):
		h, err := s.begin(ctx, rec)
		switch {
		case err != nil:
			return err
		case final(rec.Response):
			return s.release(s.end(ctx, h, rec), h.unlock)
		}
		return s.hold(ctx, h, rec)
	case err != nil:
		return err
	}
	log, _, err := s.open(ctx, rec.ID())
	if err != nil {
		return err
	}
	unlock, err := log.Lock(ctx)
	if err != nil {
		return err
	}
	return s.release(s.end(ctx, &held{session: log}, rec), unlock)
}

// lostTo returns the error about a response that was lost, which wraps [server.ErrEnded] if another
// server has ended the response.
func (s *Store) lostTo(ctx context.Context, id string, err error) error {
	if _, f, unread := s.open(ctx, id); unread == nil && f.end.ID == id {
		err = fmt.Errorf("%w: %w", server.ErrEnded, err)
	}
	return err
}

// release lets go of a session that was written to. What is stored is stored: an error of the
// lock is only logged.
func (s *Store) release(err error, unlock func() error) error {
	s.log(unlock())
	return err
}

// AddOutput implements [server.ProgressStore].
func (s *Store) AddOutput(ctx context.Context, id string, at int, it item.Item) error {
	h := s.making(id)
	if h == nil {
		return server.ErrNotFound
	}
	if at < 0 {
		at = math.MaxInt32
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	bodies, err := stored{Kind: kindOutput, ID: id, At: at, Made: h.note}.bodies([]item.Item{it})
	if err != nil {
		return err
	}
	if h.over {
		return server.ErrNotFound
	}
	if _, err = h.session.Append(ctx, bodies...); err == nil {
		s.remember(id, []item.Item{it})
	}
	return err
}

// making returns the session of a response that is being made here, or nil.
func (s *Store) making(id string) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[id]
}

// Prepare implements [server.Preparer]. A killed process may leave a response that nobody has
// heard of.
func (s *Store) Prepare(ctx context.Context, rec server.StoredObject) (drop func()) {
	if nils.Is(s.In) || rec.Response == nil {
		return func() {} // Put says so
	}
	r := &ready{rec: rec, made: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil {
		s.ready = map[string]*ready{}
	}
	s.ready[rec.ID()] = r
	ctx = context.WithoutCancel(ctx)
	r.begins = time.AfterFunc(atOnce, func() {
		defer close(r.made)
		r.held, r.err = s.begin(ctx, rec)
	})
	return func() {
		if s.prepared(rec.ID()) == r {
			<-r.made
			s.log(s.drop(ctx, r)) // nobody has heard of what is left of it: it ends after a day
		}
	}
}

// atOnce is how soon an upstream answers that has nothing to work out. Until then the request
// needs the processors more than the write, which would slow its way down.
const atOnce = time.Millisecond

// prepared returns what Prepare makes for a response, once; or nil if it makes nothing.
func (s *Store) prepared(id string) *ready {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.ready[id]
	delete(s.ready, id)
	if r == nil || r.begins.Stop() {
		return nil
	}
	return r
}

// same reports whether a response begins as it was prepared. The note is stored later.
func same(a, b server.StoredObject) bool {
	x, errX := a.Response.AppendJSON(nil)
	y, errY := b.Response.AppendJSON(nil)
	return errX == nil && errY == nil && bytes.Equal(x, y) && a.Previous == b.Previous && a.Before == b.Before && a.Background == b.Background && slices.Equal(a.Input, b.Input)
}

// drop removes a response that was prepared and does not begin.
func (s *Store) drop(ctx context.Context, r *ready) error {
	if r.err != nil {
		return nil
	}
	return errors.Join(s.In.Delete(ctx, r.session.ID()), r.unlock())
}

// hold holds the session of a response that begins, unless another server makes the one for
// the same key.
func (s *Store) hold(ctx context.Context, h *held, rec server.StoredObject) error {
	if err := s.keys().Check(ctx, rec.ID()); err != nil {
		if errors.Is(err, kept.ErrLost) {
			err = &server.Error{Status: http.StatusConflict, Message: "Another server makes the response for this Idempotency-Key. Please retry in a few seconds."}
		}
		return errors.Join(err, s.In.Delete(context.WithoutCancel(ctx), h.session.ID()), h.unlock())
	}
	if rec.Background {
		if err := s.owe(ctx, rec.ID()); err != nil {
			return errors.Join(err, s.In.Delete(context.WithoutCancel(ctx), h.session.ID()), h.unlock())
		}
		h.owed = true
	}
	h.note = string(rec.Note)
	s.remember(rec.ID(), rec.Input)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string]*held{}
	}
	s.held[rec.ID()] = h
	return nil
}

// begin makes the session of a response, locked and with its first entries, in one write: a
// fork of what the response continues.
func (s *Store) begin(ctx context.Context, rec server.StoredObject) (*held, error) {
	head := *rec.Response
	head.Output = []item.Item{}
	object, err := head.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	n := stored{Kind: kindBegin, ID: rec.ID(), Object: object, Previous: rec.Previous, Before: rec.Before, Background: rec.Background, Streamed: rec.Streamed, Made: string(rec.Note)}
	bodies, err := n.bodies(rec.Input)
	if err != nil {
		return nil, err
	}
	h := new(held)
	if h.session, h.unlock, err = session.OpenLocked(ctx, s.In, sessionOf(rec.ID()), nil); err != nil {
		return nil, err
	}
	if rec.Previous == "" {
		err = s.In.Create(ctx, session.Info{ID: h.session.ID(), Owner: s.Owner, Tags: []string{tag}}, after(0, bodies)...)
	} else {
		err = s.fork(ctx, rec, h.session.ID(), bodies)
	}
	if err == nil {
		err = h.session.Refresh(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, h.unlock())
	}
	return h, nil
}

// fork makes the session of a response that continues something.
func (s *Store) fork(ctx context.Context, rec server.StoredObject, to string, bodies []session.Body) error {
	log, f, err := s.open(ctx, rec.Previous)
	switch {
	case err != nil:
		return err
	case !rec.Continues(f.items):
		return server.ErrNotFound
	}
	at := int64(len(log.Log()))
	return s.In.Fork(ctx, log.ID(), at, to, after(at, bodies)...)
}

// after returns entries that follow a number.
func after(at int64, bodies []session.Body) (list []session.Entry) {
	for i, b := range bodies {
		list = append(list, session.Entry{Seq: at + int64(i) + 1, Body: b})
	}
	return list
}

func final(r *api.Response) bool {
	switch r.Status {
	case "", item.StatusQueued, item.StatusInProgress:
		return false
	}
	return true
}

// end stores the state of a response. Errors of what follows the state are only logged: others can
// read it already.
func (s *Store) end(ctx context.Context, h *held, rec server.StoredObject) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	head := *rec.Response
	head.Output = []item.Item{}
	object, err := head.AppendJSON(nil)
	if err != nil {
		return err
	}
	pages, err := addEvents(ctx, h.session, rec)
	if err != nil {
		return err
	}
	add := func(n stored, items []item.Item) error {
		bodies, err := n.bodies(items)
		if err == nil {
			_, err = h.session.Append(ctx, bodies...)
		}
		return err
	}
	if !h.owed && final(rec.Response) && (rec.Background || kept.Asks(rec.Response.Output)) {
		if err := s.owe(ctx, rec.ID()); err != nil { // before the end, so that a crash loses no event
			return err
		}
		h.owed = true
	}
	if err = add(stored{Kind: kindEnd, ID: rec.ID(), Object: object, Made: string(rec.Note), Count: len(rec.Events)}, rec.Response.Output); err != nil {
		return err
	}
	if len(pages) > 0 {
		s.log(add(stored{Kind: kindPages, ID: rec.ID(), Pages: pages}, nil))
	}
	s.remember(rec.ID(), rec.Response.Output)
	if !final(rec.Response) {
		return nil
	}
	s.made(rec.Response)
	h.over = true
	// An archived session is left out of lists, in which conversations count.
	s.log(s.In.Archive(ctx, h.session.ID(), true))
	if rec.Background && (h.events > 0 || h.unlock == nil) {
		s.log(s.dropEvents(ctx, rec.ID()))
	}
	return nil
}

// let lets go of a response that has ended or, with an error, was lost. It stays known that it was
// lost, so that no second end is written.
func (s *Store) let(id string, h *held, lost error) {
	s.mu.Lock()
	mine := s.held[id] == h // and not let go of meanwhile
	if mine {
		delete(s.held, id)
		if lost != nil {
			if s.gone == nil {
				s.gone = map[string]error{}
			}
			s.gone[id] = lost
		}
	}
	s.mu.Unlock()
	if mine {
		s.log(h.unlock())
	}
}

// locked opens the session of an object to write to it. It waits while somebody else does.
func (s *Store) locked(ctx context.Context, id string, conversation bool) (log *session.Session, f folded, unlock func() error, err error) {
	log, f, err = s.open(ctx, id)
	switch {
	case err != nil:
		return nil, f, nil, err
	case conversation && f.begin.ID == id:
		return nil, f, nil, server.ErrNotFound
	}
	ctx, stop := context.WithTimeout(ctx, lockTime)
	defer stop()
	if unlock, err = log.WaitLock(ctx); err != nil {
		return nil, f, nil, err
	}
	if f, err = fold(log.Log()); err != nil { // somebody else may have changed it
		return nil, f, nil, errors.Join(err, unlock())
	}
	return log, f, unlock, nil
}

func (s *Store) putConversation(ctx context.Context, rec server.StoredObject) error {
	object, err := rec.Conversation.AppendJSON(nil)
	if err != nil {
		return err
	}
	id, input := rec.ID(), rec.Input
	err = s.In.Create(ctx, session.Info{ID: sessionOf(id), Owner: s.Owner, Tags: []string{tag}})
	if errors.Is(err, session.ErrExists) {
		input = nil
	} else if err != nil {
		return err
	}
	bodies, err := stored{Kind: kindConversation, ID: id, Object: object, Made: string(rec.Note)}.bodies(input)
	if err != nil {
		return err
	}
	log, err := session.Open(ctx, s.In, sessionOf(id))
	if err != nil {
		return err
	}
	waiting, stop := context.WithTimeout(ctx, lockTime)
	defer stop()
	unlock, err := log.WaitLock(waiting)
	if err != nil {
		return err
	}
	_, err = log.Append(ctx, bodies...)
	s.remember(id, input)
	return errors.Join(err, unlock())
}

// Add implements [server.Store].
func (s *Store) Add(ctx context.Context, id string, items ...item.Item) error {
	bodies, err := stored{Kind: kindAdded, ID: id}.bodies(items)
	if err != nil {
		return err
	}
	log, _, unlock, err := s.locked(ctx, id, true)
	if err != nil {
		return err
	}
	_, err = log.Append(ctx, bodies...)
	s.remember(id, items)
	return errors.Join(err, unlock())
}

// Remove implements [server.Store].
func (s *Store) Remove(ctx context.Context, id, itemID string) error {
	bodies, err := stored{Kind: kindRemoved, ID: id, Removed: itemID}.bodies(nil)
	if err != nil {
		return err
	}
	log, f, unlock, err := s.locked(ctx, id, true)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(f.items, func(it item.Item) bool { return it.ID() == itemID }) {
		return errors.Join(server.ErrNotFound, unlock())
	}
	_, err = log.Append(ctx, bodies...)
	return errors.Join(err, unlock())
}

// Delete implements [server.Store]. What other responses share with it stays with them.
func (s *Store) Delete(ctx context.Context, id string) error {
	if _, _, err := s.open(ctx, id); err != nil {
		return err
	}
	s.mu.Lock()
	h := s.held[id]
	delete(s.held, id)
	delete(s.gone, id)
	s.mu.Unlock()
	if h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.over = true
		return errors.Join(s.In.Delete(ctx, sessionOf(id)), h.unlock())
	}
	ctx, stop := context.WithTimeout(ctx, lockTime)
	defer stop()
	log, _, unlock, err := s.locked(ctx, id, false)
	if err != nil {
		return err
	}
	return errors.Join(s.In.Delete(ctx, log.ID()), unlock())
}

// remember notes where items are.
func (s *Store) remember(id string, items []item.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil {
		s.found = map[string]string{}
	}
	for _, it := range items {
		name := it.ID()
		if name == "" {
			continue
		}
		if _, known := s.found[name]; !known {
			if s.order = append(s.order, name); len(s.order) > maxFound {
				delete(s.found, s.order[0])
				s.order = s.order[1:]
			}
		}
		s.found[name] = id
	}
}

// Item implements [server.Store]. It finds the items of the last objects only: those that
// this process wrote, and a number of others.
func (s *Store) Item(ctx context.Context, id string) (item.Item, error) {
	if nils.Is(s.In) {
		return item.Item{}, errNoSessions
	}
	s.mu.Lock()
	object, known := s.found[id]
	s.mu.Unlock()
	if known {
		if _, f, err := s.open(ctx, object); err == nil {
			if it, ok := named(f.items, id); ok {
				return it, nil
			}
		}
	}
	var names []string
	for info, err := range nils.Each(s.In, "List", s.In.List(ctx, session.Query{Owner: s.Owner, Prefix: objects, Archived: true})) { // a fork has no tags
		if err != nil {
			return item.Item{}, err
		}
		if isObject(info.ID) {
			names = append(names, info.ID)
		}
		if len(names) == maxSearched {
			break
		}
	}
	for _, name := range names {
		log, err := session.Open(ctx, s.In, name)
		if err != nil {
			continue // it is gone
		}
		if f, err := fold(log.Log()); err == nil {
			if it, ok := named(f.items, id); ok {
				return it, nil
			}
		}
	}
	return item.Item{}, server.ErrNotFound
}

func named(items []item.Item, id string) (item.Item, bool) {
	for _, it := range slices.Backward(items) {
		if it.ID() == id {
			return it, true
		}
	}
	return item.Item{}, false
}

// Close lets go of the responses that are still held.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed != nil {
		s.closed()
	}
	s.mu.Unlock()
	s.sweeping.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for id, h := range s.held {
		if wrong := h.unlock(); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", id, wrong))
		}
		delete(s.held, id)
	}
	return err
}
