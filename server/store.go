// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// Store keeps responses and conversations. A [Server] is its only writer. A Store
// must be safe for concurrent use.
//
// A response has its own input and the object that it continues, so a store need not
// copy the history of each response.
type Store interface {
	// Get returns the object with an id, or [ErrNotFound]. The Input of a conversation is
	// left out.
	Get(ctx context.Context, id string) (StoredObject, error)
	// Items returns the complete input of a response, which begins with the history that
	// it continues, or the items of a conversation. The caller must not change them. Items
	// of a response do not change if what it continues is changed or deleted later.
	Items(ctx context.Context, id string) ([]item.Item, error)
	// Put stores an object. If there is one with the same id, Put replaces everything
	// except the items: they are those of the first Put. If the object continues one that
	// does not exist, or whose items are others by now ([StoredObject.Continues]), Put returns
	// [ErrNotFound].
	//
	// The server stores a response when it begins and when it ends. A response that is not
	// stored again was interrupted: the next Server that finds it reports it, and stores
	// it, as failed, or as [ProgressStore] says.
	Put(ctx context.Context, rec StoredObject) error
	// Add adds items at the end of a conversation, and Remove removes the item with an id.
	// They return [ErrNotFound] if there is no such conversation or item.
	Add(ctx context.Context, id string, items ...item.Item) error
	Remove(ctx context.Context, id, itemID string) error
	// Delete removes the object with an id, or returns [ErrNotFound].
	Delete(ctx context.Context, id string) error
	// Item returns the item with an id from any object, or [ErrNotFound].
	Item(ctx context.Context, id string) (item.Item, error)
}

// SharedStore is a [Store] that several servers may use at the same time.
type SharedStore interface {
	Store
	// Busy reports whether a process still makes the response with an id, so that it
	// was not interrupted.
	Busy(ctx context.Context, id string) (bool, error)
}

// ConversationLocker is a [Store] that several servers may use, of which one at a time may answer in a conversation.
type ConversationLocker interface {
	SharedStore
	// LockConversation reserves a conversation until unlock is called or this process ends. The error wraps
	// [ErrLocked] if another server has reserved it.
	LockConversation(ctx context.Context, id string) (unlock func() error, err error)
}

// ErrLocked means that another server over the same store answers in a conversation.
var ErrLocked = errors.New("another server answers in the conversation")

// Preparer is a [Store] that can start to write a new response while the backend still works
// on its first event, so that the client waits less. The client of a stream is told that the
// response has begun before the Put of its beginning returns, and the rest after it.
type Preparer interface {
	Store
	// Prepare may begin to store a response that no client knows yet, and returns at once. The
	// Put of the same object, whose Note may differ, waits until it is stored. drop removes
	// the object if there was no such Put.
	Prepare(ctx context.Context, rec StoredObject) (drop func())
}

// EventStore is a [Store] that reads the events of a response that has ended from any of them on,
// so that a client that resumes a long stream does not wait for all of it.
type EventStore interface {
	Store
	// Events yields the Events of the response with an id, from number from on. It yields
	// [ErrNotFound] if there is no such response, or if it has none.
	Events(ctx context.Context, id string, from int64) iter.Seq2[api.Event, error]
}

// ProgressStore is a [Store] that keeps the finished parts of a response while it is made.
// So a response whose server was killed does not fail, but ends as incomplete, with what
// was complete. Until a response has ended, Get returns its Output and Events so far.
type ProgressStore interface {
	SharedStore
	// AddOutput adds an item to the output of a response that this process makes, before the
	// item with number at, or at the end if there is none or at is negative. It is durable when
	// AddOutput returns.
	AddOutput(ctx context.Context, id string, at int, it item.Item) error
	// AddEvents keeps events of a streamed background response that this process makes. from
	// is the number of the first one, and last is not set. They are durable when AddEvents
	// returns. The output of such a response is that of its events, and not added. The Put of
	// the end has all events again, and replaces them (rule V2 in docs/rules.md).
	AddEvents(ctx context.Context, id string, from int64, events []api.Event, last bool) error
	// EventsSince returns events that are kept of a response while it is made: those that were
	// added since an earlier call returned next, or all of them if since is 0. The error wraps
	// [ErrNotFound] if there are none any more, because the response has ended, or none yet.
	EventsSince(ctx context.Context, id string, since int64) (events []api.Event, next int64, err error)
	// EndLeft stores the end of a response that nobody makes any more, and returns the response.
	// If several processes call it at once, the end is stored once. end gets the state of the
	// response and returns its end. If it returns an error, nothing is stored. ctx ends only the
	// waiting for other processes.
	EndLeft(ctx context.Context, id string, end func(StoredObject) (StoredObject, error)) (StoredObject, error)
	// Join adds the items of a response that this process makes to its conversation, before the Put of
	// its end. If the process ends between the two, AddLeft finds them there. Join returns
	// [ErrNotFound] if there is no such conversation, and an error if another server may have ended the response.
	Join(ctx context.Context, rec StoredObject, items ...item.Item) error
	// AddLeft adds the items of an abandoned response to its conversation, unless items were added
	// to or removed from the conversation since the response began. added reports whether this call
	// or an earlier one added them.
	AddLeft(ctx context.Context, rec StoredObject, items ...item.Item) (added bool, err error)
	// Left returns the ids of unfinished responses that no process makes any more and whose end
	// must be reported without a request, for example to a webhook. The server calls Left every
	// ten seconds and ends them. An error concerns other responses, so ids may be set beside it.
	Left(ctx context.Context) (ids []string, err error)
}

// ErrEnded means that another server over the same store has ended a response, after the one that made it
// had lost it. [Store.Put] may return it for the end of a response. The client that waits is told that the
// response has failed; later requests get what is stored.
var ErrEnded = errors.New("another server has ended the response")

// ErrNotFound means that a store has no object or item with the id.
var ErrNotFound = errors.New("not found")

// StoredObject is a response or a conversation in a [Store]. A store must not change the
// contents of its slices, but may keep them.
type StoredObject struct {
	// Response is the current state of the response, or nil for a conversation.
	Response *api.Response
	// Conversation is the conversation, or nil for a response.
	Conversation *api.Conversation
	// Previous is the id of the response or the conversation that a response continues,
	// or "". Before is the number of items that the response continues: all items and the
	// output of a response, or all items of a conversation.
	Previous string
	Before   int
	// History are these items as the request was made with them, if the response continues a
	// conversation, which may change meanwhile. It is set for the first Put, and not stored.
	History []item.Item
	// Input is the response's own input, or the items that a new conversation begins
	// with.
	Input []item.Item
	// Note is what the backend set by [Writer.Note], or "". That of a conversation is the
	// server's own, and changes with each Put.
	Note item.JSON
	// Background reports whether the response was made in the background.
	Background bool
	// Events are the events of a streamed background response. They are set when it
	// has ended, unless the backend is a [Resumer].
	Events []api.Event
	// Streamed reports whether the events of the response are kept, by a [Resumer] or a
	// [ProgressStore].
	Streamed bool
	// Caller is who asked for a response that a [Resumer] keeps, as far as it is known. Another
	// server that goes on with the response has it in its context.
	Caller Caller
}

// ID returns the id of the response or the conversation, or "" if it has neither.
func (r *StoredObject) ID() string {
	switch {
	case r.Response != nil:
		return r.Response.ID
	case r.Conversation != nil:
		return r.Conversation.ID
	}
	return ""
}

// Continues reports whether a response can continue an object with these items: they are as many as Before
// says, and have the ids of History.
func (r *StoredObject) Continues(items []item.Item) bool {
	if len(items) != r.Before {
		return false
	}
	for i, it := range r.History[:min(len(r.History), len(items))] {
		if id := items[i].ID(); id != "" && id != it.ID() {
			return false
		}
	}
	return true
}

// Memory is a [Store] in memory with a limited number and size of records: 64 MiB
// for all responses and 64 MiB for all conversations. It removes the oldest records
// first. The zero value is an empty store.
type Memory struct {
	// Max is the maximum number of responses, and of conversations; 0 means 1000. Set
	// it before the first use.
	Max int

	mu            sync.Mutex
	responses     shelf
	conversations shelf
}

const (
	defaultStored  = 1000
	maxStoredBytes = 64 << 20
)

// Get implements [Store].
func (m *Memory) Get(_ context.Context, id string) (StoredObject, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rec := m.find(id); rec != nil {
		return rec.StoredObject, nil
	}
	return StoredObject{}, ErrNotFound
}

// Items implements [Store].
func (m *Memory) Items(_ context.Context, id string) ([]item.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rec := m.find(id); rec != nil {
		return rec.items.all(), nil
	}
	return nil, ErrNotFound
}

// find returns a record, or nil. The caller must hold mu.
func (m *Memory) find(id string) *record {
	for _, s := range []*shelf{&m.responses, &m.conversations} {
		if rec := s.byID[id]; rec != nil {
			return rec
		}
	}
	return nil
}

// Put implements [Store].
func (m *Memory) Put(_ context.Context, rec StoredObject) error {
	if rec.ID() == "" {
		return errors.New("server: a StoredObject needs a Response or a Conversation with an id")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.conversations
	if rec.Response != nil {
		s = &m.responses
	}
	made := &record{StoredObject: rec}
	made.History = nil
	switch old := s.byID[rec.ID()]; {
	case old != nil:
		made.Previous, made.Before, made.Input, made.items = old.Previous, old.Before, old.Input, old.items
	case rec.Previous == "":
		made.items = (*chain)(nil).with(rec.Input)
	default:
		before := m.find(rec.Previous)
		if before == nil || before.whole().len() != rec.Before || len(rec.History) > 0 && !rec.Continues(before.whole().all()) {
			return ErrNotFound
		}
		made.items = before.whole().with(rec.Input)
	}
	if rec.Conversation != nil {
		made.Input = nil
	}
	s.put(made, cmp.Or(m.Max, defaultStored))
	return nil
}

// Add implements [Store].
func (m *Memory) Add(_ context.Context, id string, items ...item.Item) error {
	return m.change(id, func(old *chain) (*chain, error) { return old.with(items), nil })
}

// Remove implements [Store].
func (m *Memory) Remove(_ context.Context, id, itemID string) error {
	return m.change(id, func(old *chain) (*chain, error) {
		list := old.all()
		i := indexOf(list, itemID)
		if i < 0 {
			return nil, ErrNotFound
		}
		return (*chain)(nil).with(slices.Delete(list, i, i+1)), nil
	})
}

// change replaces the items of a conversation.
func (m *Memory) change(id string, f func(*chain) (*chain, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.conversations.byID[id]
	if old == nil {
		return ErrNotFound
	}
	items, err := f(old.items)
	if err != nil {
		return err
	}
	m.conversations.put(&record{StoredObject: old.StoredObject, items: items}, cmp.Or(m.Max, defaultStored))
	return nil
}

// Delete implements [Store].
func (m *Memory) Delete(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.responses.remove(id) && !m.conversations.remove(id) {
		return ErrNotFound
	}
	return nil
}

// Item implements [Store]. It returns the item of the newest record that has it.
func (m *Memory) Item(_ context.Context, id string) (item.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range []*shelf{&m.responses, &m.conversations} {
		for _, name := range slices.Backward(s.order) {
			for c := s.byID[name].whole(); c != nil; c = c.before {
				if i := indexOf(c.items, id); i >= 0 {
					return c.items[i], nil
				}
			}
		}
	}
	return item.Item{}, ErrNotFound
}

func indexOf(list []item.Item, id string) int {
	return slices.IndexFunc(list, func(it item.Item) bool { return it.ID() == id })
}

// chain is a list of items that shares its beginning with other lists. It does not
// change. Nil is the empty list.
type chain struct {
	before *chain
	items  []item.Item
	n      int // of all items
	bytes  int // of the JSON of all items
}

// with returns the list with further items.
func (c *chain) with(items []item.Item) *chain {
	if len(items) == 0 {
		return c
	}
	longer := &chain{before: c, items: items, n: c.len() + len(items), bytes: c.size()}
	for _, it := range items {
		longer.bytes += len(it.JSON())
	}
	return longer
}

func (c *chain) len() int {
	if c == nil {
		return 0
	}
	return c.n
}

func (c *chain) size() int {
	if c == nil {
		return 0
	}
	return c.bytes
}

// all returns a copy of the items.
func (c *chain) all() []item.Item {
	list := make([]item.Item, c.len())
	for at := len(list); c != nil; c = c.before {
		at -= len(c.items)
		copy(list[at:], c.items)
	}
	return list
}

// record is an object with its items: the complete input of a response, or the items of
// a conversation.
type record struct {
	StoredObject
	items *chain
}

// whole returns the items that an object can be continued after.
func (r *record) whole() *chain {
	if r.Response == nil {
		return r.items
	}
	return r.items.with(r.Response.Output)
}

// bytes returns the size of a record. It counts only the JSON of items, which is by
// far the largest part, and counts items that records share for each of them.
func (r *record) bytes() int {
	n := r.whole().size()
	for _, ev := range r.Events {
		n += len(ev.JSON())
	}
	return n
}

// shelf holds records by their ids, oldest first.
type shelf struct {
	byID  map[string]*record
	order []string
	bytes int
}

// put stores a record, and removes the oldest records while the limits are exceeded.
// The newest record stays.
func (s *shelf) put(rec *record, limit int) {
	if s.byID == nil {
		s.byID = map[string]*record{}
	}
	id := rec.ID()
	if old, there := s.byID[id]; there {
		s.bytes -= old.bytes()
	} else {
		s.order = append(s.order, id)
	}
	s.byID[id] = rec
	s.bytes += rec.bytes()
	for len(s.order) > 1 && (len(s.order) > limit || s.bytes > maxStoredBytes) {
		s.remove(s.order[0])
	}
}

func (s *shelf) remove(id string) bool {
	rec, ok := s.byID[id]
	if !ok {
		return false
	}
	delete(s.byID, id)
	s.bytes -= rec.bytes()
	i := slices.Index(s.order, id)
	if i == 0 {
		s.order = s.order[1:] // like removing the oldest record
		return true
	}
	s.order = slices.Delete(s.order, i, i+1)
	return true
}

// name returns an id without its prefix.
func name(id string) string { return strings.TrimPrefix(strings.TrimPrefix(id, "resp_"), "conv_") }
