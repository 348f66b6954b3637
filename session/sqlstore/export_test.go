// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/internal/lease"
	"github.com/antiphon-go/antiphon/internal/words"
	"github.com/antiphon-go/antiphon/session"
)

// CreateSlowly creates a session in a transaction that commit ends.
func (s *Store) CreateSlowly(ctx context.Context, id string) (commit func() error, err error) {
	trans, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	t := &tx{q: trans, postgres: true}
	return trans.Commit, t.insert(ctx, session.Info{ID: id}, false, base{}, session.Sum{}, s.now())
}

// Blocked returns how many connections of the database wait for a lock.
func (s *Store) Blocked(ctx context.Context) (n int, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
	return n, err
}

// Waiting returns how many writes wait for the next commit.
func (s *Store) Waiting() int {
	s.commit.mu.Lock()
	defer s.commit.mu.Unlock()
	return len(s.commit.queue)
}

// MostConnections returns how many connections the store may have at once.
func (s *Store) MostConnections() int { return s.db.Stats().MaxOpenConnections }

// BePatient has the store wait for a lock until its holder ends.
func (s *Store) BePatient() { s.patience = time.Hour }

// RenewWhenTold keeps the store from renewing its leases but by RenewNow.
func (s *Store) RenewWhenTold() {
	s.lease = time.Hour
	s.holds.leases.Length = s.lease
}

// RenewNow renews the leases, and returns how many are held.
func (s *Store) RenewNow(ctx context.Context) int {
	s.holds.leases.RenewAll(ctx)
	return len(s.holds.leases.All())
}

// EndLease lets a lease end, as if its time were over.
func (s *Store) EndLease(ctx context.Context, id string) error {
	_, err := s.reads.exec(ctx, `UPDATE antiphon_leases SET until = clock_timestamp() WHERE id = ?`, id)
	return err
}

// EndLeasesHere has all leases end by this machine's clock.
func (s *Store) EndLeasesHere() {
	for _, l := range s.holds.leases.All() {
		s.holds.leases.Extend(l, time.Now())
	}
}

// TakeLeaseTwice takes a lease by a request that reaches the server twice.
func (s *Store) TakeLeaseTwice(ctx context.Context, id string) error {
	one := &hold{Lease: lease.Lease{ID: id}}
	return cmp.Or(s.takeLease(ctx, one, "twice"), s.takeLease(ctx, one, "twice"))
}

// Formats returns the version of the newest format of a dialect, and the SQL
// that makes an empty database of it.
func Formats(dialect string) (newest int, schema string) {
	all, err := migrationsOf(migrations, dialect)
	if err != nil {
		panic(err)
	}
	for _, m := range all {
		schema += m.sql
	}
	return len(all), schema
}

// NameQuery looks for a session of a name.
const NameQuery = nameQuery

// ListQuery and SearchQuery return the statements of a list and of a page of a
// search.
func ListQuery(q session.Query, postgres bool) (string, []any) {
	query, args, err := listQuery(q, postgres)
	if err != nil {
		panic(err)
	}
	return query, args
}

func SearchQuery(s session.Search, before int64, postgres bool) (string, []any) {
	w, err := words.Parse(s.Words)
	if err != nil {
		panic(err)
	}
	return searchQuery(s.Query, w, before, firstPage, postgres)
}

// Numbered returns a statement as Postgres wants it.
func Numbered(query string) string { return (&tx{postgres: true}).text(query) }

// OwnersQuery asks for the owners of a log.
const OwnersQuery = ownersQuery

// NameKey is the second index of a name.
func NameKey(name string) int64 { return nameKeyOf(name) }

// Outcome runs a transaction of the entries, or an empty one if there are none,
// commits it or gives it up, and returns what the store finds out of it when a
// later transaction, which was committed, has its number.
func (s *Store) Outcome(ctx context.Context, id string, after int64, entries []session.Entry, commit bool) (written bool, err error) {
	trans, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	t := &tx{q: trans, postgres: true}
	if len(entries) > 0 {
		a, err := s.encode(id, after, entries)
		if err == nil {
			err = a.write(ctx, t)
		}
		if err != nil {
			return false, err
		}
	} else if err := s.sign(ctx, t); err != nil {
		return false, err
	}
	end := trans.Rollback
	if commit {
		end = trans.Commit
	}
	if err := end(); err != nil {
		return false, err
	}
	var xid string
	if err := s.db.QueryRowContext(ctx, `SELECT pg_current_xact_id()::text`).Scan(&xid); err != nil {
		return false, err
	}
	return s.outcome(ctx, &commitError{nil, xid, t.proof})
}

// Stick locks the row of a session in a transaction, and does not end it before release is
// closed: as a process that is frozen in the middle.
func (s *Store) Stick(ctx context.Context, id string, locked chan<- struct{}, release <-chan struct{}) error {
	return s.transactOnce(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.take(ctx, id)
		close(locked)
		<-release
		return err
	})
}

// IsWatched reports whether another process has said that it watches the session.
func (s *Store) IsWatched(id string) bool {
	s.wakes.mu.Lock()
	defer s.wakes.mu.Unlock()
	_, ok := s.wakes.watched[id]
	return ok
}

// Hears reports whether messages of other processes arrive.
func (s *Store) Hears() bool {
	s.wakes.mu.Lock()
	defer s.wakes.mu.Unlock()
	return s.wakes.hears
}

// Deafen keeps the store from listening to other processes.
func (s *Store) Deafen() {
	s.wakes.mu.Lock()
	defer s.wakes.mu.Unlock()
	s.wakes.closed = true
}

// ListenOnce listens until the connection breaks.
func (s *Store) ListenOnce(ctx context.Context) error { return s.wakes.listenOnce(ctx) }

// ErrPooled means that no message arrived.
var ErrPooled = errPooled

// FillQueue adds rows of work that is ready, of so many tenants.
func (s *Store) FillQueue(ctx context.Context, rows, tenants int) error {
	numbers, name := `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)`, `printf('work-%06d', i)`
	if s.postgres {
		numbers, name = `WITH n (i) AS (SELECT generate_series(0, CAST(? AS BIGINT) - 1))`, `'work-' || lpad(CAST(i AS TEXT), 6, '0')`
	}
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, numbers+` INSERT INTO antiphon_work (id, agent, tenant, priority, needs, due, state, since, attempts, reason, worker, claim)
			SELECT `+name+`, 'x', 'tenant-' || CAST(i % CAST(? AS BIGINT) AS TEXT), 0, '[]', 0, 'ready', 0, 0, ?, '', 0 FROM n`, rows, tenants, []byte{})
		return err
	})
	if err == nil {
		_, err = s.db.ExecContext(ctx, `ANALYZE antiphon_work`)
	}
	return err
}

// NeedGPU makes the first rows of FillQueue need a label.
func (s *Store) NeedGPU(ctx context.Context, rows int) error {
	return s.write(ctx, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, `UPDATE antiphon_work SET needs = '["gpu"]' WHERE id LIKE 'work-%' AND id < ?`, fmt.Sprintf("work-%06d", rows))
		return err
	})
}

// LogNumber returns the number of a session's log, and LoadLog reads the session if it still has that log.
func (s *Store) LogNumber(ctx context.Context, id string) (log int64, err error) {
	err = s.reads.row(ctx, `SELECT log FROM antiphon_sessions WHERE id = ?`, id).Scan(&log)
	return log, err
}

func (s *Store) LoadLog(ctx context.Context, id string, log int64) (entries int, replaced bool) {
	for _, err := range s.loadLog(ctx, id, log, 0) {
		if err != nil {
			return entries, errors.Is(err, errReplaced)
		}
		entries++
	}
	return entries, false
}
