// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// ErrConflict is returned, wrapped, by an append that expected another end of
// the log: somebody else wrote to the session.
var ErrConflict = errors.New("the session has moved on")

// Store keeps the logs of sessions.
//
// Append writes the entries, which follow entry number after, all or none of
// them, and returns when they are as durable as the store makes them; with
// another end of the log it returns [ErrConflict]. Load yields the entries of a
// session in order, those behind entry number after; a session nobody wrote to
// has none. A Store is safe for concurrent use; entries are immutable and may be
// shared.
//
// What a store can do beyond that it says by its methods: see [Nester],
// [Locker], [Forker], [Watcher], [Catalog] and [Blobs].
type Store interface {
	Append(ctx context.Context, id string, after int64, entries []Entry) error
	Load(ctx context.Context, id string, after int64) iter.Seq2[Entry, error]
}

// Memory is a [Store] that lives as long as the process. The zero value is
// ready.
type Memory struct {
	mu   sync.Mutex
	logs map[string][]Entry
}

// Append implements [Store].
func (m *Memory) Append(_ context.Context, id string, after int64, entries []Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	log := m.logs[id]
	if int64(len(log)) != after {
		return fmt.Errorf("%w: it has %d entries, not %d", ErrConflict, len(log), after)
	}
	if m.logs == nil {
		m.logs = map[string][]Entry{}
	}
	m.logs[id] = append(log, entries...)
	return nil
}

// Load implements [Store].
func (m *Memory) Load(_ context.Context, id string, after int64) iter.Seq2[Entry, error] {
	m.mu.Lock()
	log := m.logs[id]
	log = slices.Clip(log[min(max(after, 0), int64(len(log))):])
	m.mu.Unlock()
	return func(yield func(Entry, error) bool) {
		for _, e := range log {
			if !yield(e, nil) {
				return
			}
		}
	}
}
