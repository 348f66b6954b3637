// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// idleTimer cancels an exchange after too long a silence. Only time spent waiting for the server
// counts, so a slow consumer does not look like a silent server. One timer serves the whole
// exchange; it is reset when it fires, not at each read. It must be closed.
type idleTimer struct {
	limit  time.Duration // 0 means no limit
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer  // nil if not needed yet
	since  time.Time    // start of the current wait; zero if not waiting
	events atomic.Int64 // number of events, as counted by the stream's reader
	seen   int64        // events when the timer last fired
	quiet  time.Time    // time since which no event came; zero if events are not counted
	until  time.Time    // when the exchange ends in any case; zero means never
	closed bool
}

func (t *idleTimer) open(limit time.Duration, cancel context.CancelCauseFunc) {
	t.limit, t.cancel = limit, cancel
	t.mu.Lock()
	defer t.mu.Unlock()
	if limit > 0 {
		t.timer = time.AfterFunc(limit, t.look)
	}
}

// look cancels the exchange if a limit is exceeded, and otherwise sets the timer for the next
// check.
func (t *idleTimer) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	switch {
	case t.closed:
	case !t.until.IsZero() && !now.Before(t.until):
		t.cancel(errClosed)
	case !t.since.IsZero() && t.limit > 0 && now.Sub(t.since) >= t.limit:
		t.cancel(errIdle)
	case t.limit > 0 && t.silent(now):
		t.cancel(errSigns)
	default:
		t.timer.Reset(t.next(now))
	}
}

// patience is the multiple of the idle limit for which a stream may send only keepalives, such as
// the comments of a proxy whose model has stopped.
const patience = 12

// silent reports whether a stream has sent no event for too long. A slow consumer does not count.
func (t *idleTimer) silent(now time.Time) bool {
	n := t.events.Load()
	if n != t.seen || n > 0 && (t.quiet.IsZero() || t.since.IsZero()) {
		t.seen, t.quiet = n, now
	}
	return !t.quiet.IsZero() && now.Sub(t.quiet) >= patience*t.limit
}

// heard counts an event. The first call enables counting.
func (t *idleTimer) heard() { t.events.Add(1) }

// next returns the time until the next check.
func (t *idleTimer) next(now time.Time) time.Duration {
	if t.limit <= 0 {
		return t.until.Sub(now)
	}
	next := now.Add(t.limit)
	if !t.since.IsZero() {
		next = t.since.Add(t.limit)
	}
	if !t.until.IsZero() && t.until.Before(next) {
		next = t.until
	}
	return next.Sub(now)
}

// start begins a wait, and stop ends it.
func (t *idleTimer) start() { t.wait(time.Now()) }
func (t *idleTimer) stop()  { t.wait(time.Time{}) }

func (t *idleTimer) wait(since time.Time) {
	t.mu.Lock()
	t.since = since
	t.mu.Unlock()
}

// end makes the exchange end after d in any case. Only the first call has an effect.
func (t *idleTimer) end(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || !t.until.IsZero() {
		return
	}
	now := time.Now()
	t.until = now.Add(d)
	if t.timer == nil {
		t.timer = time.AfterFunc(d, t.look)
	} else {
		t.timer.Reset(t.next(now))
	}
}

// close stops the timer for good.
func (t *idleTimer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
