// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package store opens stores of sessions by their place: the path of a file, or
// an address such as postgres://USER@HOST/DATABASE. A package of stores registers
// how its places are opened, so that a program takes another kind of store by one
// import:
//
//	import _ "github.com/antiphon-go/antiphon/session/sqlstore" // files and Postgres
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/session"
)

// Store is an open store that programs keep the sessions of agents in. It is safe
// for concurrent use. What a store can do besides, it says by its methods: see
// [Local], [Binder], [Encrypter], [Backuper], [Salvager], [Indexer], [Durable],
// [session.Searcher], [session.Verifier] and [session.Watcher]; [As] asks for one
// of them.
type Store interface {
	session.Catalog
	session.Locker
	session.Forker
	session.Blobs
	// Place says for people where the store is, without a password.
	Place() string
	// Close gives back what the store holds. What was appended is there.
	Close() error
}

// Local is implemented by a [Store] that may be a file on this machine.
type Local interface {
	// File is the path of the store, or "" if the store is on a server.
	File() string
	// Another makes a store of the same kind in another file, encrypted with the
	// same key. It is an error for a store on a server.
	Another(ctx context.Context, file string) (Store, error)
}

// Binder is implemented by a [Store] that gives a session to another agent's
// file, under a name.
type Binder interface {
	Bind(ctx context.Context, id, path, name string) error
}

// Encrypter is implemented by a [Store] that may be encrypted.
type Encrypter interface {
	Encrypted() bool
}

// Encrypted reports whether a store is encrypted.
func Encrypted(s session.Store) bool {
	e, ok := s.(Encrypter)
	return ok && e.Encrypted()
}

// Backuper is implemented by a [Store] that copies all that it holds to a new
// file, while others go on writing.
type Backuper interface {
	Backup(ctx context.Context, file string) (BackedUp, error)
}

// BackedUp is what a backup holds.
type BackedUp struct {
	Sessions int   `json:"sessions"`
	Entries  int64 `json:"entries"`
	Blobs    int   `json:"blobs"`
	Bytes    int64 `json:"bytes"` // of the file
}

// Salvager is implemented by a [Store] that copies what is whole of the session
// from into a new session to.
type Salvager interface {
	Salvage(ctx context.Context, from, to string) (Salvaged, error)
}

// Salvaged says what a [Salvager] saved.
type Salvaged struct {
	// Session is the new session, Entries how many of its entries are whole.
	Session string
	Entries int64
	// Damage is what was found; entries that are named there and could not be
	// saved are replaced by a [session.Noticed] of the kind NoticeEntryLost or
	// NoticePayloadLost.
	Damage []session.Damage
	// Gaps are the sessions among the copies that a run refuses to go on with, for
	// what their lost entries did is not known: see [session.NoticeEntryLost].
	Gaps []string
}

// Indexer is implemented by a [Store] that builds the index of its
// [session.Searcher] anew, or removes it.
type Indexer interface {
	Index(ctx context.Context, on bool) error
}

// Durable is implemented by a [Store] that says what becomes of what it has
// committed.
type Durable interface {
	Durability(ctx context.Context) (Durability, error)
}

// Durability is what a database does for what it has committed.
type Durability struct {
	// Format is the version of the tables.
	Format int
	// Settings are what decides it, by name, as the database itself reports them.
	Settings []Setting
}

// Setting is one of [Durability].
type Setting struct {
	Name, Value string
	// Weak says why what was committed may be lost with this value, "" if it is
	// good.
	Weak string
	// Note says more about it, for people.
	Note string
}

// As returns a store as something that not every store is, such as a [Backuper].
// Does completes the error "this kind of store does not …", which wraps
// [errors.ErrUnsupported].
func As[T any](s Store, does string) (T, error) {
	if t, ok := s.(T); ok {
		return t, nil
	}
	var none T
	return none, fmt.Errorf("%s: this kind of store does not %s: %w", s.Place(), does, errors.ErrUnsupported)
}

// ErrKey says that a store is encrypted, and its key is missing or wrong; or that
// it is not encrypted, and a key was given.
var ErrKey = errors.New("the store's key")

// PlaceError says that no store can be opened at a place, or not with that key:
// the caller gave something else than a store's. What goes wrong at the right
// place, such as a full disk, is another error.
type PlaceError struct{ Err error }

// Error is that of Err.
func (e *PlaceError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *PlaceError) Unwrap() error { return e.Err }

// AbsentError says that nobody has made the store yet. It is wrapped in a
// [PlaceError], and returned only without [Options.Create].
type AbsentError struct{ Place string }

// Error names the place.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("there are no sessions yet: %s is not there", e.Place)
}

// Options say how a store is opened. The zero value opens one that is there, and
// that is not encrypted.
type Options struct {
	// Create makes a store that is not there.
	Create bool
	// Retry is for how long an opening, a read or a write is tried again when it
	// fails for a reason that may pass. Zero is what fits the kind of store, less
	// than zero is never.
	Retry time.Duration
	// Key returns the key of an encrypted store. A new store is encrypted with it,
	// for good. Nil is none.
	Key func(ctx context.Context) (endpoint.Key, error)
	// Keyless opens an encrypted store without its key, for what needs none. It
	// counts only where Key is nil.
	Keyless bool
}
