// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Session is an open log. One writer at a time appends to it; a session is not
// safe for concurrent use.
type Session struct {
	store Store
	id    string
	seq   int64
	load  []Entry

	beside Memory // for nested sessions, where the store has no place for them
}

// New returns an empty session in memory.
func New() *Session { return &Session{store: new(Memory), id: "memory"} }

// Open reads the log of the session id from the store. A session that does not
// exist yet is empty.
func Open(ctx context.Context, store Store, id string) (*Session, error) {
	s := &Session{store: store, id: id}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Refresh reads what others have appended to the log since it was read.
func (s *Session) Refresh(ctx context.Context) error {
	load := s.load
	for e, err := range s.store.Load(ctx, s.id, s.seq) {
		if err != nil {
			return fmt.Errorf("session %q: %w", s.id, err)
		}
		load = append(load, e)
	}
	s.load, s.seq = load, s.seq+int64(len(load)-len(s.load))
	return nil
}

// Lock makes this process the only one that writes to the session, until unlock
// is called or the process ends, and reads what others have appended before. It
// returns an error that wraps [ErrBusy] if somebody else is. Where the store is
// no [Locker], there is nothing to lock: an append that comes second gets
// [ErrConflict].
func (s *Session) Lock(ctx context.Context) (unlock func() error, err error) {
	l, ok := s.store.(Locker)
	if !ok {
		return func() error { return nil }, nil
	}
	if unlock, err = l.Lock(ctx, s.id); err != nil {
		return nil, fmt.Errorf("session %q: %w", s.id, err)
	}
	if err = s.Refresh(ctx); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// ID returns the session's id in its store.
func (s *Session) ID() string { return s.id }

// Entries ranges over the log from its first entry.
func (s *Session) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range s.load {
			if !yield(e) {
				return
			}
		}
	}
}

// Append writes the bodies at the end of the log, all or none of them, and
// returns their entries. An append is not undone by a cancel: what has happened
// must be written, so the context's values are used and its end is not.
func (s *Session) Append(ctx context.Context, bodies ...Body) ([]Entry, error) {
	load := s.load
	for i, b := range bodies {
		load = append(load, Entry{Seq: s.seq + int64(i) + 1, Body: b})
	}
	entries := load[len(s.load):len(load):len(load)]
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	if err := s.store.Append(ctx, s.id, s.seq, entries); err != nil {
		s.load = slices.Clip(s.load) // the store may have kept what it failed to write
		return nil, fmt.Errorf("session %q: %w", s.id, err)
	}
	s.seq += int64(len(entries))
	s.load = load
	return entries, nil
}
