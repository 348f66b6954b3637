// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"iter"
)

// ErrConflict is wrapped by the error of an append that expected another end of the
// log, because another writer appended in the meantime.
var ErrConflict = errors.New("the session has moved on")

// Store keeps the logs of sessions.
//
// Append writes the entries, which follow entry number after, all or none of them,
// and returns when they are as durable as the store can make them. If the log ends
// elsewhere, it returns [ErrConflict]. Load yields the entries of a session after
// number after, in order; a session that was never written to has no entries. A
// Store is safe for concurrent use. Entries are immutable and may be shared.
//
// A store may implement further interfaces: [SubsessionStore], [Locker],
// [Holder], [LockLister], [Forker], [Watcher], [Inbox], [TakenDeleter],
// [Catalog], [Searcher], [Blobs], [Verifier] and [Immediate].
type Store interface {
	Append(ctx context.Context, id string, after int64, entries []Entry) error
	Load(ctx context.Context, id string, after int64) iter.Seq2[Entry, error]
}
