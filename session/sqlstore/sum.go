// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/antiphon-go/antiphon/session"
)

// Checksums let the store detect that data is not what it wrote:
//
//   - antiphon_entries.sums holds the [session.Sum] before a row's first entry and the
//     one after each of its entries.
//   - antiphon_sessions.head is the sum at the session's last entry, and sum covers the
//     columns that appends do not change.
//   - antiphon_chunks.sum covers a chunk, its place and the blob's hash.
//   - antiphon_sessions.key is a second index of ids, and name_key a second index of
//     names. A session whose id or name, or the first index of it, is damaged is
//     therefore not taken for one that does not exist.

// packed is a row of antiphon_entries. It has n lines, and the last line is entry
// number last.
type packed struct {
	log, last, n int64
	sums, data   []byte
}

// before returns the number of the entry before the row's first one.
func (p *packed) before() int64 { return p.last - p.n }

// sum returns the sum after the row's first i entries. If i is 0, it is the sum
// before the row.
func (p *packed) sum(i int64) session.Sum {
	const size = int64(len(session.Sum{}))
	return session.Sum(p.sums[i*size : (i+1)*size])
}

// isThere reports whether the log contains these entries, in a row of their own or
// as part of a merged row.
func (p *packed) isThere(ctx context.Context, t *tx) (bool, error) {
	sum, err := t.sumAt(ctx, base{p.log, p.last})
	var none *session.Damage
	if errors.As(err, &none) {
		return false, nil
	}
	return err == nil && sum == p.sum(p.n), err
}

// shaped reports whether the row has the right number of sums for its entries.
func (p *packed) shaped() bool {
	return p.n > 0 && p.n <= int64(len(p.data)) && int64(len(p.sums)) == (p.n+1)*int64(len(session.Sum{}))
}

// whole reports whether all entries of the row match their sums.
func (p *packed) whole() bool {
	if !p.shaped() {
		return false
	}
	rest := p.data
	for i := range p.n {
		line, after, ended := bytes.Cut(rest, newline)
		if !ended || p.sum(i).Next(p.before()+i+1, line) != p.sum(i+1) {
			return false
		}
		rest = after
	}
	return len(rest) == 0
}

// until returns a copy of the row that ends with entry number last.
func (p *packed) until(last int64) *packed {
	n, end := last-p.before(), 0
	for range n {
		end += bytes.IndexByte(p.data[end:], '\n') + 1
	}
	return &packed{log: p.log, last: last, n: n, data: bytes.Clone(p.data[:end]), sums: bytes.Clone(p.sums[:(n+1)*int64(len(session.Sum{}))])}
}

var newline = []byte{'\n'}

// pack returns a row with the lines of the n entries after number after. Head is the
// sum before them.
func pack(log, after, n int64, head session.Sum, data []byte) *packed {
	p := &packed{log: log, last: after + n, n: n, data: data}
	p.sums = append(make([]byte, 0, (n+1)*int64(len(head))), head[:]...)
	rest := data
	for i := range n {
		var line []byte
		line, rest, _ = bytes.Cut(rest, newline)
		head = head.Next(after+i+1, line)
		p.sums = append(p.sums, head[:]...)
	}
	return p
}

// place describes the bytes from from to to of the row, for an error.
func (p *packed) place(from, to int) string {
	return fmt.Sprintf("table antiphon_entries, log %d, the row that ends with entry %d, bytes %d to %d", p.log, p.last, from, to)
}

// damaged returns the error for a damaged entry of the row.
func (p *packed) damaged(entry int64, from, to int, problem string) error {
	return &session.Damage{Entry: entry, Place: p.place(from, to), Problem: problem}
}

// stored is a row of antiphon_sessions.
type stored struct {
	session.Info
	log       int64
	belongs   int64 // the log that a nested session belongs to; column owner
	titled    bool  // a person chose the title
	touched   int64
	head, sum []byte
}

// static returns the checksum of the columns that appends do not change.
func (r *stored) static() []byte {
	h := sha256.New()
	for _, text := range []string{r.ID, r.Name, r.Path, r.Parent, r.Title} {
		// The length separates the texts: "ab", "c" and "a", "bc" have different
		// sums.
		fmt.Fprintf(h, "%d:%s,", len(text), text)
	}
	fmt.Fprint(h, r.log, " ", r.belongs, " ", r.At, " ", r.Nested, " ", r.Archived, " ", r.Created.UnixMilli())
	if r.Owner != "" || len(r.Tags) > 0 || r.titled { // rows of earlier formats have none of these, and keep their sums
		tags := joinTags(r.Tags)
		fmt.Fprintf(h, " %d:%s,%d:%s,%t", len(r.Owner), r.Owner, len(tags), tags, r.titled)
	}
	return h.Sum(nil)[:len(session.Sum{})]
}

// check returns an error if the row does not match its checksum.
func (r *stored) check() error {
	if !bytes.Equal(r.sum, r.static()) || len(r.head) != len(session.Sum{}) {
		return &session.Damage{Session: r.ID, Place: fmt.Sprintf("table antiphon_sessions, log %d", r.log), Problem: "what is known of the session does not have the checksum that was written with it"}
	}
	return nil
}

// keyOf returns the key of an id in the second index, and nameKeyOf that of a name.
func keyOf(id string) int64 { return lockKey("id", id) }

func nameKeyOf(name string) int64 { return lockKey("name", name) }

// errAppeared reports that a session was created between two queries for it.
var errAppeared = errors.New("the session was made just now; try again")

// missing returns the error for a session that was not found by its id:
// [session.ErrNotFound], or damage if the second index finds it.
func (t *tx) missing(ctx context.Context, id string) error {
	var other string
	err := t.row(ctx, `SELECT id FROM antiphon_sessions WHERE key = ?`, keyOf(id)).Scan(&other)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return notFound(id)
	// Either the session was created just now, or the first index is damaged.
	case err == nil && other == id:
		err = t.row(ctx, `SELECT id FROM antiphon_sessions WHERE id = ?`, id).Scan(&other)
		if err == nil {
			return errAppeared
		}
	}
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		err = &session.Damage{Session: id, Place: "table antiphon_sessions", Problem: fmt.Sprintf("it cannot be found by its id; its row is that of %q now", other)}
	}
	return err
}

// chunkSum returns the checksum of a stored chunk, its number and its blob's name.
func chunkSum(hash session.Hash, n int64, data []byte) []byte {
	h := sha256.New()
	var place [len(hash) + 8]byte
	copy(place[:], hash[:])
	binary.BigEndian.PutUint64(place[len(hash):], uint64(n))
	_, _ = h.Write(place[:]) // a hash never returns an error
	_, _ = h.Write(data)
	return h.Sum(nil)[:len(session.Sum{})]
}

// heads caches the ends of the sessions that this store has read or written, so that
// an append does not have to query the sum that it continues from.
type heads struct {
	mu sync.Mutex
	at map[string]head
}

// head is the sum of a session's log at its last entry.
type head struct {
	entries int64
	sum     session.Sum
}

// maxHeads limits the memory for heads to less than a megabyte.
const maxHeads = 8192

// put sets the end of a session.
func (h *heads) put(id string, end head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.at) >= maxHeads {
		// A missing head costs only a query, so the oldest ones need not be found.
		clear(h.at)
	}
	if h.at == nil {
		h.at = map[string]head{}
	}
	h.at[id] = end
}

// get returns the end of a session, if it is known.
func (h *heads) get(id string) (end head, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end, ok = h.at[id]
	return end, ok
}

// forget removes a session that was deleted.
func (h *heads) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.at, id)
}
