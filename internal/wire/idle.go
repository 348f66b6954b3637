// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// idleTimer cancels an exchange when nothing comes for too long. That counts
// only while something is waited for: a slow consumer is not a silent server.
// There is one timer for the whole exchange, which is set anew when it fires and
// not at each read. It must be closed.
type idleTimer struct {
	limit  time.Duration // 0: none
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	timer  *time.Timer  // nil: none is needed yet
	since  time.Time    // when the waiting began; zero: nothing is waited for
	events atomic.Int64 // that came of a stream, as its reader counts them
	seen   int64        // of these, when the timer last looked
	quiet  time.Time    // since when none came; zero: nobody counts
	until  time.Time    // when the exchange ends in any case; zero: it does not
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

// look cancels if what is waited for is overdue, and looks again when it would
// be.
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

// patience is how many times the idle limit a stream may go on with signs of life
// and nothing else, such as the comments of a proxy whose model is gone.
const patience = 12

// silent reports a stream that has sent no event for too long, as far as the
// timer looks. A slow consumer is not a silent stream.
func (t *idleTimer) silent(now time.Time) bool {
	n := t.events.Load()
	if n != t.seen || n > 0 && (t.quiet.IsZero() || t.since.IsZero()) {
		t.seen, t.quiet = n, now
	}
	return !t.quiet.IsZero() && now.Sub(t.quiet) >= patience*t.limit
}

// heard counts an event. The first call says that events are counted.
func (t *idleTimer) heard() { t.events.Add(1) }

// next is how long it is until there is something to look at.
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

// start begins the waiting, and stop ends it.
func (t *idleTimer) start() { t.wait(time.Now()) }
func (t *idleTimer) stop()  { t.wait(time.Time{}) }

func (t *idleTimer) wait(since time.Time) {
	t.mu.Lock()
	t.since = since
	t.mu.Unlock()
}

// end has the exchange end in a while, whatever comes. The first time counts.
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

// close ends the timer for good.
func (t *idleTimer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
}
