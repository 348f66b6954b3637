// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// Store keeps responses and conversations. A [Server] is its only writer. A Store
// must be safe for concurrent use.
type Store interface {
	// Get returns the record with an id, or [ErrNotFound].
	Get(ctx context.Context, id string) (StoredObject, error)
	// Put stores a record, and replaces the record with the same id. The server stores
	// a response when it begins and when it ends. A response that is not stored again
	// was interrupted: the next Server that finds it reports it, and stores it, as
	// failed.
	Put(ctx context.Context, rec StoredObject) error
	// Delete removes the record with an id, or returns [ErrNotFound].
	Delete(ctx context.Context, id string) error
	// Item returns the item with an id from any record, or [ErrNotFound].
	Item(ctx context.Context, id string) (item.Item, error)
}

// ErrNotFound means that a store has no record or item with the id.
var ErrNotFound = errors.New("not found")

// StoredObject is a response or a conversation in a [Store]. A store must not change the
// contents of its slices, but may keep them.
type StoredObject struct {
	// Response is the current state of the response, or nil for a conversation.
	Response *api.Response
	// Conversation is the conversation, or nil for a response.
	Conversation *api.Conversation
	// Items are the items of the conversation or, for a response, its complete input:
	// the history and then the request's own input.
	Items []item.Item
	// Background reports whether the response was made in the background.
	Background bool
	// Events are the events of a streamed background response. They are set when it
	// has ended.
	Events []api.Event
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

// all returns the history for a request that continues this response.
func (r *StoredObject) all() []item.Item { return append(slices.Clip(r.Items), r.Response.Output...) }

// bytes returns the size of a record. It counts only the JSON of items, which is by
// far the largest part.
func (r *StoredObject) bytes() (n int) {
	for _, it := range r.Items {
		n += len(it.JSON())
	}
	if r.Response != nil {
		for _, it := range r.Response.Output {
			n += len(it.JSON())
		}
	}
	for _, ev := range r.Events {
		n += len(ev.JSON())
	}
	return n
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
	for _, s := range []*shelf{&m.responses, &m.conversations} {
		if rec, ok := s.byID[id]; ok {
			return rec, nil
		}
	}
	return StoredObject{}, ErrNotFound
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
	s.put(rec, cmp.Or(m.Max, defaultStored))
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
			rec := s.byID[name]
			lists := [][]item.Item{rec.Items}
			if rec.Response != nil {
				lists = append(lists, rec.Response.Output)
			}
			for _, list := range lists {
				if i := indexOf(list, id); i >= 0 {
					return list[i], nil
				}
			}
		}
	}
	return item.Item{}, ErrNotFound
}

func indexOf(list []item.Item, id string) int {
	return slices.IndexFunc(list, func(it item.Item) bool { return it.ID() == id })
}

// shelf holds records by their ids, oldest first.
type shelf struct {
	byID  map[string]StoredObject
	order []string
	bytes int
}

// put stores a record, and removes the oldest records while the limits are exceeded.
// The newest record stays.
func (s *shelf) put(rec StoredObject, limit int) {
	if s.byID == nil {
		s.byID = map[string]StoredObject{}
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
