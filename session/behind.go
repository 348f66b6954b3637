// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Immediate is a [Store] whose Append returns at once, such as [Memory]. A session
// writes to such a store directly, because writing later would gain nothing.
type Immediate interface {
	Store
	// Immediate does nothing. It marks the store.
	Immediate()
}

// behind holds the entries that were handed to a session but are not durable yet.
// Only one append is in progress at a time. It is performed by the caller that waits
// in [Session.Sync], or by a goroutine that exists only while there are entries to
// write and no caller waits.
type behind struct {
	mu      sync.Mutex
	ctx     context.Context // of the newest entries; only its values are used
	queue   []Entry         // entries that no append has taken yet
	busy    chan struct{}   // closed when the append in progress has ended; nil if there is none
	next    chan struct{}   // like busy, for the append that will take the queue; nil until Written asks for it
	timer   *time.Timer     // starts the goroutine
	durable int64           // the number of the last durable entry
	err     error           // of an append that failed; nothing is written after it
}

// linger is how long the goroutine waits before it writes. Many entries that follow
// one another arrive within this time and are committed together. Compared with the
// time between two items of a reply it is short.
const linger = 2 * time.Millisecond

// ErrNotWritten is wrapped by the error of a [Session.Write] or [Session.Append]
// after an earlier append to the store has failed. The entries of that append, which
// were not announced to anyone yet, are lost, and entries that follow them must not
// be written without them. Call [Session.Refresh] to read the log again and
// continue.
var ErrNotWritten = errors.New("entries before these could not be written")

// Write hands the bodies over to be written at the end of the log, and returns their
// entries. It does not wait until they are durable: the log has them at once, and
// the store gets them a moment later, in one append with other entries written by
// then. Call [Session.Sync] before doing or announcing anything that depends on
// them.
//
// The error reports an invalid body, or an append that has failed since the log was
// last read: see [ErrNotWritten]. Write uses the values of ctx but ignores its
// cancellation.
func (s *Session) Write(ctx context.Context, bodies ...Body) ([]Entry, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	if err := s.failed(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotWritten, err)
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
	if _, ok := s.store.(Immediate); ok {
		if err := s.store.Append(ctx, s.id, s.seq, entries); err != nil {
			// A failed store may still hold the rest of the array, so it must not be
			// written again.
			s.load = slices.Clip(s.load)
			return nil, fmt.Errorf("session %q: %w", s.id, err)
		}
	}
	s.seq += int64(len(entries))
	s.load = load
	if _, ok := s.store.(Immediate); !ok && len(entries) > 0 {
		s.behind.add(ctx, s, entries)
	}
	return appendCloned(nil, entries), nil
}

// Sync waits until everything that was written to the session is durable. If it
// returns an error, some entries are not durable, and the log ends before them;
// [Session.Durable] returns its end. The session then accepts no entries until
// [Session.Refresh] has read the log again.
func (s *Session) Sync() error {
	if err := s.usable(); err != nil {
		return err
	}
	s.behind.settle(s)
	return s.failed()
}

// settle writes the queue and waits for the current append.
func (b *behind) settle(s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
	for b.err == nil && (b.busy != nil || len(b.queue) > 0) {
		if b.busy == nil {
			b.write(s)
			continue
		}
		busy := b.busy
		b.mu.Unlock()
		<-busy
		b.mu.Lock()
	}
}

// Durable returns the number of the last entry that the session knows to be durable.
// It does not wait.
func (s *Session) Durable() int64 {
	if _, ok := s.store.(Immediate); ok {
		return s.seq
	}
	s.behind.mu.Lock()
	defer s.behind.mu.Unlock()
	return s.behind.durable
}

// Written returns a channel that is closed when the current or the next append to
// the store has ended. More of the log is durable then, unless the append failed.
// The channel is nil if no append is in progress and none will follow. Written does
// not wait.
func (s *Session) Written() <-chan struct{} {
	b := &s.behind
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.busy != nil:
		return b.busy
	case len(b.queue) == 0 || b.err != nil:
		return nil
	case b.next == nil:
		b.next = make(chan struct{})
	}
	return b.next
}

// failed returns the error of an append that failed, or nil. It removes the entries
// that were not written from the log in memory.
func (s *Session) failed() error {
	b := &s.behind
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		return nil
	}
	if s.seq > b.durable {
		lost := s.seq - b.durable
		s.load = slices.Clip(s.load[:int64(len(s.load))-lost]) // see Write
		s.seq, b.queue = b.durable, nil
	}
	return b.err
}

// forgive clears the error, so that the session accepts entries again. The caller
// knows that the log ends at entry durable.
func (b *behind) forgive(durable int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.durable, b.err = durable, nil
}

// add puts entries into the queue and makes sure that an append will take them.
func (b *behind) add(ctx context.Context, s *Session, entries []Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ctx = ctx
	if waiting := len(b.queue); waiting > 0 {
		all := s.load[len(s.load)-len(entries)-waiting:]
		b.queue = slices.Clip(all)
		return // the timer is running, or a writer will take the queue
	}
	b.queue = entries
	switch {
	case b.busy != nil: // the current writer takes the queue next
	case b.timer == nil:
		b.timer = time.AfterFunc(linger, func() { b.run(s) })
	default:
		b.timer.Reset(linger)
	}
}

// run performs appends until the queue is empty or an append fails.
func (b *behind) run(s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.busy == nil && len(b.queue) > 0 && b.err == nil {
		b.write(s)
	}
}

// write appends the queue to the store. The caller holds b.mu; write releases it
// during the append, so that the session can queue more entries. If the caller is a
// Sync, entries that arrive meanwhile are written by its next round or, after it has
// returned, by the timer.
func (b *behind) write(s *Session) {
	entries, ctx, busy := b.queue, b.ctx, b.next
	if busy == nil {
		busy = make(chan struct{})
	}
	b.queue, b.busy, b.next = nil, busy, nil
	after := entries[0].Seq - 1
	b.mu.Unlock()
	err := errPanicked
	defer func() { // also if the store panics: others may wait for busy
		b.mu.Lock()
		b.busy = nil
		close(busy)
		if err != nil {
			b.err = fmt.Errorf("session %q: %w", s.id, err)
			return
		}
		b.durable = after + int64(len(entries))
	}()
	err = s.store.Append(ctx, s.id, after, entries)
}

var errPanicked = errors.New("the store panicked during an append; what it has kept is not known")
