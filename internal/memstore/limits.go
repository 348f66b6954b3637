// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/session/queue"
)

// limit is what is known about an endpoint, as in package sqlstore.
type limit struct {
	queue.Caps

	stopped    string
	until      time.Time // nothing may be sent before
	pause      time.Duration
	next, paid time.Time // when the next request may be sent, by the caps for requests and for tokens
}

// endpoint describes the limits of an endpoint.
func (db *DB) endpoint(url string, l limit) queue.Endpoint {
	e := queue.Endpoint{URL: url, Caps: l.Caps, Stopped: l.stopped}
	if !l.until.IsZero() {
		e.Wait, e.Pause = time.Until(l.until), l.pause
	}
	for _, w := range db.works {
		if w.State == queue.Running && w.Endpoint == url {
			e.Running++
		}
	}
	return e
}

// Endpoints is [queue.Limits.Endpoints].
func (db *DB) Endpoints() (list []queue.Endpoint) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, url := range slices.Sorted(maps.Keys(db.limits)) {
		list = append(list, db.endpoint(url, db.limits[url]))
	}
	return list
}

// limited changes the limits of an endpoint.
func (db *DB) limited(url string, do func(l *limit)) error {
	if url == "" {
		return errors.New("an endpoint has a URL")
	}
	return db.in(func() (func(*Store), error) {
		l := db.limits[url]
		do(&l)
		put(&db.limits, url, l)
		return anything, nil
	})
}

// Limit is [queue.Limits.Limit].
func (db *DB) Limit(url string, c queue.Caps) error {
	if c.Requests < 0 || c.Tokens < 0 || c.Runs < 0 {
		return fmt.Errorf("caps cannot be negative: %+v", c)
	}
	return db.limited(url, func(l *limit) { l.Caps = c })
}

// Stop is [queue.Limits.Stop].
func (db *DB) Stop(url, reason string) error {
	return db.limited(url, func(l *limit) {
		if l.stopped = reason; reason == "" {
			l.until = time.Time{}
		}
	})
}

// Slow is [queue.Limits.Slow].
func (db *DB) Slow(url string, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	return db.limited(url, func(l *limit) {
		if until := time.Now().Add(wait); until.After(l.until) {
			l.until, l.pause = until, wait
		}
	})
}

// share is the share of a minute that some of so many a minute take.
func share(n, of int64) time.Duration {
	return time.Duration(float64(n) / float64(of) * float64(time.Minute))
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Send is [queue.Limits.Send].
func (db *DB) Send(url string, most time.Duration) queue.Endpoint {
	db.mu.Lock()
	defer db.mu.Unlock()
	l, ok := db.limits[url]
	if !ok {
		return queue.Endpoint{URL: url}
	}
	if l.stopped != "" || l.Requests+l.Tokens == 0 {
		return db.endpoint(url, l)
	}
	now := time.Now()
	at := later(now, l.until)
	if l.Requests > 0 {
		at = later(at, l.next)
	}
	if l.Tokens > 0 {
		at = later(at, l.paid)
	}
	if l.Requests > 0 && at.Sub(now) <= most {
		l.next = at.Add(share(1, l.Requests))
		db.limits[url] = l
	}
	if at.After(now) {
		if at.After(l.until) { // what waits for a cap is spread already
			l.pause = 0
		}
		l.until = at
	}
	return db.endpoint(url, l)
}

// Used is [queue.Limits.Used].
func (db *DB) Used(url string, tokens int64, ago time.Duration) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if l := db.limits[url]; l.Tokens > 0 && tokens > 0 {
		l.paid = later(l.paid, time.Now().Add(-max(ago, 0))).Add(share(tokens, l.Tokens))
		db.limits[url] = l
	}
}

// fullAt reports whether an endpoint has as many runs, but for one session's, as it may have.
func (db *DB) fullAt(url, id string) bool {
	l, n := db.limits[url], int64(0)
	for other, w := range db.works {
		if w.State == queue.Running && w.Endpoint == url && other != id {
			n++
		}
	}
	return url != "" && l.Runs > 0 && n >= l.Runs
}

// Endpoints implements [queue.Limits].
func (s *Store) Endpoints(ctx context.Context) (list []queue.Endpoint, err error) {
	err = s.net(ctx, "endpoints", func() error {
		list = s.db.Endpoints()
		return nil
	})
	return list, err
}

// Limit implements [queue.Limits].
func (s *Store) Limit(ctx context.Context, url string, c queue.Caps) error {
	return s.net(ctx, "limit "+url, func() error { return s.db.Limit(url, c) })
}

// Stop implements [queue.Limits].
func (s *Store) Stop(ctx context.Context, url, reason string) error {
	return s.net(ctx, "stop "+url, func() error { return s.db.Stop(url, reason) })
}

// Send implements [queue.Limits].
func (s *Store) Send(ctx context.Context, url string, most time.Duration) (e queue.Endpoint, err error) {
	err = s.net(ctx, "send "+url, func() error {
		e = s.db.Send(url, most)
		return nil
	})
	return e, err
}

// Slow implements [queue.Limits].
func (s *Store) Slow(ctx context.Context, url string, wait time.Duration) error {
	return s.net(ctx, fmt.Sprint("slow ", url, " ", wait), func() error { return s.db.Slow(url, wait) })
}

// Used implements [queue.Limits].
func (s *Store) Used(ctx context.Context, url string, tokens int64, ago time.Duration) error {
	return s.net(ctx, fmt.Sprint("used ", url, " ", tokens, " ", ago), func() error {
		s.db.Used(url, tokens, ago)
		return nil
	})
}

var _ queue.Limits = (*Store)(nil)
