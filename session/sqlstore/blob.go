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
	// minBlob is the size in bytes from which on a payload is a blob.
	minBlob = 4 << 10
	// chunkSize is how much of a blob a row holds.
	chunkSize = 256 << 10
)

// blob is a payload that an append or a PutBlob needs.
type blob struct {
	seal    *seal
	hash    session.Hash
	size    int64
	payload func() ([]byte, error)
	first   int64 // the number of the entry with it
}

// keep notes a payload of the entry that is being written.
func (a *addition) keep(s *seal, p item.Payload, payload func() ([]byte, error)) {
	entry := a.after + 1 + int64(bytes.Count(a.data, []byte{'\n'}))
	a.blobs = append(a.blobs, &blob{seal: s, hash: p.Hash, size: p.Size, payload: payload, first: entry})
}

// sortBlobs puts each blob down once and in one order for all, so that two who
// write the same ones never wait for each other.
func (a *addition) sortBlobs() {
	slices.SortStableFunc(a.blobs, func(a, b *blob) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	a.blobs = slices.CompactFunc(a.blobs, func(a, b *blob) bool { return a.hash == b.hash })
}

// keepBlobs writes the blobs that are not there, and that the log needs them.
// The caller shares the tree.
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

// keepBlob returns the number of a blob, which it writes if it is not there.
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
	if errors.Is(err, sql.ErrNoRows) { // somebody else wrote it meanwhile
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
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		if err := t.shareTree(ctx); err != nil {
			return err
		}
		log, err := t.logOf(ctx, id, &b.first)
		if errors.Is(err, sql.ErrNoRows) {
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

// logOf returns a session's log and its end.
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

// openNamed opens the blob of a name.
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

// source is the store for the items that hold payloads of it.
type source struct{ s *Store }

// OpenPayload implements [item.Source].
func (src source) OpenPayload(hash [32]byte) (io.ReadCloser, error) {
	b, _, err := src.s.OpenBlob(context.Background(), hash)
	return b, err
}

// reader reads a blob, one chunk at a time, and keeps no transaction open.
type reader struct {
	s          *Store
	ctx        context.Context
	name       session.Hash
	blob, size int64
	next       int64 // where Read goes on

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

// load reads a chunk.
func (r *reader) load(n int64, into []byte) (chunk []byte, err error) {
	err = r.s.reading(r.ctx, func() error {
		if chunk, err = r.stored(n, into[:0]); err == nil {
			chunk, err = r.open(n, chunk)
		}
		return err
	})
	return chunk, err
}

// open returns what a chunk holds.
func (r *reader) open(n int64, stored []byte) ([]byte, error) {
	data, err := r.s.seal.openChunk(r.name, n, r.size, stored)
	if err == errForeign {
		err = r.s.fail("reading a blob", r.damage(n, err.Error()))
	}
	return data, err
}

func (r *reader) damage(n int64, problem string) error {
	return &session.Damage{Place: fmt.Sprintf("table antiphon_chunks, part %d of payload %x", n+1, r.name[:8]), Problem: problem}
}

var errNoPart = errors.New("a part of it is missing: the database is damaged, or its last session was deleted")

// stored reads a chunk as it is stored.
func (r *reader) stored(n int64, into []byte) ([]byte, error) {
	rows, err := r.s.reads.rows(r.ctx, `SELECT data, sum FROM antiphon_chunks WHERE blob = ? AND n = ?`, r.blob, n)
	if err != nil {
		return nil, r.s.fail("reading a blob", err)
	}
	defer rows.Close()
	there := rows.Next()
	var sum []byte
	if there {
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
