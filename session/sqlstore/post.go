// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/antiphon-go/antiphon/session"
)

// An append to Postgres normally takes one round trip: a single statement, in its
// own implicit transaction, advances the session's end and inserts the row. It has
// an effect only if the log ends where the append expects, by number and by sum. It
// is therefore safe to send twice: if the first one was committed, the second one
// finds a different end, and the row proves that the append itself wrote it. This
// needs no transaction number.

// postStatement does the work of [addition.move] and [tx.put]. A quiet append to a
// session that is already marked as stale keeps its place in the order of sessions,
// so that no index has to be updated. The setting in its result makes the commit
// wait for the disk: see durable.
const postStatement = `WITH moved AS (
	UPDATE antiphon_sessions SET entries = ?, head = ?, updated = ?, stale = TRUE,
		touched = CASE WHEN ? AND stale THEN touched ELSE nextval('antiphon_touches') END
	WHERE id = ? AND entries = ? AND head = ?` + fenced + ` RETURNING log, touched, tags
), tagged AS (
	UPDATE antiphon_tags t SET touched = moved.touched FROM moved
	WHERE moved.tags <> '' AND t.log = moved.log AND t.touched <> moved.touched
)
INSERT INTO antiphon_entries (log, last, n, sums, data) SELECT log, ?, ?, ?, ? FROM moved RETURNING log, ` + waitForDisk

// post appends with one statement if that suffices: the session exists, its end is
// known, and the entries have no blobs, take no deliveries and do not change its title.
func (s *Store) post(ctx context.Context, a *addition) error {
	from, known := a.from()
	if !known || a.after == 0 || a.title != "" || a.retitle != nil || len(a.blobs)+len(a.taken) > 0 || a.merges() {
		return s.writeAddition(ctx, a)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// The entries record what has happened, so they are written even if the caller
	// gives up now.
	ctx = session.WithoutCancel(ctx)
	p := pack(0, a.after, int64(a.n), from, a.data)
	moved, unknown := false, false
	err := s.again(ctx, func(err error) bool { return !unknown && s.isTransient(err) }, func() (err error) {
		moved, unknown, err = s.postOnce(ctx, a, p)
		return err
	})
	if unknown {
		moved, err = s.postAgain(a, p, err)
	}
	if err == nil && !moved {
		return s.writeAddition(ctx, a) // creates the session, or reports why it cannot append
	}
	a.end = p.sum(p.n)
	return err
}

// postOnce sends the statement once. Moved reports whether the log ended where the
// append expects. Unknown reports that the outcome is not known, because the
// connection was lost before the result arrived.
func (s *Store) postOnce(ctx context.Context, a *addition, p *packed) (moved, unknown bool, err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return false, false, err // nothing was sent
	}
	defer conn.Close()
	from, end := p.sum(0), p.sum(p.n)
	t := &tx{q: conn, postgres: true}
	var setting string
	args := []any{p.last, end[:], a.at.UnixMilli(), a.quiet, a.id, a.after, from[:]}
	args = append(append(args, fenceArgs(a.fence)...), p.last, p.n, p.sums, p.data)
	err = t.row(ctx, postStatement, args...).Scan(&p.log, &setting)
	switch {
	case err == nil:
		return true, false, nil
	case errors.Is(err, sql.ErrNoRows):
		return false, false, nil
	case errors.Is(err, errBadConn): // the driver's promise that nothing was sent
		return false, false, err
	default:
		return false, stateOf(err) == "" && lostConnection(err) || unanswered(err), err
	}
}

// postAgain finds the outcome of a statement whose result was lost, by sending it
// again. The second one waits if the server still works on the first; if the first
// was committed, its row is there. Like [Store.outcome], it keeps trying for a
// limited time even if the caller has given up: nothing else can tell what the log
// holds.
func (s *Store) postAgain(a *addition, p *packed, lost error) (moved bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), max(s.wait, s.retry))
	defer cancel()
	for {
		if moved, _, err = s.postOnce(ctx, a, p); err == nil && !moved {
			moved, err = s.posted(ctx, a.id, p)
		}
		if err == nil || ctx.Err() == nil && !s.isTransient(err) {
			return moved, err
		}
		if !wait(ctx, outcomePause) {
			return false, s.notKnown(&commitError{err: lost})
		}
	}
}

// posted reports whether the session's log contains the row.
func (s *Store) posted(ctx context.Context, id string, p *packed) (bool, error) {
	row, err := s.reads.find(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.log = row.log
	return p.isThere(ctx, &s.reads)
}
