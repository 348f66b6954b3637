// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"time"
)

// OpenPostgres opens the store in a Postgres database, version 13 or later. Its
// tables are in the schema that is the connection's first, and their names begin
// with antiphon_.
func OpenPostgres(ctx context.Context, dsn string, open Opener, o Options) (*Store, error) {
	place := postgresPlace(dsn)
	dsn, unsafe := cutUnsafe(dsn)
	db, err := open(dsn)
	if err != nil {
		return nil, badDSN(place)
	}
	s := newStore(db, place, o)
	s.postgres, s.reads = true, tx{q: db, postgres: true}
	s.retry = cmp.Or(o.Retry, 30*time.Second)
	s.locker = s.lockPostgres
	passes := isStarting
	if o.Retry > 0 { // else a wrong address would be told late
		passes = s.isTransient
	}
	if err := s.openPostgres(ctx, unsafe, passes); err != nil {
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
	for _, p := range parameters(dsn) {
		if p.name == "host" || p.name == "dbname" {
			place += " " + p.value
		}
	}
	return place
}

// badDSN is the error for a connection string that the driver cannot read. The
// driver's own repeats it.
func badDSN(place string) error {
	return &Error{Store: place, Op: "opening", Problem: "the connection string cannot be read", Hint: "write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE, with % escapes in the password"}
}

// openPostgres looks at the server, again as long as what fails passes, and brings
// the tables up to date.
func (s *Store) openPostgres(ctx context.Context, unsafe []string, passes func(error) bool) error {
	var schema sql.NullString
	err := s.again(ctx, passes, func() error { return s.reads.row(ctx, `SELECT current_schema()`).Scan(&schema) })
	if err != nil {
		return err
	}
	if s.schema = schema.String; s.schema == "" {
		return errors.New("the connection has no schema: set search_path to one that exists")
	}
	all, err := ours("postgres")
	if err != nil {
		return err
	}
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, migrateLock); err != nil {
			return err
		}
		t.proof = doAgain
		return s.upToDate(ctx, t, all)
	})
	if err == nil {
		err = s.openSeal(ctx, &s.reads)
	}
	if err != nil {
		return err
	}
	return s.refuseUnsafe(ctx, unsafe)
}

// transact runs do in a transaction of its own, and finds out what became of it
// if the connection was lost while it was committed.
func (s *Store) transact(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	err := s.transactOnce(ctx, do)
	var lost *commitError
	if errors.As(err, &lost) {
		written, unknown := s.outcome(ctx, lost)
		if written || unknown != nil {
			return unknown
		}
	}
	return err // the caller tries again if it is worth it
}

// commitError says that it is not known whether a transaction was committed.
type commitError struct {
	err   error
	xid   string // its number
	proof proof
}

func (e *commitError) Error() string {
	return "the connection was lost while the transaction was committed: " + e.err.Error()
}
func (e *commitError) Unwrap() error { return e.err }

// proof reports whether what a transaction wrote is there. Its number alone does
// not tell: a server that was killed gives the numbers of those that it has lost
// to others.
type proof func(ctx context.Context, t *tx) (there bool, err error)

// doAgain is the proof for a transaction that finds out by itself that it was done.
func doAgain(context.Context, *tx) (bool, error) { return false, nil }

// durable are two expressions that each transaction computes in one of its
// statements: its number, and the setting that makes its commit wait until it is
// on the disk, whatever the server, the database or the role has set. A setting
// that is stronger stays.
const durable = `pg_current_xact_id()::text,
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`

func (s *Store) transactOnce(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	trans, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	t := &tx{q: trans, postgres: true}
	if err = do(ctx, t); err == nil && t.proof == nil {
		err = s.sign(ctx, t)
	} else if err == nil && t.xid == "" {
		var setting string
		err = t.row(ctx, `SELECT `+durable).Scan(&t.xid, &setting)
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
	return &commitError{err, t.xid, t.proof}
}

// signed is how long the mark of a transaction stays.
const signed = 24 * time.Hour

// sign leaves a mark of the transaction in the database, which proves that it was
// committed, and removes those that nobody asks for any more.
func (s *Store) sign(ctx context.Context, t *tx) error {
	mark, at := "commit "+rand.Text(), s.now()
	if _, err := t.exec(ctx, `DELETE FROM antiphon_state WHERE name LIKE 'commit %' AND value < ?`, at.Add(-signed).UnixMilli()); err != nil {
		return err
	}
	var setting string
	err := t.row(ctx, `INSERT INTO antiphon_state (name, value) VALUES (?, ?) RETURNING `+durable, mark, at.UnixMilli()).Scan(&t.xid, &setting)
	t.proof = func(ctx context.Context, t *tx) (there bool, err error) {
		err = t.row(ctx, `SELECT EXISTS (SELECT 1 FROM antiphon_state WHERE name = ?)`, mark).Scan(&there)
		return there, err
	}
	return err
}

// outcome finds out what became of a transaction when the connection was lost
// while it was committed: the server knows by its number whether it has ended,
// and what it wrote proves how.
func (s *Store) outcome(ctx context.Context, lost *commitError) (written bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, max(s.wait, s.retry))
	defer cancel()
	for {
		var status sql.NullString
		err := s.reads.row(ctx, `SELECT pg_xact_status(CAST(CAST(? AS text) AS xid8))`, lost.xid).Scan(&status)
		if err == nil && status.String == "aborted" {
			return false, nil
		}
		if err == nil && status.String == "committed" {
			if written, err = lost.proof(ctx, &s.reads); err == nil {
				return written, nil
			}
		}
		if stateOf(err) == "22023" { // the server has not got so far: it has lost the transaction
			return false, nil
		}
		select {
		case <-time.After(50 * time.Millisecond): // it is in progress, or the server is away
		case <-ctx.Done():
			return false, &Error{Store: s.place, Op: "writing", Problem: lost.Error() + "; whether it was, is not known yet",
				Hint: "run it again: the session says how far it came", Err: lost}
		}
	}
}
