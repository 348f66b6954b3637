// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// OpenPostgres opens the store in a Postgres database, version 13 or later. Its
// tables are in the schema that is the connection's first, and their names begin
// with antiphon_.
func OpenPostgres(ctx context.Context, dsn string, open Opener, o Options) (*Store, error) {
	place := postgresPlace(dsn)
	db, err := open(dsn)
	if err != nil {
		return nil, badDSN(place)
	}
	s := newStore(db, place, o)
	s.postgres, s.reads = true, tx{q: db, postgres: true}
	if err := s.openPostgres(ctx); err != nil {
		_ = s.Close() // what failed is told already
		if strings.HasPrefix(err.Error(), "cannot parse") {
			return nil, badDSN(place) // pgx reads it when it connects
		}
		return nil, s.fail("opening", err)
	}
	return s, nil
}

// postgresPlace says where a connection string leads, without its password.
func postgresPlace(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.Host != "" {
		return "postgres " + u.Host + u.Path
	}
	place := "postgres"
	for _, field := range strings.Fields(dsn) {
		if name, value, _ := strings.Cut(field, "="); name == "host" || name == "dbname" {
			place += " " + value
		}
	}
	return place
}

// badDSN is the error for a connection string that the driver cannot read. The
// driver's own repeats it.
func badDSN(place string) error {
	return &Error{Store: place, Op: "opening", Problem: "the connection string cannot be read", Hint: "write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE, with % escapes in the password"}
}

func (s *Store) openPostgres(ctx context.Context) error {
	var schema sql.NullString
	if err := s.reads.row(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
		return err
	}
	if s.schema = schema.String; s.schema == "" {
		return errors.New("the connection has no schema: set search_path to one that exists")
	}
	all, err := migrationsOf(migrations, "postgres")
	if err != nil {
		return err
	}
	return s.transact(context.WithoutCancel(ctx), func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, migrateLock); err != nil {
			return err
		}
		return migrate(ctx, t, all)
	})
}

// transact runs do in a transaction of its own, and again if the server wants
// that, or has lost it with the connection.
func (s *Store) transact(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	for try := 1; ; try++ {
		err := s.transactOnce(ctx, do)
		var lost *commitError
		if errors.As(err, &lost) {
			if written, err := s.outcome(ctx, lost); written || err != nil {
				return err
			}
		} else if err == nil || !wantsAgain(err) {
			return err
		}
		if try == 5 {
			return err
		}
	}
}

// wantsAgain reports a transaction that stood in the way of another.
func wantsAgain(err error) bool {
	var pg interface{ SQLState() string }
	return errors.As(err, &pg) && (pg.SQLState() == "40001" || pg.SQLState() == "40P01")
}

// commitError says that it is not known whether a transaction was committed.
type commitError struct {
	err error
	xid string // its number
}

func (e *commitError) Error() string {
	return "the connection was lost while the transaction was committed: " + e.err.Error()
}
func (e *commitError) Unwrap() error { return e.err }

func (s *Store) transactOnce(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	trans, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	t := &tx{q: trans, postgres: true}
	if err = do(ctx, t); err == nil && t.xid == "" {
		err = t.row(ctx, `SELECT pg_current_xact_id()::text`).Scan(&t.xid)
	}
	if err != nil {
		_ = trans.Rollback() // what failed is told already
		return err
	}
	if err = trans.Commit(); err == nil {
		return nil
	}
	var pg interface{ SQLState() string }
	if errors.As(err, &pg) && !strings.HasPrefix(pg.SQLState(), "57P") { // the server has answered
		return err
	}
	return &commitError{err, t.xid}
}

// outcome finds out what became of a transaction when the connection was lost
// while it was committed: the server knows by its number.
func (s *Store) outcome(ctx context.Context, lost *commitError) (written bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for {
		var status sql.NullString
		err := s.reads.row(ctx, `SELECT pg_xact_status(CAST(CAST(? AS text) AS xid8))`, lost.xid).Scan(&status)
		if err == nil && (status.String == "committed" || status.String == "aborted") {
			return status.String == "committed", nil
		}
		select {
		case <-time.After(50 * time.Millisecond): // it is in progress, or the server is away
		case <-ctx.Done():
			return false, &Error{Store: s.place, Op: "writing", Problem: lost.Error() + "; whether it was, is not known yet",
				Hint: "run it again: the session says how far it came", Err: lost}
		}
	}
}

// holderKey is the number of the advisory lock of a session.
func (s *Store) holderKey(id string) int64 {
	return lockKey("antiphon", s.schema, id)
}

// lockPostgres takes the advisory lock on a connection of its own: the server
// lets go of it when that ends.
func (s *Store) lockPostgres(ctx context.Context, id string) (unlock func() error, err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &tx{q: conn, postgres: true}
	var ok bool
	if err = t.row(ctx, `SELECT pg_try_advisory_lock(?)`, s.holderKey(id)).Scan(&ok); err == nil && !ok {
		var who string
		if t.row(ctx, `SELECT holder FROM antiphon_writers WHERE id = ?`, id).Scan(&who) != nil {
			who = "somebody"
		}
		err = busy(who)
	}
	if err == nil {
		_, err = t.exec(ctx, `INSERT INTO antiphon_writers (id, holder) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET holder = excluded.holder`, id, self())
	}
	if err != nil {
		return nil, errors.Join(err, s.release(t, conn, id))
	}
	return func() error { return s.release(t, conn, id) }, nil
}

// release gives the connection back without its lock. If that cannot be said to
// the server any more, the lock has ended with the connection.
func (s *Store) release(t *tx, conn *sql.Conn, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.wait)
	defer cancel()
	if _, err := t.exec(ctx, `SELECT pg_advisory_unlock_all()`); err != nil {
		_ = conn.Raw(func(any) error { return errBadConn }) // so that it is closed, not used again
	}
	_ = conn.Close() // it is given back, or was closed
	return nil
}

var _ session.Locker = (*Store)(nil)
