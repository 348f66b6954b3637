// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
)

// Session is an open log. Only one writer at a time writes to it; a Session is not safe
// for concurrent use. An entry that [Session.Append] returned is durable; an entry that
// [Session.Write] returned is durable after the next [Session.Sync].
type Session struct {
	store  Store
	id     string
	seq    int64
	load   []Entry
	behind behind

	locked bool            // by Lock
	lost   context.Context // ends when that lock is lost
	held   atomic.Bool     // by Hold
	within *Session        // the enclosing session, whose lock covers this one

	beside Memory // for nested sessions if the store cannot keep them
}

// New returns an empty session in memory. Its id is random, so that no other session, in
// any process, has the same one: logs, traces and the keys of calls tell sessions apart by it.
func New() *Session {
	return &Session{store: new(Memory), id: "memory-" + strings.ToLower(rand.Text()[:16])}
}

// Open reads the log of the session id from the store. If the session does not exist
// yet, it is empty.
//
// An id of the form PARENT/N-REST, where N is a number, is that of a session nested in PARENT: it is
// locked, and deleted, with it. Other ids may have a slash.
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

// OpenLocked opens the session id for one writer, as [Open] and [Session.Lock] do, and reads
// its log once. When it has the lock, and before it reads, it calls locked, unless it is nil:
// to show the end of a long log, for example. An error of locked ends it.
func OpenLocked(ctx context.Context, store Store, id string, locked func() error) (s *Session, unlock func() error, err error) {
	if id == "" {
		return nil, nil, errors.New("session: OpenLocked without an id: name the session")
	}
	s = &Session{store: store, id: id}
	if unlock, err = s.take(ctx, locked); err != nil {
		return nil, nil, err
	}
	return s, unlock, nil
}

// Beside opens the log of the session a second time, to read it while a writer uses
// the session. It may be called at any time.
func (s *Session) Beside(ctx context.Context) (*Session, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return Open(ctx, s.store, s.id)
}

// usable returns an error for a Session that was not made by New or Open.
func (s *Session) usable() error {
	if s == nil {
		return errors.New("session: the *Session is nil: make one by New or Open")
	}
	if nils.Is(s.store) {
		return fmt.Errorf("session %q: it has no store: make it by New, or by Open with a store", s.id)
	}
	return nil
}

// Refresh reads the entries that other writers have appended since the log was last
// read. After an append that failed, it finds out what the store has kept, and the
// session accepts entries again.
func (s *Session) Refresh(ctx context.Context) error {
	if err := s.usable(); err != nil {
		return err
	}
	_ = s.Sync() // the caller has seen this error, and reading the log again resolves it
	load := s.load
	for e, err := range nils.Each(s.store, "Load", s.store.Load(ctx, s.id, s.seq)) {
		if err != nil {
			return fmt.Errorf("session %q: %w", s.id, err)
		}
		if next := s.seq + int64(len(load)-len(s.load)) + 1; e.Seq != next || e.Body == nil {
			return fmt.Errorf("session %q: %w: its store yields entry %d (%T) where entry %d follows", s.id, ErrDamaged, e.Seq, e.Body, next)
		}
		load = append(load, e)
	}
	s.load, s.seq = load, s.seq+int64(len(load)-len(s.load))
	s.behind.forgive(s.seq)
	return nil
}

// gone returns an error if the log that was read no longer exists. Another process
// may have deleted the session while this one waited for its lock. The store would
// refuse appends to this session then, but not appends to its subagents' sessions.
func (s *Session) gone(ctx context.Context) error {
	if s.seq == 0 {
		return nil
	}
	for _, err := range nils.Each(s.store, "Load", s.store.Load(ctx, s.id, s.seq-1)) {
		if err != nil {
			return fmt.Errorf("session %q: %w", s.id, err)
		}
		return nil
	}
	return fmt.Errorf("session %q: %w: it was deleted since it was read", s.id, ErrNotFound)
}

// Lock makes this process the only writer of the session, until unlock is called or
// the process ends, and reads the entries that others appended before. If another
// writer holds the lock, Lock returns an error that wraps [ErrBusy] and names the
// holder. It does not wait: see [Session.WaitLock]. A session whose id says that it
// is nested shares the lock of the session it is nested in. If the store is not a
// [Locker], Lock does nothing, and of two concurrent appends the second gets
// [ErrConflict].
//
// A run takes the lock itself. Call Lock to read and write in between, or to keep
// other writers out over several runs.
func (s *Session) Lock(ctx context.Context) (unlock func() error, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if _, ok := s.store.(Locker); !ok {
		return func() error { return nil }, nil
	}
	return s.take(ctx, nil)
}

// take takes the lock, if the store has locks, calls locked, unless it is nil, and reads the
// log.
func (s *Session) take(ctx context.Context, locked func() error) (unlock func() error, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if locked == nil {
		locked = func() error { return nil }
	}
	l, ok := s.store.(Locker)
	if !ok {
		if err = locked(); err == nil {
			err = s.Refresh(ctx)
		}
		return func() error { return nil }, err
	}
	free, lost, err := lock(ctx, l, outermost(s.id))
	if err != nil {
		return nil, fmt.Errorf("session %q: %w", s.id, err)
	}
	s.locked, s.lost = true, lost
	unlock = sync.OnceValue(func() error {
		err := s.Sync() // entries written under the lock must be durable before others get it
		s.locked, s.lost = false, nil
		return cmp.Or(free(), err)
	})
	if err = locked(); err == nil {
		err = cmp.Or(s.gone(ctx), s.Refresh(ctx))
	}
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// lock takes a lock of a store. It returns a context that ends when the lock is
// lost, or nil if the store does not notice that.
func lock(ctx context.Context, l Locker, id string) (unlock func() error, lost context.Context, err error) {
	if h, ok := l.(Holder); ok {
		// The lock lasts until unlock, not until ctx is done.
		lost, unlock, err = h.Hold(context.WithoutCancel(ctx), id)
	} else {
		unlock, err = l.Lock(ctx, id)
	}
	if err == nil && unlock == nil {
		err = nils.NoUnlock(l)
	}
	return unlock, lost, err
}

// WaitLock is like [Session.Lock], but waits while another writer holds the lock: it
// tries again until ctx is done. The error then wraps both the error of the lock,
// which names the holder, and the context's error.
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

// Hold reserves the session for one writer, such as a run, until release is called.
// It takes the lock, unless the caller has it already by [Session.Lock]. A second
// Hold on the same Session gets [ErrBusy], because the store's lock cannot
// distinguish two writers that share it.
func (s *Session) Hold(ctx context.Context) (release func() error, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if !s.held.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("session %q: %w: another run on the same *Session", s.id, ErrBusy)
	}
	unlock := func() error { return nil }
	if s.failed() != nil {
		if err = s.Refresh(ctx); err != nil {
			s.held.Store(false)
			return nil, err
		}
	}
	if !s.covered() {
		if unlock, err = s.Lock(ctx); err != nil {
			s.held.Store(false)
			return nil, err
		}
	}
	return sync.OnceValue(func() error {
		defer s.held.Store(false)
		return cmp.Or(s.Sync(), unlock())
	}), nil
}

// covered reports whether the lock is held by this Session, or by the writer of the
// enclosing session that it was opened from.
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

// Blobs returns the place for data beside the log, such as outputs that were too
// long for the model: the session's store, or, if the store does not keep blobs,
// memory that lasts as long as this Session.
func (s *Session) Blobs() Blobs {
	if s == nil {
		return new(Memory)
	}
	if b, ok := s.store.(Blobs); ok {
		return b
	}
	return &s.beside
}

// Entries ranges over the log from its first entry. The caller must not change the
// entries.
func (s *Session) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range s.Log() {
			if !yield(e) {
				return
			}
		}
	}
}

// Watch yields the entries of the session that follow number after, and then those
// that are appended later, by this process or another, each once and in order. It
// ends without an error when ctx ends or the session is deleted. An error is yielded
// once. It wraps [errors.ErrUnsupported] where the store is not a [Watcher]. Like
// [Session.Deliver], [Session.Deliveries], [Session.Notify], [Session.Beside] and
// [Session.Nested], Watch may be used while another goroutine writes to the session.
func (s *Session) Watch(ctx context.Context, after int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := s.usable(); err != nil {
			yield(Entry{}, err)
			return
		}
		w, ok := s.store.(Watcher)
		if !ok {
			yield(Entry{}, fmt.Errorf("session %q: its store cannot be watched: %w", s.id, errors.ErrUnsupported))
			return
		}
		for e, err := range nils.Each(w, "Watch", w.Watch(ctx, s.id, after)) {
			if !yield(e, err) {
				return
			}
		}
	}
}

// Guard returns a context derived from ctx that also ends when the lock of the
// session, or the place where the session is stored, is lost. Its cause (see
// [context.Cause]) then wraps [ErrLost] and says what happened. Only stores that
// implement [Holder] detect this. The caller must call stop when the work is done.
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

// Append writes the bodies at the end of the log, all or none of them, waits until
// they are durable, and returns their entries. The log shares no memory with the
// arguments or the results, so the caller may change them afterwards. Append uses
// the values of ctx but ignores its cancellation, because what has happened must be
// recorded.
//
// Entries that [Session.Write] wrote before are durable then, too. If there were
// none, a failed Append may be tried again.
func (s *Session) Append(ctx context.Context, bodies ...Body) ([]Entry, error) {
	// If no earlier entries are waiting, a failure loses only the bodies of this
	// call. The caller knows about these, so the session can accept entries again.
	alone := s != nil && s.Durable() == s.seq
	entries, err := s.Write(ctx, bodies...)
	if err != nil {
		return nil, err
	}
	if err := s.Sync(); err != nil {
		if alone {
			s.behind.forgive(s.seq)
		}
		return nil, err
	}
	return entries, nil
}

// checkBody describes what is wrong with a body that a caller made by hand, or
// returns "".
func checkBody(b Body) string {
	var it item.Item
	switch b := b.(type) {
	case nil:
		return "its body is nil"
	case InputItem:
		it = b.Item
	case OutputItem:
		it = b.Item
	case CallOutput:
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
