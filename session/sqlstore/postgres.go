// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// OpenPostgres opens a store in a Postgres database, version 13 or later. Its tables
// are in the first schema of the connection's search path, and their names begin
// with antiphon_.
func OpenPostgres(ctx context.Context, dsn string, open Opener, o Options) (*Store, error) {
	place := postgresPlace(dsn)
	dsn, unsafe := cutParameter(dsn, unsafeParameter)
	dsn, most := cutParameter(dsn, connectionsParameter)
	connections, err := connectionsOf(place, most, o)
	if err != nil {
		return nil, err
	}
	if spills(dsn) {
		return nil, badDSN(place)
	}
	db, err := open.open(dsn)
	if errors.Is(err, errNoOpener) {
		return nil, &Error{Store: place, Op: "opening", Problem: err.Error(), Err: err}
	}
	if err != nil {
		return nil, badDSN(place)
	}
	s := newStore(db, place, o)
	bound(db, connections)
	s.postgres, s.reads = true, tx{q: db, postgres: true}
	s.wakes.open = func() (*sql.DB, error) { return open.open(dsn) }
	s.retry = cmp.Or(o.Retry, 30*time.Second)
	passes := isStarting
	if o.Retry > 0 { // otherwise a wrong address would be reported late
		passes = s.isTransient
	}
	if err := s.openPostgres(ctx, unsafe, passes); err != nil {
		_ = s.Close() // its error adds nothing to the first one
		if strings.HasPrefix(err.Error(), "cannot parse") {
			return nil, badDSN(place) // pgx parses the string only when it connects
		}
		return nil, s.fail("opening", err)
	}
	return s, nil
}

// defaultConnections is a fifth of the connections that a server allows by default.
const defaultConnections = 20

// connectionsParameter is the parameter of a connection string that overrides
// [Options].Connections.
const connectionsParameter = "antiphon_connections"

// connectionsOf returns the maximum number of connections of a store. One connection
// is too few because what is read while something else is written needs another.
func connectionsOf(place string, parameter []string, o Options) (n int, err error) {
	n = cmp.Or(o.Connections, defaultConnections)
	if len(parameter) > 0 {
		n, err = strconv.Atoi(parameter[len(parameter)-1])
	}
	if err != nil || n < 2 {
		return 0, &Error{Store: place, Op: "opening", Problem: "the number of connections is not a number from 2 on",
			Hint: "set " + connectionsParameter + " to one, such as 20, or leave it out"}
	}
	return n, nil
}

// bound limits the connections of a pool. It keeps idle ones for a while because a
// new connection to Postgres is expensive.
func bound(db *sql.DB, connections int) {
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(time.Minute)
}

// postgresPlace returns the server and database of a connection string, without its
// password.
func postgresPlace(dsn string) string {
	if spills(dsn) {
		return "postgres"
	}
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

// spills reports whether the password of a URL has a character that ends the part before the
// @, such as a slash. The beginning of the URL is then another server, and the rest of the
// password is what is asked of it.
func spills(dsn string) bool {
	_, rest, ok := strings.Cut(dsn, "://")
	end := strings.IndexAny(rest, "/?#")
	if !ok || end < 0 {
		return false
	}
	path, query, _ := strings.Cut(rest[end:], "?")
	if strings.Contains(path, "@") {
		return true
	}
	for parameter := range strings.SplitSeq(query, "&") {
		// The value of a parameter may have one.
		if name, _, _ := strings.Cut(parameter, "="); strings.Contains(name, "@") {
			return true
		}
	}
	return false
}

// badDSN returns the error for a connection string that the driver cannot read. It
// does not wrap the driver's error, which repeats the string with its password.
func badDSN(place string) error {
	return &Error{Store: place, Op: "opening", Problem: "the connection string cannot be read", Hint: "write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE, with % escapes in the password"}
}

// openPostgres connects to the server, retrying while failures may pass, and
// migrates the tables.
func (s *Store) openPostgres(ctx context.Context, unsafe []string, passes func(error) bool) error {
	var schema sql.NullString
	err := s.again(ctx, passes, func() error { return s.reads.row(ctx, `SELECT current_schema()`).Scan(&schema) })
	if err != nil {
		return err
	}
	if schema.String == "" {
		return errors.New("the connection has no schema: set search_path to one that exists")
	}
	all, err := ours("postgres")
	if err != nil {
		return err
	}
	err = s.write(ctx, func(ctx context.Context, t *tx) error {
		// Only one process migrates at a time. The others wait here and then find it
		// done.
		if _, err := t.exec(ctx, `SELECT pg_advisory_xact_lock(?)`, migrateLock); err != nil {
			return err
		}
		// A repeated migration finds itself done if the first one was committed.
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

// transact runs do in a transaction of its own. If the connection is lost during the
// commit, it finds out whether the transaction was committed.
func (s *Store) transact(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	err := s.transactOnce(ctx, do)
	var lost *commitError
	if errors.As(err, &lost) {
		written, unknown := s.outcome(ctx, lost)
		if written || unknown != nil {
			return unknown
		}
	}
	return err // the caller decides whether to retry
}

// commitError reports that the outcome of a commit is not known.
type commitError struct {
	err   error
	xid   string // the transaction's number
	proof proof
}

func (e *commitError) Error() string {
	return "the connection was lost while the transaction was committed: " + e.err.Error()
}
func (e *commitError) Unwrap() error { return e.err }

// proof reports whether the data that a transaction wrote is there. The
// transaction's number alone is no proof: a server that was killed reuses the
// numbers of transactions that it has lost.
type proof func(ctx context.Context, t *tx) (there bool, err error)

// doAgain is the proof for a transaction that can simply be repeated, because it
// checks itself whether its work is already done.
func doAgain(context.Context, *tx) (bool, error) { return false, nil }

// durable holds two expressions that each transaction evaluates in one of its
// statements: its number, and a setting that makes its commit wait for the disk,
// whatever the server, the database or the role has configured. It keeps a stronger
// setting.
const durable = `pg_current_xact_id()::text, ` + waitForDisk

const waitForDisk = `set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`

// leastIdle is the least time that a transaction may wait for its process. A busy machine
// needs some.
const leastIdle = 5 * time.Second

// transactOnce runs do in a transaction. Its error is a [*commitError] if it is not
// known whether the transaction was committed.
func (s *Store) transactOnce(ctx context.Context, do func(ctx context.Context, t *tx) error) error {
	trans, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	t := &tx{q: trans, postgres: true}
	// A process that is frozen in the middle keeps its locks on rows no longer than this: the
	// next holder of the session waits for them.
	_, err = t.exec(ctx, fmt.Sprintf(`SET LOCAL idle_in_transaction_session_timeout = %d`, max(s.lease, leastIdle).Milliseconds()))
	if err == nil {
		err = do(ctx, t)
	}
	// A transaction without a proof of its own writes a mark as its proof.
	if err == nil && t.proof == nil {
		err = s.sign(ctx, t)
	} else if err == nil && t.xid == "" {
		var setting string
		err = t.row(ctx, `SELECT `+durable).Scan(&t.xid, &setting)
	}
	if err != nil {
		_ = trans.Rollback() // its error adds nothing to the first one
		return err
	}
	if err = trans.Commit(); err == nil {
		return nil
	}
	if state := stateOf(err); state != "" && !unanswered(err) { // the server has answered: it is not committed
		return err
	}
	return &commitError{err, t.xid, t.proof}
}

// unanswered reports whether an error with an SQLSTATE code says only that the server, or
// the pooler before it, has ended the connection: a statement sent before may have had its
// effect.
func unanswered(err error) bool { return strings.HasPrefix(stateOf(err), "57P") || isPooler(err) }

// signed is how long the mark of a transaction is kept.
const signed = 24 * time.Hour

// sign writes a mark of the transaction to the database, which proves that it was
// committed, and removes marks that are too old to be asked for.
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

// outcome finds out whether a transaction was committed after the connection was
// lost during its commit. The server knows from the number whether the transaction
// has ended, and the data that it wrote proves how.
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
		if stateOf(err) == "22023" { // a number not yet assigned: the server has lost the transaction
			return false, nil
		}
		if !wait(ctx, outcomePause) { // still in progress, or the server cannot be reached
			return false, s.notKnown(lost)
		}
	}
}

// outcomePause is the interval at which the store asks for the outcome of a commit.
const outcomePause = 50 * time.Millisecond

// notKnown returns the error for a commit whose outcome could not be found out.
func (s *Store) notKnown(lost *commitError) error {
	return &Error{Store: s.place, Op: "writing", Problem: lost.Error() + "; whether it was, is not known yet",
		Hint: "run it again: the session says how far it came", Err: lost}
}
