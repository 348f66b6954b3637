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

// querier runs statements: a connection, a transaction or a pool.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// tx runs statements on either database. Statements use a question mark for each
// argument.
type tx struct {
	q        querier
	postgres bool
	prepared *sync.Map // prepared statements of q, by text; nil if the driver caches them
	ticked   bool      // tick was called; SQLite only
	xid      string    // the transaction's number, once known; Postgres only
	proof    proof     // reports whether it was committed; Postgres only
}

// tick starts a new position in the order of last writes for the sessions that this
// transaction writes. All writes of one transaction share it.
func (t *tx) tick(ctx context.Context) error {
	// On Postgres a sequence does this.
	if t.postgres || t.ticked {
		return nil
	}
	t.ticked = true
	_, err := t.exec(ctx, `UPDATE antiphon_touches SET n = n + 1`)
	return err
}

// now returns the SQL expression for the current position in the order of last
// writes. Call [tx.tick] before the statement that uses it.
func (t *tx) now() string {
	if t.postgres {
		return `nextval('antiphon_touches')`
	}
	return `(SELECT n FROM antiphon_touches)`
}

// exec runs a statement and returns the number of rows that it changed.
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

// rows runs a query. The caller closes the result.
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

// row runs a query for one row.
func (t *tx) row(ctx context.Context, query string, args ...any) *sql.Row {
	// A *sql.Row cannot be made from an error of stmt. The query below fails in the
	// same way and returns it.
	if stmt, err := t.stmt(ctx, query); err == nil && stmt != nil {
		return stmt.QueryRowContext(ctx, args...)
	}
	return t.q.QueryRowContext(ctx, t.text(query), args...)
}

// stmt returns the prepared statement for a query, or nil if t does not cache them.
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

// numbered caches statements in the form for Postgres, by their text.
var numbered sync.Map

// text returns the statement in the database's syntax: Postgres numbers its
// arguments.
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
