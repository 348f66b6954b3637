// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/store"
)

// The drivers of database/sql that stores are opened with by their place. The
// program imports them: modernc.org/sqlite and github.com/jackc/pgx/v5/stdlib.
const (
	sqliteDriver   = "sqlite"
	postgresDriver = "pgx"
)

func init() {
	store.Register(store.Driver{Form: "the path of a file", Open: openFile})
	store.Register(store.Driver{Scheme: "postgres", Form: "postgres://USER@HOST/DATABASE", Open: openServer})
	store.Register(store.Driver{Scheme: "postgresql", Open: openServer})
}

func openFile(ctx context.Context, place string, o store.Options) (store.Store, error) {
	if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) && !o.Create {
		return nil, &store.PlaceError{Err: &store.AbsentError{Place: place}}
	}
	s, err := OpenSQLite(ctx, place, opener(sqliteDriver), optionsOf(o))
	return opened(s, err, false)
}

func openServer(ctx context.Context, place string, o store.Options) (store.Store, error) {
	s, err := OpenPostgres(ctx, place, opener(postgresDriver), optionsOf(o))
	return opened(s, err, true)
}

func opener(driver string) Opener {
	return func(dsn string) (*sql.DB, error) { return sql.Open(driver, dsn) }
}

func optionsOf(o store.Options) Options {
	return Options{Retry: o.Retry, Key: o.Key, Keyless: o.Keyless}
}

// opened returns what an Open function has returned, and says of an error that
// is about the place that it is.
func opened(s *Store, err error, server bool) (store.Store, error) {
	if err == nil {
		return s, nil
	}
	if misplaced(err, server) {
		err = &store.PlaceError{Err: err}
	}
	return nil, err
}

// misplaced reports an error that says something against the place or the key of
// a store, and not of what goes on there. What a server's driver says is about the
// server.
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

// File is the store's file, or "" for Postgres.
func (s *Store) File() string { return s.path }

// Another makes a store in another file, encrypted with the key of this one. Of a
// store in Postgres it is an error.
func (s *Store) Another(ctx context.Context, file string) (store.Store, error) {
	if s.postgres {
		return nil, &Error{Store: s.place, Op: "making another", Problem: "it is not a file"}
	}
	another, err := OpenSQLite(ctx, file, s.open, Options{Now: s.now, Key: s.key})
	return opened(another, err, false)
}
