// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// These are the names of the database/sql drivers with which the store opens a
// place. The program must import them: modernc.org/sqlite and
// github.com/jackc/pgx/v5/stdlib.
const (
	sqliteDriver   = "sqlite"
	postgresDriver = "pgx"
)

func init() {
	store.Register(store.Driver{Form: "the path of a file", Open: openFile})
	store.Register(store.Driver{Scheme: "postgres", Form: "postgres://USER@HOST/DATABASE", Open: openServer})
	store.Register(store.Driver{Scheme: "postgresql", Open: openServer})
}

// openFile opens a store in a file. It checks that the file exists before the driver
// would create it.
func openFile(ctx context.Context, place string, o store.Options) (store.Store, error) {
	if err := imported(place, sqliteDriver, "modernc.org/sqlite"); err != nil {
		return nil, err
	}
	if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) && !o.Create {
		return nil, &store.PlaceError{Err: &store.AbsentError{Place: place}}
	}
	s, err := OpenSQLite(ctx, place, opener(sqliteDriver), optionsOf(o))
	return opened(s, err, false)
}

// openServer opens a store in Postgres.
func openServer(ctx context.Context, place string, o store.Options) (store.Store, error) {
	if err := imported(postgresPlace(place), postgresDriver, "github.com/jackc/pgx/v5/stdlib"); err != nil {
		return nil, err
	}
	s, err := OpenPostgres(ctx, place, opener(postgresDriver), optionsOf(o))
	return opened(s, err, true)
}

// imported returns an error that names the import of a driver that the program lacks.
// Place has no password.
func imported(place, driver, module string) error {
	if slices.Contains(sql.Drivers(), driver) {
		return nil
	}
	return &Error{Store: place, Op: "opening", Problem: "the program does not import the driver of this kind of store", Hint: fmt.Sprintf("add import _ %q", module)}
}

// opener returns the function that opens a database with a registered driver.
func opener(driver string) Opener {
	return func(dsn string) (*sql.DB, error) { return sql.Open(driver, dsn) }
}

// optionsOf returns the options of this package for those of package store.
func optionsOf(o store.Options) Options {
	return Options{Retry: o.Retry, Key: o.Key, Keyless: o.Keyless}
}

// opened returns the results of an Open function as a store.Store. It wraps an error
// about the place itself in [store.PlaceError].
func opened(s *Store, err error, server bool) (store.Store, error) {
	if err == nil {
		return s, nil
	}
	if misplaced(err, server) {
		err = &store.PlaceError{Err: err}
	}
	return nil, err
}

// misplaced reports whether an error concerns the place or key of a store rather
// than its current state, such as a full disk. An error of a server's driver
// concerns the server.
func misplaced(err error, server bool) bool {
	var e *Error
	switch {
	case errors.Is(err, session.ErrNewer), errors.Is(err, ErrKey):
		return true
	case !errors.As(err, &e), errors.Is(err, syscall.ENOSPC), server && e.Err != nil:
		return false
	}
	return !slices.Contains([]int{sqliteBusy, sqliteLocked, sqliteIO, sqliteFull}, codeOf(err))
}

// File returns the path of the store's file, or "" for Postgres.
func (s *Store) File() string {
	if s == nil {
		return ""
	}
	return s.path
}

// Another creates or opens a store in another file, encrypted with this store's key.
// It returns an error for a store in Postgres.
func (s *Store) Another(ctx context.Context, file string) (store.Store, error) {
	if s.postgres {
		return nil, &Error{Store: s.place, Op: "making another", Problem: "it is not a file"}
	}
	another, err := OpenSQLite(ctx, file, s.open, Options{Now: s.now, Key: s.key})
	return opened(another, err, false)
}
