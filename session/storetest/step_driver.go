// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
)

// StepConnector returns a connector to the same database that calls at before and
// after each write: begin, commit, rollback, and each statement that is not a query.
// A statement is named by its first word and the table, such as sql/INSERT
// entries/after. So a store can be stopped, or made to fail, inside a transaction:
//
//	db := sql.OpenDB(storetest.StepConnector(connector, at))
//
// Its connections support the same optional interfaces as the connections of d.
func StepConnector(d driver.Connector, at StepFunc) driver.Connector { return &stepConnector{d, at} }

type stepConnector struct {
	driver.Connector
	at StepFunc
}

func (c *stepConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &stepConn{conn, c.at}, nil
}

// stepConn forwards the optional interfaces of drivers. If the connection lacks one,
// it reports that in the way that package sql expects.
type stepConn struct {
	driver.Conn
	at StepFunc
}

func (c *stepConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	b, ok := c.Conn.(driver.ConnBeginTx)
	if !ok {
		return nil, errors.New("the driver begins no transaction with a context")
	}
	var tx driver.Tx
	err := c.at.Take(Step{Name: "sql/begin"}, func() (err error) {
		tx, err = b.BeginTx(ctx, opts)
		return err
	})
	if err != nil {
		if tx != nil {
			_ = tx.Rollback() // at's error is returned
		}
		return nil, err
	}
	return &stepTx{tx, c.at}, nil
}

type stepTx struct {
	tx driver.Tx
	at StepFunc
}

func (t *stepTx) Commit() error {
	ended := false
	err := t.at.Take(Step{Name: "sql/commit"}, func() error { ended = true; return t.tx.Commit() })
	if !ended {
		_ = t.tx.Rollback() // the commit is treated as failed
	}
	return err
}

func (t *stepTx) Rollback() error { return t.at.Take(Step{Name: "sql/rollback"}, t.tx.Rollback) }

func (c *stepConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (res driver.Result, err error) {
	e, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	err = c.at.Take(Step{Name: "sql/" + statementName(query)}, func() (err error) {
		res, err = e.ExecContext(ctx, query, args)
		return err
	})
	return res, err
}

func (c *stepConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if name := statementName(query); !strings.HasPrefix(name, "SELECT") && !strings.HasPrefix(name, "PRAGMA") {
		if err := c.at.call(Step{Name: "sql/" + name}); err != nil {
			return nil, err
		}
	}
	return q.QueryContext(ctx, query, args)
}

func (c *stepConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	p, ok := c.Conn.(driver.ConnPrepareContext)
	if !ok {
		return c.Prepare(query)
	}
	stmt, err := p.PrepareContext(ctx, query)
	return c.stmt(stmt, query), err
}

func (c *stepConn) Prepare(query string) (driver.Stmt, error) {
	stmt, err := c.Conn.Prepare(query)
	return c.stmt(stmt, query), err
}

func (c *stepConn) stmt(stmt driver.Stmt, query string) driver.Stmt {
	if stmt == nil {
		return nil
	}
	return &stepStmt{stmt, statementName(query), c.at}
}

func (c *stepConn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

func (c *stepConn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *stepConn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

func (c *stepConn) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := c.Conn.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// stepStmt is a prepared statement.
type stepStmt struct {
	driver.Stmt
	name string
	at   StepFunc
}

func (s *stepStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	e, ok := s.Stmt.(driver.StmtExecContext)
	if !ok {
		return nil, errors.New("the driver's statements take no context")
	}
	err = s.at.Take(Step{Name: "sql/" + s.name}, func() (err error) {
		res, err = e.ExecContext(ctx, args)
		return err
	})
	return res, err
}

func (s *stepStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := s.Stmt.(driver.StmtQueryContext)
	if !ok {
		return nil, errors.New("the driver's statements take no context")
	}
	return q.QueryContext(ctx, args)
}

func (s *stepStmt) CheckNamedValue(v *driver.NamedValue) error {
	if n, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return n.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// statementName returns the verb and the object of a statement.
func statementName(query string) string {
	words := strings.FieldsFunc(query, func(r rune) bool { return strings.ContainsRune(" \t\r\n(;,", r) })
	if len(words) == 0 {
		return "nothing"
	}
	verb := strings.ToUpper(words[0])
	for i, w := range words[:max(len(words)-1, 0)] {
		switch strings.ToUpper(w) {
		case "INTO", "FROM", "UPDATE", "TABLE", "INDEX", "EXISTS", "PRAGMA":
			if next := strings.ToUpper(words[i+1]); next != "IF" && next != "OR" {
				return fmt.Sprintf("%s %s", verb, words[i+1])
			}
		}
	}
	return verb
}
