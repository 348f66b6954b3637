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

	"github.com/antiphon-go/antiphon/item"
)

// Store keeps responses and conversations. A [Server] is its only writer, and
// calls it from many goroutines.
type Store interface {
	// Get returns the record with an id, or [ErrNotFound].
	Get(ctx context.Context, id string) (Record, error)
	// Put keeps a record, in place of the one with its id if there is one. A
	// response is put when it begins and when it ends; a response that is not put
	// again has been interrupted.
	Put(ctx context.Context, rec Record) error
	// Delete forgets the record with an id, or returns [ErrNotFound].
	Delete(ctx context.Context, id string) error
	// Item returns the item with an id that a record holds, or [ErrNotFound].
	Item(ctx context.Context, id string) (item.Item, error)
}

// ErrNotFound says that a store has nothing with an id.
var ErrNotFound = errors.New("not found")

// Record is a response or a conversation as a [Store] keeps it. A store must not
// change what its slices hold, and may keep them.
type Record struct {
	// Response is the response as it stands, or nil for a conversation.
	Response *item.Response
	// Conversation is the conversation, or nil for a response.
	Conversation *item.Conversation
	// Items are the items of the conversation or, of a response, all that it
	// answers: the history and then the request's own input.
	Items []item.Item
	// Background says that the response was made in the background.
	Background bool
	// Events are the events of a response that was made in the background as a
	// stream. They are there when it has ended.
	Events []item.Event
}

// ID returns the id of the response or the conversation.
func (r *Record) ID() string {
	if r.Response != nil {
		return r.Response.ID
	}
	return r.Conversation.ID
}

// all returns what a request goes on from that names this response.
func (r *Record) all() []item.Item { return append(slices.Clip(r.Items), r.Response.Output...) }

// bytes is the size of a record, of which its JSON is by far the most.
func (r *Record) bytes() (n int) {
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

// Memory is a [Store] that forgets: what it keeps is bounded by number and by
// size, 64 MiB for all responses and as much for all conversations. The oldest go
// first. The zero value is an empty store.
type Memory struct {
	// Max is how many responses are kept, and how many conversations; 0 means
	// 1000. It is set before the first use.
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
func (m *Memory) Get(_ context.Context, id string) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range []*shelf{&m.responses, &m.conversations} {
		if rec, ok := s.byID[id]; ok {
			return rec, nil
		}
	}
	return Record{}, ErrNotFound
}

// Put implements [Store].
func (m *Memory) Put(_ context.Context, rec Record) error {
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

// Item implements [Store]. The newest record with the item counts.
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
	byID  map[string]Record
	order []string
	bytes int
}

// put keeps a record, and drops the oldest while there is too much. The last one
// stays.
func (s *shelf) put(rec Record, limit int) {
	if s.byID == nil {
		s.byID = map[string]Record{}
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
		s.order = s.order[1:] // as when the oldest goes
		return true
	}
	s.order = slices.Delete(s.order, i, i+1)
	return true
}

// name is an id without its prefix.
func name(id string) string { return strings.TrimPrefix(strings.TrimPrefix(id, "resp_"), "conv_") }
