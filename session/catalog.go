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

// What stores say, wrapped, of sessions that they keep for several processes.
var (
	// ErrBusy: another process, or another run of this one, writes to the
	// session.
	ErrBusy = errors.New("somebody else is writing to the session")
	// ErrLost: the lock of a session, or the place where it is stored, was lost
	// while it was written to.
	ErrLost = errors.New("the session was lost while it was written to")
	// ErrNotFound: there is no such session.
	ErrNotFound = errors.New("there is no such session")
	// ErrNoBlob: there is no such blob.
	ErrNoBlob = errors.New("there is no such blob")
	// ErrExists: there is such a session already.
	ErrExists = errors.New("there is such a session already")
	// ErrNewer: a newer program wrote what is stored.
	ErrNewer = errors.New("a newer version of the program wrote it")
)

// Locker is implemented by a [Store] that several processes share: one at a time
// writes to a session.
type Locker interface {
	Store
	// Lock gives the caller the session to write to, until unlock is called or
	// its process ends, however it does. It does not wait: if somebody else has
	// it, the error wraps [ErrBusy] and names who. Reading needs no lock.
	Lock(ctx context.Context, id string) (unlock func() error, err error)
}

// Holder is implemented by a [Locker] that notices when a lock is lost.
type Holder interface {
	Locker
	// Hold is like Lock. The context that it returns is derived from ctx; it ends
	// when the lock, or the place where the session is stored, is lost, and its
	// cause wraps [ErrLost].
	Hold(ctx context.Context, id string) (held context.Context, unlock func() error, err error)
}

// Forker is implemented by a [Store] that begins a session with the entries of
// another without copying them.
type Forker interface {
	Store
	// Fork makes the session to, which begins with the entries of from up to
	// number at. If there is one, the error wraps [ErrExists].
	Fork(ctx context.Context, from string, at int64, to string) error
}

// Watcher is implemented by a [Store] that reports entries as they come.
type Watcher interface {
	Store
	// Watch yields the entries of a session that follow number after, and goes on
	// with those that are appended later, by whomever, each once and in order,
	// until ctx ends, which is not an error, or the session is deleted.
	Watch(ctx context.Context, id string, after int64) iter.Seq2[Entry, error]
}

// Info is what a [Catalog] knows of a session besides its log.
type Info struct {
	ID string `json:"id"`
	// Name is what people call it. Path is the agent's file that it belongs to,
	// absolute and with links resolved, "" if none. No two sessions of one owner
	// that are not archived share both, unless the name is "".
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"`
	// Parent is the session that it is a fork of, from entry At on, or that it
	// is nested in.
	Parent string `json:"parent,omitempty"`
	At     int64  `json:"at,omitempty"`
	// Nested says that a call of its parent started it.
	Nested bool `json:"nested,omitempty"`
	// Owner says whose session it is: a user's id in the program that keeps it, ""
	// if nobody's. Forks and nested sessions have the owner of the session that they
	// come from.
	Owner string `json:"owner,omitempty"`
	// Tags are words to find it by, such as "bug" or "customer=4711": sorted, each
	// once.
	Tags []string `json:"tags,omitempty"`
	// Title is what a person called it by [Catalog.Label], or the beginning of a
	// user's first message, for lists.
	Title    string    `json:"title,omitempty"`
	Entries  int64     `json:"entries"`
	Created  time.Time `json:"created,omitzero"`
	Updated  time.Time `json:"updated,omitzero"`
	Archived bool      `json:"archived,omitempty"`
	// Cursor is set by List: the list goes on after this session with it as
	// [Query.After].
	Cursor string `json:"cursor,omitempty"`
}

// Query chooses among the sessions of a [Catalog]. The zero Query is all but
// those that are archived or nested.
type Query struct {
	// Name, Path and Owner must be equal, unless they are "". An empty Owner means
	// the sessions of everybody: a server that shows users their own takes care that
	// it is not empty.
	Name, Path, Owner string
	// Tags are those that a session must have, all of them.
	Tags []string
	// Prefix is what the id must begin with. Then the order is that of the ids.
	Prefix string
	// Archived and Nested are listed too if these are set.
	Archived, Nested bool
	// Limit is how many are listed at most; 0 is all.
	Limit int
	// After is the [Info.Cursor] of the last session of the page before, from a
	// list with the same members, except for the limit. What was written to since
	// then has moved to the front, and is not listed again.
	After string
}

// Labels are a change of what people say of a session, for [Catalog.Label].
type Labels struct {
	// Title and Owner replace those that the session has, unless they are nil. An
	// empty title makes room for that of the user's next message.
	Title, Owner *string
	// Tags are added, and Untag taken away. A tag that is in both is there.
	Tags, Untag []string
}

// Catalog is implemented by a [Store] that knows its sessions.
type Catalog interface {
	Store
	// List yields the sessions that were written to last first. A run counts as
	// one write, which its end repeats: the order of sessions that runs write to at
	// the same time is that of their beginnings. A list may hold a connection of
	// the store until the caller stops ranging.
	List(ctx context.Context, q Query) iter.Seq2[Info, error]
	// Info returns what is known of a session, or [ErrNotFound].
	Info(ctx context.Context, id string) (Info, error)
	// Create makes an empty session with the ID, Name, Path, Parent, At, Nested,
	// Owner, Tags and Title of info, or returns [ErrExists]. A first append makes
	// one with nothing but an id.
	// The id of a session that was deleted is free again when nothing is left that
	// was nested in it.
	Create(ctx context.Context, info Info) error
	// Rename, Label, Archive and Delete change one session, or return [ErrNotFound].
	// What is nested in a session gets its owner.
	// What a fork shares with a deleted session stays as long as the fork, and with
	// it the sessions that are nested in that; without forks those go along. Blobs
	// stay until [Catalog.Sweep].
	Rename(ctx context.Context, id, name string) error
	Label(ctx context.Context, id string, change Labels) error
	Archive(ctx context.Context, id string, archived bool) error
	Delete(ctx context.Context, id string) error
	// Sweep removes what no session needs any more, or only counts it if dry is
	// set.
	Sweep(ctx context.Context, dry bool) (Swept, error)
}

// Swept is what [Catalog.Sweep] removed, or would: so many blobs and entries,
// and the bytes that both had.
type Swept struct {
	Blobs   int   `json:"blobs"`
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// Left says where bytes of what was deleted may still be, and why; "" if
	// nowhere.
	Left string `json:"left,omitempty"`
}

// Hash is the SHA-256 of a blob's bytes.
type Hash [32]byte

// Blobs is implemented by a [Store] that keeps large payloads apart from the
// log, each once, by its content. What entries carry it finds by itself; here
// is what else is to be kept, such as the outputs that were too long to be sent.
type Blobs interface {
	Store
	// PutBlob keeps a copy of data for the session, as long as that exists.
	PutBlob(ctx context.Context, id string, data []byte) (Hash, error)
	// OpenBlob returns a blob's bytes and their number, or [ErrNoBlob].
	OpenBlob(ctx context.Context, hash Hash) (blob Blob, size int64, err error)
}

// Blob reads what is kept under a hash.
type Blob interface {
	io.ReadCloser
	io.ReaderAt
}
