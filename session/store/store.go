// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package store opens session stores by their place: the path of a file, or an
// address such as postgres://USER@HOST/DATABASE. Each package that implements
// stores registers a driver for its places. To use another kind of store, a
// program only needs other imports:
//
//	import _ "github.com/antiphon-go/antiphon/session/sqlstore" // files and Postgres
//	import _ "modernc.org/sqlite"                               // what files are read and written with
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/session"
)

// A Store is an open store of sessions. It is safe for concurrent use. A store may
// implement further interfaces: [Local], [Identified], [Binder], [Encrypter],
// [Backuper], [Salvager], [Indexer], [Durable], [session.Searcher],
// [session.Verifier] and [session.Watcher]. Use [As] to get one of them.
type Store interface {
	session.Catalog
	session.Locker
	session.Forker
	session.Blobs
	// Place describes for people where the store is. It does not contain a password.
	Place() string
	// Close releases the resources of the store. Everything appended before is
	// stored.
	Close() error
}

// Identified is implemented by a Store that can be told from all others.
type Identified interface {
	// Identity returns a text that no other store has, except for copies of this one. The first
	// call may write it into the store. It returns an error for a kind of store that has none.
	Identity(ctx context.Context) (string, error)
}

// Local is implemented by a [Store] that may be a file on this machine.
type Local interface {
	// File returns the path of the store, or "" if the store is on a server.
	File() string
	// Another creates a store of the same kind in another file, encrypted with the
	// same key. It returns an error if the store is on a server.
	Another(ctx context.Context, file string) (Store, error)
}

// Binder is implemented by a [Store] that can assign a session to another agent
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
	return ok && !nils.Is(s) && e.Encrypted()
}

// Backuper is implemented by a [Store] that can copy its whole content to a new
// file while other programs continue to write.
type Backuper interface {
	Backup(ctx context.Context, file string) (BackedUp, error)
}

// BackedUp describes the content of a backup.
type BackedUp struct {
	Sessions int   `json:"sessions"`
	Entries  int64 `json:"entries"`
	Blobs    int   `json:"blobs"`
	Bytes    int64 `json:"bytes"` // size of the file
}

// Salvager is implemented by a [Store] that can copy the undamaged parts of the
// session from into a new session to.
type Salvager interface {
	Salvage(ctx context.Context, from, to string) (Salvaged, error)
}

// Salvaged is the result of a [Salvager].
type Salvaged struct {
	// Session is the new session, and Entries the number of its undamaged entries.
	Session string
	Entries int64
	// Damage lists what was found. An entry that is named there and could not be
	// copied is replaced by a [session.Noticed] of the kind NoticeEntryLost or
	// NoticePayloadLost.
	Damage []session.Damage
	// Gaps lists the copied sessions that a run refuses to continue, because it is
	// not known what their lost entries did; see [session.NoticeEntryLost].
	Gaps []string
}

// Indexer is implemented by a [Store] that can rebuild or remove the index of its
// [session.Searcher].
type Indexer interface {
	Index(ctx context.Context, on bool) error
}

// Durable is implemented by a [Store] that can report how durable its commits are.
type Durable interface {
	Durability(ctx context.Context) (Durability, error)
}

// Durability describes how durable the commits of a database are.
type Durability struct {
	// Format is the version of the tables.
	Format int
	// Settings lists the settings that matter, as the database reports them.
	Settings []Setting
}

// A Setting is one setting in a [Durability].
type Setting struct {
	Name, Value string
	// Weak says why commits may be lost with this value. It is "" if they are safe.
	Weak string
	// Note contains further information for people.
	Note string
}

// As returns the store as an optional interface such as [Backuper]. If the store
// does not implement it, the error is "this kind of store does not …", completed
// by the argument does, and wraps [errors.ErrUnsupported].
func As[T any](s Store, does string) (T, error) {
	var none T
	if nils.Is(s) {
		return none, fmt.Errorf("the store is nil, so it does not %s: open one", does)
	}
	if t, ok := s.(T); ok {
		return t, nil
	}
	return none, fmt.Errorf("%s: this kind of store does not %s: %w", s.Place(), does, errors.ErrUnsupported)
}

// ErrKey reports that a store is encrypted and its key is missing or wrong, or that
// a key was given for a store that is not encrypted.
var ErrKey = errors.New("the store's key")

var errPlace = errors.New("no store can be opened at this place")

// A PlaceError reports that the caller gave a place or a key with which no store
// can be opened. A failure at a correct place, such as a full disk, is another
// error.
type PlaceError struct{ Err error }

// Error returns the text of Err.
func (e *PlaceError) Error() string { return fmt.Sprint(cmp.Or(e.Err, errPlace)) }

// Unwrap returns Err.
func (e *PlaceError) Unwrap() error { return e.Err }

// An AbsentError reports that the store does not exist. It is wrapped in a
// [PlaceError], and returned only without [Options.Create].
type AbsentError struct{ Place string }

// Error returns a text with the place.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("there are no sessions yet: %s does not exist", e.Place)
}

// Options configure how a store is opened. The zero value opens an existing store
// that is not encrypted.
type Options struct {
	// Create creates the store if it does not exist.
	Create bool
	// Retry is the time for which an operation that failed for a temporary reason is
	// repeated. Zero means the default of the kind of store; a negative value means
	// that nothing is repeated.
	Retry time.Duration
	// Key returns the key of an encrypted store. A new store is encrypted with it;
	// this cannot be changed later. Nil means no key.
	Key func(ctx context.Context) (endpoint.Key, error)
	// Keyless opens an encrypted store without its key, for operations that do not
	// need it. It is ignored if Key is set.
	Keyless bool
}
