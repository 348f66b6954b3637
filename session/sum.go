// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"iter"
	"sync"
)

// Sum is the checksum of a log up to an entry. Each sum covers the previous sum, the
// entry's number and the entry's bytes, so the last one covers the whole log: it
// changes if anything in the log is changed, removed, added or moved. The zero Sum
// belongs to an empty log.
//
// It is the first half of a SHA-256. A faster checksum would find accidental changes
// as well; this one also finds deliberate changes, if the log's last sum was
// recorded elsewhere. Half is enough, because nobody can find other bytes for a
// given 128-bit sum, and it takes 16 bytes per entry instead of 32.
type Sum [16]byte

// String returns the sum in hexadecimal.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Next returns the sum of the log after line is added as entry number seq. The line
// is the stored form of the entry; see [AppendEntry].
func (s Sum) Next(seq int64, line []byte) Sum {
	h := summers.Get().(*summer)
	defer summers.Put(h)
	copy(h.head[:], s[:])
	binary.BigEndian.PutUint64(h.head[len(s):], uint64(seq))
	h.Reset()
	_, _ = h.Write(h.head[:]) // a hash never fails
	_, _ = h.Write(line)
	h.Sum(h.out[:0])
	return Sum(h.out[:len(s)])
}

// summer is a hash with its buffers. It is reused, because a long log needs many
// sums.
type summer struct {
	hash.Hash
	head [len(Sum{}) + 8]byte
	out  [sha256.Size]byte
}

var summers = sync.Pool{New: func() any { return &summer{Hash: sha256.New()} }}

// ErrDamaged means that stored data differs from the data that was written. A
// [Damage] says where.
var ErrDamaged = errors.New("the stored data differs from the data that was written")

// Damage is one place in a store where the stored data differs from the data that
// was written. It wraps [ErrDamaged].
type Damage struct {
	// Session is the session that the place belongs to, or "" if there is none or it
	// is not known.
	Session string `json:"session,omitempty"`
	// Entry is the number of the first entry that cannot be read, or 0 if the damage
	// is not in an entry.
	Entry int64 `json:"entry,omitempty"`
	// Place is the location in the store, such as a table and a row.
	Place string `json:"place,omitempty"`
	// Problem describes the damage.
	Problem string `json:"problem"`
}

func (d *Damage) Error() string {
	text := ErrDamaged.Error()
	if d.Session != "" {
		text += fmt.Sprintf(": session %q", d.Session)
	}
	if d.Entry > 0 {
		text += fmt.Sprintf(": entry %d", d.Entry)
	}
	if d.Place != "" {
		text += " (" + d.Place + ")"
	}
	return text + ": " + d.Problem
}

// Unwrap returns [ErrDamaged].
func (d *Damage) Unwrap() error { return ErrDamaged }

// Verifier is implemented by a [Store] that can prove that it holds the data that
// was written.
type Verifier interface {
	Store
	// Verify checks the sessions with the given ids, or all sessions of the store
	// without ids, and yields each damage that it finds. An error ends it and means
	// that not everything was checked. If it yields nothing, each entry and each
	// payload is as written.
	Verify(ctx context.Context, ids ...string) iter.Seq2[Damage, error]
}
