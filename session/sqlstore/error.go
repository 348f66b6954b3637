// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/antiphon-go/antiphon/session"
)

// Error is a failure of the database. It never contains a password.
type Error struct {
	// Store is the file, or the Postgres host and database.
	Store string
	// Op is the operation that failed.
	Op string
	// Problem says what is wrong, and Hint, if it is not empty, what to do about it.
	Problem, Hint string
	// Err is the driver's error, or nil if it may hold a password.
	Err error
}

func (e *Error) Error() string {
	s := e.Store + ": " + e.Op + ": " + e.Problem
	if e.Hint != "" {
		s += "\n  hint: " + e.Hint
	}
	return s
}

// Unwrap returns the driver's error.
func (e *Error) Unwrap() error { return e.Err }

// fail converts a driver's error into an error for people. Errors about the state of
// a session are returned unchanged.
func (s *Store) fail(op string, err error) error {
	var known *Error
	switch {
	case err == nil, errors.Is(err, errNotOpen), errors.As(err, &known), refuses(err), errors.Is(err, session.ErrBusy), errors.Is(err, session.ErrNewer), errors.Is(err, session.ErrLost), errors.Is(err, session.ErrDeliveryWaits),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	problem, hint := s.diagnose(err)
	if problem == "" {
		problem = err.Error()
	}
	return &Error{Store: s.place, Op: op, Problem: problem, Hint: hint, Err: err}
}

// The result codes of SQLite with a message in this file.
const (
	sqliteBusy     = 5
	sqliteLocked   = 6
	sqliteReadOnly = 8
	sqliteIO       = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteTooBig   = 18
	sqliteNotADB   = 26
)

// diagnose explains an error of the driver and says what to do about it.
func (s *Store) diagnose(err error) (problem, hint string) {
	var lite interface{ Code() int }
	var pg interface{ SQLState() string }
	switch {
	case errors.Is(err, session.ErrDamaged):
		return err.Error(), "`antiphon sessions verify` says what else is damaged; `antiphon sessions salvage SESSION --as NAME` copies what is undamaged"
	case isPooler(err):
		return diagnosePooler(err)
	case errors.As(err, &pg):
		return diagnosePostgres(pg.SQLState(), err)
	case errors.As(err, &lite):
		return s.diagnoseSQLite(lite.Code() & 0xff)
	case s.postgres && lostConnection(err):
		return "the server cannot be reached, or the connection was lost" + networkReason(err), "see whether the server runs and can be reached, then run it again: a session that had begun continues where it was"
	case !s.postgres && isOS(err):
		return explain(err)
	case errors.Is(err, errClosed) || strings.Contains(err.Error(), "database is closed"):
		return "the store was closed", ""
	}
	return "", ""
}

var errClosed = errors.New("closed")

// lostConnection reports whether an error of the driver or the system is a network
// error.
func lostConnection(err error) bool {
	var network net.Error
	var unsent interface{ SafeToRetry() bool } // the error of pgx for a closed connection
	return errors.As(err, &network) || errors.As(err, &unsent) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// networkReason returns the part of an error that says why there is no connection.
func networkReason(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		return ": no such host: " + dns.Name
	case errors.As(err, &op) && op.Err != nil:
		return ": " + op.Err.Error()
	}
	return ""
}

// isBusy reports whether another process has locked the SQLite file.
func isBusy(err error) bool {
	code := codeOf(err)
	return code == sqliteBusy || code == sqliteLocked
}

// codeOf returns the result code of an SQLite error, 0 for other errors.
func codeOf(err error) int {
	var lite interface{ Code() int }
	if !errors.As(err, &lite) {
		return 0
	}
	return lite.Code() & 0xff
}

// isOS reports whether an error is from the operating system.
func isOS(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

// diagnoseSQLite explains a result code. Several codes mean any error of the
// operating system; it then looks for the actual error.
func (s *Store) diagnoseSQLite(code int) (problem, hint string) {
	switch code {
	case sqliteReadOnly, sqliteIO, sqliteCantOpen:
		if problem, hint = explain(s.cause()); problem != "" {
			return problem, hint
		}
	}
	switch code {
	case sqliteBusy, sqliteLocked:
		return "another process has been writing to the database all the time", "run it again, or end the other one"
	case sqliteReadOnly:
		return "the file or its folder cannot be written to", "change the permissions of both, or choose another place"
	case sqliteIO:
		return "the disk failed to read or write", "look at the system's log; copy the file to another disk"
	case sqliteCorrupt:
		return "the file is damaged", "`antiphon sessions verify` says where; `antiphon sessions salvage SESSION --as NAME` copies what is undamaged; or restore a copy"
	case sqliteFull:
		return explain(syscall.ENOSPC)
	case sqliteCantOpen:
		return "the file cannot be opened", "see whether its folder is there and may be read"
	case sqliteTooBig:
		return "one entry is larger than SQLite can hold", "the limit is 1 GB"
	case sqliteNotADB:
		return "this is not an SQLite database", "choose another file"
	}
	return "", ""
}

// diagnosePostgres explains the SQLSTATE code of an error.
func diagnosePostgres(state string, err error) (problem, hint string) {
	switch {
	case state == "53100":
		return "the server's disk is full", "make room there, then run it again: the session continues where it was"
	case state == "53300":
		return "the server has too many connections", "close some, or raise max_connections"
	case strings.HasPrefix(state, "57P"):
		return "the server is shutting down or starting", "run it again in a moment: the session continues where it was"
	case state == "28000": // also a role that does not exist or may not log in
		return fmt.Sprintf("the server refused the connection: %v", err), "see the user of the connection string, and the server's pg_hba.conf for this address and user; if it demands encryption, write sslmode=require into the connection string"
	case strings.HasPrefix(state, "28"):
		return "the server did not accept user and password", "see the user and the password of the connection string"
	case state == "3D000":
		return "the server has no such database", "create it, or name another one"
	case state == "42501":
		return "the user may not do that in this database", "grant the user CREATE on its schema"
	case state == "26000", state == "42P05":
		return "prepared statements get lost, or there are others of the same name: a pooler gives one connection to several clients", "add " + poolerParameter + " to the connection string"
	case state == "25006":
		return "the server only reads: it is a replica", "connect to the primary server"
	}
	return fmt.Sprintf("the server answered %v", err), ""
}

// poolerParameter is the setting of the driver with which it prepares no statements.
const poolerParameter = "default_query_exec_mode=exec"

// isPooler reports whether an error is a pooler's that stands before the server. Before
// version 1.22, PgBouncer has one code for all that goes wrong, which is the code of a
// broken protocol. The server itself ends no connection with it.
func isPooler(err error) bool {
	var pg interface {
		error
		SQLState() string
	}
	return errors.As(err, &pg) && pg.SQLState() == "08P01" && strings.HasPrefix(pg.Error(), "FATAL")
}

// diagnosePooler explains an error of a pooler.
func diagnosePooler(err error) (problem, hint string) {
	if strings.Contains(err.Error(), "startup parameter") {
		return fmt.Sprintf("the pooler before the server answered %v", err), "leave that out of the connection string: ALTER ROLE … SET gives it to the user"
	}
	return fmt.Sprintf("the pooler before the server has no connection to it, or answered %v", err), "see whether the server runs and the pooler knows the database and the user; then run it again: the session continues where it was"
}
