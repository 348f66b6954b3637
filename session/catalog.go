// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Errors that stores return, wrapped, for sessions that several processes share.
var (
	// ErrBusy means that another process, or another run of this one, is writing to
	// the session.
	ErrBusy = errors.New("another process or run is writing to the session")
	// ErrLost means that the lock of a session, or the place where it is stored, was
	// lost during writing.
	ErrLost = errors.New("the session was lost while it was written to")
	// ErrNotFound means that the session does not exist.
	ErrNotFound = errors.New("session not found")
	// ErrNoBlob means that the blob does not exist.
	ErrNoBlob = errors.New("blob not found")
	// ErrExists means that the session exists already.
	ErrExists = errors.New("the session exists already")
	// ErrNewer means that a newer program wrote the stored data.
	ErrNewer = errors.New("a newer version of the program wrote it")
)

// Locker is implemented by a [Store] that several processes share. Only one of them
// may write to a session at a time.
type Locker interface {
	Store
	// Lock reserves the session for writing until unlock is called or the process
	// ends, even by a crash. It does not wait: if another writer holds the lock, the
	// error wraps [ErrBusy] and names the holder. Reading needs no lock. Without an
	// error, unlock is not nil.
	Lock(ctx context.Context, id string) (unlock func() error, err error)
}

// Holder is implemented by a [Locker] that notices when a lock is lost.
type Holder interface {
	Locker
	// Hold is like Lock, and also returns a context derived from ctx. That context
	// ends when the lock, or the place where the session is stored, is lost; its cause
	// then wraps [ErrLost].
	Hold(ctx context.Context, id string) (held context.Context, unlock func() error, err error)
}

// LockLister is implemented by a [Locker] that knows which sessions are locked.
type LockLister interface {
	Locker
	// Locked returns the ids of the sessions that any process has locked now.
	Locked(ctx context.Context) (ids []string, err error)
}

// Forker is implemented by a [Store] that can begin a session with the entries of
// another one without copying them.
type Forker interface {
	Store
	// Fork creates the session to, which begins with the entries of from up to number
	// at and continues with further, whose numbers follow at. It creates all of it or
	// nothing. If the session to exists already, the error wraps [ErrExists].
	Fork(ctx context.Context, from string, at int64, to string, further ...Entry) error
}

// Watcher is implemented by a [Store] that reports entries as they are appended.
type Watcher interface {
	Store
	// Watch yields the entries of a session after number after, and then those that
	// any writer appends later, each once and in order. It returns when ctx is done,
	// which is not an error, or when the session is deleted.
	Watch(ctx context.Context, id string, after int64) iter.Seq2[Entry, error]
}

// Info is the information that a [Catalog] keeps about a session besides its log.
type Info struct {
	ID string `json:"id"`
	// Name is the name that people use. Path is the absolute path of the agent's file,
	// with links resolved, or "". No two sessions of one owner that are not archived
	// have the same Name and Path, unless the name is "".
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"`
	// Parent is the session that this one was forked from, at entry At, or that it is
	// nested in.
	Parent string `json:"parent,omitempty"`
	At     int64  `json:"at,omitempty"`
	// Nested reports whether a call of the parent started the session.
	Nested bool `json:"nested,omitempty"`
	// Owner identifies the user that the session belongs to, in the terms of the
	// program that keeps it; "" means no owner. Forks and nested sessions have the
	// owner of the session that they come from.
	Owner string `json:"owner,omitempty"`
	// Tags are labels for finding the session, such as "bug" or "customer=4711". They
	// are sorted and unique.
	Tags []string `json:"tags,omitempty"`
	// Title is the title that a person gave with [Catalog.Label], or the beginning of
	// the user's first message.
	Title    string    `json:"title,omitempty"`
	Entries  int64     `json:"entries"`
	Created  time.Time `json:"created,omitzero"`
	Updated  time.Time `json:"updated,omitzero"`
	Archived bool      `json:"archived,omitempty"`
	// Cursor is set by List. Pass it as [Query.After] to continue the list after this
	// session.
	Cursor string `json:"cursor,omitempty"`
}

// Query selects sessions of a [Catalog]. The zero Query selects all sessions that
// are neither archived nor nested.
type Query struct {
	// Name, Path and Owner must be equal, unless they are "". An empty Owner selects
	// the sessions of all owners, so a server that shows users their own sessions must
	// not leave it empty.
	Name, Path, Owner string
	// Tags must all be present on a session.
	Tags []string
	// Prefix is the beginning of the session's id. If it is set, the list is ordered
	// by id.
	Prefix string
	// Archived and Nested include archived and nested sessions.
	Archived, Nested bool
	// Limit is the largest number of sessions to list; 0 means no limit.
	Limit int
	// After is the [Info.Cursor] of the last session of the previous page. The other
	// fields must be the same as for that page, except for Limit. A session that was
	// written to since then has moved to the front, and is not listed again.
	After string
}

// Labels is a change of a session's owner, title and tags, for [Catalog.Label].
type Labels struct {
	// Title and Owner replace the session's values unless they are nil. After an empty
	// Title the session takes its title from the user's next message.
	Title, Owner *string
	// Tags are added and Untag are removed. A tag in both lists is added.
	Tags, Untag []string
}

// Catalog is implemented by a [Store] that can list its sessions.
type Catalog interface {
	Store
	// List yields sessions, the most recently written ones first. Of a run, only the
	// beginning and the end count as writes, so sessions that run at the same time
	// are ordered by when their runs began. List may hold a connection of the store
	// until the caller stops iterating.
	List(ctx context.Context, q Query) iter.Seq2[Info, error]
	// Info returns the information about a session, or [ErrNotFound].
	Info(ctx context.Context, id string) (Info, error)
	// Create makes a session with the ID, Name, Path, Parent, At, Nested, Owner, Tags
	// and Title of info, or returns [ErrExists]. Its log begins with first: all of it is
	// made, or nothing. A first append without Create makes a session that has only an
	// id. The id of a deleted session can be used again once no session that was nested
	// in it is left.
	Create(ctx context.Context, info Info, first ...Entry) error
	// Rename, Label, Archive and Delete change one session, or return [ErrNotFound]. A
	// new owner also applies to all sessions nested in it. Entries that a deleted
	// session shares with a fork stay as long as the fork, and so do the sessions
	// nested in these entries. Without a fork the nested sessions are deleted too.
	// Blobs stay until [Catalog.Sweep].
	Rename(ctx context.Context, id, name string) error
	Label(ctx context.Context, id string, change Labels) error
	Archive(ctx context.Context, id string, archived bool) error
	Delete(ctx context.Context, id string) error
	// Sweep removes data that no session needs any more. If dry is set, it only counts
	// it.
	Sweep(ctx context.Context, dry bool) (GCStats, error)
}

// GCStats counts the blobs and entries that [Catalog.Sweep] removed, or would remove,
// and the bytes of both.
type GCStats struct {
	Blobs   int   `json:"blobs"`
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// Left says where bytes of deleted data may still be, and why; "" means nowhere.
	Left string `json:"left,omitempty"`
}

// Hash is the SHA-256 of a blob's bytes.
type Hash [32]byte

// Blobs is implemented by a [Store] that keeps large payloads apart from the log,
// each once, by its content. The store finds the payloads of entries on its own;
// these methods are for further data, such as outputs that were too long to send.
type Blobs interface {
	Store
	// PutBlob keeps a copy of data for the session, until the session is deleted.
	PutBlob(ctx context.Context, id string, data []byte) (Hash, error)
	// OpenBlob returns a blob and its size in bytes, or [ErrNoBlob].
	OpenBlob(ctx context.Context, hash Hash) (blob Blob, size int64, err error)
}

// Blob reads the bytes kept under a hash.
type Blob interface {
	io.ReadCloser
	io.ReaderAt
}
