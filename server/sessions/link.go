// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"sync"
	"time"
)

// link knows whether the server can be reached, so that a client is told once.
type link struct {
	mu   sync.Mutex
	gone bool
}

func (l *link) lost(tell func(error), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gone && tell != nil {
		tell(err)
	}
	l.gone = true
}

func (l *link) found(tell func(error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone && tell != nil {
		tell(nil)
	}
	l.gone = false
}

// retry makes the pauses between attempts: they grow.
type retry struct{ pause time.Duration }

const (
	firstPause = 100 * time.Millisecond
	mostPause  = 10 * time.Second
)

// wait waits for the next attempt. It returns false if ctx is done.
func (r *retry) wait(ctx context.Context) bool {
	r.pause = min(max(2*r.pause, firstPause), mostPause)
	select {
	case <-time.After(r.pause):
		return true
	case <-ctx.Done():
		return false
	}
}
