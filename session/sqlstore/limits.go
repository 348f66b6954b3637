// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"

	"github.com/antiphon-go/antiphon/session/queue"
)

// The table antiphon_endpoints has a row for each endpoint that has caps, was stopped or
// asked to wait. All times in it are of the database's clock, in milliseconds.
//
// The caps for requests and tokens are each one time: the next request may be sent when
// both have passed. A request moves "next" on by its share of a minute. A reply moves
// "paid" on by the share of a minute that its tokens are, counted from when its request
// was sent. So no row is written for each request, and none has to be removed.

// limited is a row of antiphon_endpoints.
type limited struct {
	queue.Caps

	stopped      string
	until, pause int64
	next, paid   float64
	running      int
	now          float64
}

const limitedColumns = `e.url, e.requests, e.tokens, e.runs, e.stopped, e.until, e.pause, e.next, e.paid,
	(SELECT count(*) FROM antiphon_work w WHERE w.state = 'running' AND w.endpoint = e.url)`

func scanLimited(row interface{ Scan(...any) error }) (url string, l limited, err error) {
	err = row.Scan(&url, &l.Requests, &l.Tokens, &l.Runs, &l.stopped, &l.until, &l.pause, &l.next, &l.paid, &l.running, &l.now)
	l.putRight()
	return url, l, err
}

// clockSlack is how much a clock may be set back without a time being taken for a wrong one, and mostAhead is how far ahead the
// times of a request and of a worker are at most.
const (
	clockSlack = time.Minute
	mostAhead  = time.Hour
	// mostOwed is how long requests wait at most for tokens that were used.
	mostOwed = 24 * time.Hour
)

// putRight leaves out the times that were written while the clock was ahead: nothing would be sent to the endpoint until then.
func (l *limited) putRight() {
	ahead := func(t float64, most time.Duration) bool { return millis(t-l.now) > most+clockSlack }
	if ahead(float64(l.until), millis(float64(l.pause))) {
		l.until, l.pause = 0, 0
	}
	if l.Requests > 0 && ahead(l.next, mostAhead+millis(share(1, l.Requests))) {
		l.next = 0
	}
	if ahead(l.paid, mostOwed) {
		l.paid = 0
	}
}

// millis returns a number of milliseconds as a time.
func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// endpoint describes the row.
func (l *limited) endpoint(url string) queue.Endpoint {
	e := queue.Endpoint{URL: url, Caps: l.Caps, Stopped: l.stopped, Running: l.running}
	if l.until > 0 {
		e.Wait, e.Pause = millis(float64(l.until)-l.now), millis(float64(l.pause))
	}
	return e
}

// share is the share of a minute that some of so many a minute take, in milliseconds.
func share(n, of int64) float64 {
	return float64(n) / float64(of) * float64(time.Minute.Milliseconds())
}

// Endpoints implements [queue.Limits].
func (s *Store) Endpoints(ctx context.Context) (list []queue.Endpoint, err error) {
	if err := s.opened(); err != nil {
		return nil, err
	}
	err = s.reading(ctx, func() error {
		list = nil
		rows, err := s.reads.rows(ctx, `SELECT `+limitedColumns+`, `+s.reads.clock()+` FROM antiphon_endpoints e ORDER BY e.url`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			url, l, err := scanLimited(rows)
			if err != nil {
				return err
			}
			list = append(list, l.endpoint(url))
		}
		return cmp.Or(rows.Err(), rows.Close())
	})
	if err != nil {
		return nil, s.fail("reading the limits of endpoints", err)
	}
	return list, nil
}

// limited returns the row of an endpoint, which is locked until the transaction ends. A
// row that does not exist has no limits.
func (t *tx) limited(ctx context.Context, url string) (l limited, err error) {
	lock := ``
	if t.postgres {
		lock = ` FOR UPDATE`
	}
	_, l, err = scanLimited(t.row(ctx, `SELECT `+limitedColumns+`, `+t.clock()+` FROM antiphon_endpoints e WHERE e.url = ?`+lock, url))
	return l, err
}

// writeLimits changes limits in a transaction. Those who wait for work look again, because
// more may begin now.
func (s *Store) writeLimits(ctx context.Context, url string, do func(ctx context.Context, t *tx) error) error {
	if url == "" {
		return errors.New("an endpoint has a URL")
	}
	return s.writeWork(ctx, "writing the limits of an endpoint", do)
}

// Limit implements [queue.Limits].
func (s *Store) Limit(ctx context.Context, url string, c queue.Caps) error {
	if c.Requests < 0 || c.Tokens < 0 || c.Runs < 0 {
		return fmt.Errorf("caps cannot be negative: %+v", c)
	}
	return s.writeLimits(ctx, url, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `INSERT INTO antiphon_endpoints (url, requests, tokens, runs) VALUES (?, ?, ?, ?)
			ON CONFLICT (url) DO UPDATE SET requests = excluded.requests, tokens = excluded.tokens, runs = excluded.runs`, url, c.Requests, c.Tokens, c.Runs)
		return err
	})
}

// Stop implements [queue.Limits].
func (s *Store) Stop(ctx context.Context, url, reason string) error {
	return s.writeLimits(ctx, url, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `INSERT INTO antiphon_endpoints (url, stopped) VALUES (?, ?)
			ON CONFLICT (url) DO UPDATE SET stopped = excluded.stopped, until = CASE WHEN excluded.stopped = '' THEN 0 ELSE antiphon_endpoints.until END`, url, reason)
		return err
	})
}

// Slow implements [queue.Limits].
func (s *Store) Slow(ctx context.Context, url string, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	return s.writeLimits(ctx, url, func(ctx context.Context, t *tx) error {
		until := t.clock() + ` + ?`
		ms := max(wait.Milliseconds(), 1)
		_, err := t.exec(ctx, `INSERT INTO antiphon_endpoints AS e (url, until, pause) VALUES (?, `+until+`, ?)
			ON CONFLICT (url) DO UPDATE SET until = excluded.until, pause = excluded.pause
			WHERE e.until < excluded.until OR e.until > `+t.clock()+fmt.Sprintf(` + e.pause + %d`, clockSlack.Milliseconds()), url, ms, ms) // see putRight
		return err
	})
}

// Send implements [queue.Limits]. Without caps it only reads.
func (s *Store) Send(ctx context.Context, url string, most time.Duration) (e queue.Endpoint, err error) {
	if err := s.opened(); err != nil {
		return e, err
	}
	var l limited
	err = s.reading(ctx, func() error {
		_, l, err = scanLimited(s.reads.row(ctx, `SELECT `+limitedColumns+`, `+s.reads.clock()+` FROM antiphon_endpoints e WHERE e.url = ?`, url))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return queue.Endpoint{URL: url}, nil
	}
	if err == nil && l.Requests+l.Tokens > 0 && l.stopped == "" {
		err = s.write(ctx, func(ctx context.Context, t *tx) error {
			if l, err = t.limited(ctx, url); err != nil {
				return err
			}
			return t.reserve(ctx, url, &l, most)
		})
	}
	if err != nil {
		return e, s.fail("asking for the time of a request", err)
	}
	return l.endpoint(url), nil
}

// reserve takes the time of a request, unless it is too late. The row says then how long
// to wait.
func (t *tx) reserve(ctx context.Context, url string, l *limited, most time.Duration) error {
	at := max(l.now, float64(l.until))
	if l.Requests > 0 {
		at = max(at, l.next)
	}
	if l.Tokens > 0 {
		at = max(at, l.paid)
	}
	if l.stopped != "" {
		return nil
	}
	if at > l.now {
		// What waits for a cap is spread already.
		if at > float64(l.until) {
			l.pause = 0
		}
		l.until = int64(math.Ceil(at))
	}
	if l.Requests == 0 || millis(at-l.now) > most {
		return nil
	}
	_, err := t.exec(ctx, `UPDATE antiphon_endpoints SET next = ? WHERE url = ?`, at+share(1, l.Requests), url)
	return err
}

// Used implements [queue.Limits].
func (s *Store) Used(ctx context.Context, url string, tokens int64, ago time.Duration) error {
	if tokens <= 0 {
		return nil
	}
	if err := s.opened(); err != nil {
		return err
	}
	var capped bool
	err := s.reading(ctx, func() error {
		return s.reads.row(ctx, `SELECT EXISTS (SELECT 1 FROM antiphon_endpoints WHERE url = ? AND tokens > 0)`, url).Scan(&capped)
	})
	if err == nil && capped {
		err = s.write(ctx, func(ctx context.Context, t *tx) error {
			l, err := t.limited(ctx, url)
			if err != nil || l.Tokens == 0 {
				return err
			}
			sent := l.now - float64(max(ago, 0).Milliseconds())
			paid := min(max(l.paid, sent)+share(tokens, l.Tokens), l.now+float64(mostOwed.Milliseconds()))
			_, err = t.exec(ctx, `UPDATE antiphon_endpoints SET paid = ? WHERE url = ?`, paid, url)
			return err
		})
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return s.fail("recording the use of an endpoint", err)
	}
	return nil
}

// full returns [queue.ErrFull] if an endpoint or a tenant has as many runs as it may have.
// The row of the endpoint and the tenant stay locked, so that two workers do not both take
// the last place.
func (t *tx) full(ctx context.Context, w queue.Work) error {
	if w.Endpoint != "" {
		l, err := t.limited(ctx, w.Endpoint)
		if err == nil && l.Runs > 0 {
			err = t.others(ctx, `endpoint`, w.Endpoint, w.Session, l.Runs)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	if w.Cap <= 0 {
		return nil
	}
	if t.postgres {
		if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?, ?)`, tenantLock, int32(crc32.ChecksumIEEE([]byte(w.Tenant)))); err != nil {
			return err
		}
	}
	return t.others(ctx, `tenant`, w.Tenant, w.Session, int64(w.Cap))
}

// others returns [queue.ErrFull] if so much other work is running. A session's own place does
// not count if a worker that died had begun it.
func (t *tx) others(ctx context.Context, column, value, id string, most int64) error {
	var n int64
	err := t.row(ctx, `SELECT count(*) FROM antiphon_work WHERE state = 'running' AND `+column+` = ? AND id <> ?`, value, id).Scan(&n)
	if err == nil && n >= most {
		err = queue.ErrFull
	}
	return err
}

var _ queue.Limits = (*Store)(nil)
