// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

const (
	// minBlob is the size in bytes from which a payload is stored as a blob.
	minBlob = 4 << 10
	// chunkSize is the largest number of bytes of a blob in one row.
	chunkSize = 256 << 10
)

// blob is a payload that an append or PutBlob has to store.
type blob struct {
	seal    *seal
	hash    session.Hash
	size    int64
	payload func() ([]byte, error)
	first   int64 // the number of the entry that holds it
}

// keep records a payload of the entry that is being written.
func (a *addition) keep(s *seal, p item.Payload, payload func() ([]byte, error)) {
	// The entries before this one are in a.data already, one line each.
	entry := a.after + 1 + int64(bytes.Count(a.data, []byte{'\n'}))
	a.blobs = append(a.blobs, &blob{seal: s, hash: p.Hash, size: p.Size, payload: payload, first: entry})
}

// sortBlobs removes duplicates and sorts the blobs by hash. All writers use this
// order, so that two writers of the same blobs cannot deadlock.
func (a *addition) sortBlobs() {
	slices.SortStableFunc(a.blobs, func(a, b *blob) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	a.blobs = slices.CompactFunc(a.blobs, func(a, b *blob) bool { return a.hash == b.hash })
}

// keepBlobs writes the blobs that are not stored yet, and records that the log needs
// all of them. The caller must have called shareTree, so that a concurrent sweep
// cannot remove a blob before its reference is written.
func (t *tx) keepBlobs(ctx context.Context, blobs []*blob, log int64) error {
	for _, b := range blobs {
		number, err := t.keepBlob(ctx, b)
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, `INSERT INTO antiphon_refs (log, blob, first) VALUES (?, ?, ?) ON CONFLICT (log, blob) DO NOTHING`,
			log, number, b.first); err != nil {
			return err
		}
	}
	return nil
}

// keepBlob returns the number of a blob, and writes the blob if it is not stored
// yet.
func (t *tx) keepBlob(ctx context.Context, b *blob) (number int64, err error) {
	const find = `SELECT blob FROM antiphon_blobs WHERE hash = ?`
	name := b.seal.name(b.hash)
	if err = t.row(ctx, find, name[:]).Scan(&number); !errors.Is(err, sql.ErrNoRows) {
		return number, err
	}
	data, err := b.payload()
	if err != nil {
		return 0, err
	}
	err = t.row(ctx, `INSERT INTO antiphon_blobs (hash, size) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING RETURNING blob`,
		name[:], b.size).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) { // another writer was faster
		return number, t.row(ctx, find, name[:]).Scan(&number)
	}
	if err != nil {
		return 0, err
	}
	n := int64(0)
	for chunk := range slices.Chunk(data, chunkSize) {
		stored := b.seal.chunk(name, n, b.size, chunk)
		if _, err := t.exec(ctx, `INSERT INTO antiphon_chunks (blob, n, data, sum) VALUES (?, ?, ?, ?)`, number, n, stored, chunkSum(name, n, stored)); err != nil {
			return 0, err
		}
		n++
	}
	return number, nil
}

// PutBlob implements [session.Blobs].
func (s *Store) PutBlob(ctx context.Context, id string, data []byte) (session.Hash, error) {
	if err := checkID(id); err != nil {
		return session.Hash{}, err
	}
	if err := s.seal.usable(); err != nil {
		return session.Hash{}, err
	}
	b := &blob{seal: s.seal, hash: sha256.Sum256(data), size: int64(len(data)), payload: func() ([]byte, error) { return data, nil }}
	err := s.writeHeld(ctx, id, func(ctx context.Context, t *tx) error {
		if err := t.shareTree(ctx); err != nil {
			return err
		}
		log, err := t.logOf(ctx, id, &b.first)
		if errors.Is(err, sql.ErrNoRows) {
			// A payload may be stored before the session's first entry: create the
			// session.
			a := &addition{id: id, at: s.now()}
			if err := a.begin(ctx, t); err != nil {
				return err
			}
			log, err = t.logOf(ctx, id, &b.first)
		}
		if err != nil {
			return err
		}
		return t.keepBlobs(ctx, []*blob{b}, log)
	})
	return b.hash, s.fail("keeping a blob", err)
}

// logOf returns the number of a session's log, and sets end to that of its last
// entry.
func (t *tx) logOf(ctx context.Context, id string, end *int64) (log int64, err error) {
	err = t.row(ctx, `SELECT log, entries FROM antiphon_sessions WHERE id = ?`, id).Scan(&log, end)
	return log, err
}

// OpenBlob implements [session.Blobs].
func (s *Store) OpenBlob(ctx context.Context, hash session.Hash) (session.Blob, int64, error) {
	if err := s.seal.usable(); err != nil {
		return nil, 0, err
	}
	r, err := s.openNamed(ctx, s.seal.name(hash))
	if errors.Is(err, session.ErrNoBlob) {
		return nil, 0, fmt.Errorf("%w: %x", session.ErrNoBlob, hash[:8])
	}
	if err != nil {
		return nil, 0, err
	}
	return r, r.size, nil
}

// openNamed opens the blob stored under a name; see [seal.name].
func (s *Store) openNamed(ctx context.Context, name session.Hash) (*reader, error) {
	r := &reader{s: s, ctx: ctx, name: name, at: -1}
	err := s.reading(ctx, func() error {
		return s.reads.row(ctx, `SELECT blob, size FROM antiphon_blobs WHERE hash = ?`, name[:]).Scan(&r.blob, &r.size)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, session.ErrNoBlob
	}
	return r, s.fail("reading a blob", err)
}

// source opens the payloads of items from the store.
type source struct{ s *Store }

// OpenPayload implements [item.Source].
func (src source) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	b, _, err := src.s.OpenBlob(context.Background(), hash)
	return b, err
}

// reader reads a blob, one chunk at a time. It holds no transaction open between
// reads, so that a slow caller does not block writers.
type reader struct {
	s          *Store
	ctx        context.Context
	name       session.Hash
	blob, size int64
	next       int64 // the offset of the next Read

	at    int64 // the number of the chunk in memory, or -1
	chunk []byte
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	if r.next >= r.size {
		return 0, io.EOF
	}
	n := r.next / chunkSize
	if n != r.at {
		var err error
		if r.chunk, err = r.load(n, r.chunk[:0]); err != nil {
			return 0, err
		}
		r.at = n
	}
	copied := copy(p, r.chunk[r.next-n*chunkSize:])
	r.next += int64(copied)
	return copied, nil
}

// load reads and decrypts a chunk. It may reuse the memory of into.
func (r *reader) load(n int64, into []byte) (chunk []byte, err error) {
	err = r.s.reading(r.ctx, func() error {
		if chunk, err = r.stored(n, into[:0]); err == nil {
			chunk, err = r.open(n, chunk)
		}
		return err
	})
	return chunk, err
}

// open decrypts a chunk, if the store is encrypted.
func (r *reader) open(n int64, stored []byte) ([]byte, error) {
	data, err := r.s.seal.openChunk(r.name, n, r.size, stored)
	if errors.Is(err, errForeign) {
		err = r.s.fail("reading a blob", r.damage(n, err.Error()))
	}
	return data, err
}

// damage returns the error for a damaged chunk.
func (r *reader) damage(n int64, problem string) error {
	return &session.Damage{Place: fmt.Sprintf("table antiphon_chunks, part %d of payload %x", n+1, r.name[:8]), Problem: problem}
}

var errNoPart = errors.New("a part of it is missing: the database is damaged, or its last session was deleted")

// stored reads a chunk in its stored form and compares it with its checksum.
func (r *reader) stored(n int64, into []byte) ([]byte, error) {
	rows, err := r.s.reads.rows(r.ctx, `SELECT data, sum FROM antiphon_chunks WHERE blob = ? AND n = ?`, r.blob, n)
	if err != nil {
		return nil, r.s.fail("reading a blob", err)
	}
	defer rows.Close()
	there := rows.Next()
	var sum []byte
	if there {
		// RawBytes saves a copy: the chunk goes straight into the caller's memory.
		var data, raw sql.RawBytes
		if err = rows.Scan(&data, &raw); err == nil {
			into, sum = append(into, data...), bytes.Clone(raw)
		}
	}
	if err = errors.Join(err, rows.Err()); err != nil {
		return nil, r.s.fail("reading a blob", err)
	}
	if !there {
		return nil, r.s.fail("reading a blob", errNoPart)
	}
	if want := r.s.seal.stored(min(r.size-n*chunkSize, chunkSize)); int64(len(into)) != want || !bytes.Equal(sum, chunkSum(r.name, n, into)) {
		return nil, r.s.fail("reading a blob", r.damage(n, "its bytes do not have the checksum that was written with it"))
	}
	return into, nil
}

// ReadAt implements [io.ReaderAt].
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("an offset below zero")
	}
	read := 0
	for read < len(p) && off < r.size {
		n := off / chunkSize
		chunk, err := r.load(n, nil)
		if err != nil {
			return read, err
		}
		copied := copy(p[read:], chunk[off-n*chunkSize:])
		read += copied
		off += int64(copied)
	}
	if read < len(p) {
		return read, io.EOF
	}
	return read, nil
}

// Close implements [io.Closer].
func (r *reader) Close() error { return nil }
