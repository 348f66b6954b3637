// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync"
)

// querier is what statements run on: a connection, a transaction, a pool.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// tx runs statements, which are written with a question mark for each argument.
type tx struct {
	q        querier
	postgres bool
	prepared *sync.Map // statements of q, by their text; nil if the driver keeps them itself
	ticked   bool      // whether the order of sessions has moved on; SQLite
	xid      string    // the number of the transaction, once it is known; Postgres
	proof    proof     // asks whether it was committed; Postgres
}

// tick makes the sessions that this transaction writes to the last ones. Those
// that are written in one transaction are written at once.
func (t *tx) tick(ctx context.Context) error {
	if t.postgres || t.ticked {
		return nil
	}
	t.ticked = true
	_, err := t.exec(ctx, `UPDATE antiphon_touches SET n = n + 1`)
	return err
}

// now is the expression for the place of a session in the order of their last
// writes, after [tx.tick].
func (t *tx) now() string {
	if t.postgres {
		return `nextval('antiphon_touches')`
	}
	return `(SELECT n FROM antiphon_touches)`
}

func (t *tx) exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	var r sql.Result
	if stmt, err := t.stmt(ctx, query); err != nil {
		return 0, err
	} else if stmt != nil {
		r, err = stmt.ExecContext(ctx, args...)
		if err != nil {
			return 0, err
		}
	} else if r, err = t.q.ExecContext(ctx, t.text(query), args...); err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (t *tx) rows(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := t.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	if stmt != nil {
		return stmt.QueryContext(ctx, args...)
	}
	return t.q.QueryContext(ctx, t.text(query), args...)
}

func (t *tx) row(ctx context.Context, query string, args ...any) *sql.Row {
	if stmt, err := t.stmt(ctx, query); err == nil && stmt != nil {
		return stmt.QueryRowContext(ctx, args...)
	}
	return t.q.QueryRowContext(ctx, t.text(query), args...)
}

// stmt returns the prepared statement, or nil where none are kept.
func (t *tx) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if t.prepared == nil {
		return nil, nil
	}
	if stmt, ok := t.prepared.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := t.q.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if other, loaded := t.prepared.LoadOrStore(query, stmt); loaded {
		return other.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}

// numbered are statements as Postgres wants them.
var numbered sync.Map

// text returns the statement for the database.
func (t *tx) text(query string) string {
	if !t.postgres {
		return query
	}
	if text, ok := numbered.Load(query); ok {
		return text.(string)
	}
	var b strings.Builder
	for i, part := range strings.Split(query, "?") {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(part)
	}
	numbered.Store(query, b.String())
	return b.String()
}
