// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"iter"
)

// ErrConflict is returned, wrapped, by an append that expected another end of
// the log: somebody else wrote to the session.
var ErrConflict = errors.New("the session has moved on")

// Store keeps the logs of sessions.
//
// Append writes the entries, which follow entry number after, all or none of
// them, and returns when they are as durable as the store makes them; with
// another end of the log it returns [ErrConflict]. Load yields the entries of a
// session in order, those that follow entry number after; a session nobody wrote
// to has none. A Store is safe for concurrent use; entries are immutable and may
// be shared.
//
// What a store can do beyond that it says by its methods: see [SubsessionStore],
// [Locker], [Forker], [Watcher], [Catalog] and [Blobs].
type Store interface {
	Append(ctx context.Context, id string, after int64, entries []Entry) error
	Load(ctx context.Context, id string, after int64) iter.Seq2[Entry, error]
}
