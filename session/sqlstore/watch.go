// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// Watch implements [session.Watcher]. It sees appends by this store at once, and
// those by other processes at the interval [Options.Poll] or, on Postgres, when they tell.
func (s *Store) Watch(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		if err := s.opened(); err != nil {
			yield(session.Entry{}, err)
			return
		}
		w := watch{s: s, id: id, after: max(after, 0)}
		defer s.wakes.watching(id)()
		var said time.Time
		for {
			if time.Since(said) > saysWatching {
				s.wakes.say(channelWatch, id)
				said = time.Now()
			}
			// Get the channel before looking, so that no change is missed in
			// between.
			changed := s.change(id)
			more, err := w.look(ctx, yield)
			if !more || ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(session.Entry{}, err)
				return
			}
			if !s.sleep(ctx, changed) {
				return
			}
		}
	}
}

// watch is the state of a running Watch.
type watch struct {
	s     *Store
	id    string
	after int64
	log   int64 // the session's log, once the session exists
}

// look yields new entries, and reports whether to look again. It does not if the
// session was deleted or the caller stopped iterating.
func (w *watch) look(ctx context.Context, yield func(session.Entry, error) bool) (more bool, err error) {
	var log, end int64
	err = w.s.reading(ctx, func() error {
		return w.s.reads.row(ctx, `SELECT log, entries FROM antiphon_sessions WHERE id = ?`, w.id).Scan(&log, &end)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return w.log == 0, nil
	}
	if err != nil {
		return true, w.s.fail("watching", err)
	}
	// The session was deleted, and another one was created with its id.
	if w.log != 0 && w.log != log {
		return false, nil
	}
	w.log = log
	if end <= w.after {
		return true, nil
	}
	var entries []session.Entry // collected first: no statement is open while they are yielded
	for e, err := range w.s.loadLog(ctx, w.id, log, w.after) {
		if errors.Is(err, errReplaced) { // since the query above
			return false, nil
		}
		if err != nil {
			return true, err
		}
		entries = append(entries, e)
	}
	for _, e := range entries {
		if !yield(e, nil) {
			return false, nil
		}
		w.after = e.Seq
	}
	return true, nil
}

// change returns a channel that is closed when this store next changes the session.
func (s *Store) change(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.changed[id]
	if c == nil {
		c = make(chan struct{})
		s.changed[id] = c
	}
	return c
}

// sleep waits for a change, for the poll interval, or until it is time to say again who
// watches. It returns false if ctx is
// done.
func (s *Store) sleep(ctx context.Context, changed <-chan struct{}) bool {
	timer := time.NewTimer(min(s.poll, saysWatching))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}
