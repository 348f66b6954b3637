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

// Sum is the checksum of a log up to an entry. Each sum covers the sum before
// it, the entry's number and the entry's bytes, so the last one covers the whole
// log: it changes if anything in the log is changed, left out, added or moved.
// The zero Sum is that of an empty log.
//
// It is the first half of a SHA-256. A faster checksum would find accidents as
// well; this one also finds changes on purpose, if the log's last sum was noted
// elsewhere. Half is enough for that: nobody can find other bytes for a given
// sum of 128 bits, and it costs 16 bytes an entry instead of 32.
type Sum [16]byte

// String returns the sum in hexadecimal digits.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// Next returns the sum of the log that goes on with line as its entry number
// seq. The line is what the store keeps of the entry; see [AppendEntry].
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

// summer is a hash with the memory that it needs, kept for the next sum: a long
// log has many.
type summer struct {
	hash.Hash
	head [len(Sum{}) + 8]byte
	out  [sha256.Size]byte
}

var summers = sync.Pool{New: func() any { return &summer{Hash: sha256.New()} }}

// ErrDamaged says that what is stored is not what was written. A [Damage] says
// where.
var ErrDamaged = errors.New("what is stored is not what was written")

// Damage is one place in a store where what is stored is not what was written.
// It wraps [ErrDamaged].
type Damage struct {
	// Session is the session that it belongs to, "" if none or if that is not
	// known.
	Session string `json:"session,omitempty"`
	// Entry is the number of the first entry that cannot be read, 0 if the damage
	// is not in an entry.
	Entry int64 `json:"entry,omitempty"`
	// Place is where it is stored, such as a table and a row.
	Place string `json:"place,omitempty"`
	// Problem says what is wrong there.
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

// Verifier is implemented by a [Store] that can prove that it holds what was
// written to it.
type Verifier interface {
	Store
	// Verify reads the sessions with those ids, or all that the store holds if
	// there are none, and yields each damage that it finds. An error ends it and
	// says that not everything could be looked at. Without either, each entry and
	// each payload is what was written.
	Verify(ctx context.Context, ids ...string) iter.Seq2[Damage, error]
}
