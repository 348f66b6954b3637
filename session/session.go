// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// Session is an open log. One writer at a time appends to it; a session is not
// safe for concurrent use.
type Session struct {
	store Store
	id    string
	seq   int64
	load  []Entry

	locked bool            // by Lock
	lost   context.Context // ends when that lock is lost
	held   atomic.Bool     // by Hold
	within *Session        // a nested session is written to under the lock of the one around it

	beside Memory // for nested sessions, where the store has no place for them
}

// New returns an empty session in memory.
func New() *Session { return &Session{store: new(Memory), id: "memory"} }

// Open reads the log of the session id from the store. A session that does not
// exist yet is empty.
func Open(ctx context.Context, store Store, id string) (*Session, error) {
	if id == "" {
		return nil, errors.New("session: Open without an id: name the session")
	}
	s := &Session{store: store, id: id}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// usable reports a session that nobody opened.
func (s *Session) usable() error {
	if s == nil {
		return errors.New("session: the *Session is nil: make one by New or Open")
	}
	if v := reflect.ValueOf(s.store); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("session %q: it has no store: make it by New, or by Open with a store", s.id)
	}
	return nil
}

// Refresh reads what others have appended to the log since it was read.
func (s *Session) Refresh(ctx context.Context) error {
	if err := s.usable(); err != nil {
		return err
	}
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

// gone tells whether the log that was read is still there: somebody may have
// deleted it while the lock was waited for. Its own appends would be refused, those
// to sessions of nested runs would not.
func (s *Session) gone(ctx context.Context) error {
	if s.seq == 0 {
		return nil
	}
	for _, err := range s.store.Load(ctx, s.id, s.seq-1) {
		if err != nil {
			return fmt.Errorf("session %q: %w", s.id, err)
		}
		return nil
	}
	return fmt.Errorf("session %q: %w: it was deleted since it was read", s.id, ErrNotFound)
}

// Lock makes this process the only one that writes to the session, until unlock
// is called or the process ends, and reads what others have appended before. It
// returns an error that wraps [ErrBusy] and names the holder if there is one; it
// does not wait: see [Session.WaitLock]. A session whose id says that it is
// nested shares the lock of the session it is nested in. Where the store is not a
// [Locker], there is nothing to lock: an append that comes second gets
// [ErrConflict].
//
// A run takes the lock itself. Call Lock to read and write in between, or to keep
// others out over several runs.
func (s *Session) Lock(ctx context.Context) (unlock func() error, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	l, ok := s.store.(Locker)
	if !ok {
		return func() error { return nil }, nil
	}
	free, lost, err := lock(ctx, l, outermost(s.id))
	if err != nil {
		return nil, fmt.Errorf("session %q: %w", s.id, err)
	}
	s.locked, s.lost = true, lost
	unlock = sync.OnceValue(func() error {
		s.locked, s.lost = false, nil
		return free()
	})
	if err = cmp.Or(s.gone(ctx), s.Refresh(ctx)); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// lock takes a lock of a store, and returns a context that ends when it is lost;
// nil if the store would not notice.
func lock(ctx context.Context, l Locker, id string) (unlock func() error, lost context.Context, err error) {
	h, ok := l.(Holder)
	if !ok {
		unlock, err = l.Lock(ctx, id)
		return unlock, nil, err
	}
	lost, unlock, err = h.Hold(context.WithoutCancel(ctx), id)
	return unlock, lost, err
}

// WaitLock is [Session.Lock] for a caller who would rather wait: while somebody
// else writes to the session it asks again and again, until ctx is done. Then the
// error is that of the lock, which names the holder, and the context's.
func (s *Session) WaitLock(ctx context.Context) (unlock func() error, err error) {
	const first, most = 10 * time.Millisecond, time.Second
	for pause := first; ; pause = min(2*pause, most) {
		unlock, err = s.Lock(ctx)
		if !errors.Is(err, ErrBusy) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// Hold claims the session for one writer, such as a run, until release is
// called. It takes the lock, unless the caller has it already by
// [Session.Lock]. A second Hold on the same Session gets [ErrBusy]: a lock of the
// store cannot tell two writers apart that share one.
func (s *Session) Hold(ctx context.Context) (release func() error, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if !s.held.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("session %q: %w: another run on the same *Session", s.id, ErrBusy)
	}
	unlock := func() error { return nil }
	if !s.covered() {
		if unlock, err = s.Lock(ctx); err != nil {
			s.held.Store(false)
			return nil, err
		}
	}
	return sync.OnceValue(func() error {
		defer s.held.Store(false)
		return unlock()
	}), nil
}

// covered reports whether the lock is held by this Session, or by the writer of
// the one that it was opened from as nested.
func (s *Session) covered() bool {
	return s.locked || s.within != nil && (s.within.held.Load() || s.within.covered())
}

// ID returns the session's id in its store.
func (s *Session) ID() string {
	if s == nil {
		return ""
	}
	return s.id
}

// Blobs returns where data can be kept beside the log, such as outputs that the
// model does not get whole: the session's store, or for one that keeps no blobs,
// a place in memory that lasts as long as this Session does.
func (s *Session) Blobs() Blobs {
	if s == nil {
		return new(Memory)
	}
	if b, ok := s.store.(Blobs); ok {
		return b
	}
	return &s.beside
}

// Entries ranges over the log from its first entry. They must not be changed.
func (s *Session) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range s.Log() {
			if !yield(e) {
				return
			}
		}
	}
}

// Guard returns a context derived from ctx that also ends when the session is
// lost while it is locked: its lock, or the place where it is stored. Its cause,
// see [context.Cause], then wraps [ErrLost] and says what happened. Only stores
// that are a [Holder] notice. The caller calls stop when the work is done.
func (s *Session) Guard(ctx context.Context) (guarded context.Context, stop func()) {
	guarded, cancel := context.WithCancelCause(ctx)
	for ; s != nil; s = s.within {
		if lost := s.lost; lost != nil {
			forget := context.AfterFunc(lost, func() { cancel(context.Cause(lost)) })
			return guarded, func() { forget(); cancel(nil) }
		}
	}
	return guarded, func() { cancel(nil) }
}

// Append writes the bodies at the end of the log, all or none of them, and
// returns their entries. The log shares no memory with either: who changes a value
// afterwards does not change the log. An append is not undone by a cancel: what has happened
// must be written, so the context's values are used and its end is not.
func (s *Session) Append(ctx context.Context, bodies ...Body) ([]Entry, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	load := s.load
	for i, b := range bodies {
		if problem := checkBody(b); problem != "" {
			return nil, fmt.Errorf("session %q: entry %d: %s", s.id, s.seq+int64(i)+1, problem)
		}
		load = append(load, Entry{Seq: s.seq + int64(i) + 1, Body: cloned(b)})
	}
	entries := load[len(s.load):len(load):len(load)]
	ctx = WithoutCancel(ctx)
	if err := s.store.Append(ctx, s.id, s.seq, entries); err != nil {
		s.load = slices.Clip(s.load) // the store may have kept what it failed to write
		return nil, fmt.Errorf("session %q: %w", s.id, err)
	}
	s.seq += int64(len(entries))
	s.load = load
	return appendCloned(nil, entries), nil
}

// checkBody says what is wrong with a body that somebody made by hand, "" if
// nothing is.
func checkBody(b Body) string {
	var it item.Item
	switch b := b.(type) {
	case nil:
		return "its body is nil"
	case Given:
		it = b.Item
	case Received:
		it = b.Item
	case Answered:
		it = b.Item
	case Note:
		it = b.Item
	default:
		if Kind(b) == "" {
			return fmt.Sprintf("its body is a %T, which is not one of Body's types", b)
		}
		return ""
	}
	if it.IsZero() {
		return Kind(b) + " without an item"
	}
	return ""
}
