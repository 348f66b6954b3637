// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// addSums is the step to format 2: it computes the checksums of all stored data.
// Data that is visibly damaged gets no valid checksum, so that reading it reports
// the damage. The migration still succeeds: otherwise the database could not be
// opened to verify and salvage it.
func addSums(ctx context.Context, t *tx) error {
	// Logs are processed in order of their numbers because a log needs the sums of
	// its base, which has a lower number. A log whose row is missing may still have
	// entries, which can be salvaged if they have sums.
	logs, err := t.numbers(ctx, `SELECT log FROM antiphon_logs UNION SELECT log FROM antiphon_entries ORDER BY log`)
	if err != nil {
		return err
	}
	for _, log := range logs {
		if err := t.sumLog(ctx, log); err != nil {
			return err
		}
	}
	ids, err := t.texts(ctx, `SELECT id FROM antiphon_sessions`)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := t.sumSession(ctx, id); err != nil {
			return err
		}
	}
	blobs, err := t.numbers(ctx, `SELECT blob FROM antiphon_blobs`)
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		if err := t.sumBlob(ctx, blob); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns the values of a query with one integer column.
func (t *tx) numbers(ctx context.Context, query string, args ...any) (list []int64, err error) {
	rows, err := t.rows(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, errors.Join(rows.Err(), rows.Close())
}

// sumLog computes the sums of a log's entries. It skips rows whose number of lines
// is wrong.
func (t *tx) sumLog(ctx context.Context, log int64) error {
	b, err := t.baseOf(ctx, log)
	var sum session.Sum
	if err == nil {
		sum, err = t.sumAt(ctx, b)
	}
	if err != nil && !errors.Is(err, session.ErrDamaged) {
		return err
	}
	rows, err := t.numbers(ctx, `SELECT last FROM antiphon_entries WHERE log = ? ORDER BY last`, log)
	if err != nil {
		return err
	}
	for _, last := range rows {
		var n int64
		var data []byte
		if err := t.row(ctx, `SELECT n, data FROM antiphon_entries WHERE log = ? AND last = ?`, log, last).Scan(&n, &data); err != nil {
			return err
		}
		if n != int64(bytes.Count(data, newline)) {
			continue
		}
		p := pack(log, last-n, n, sum, data)
		sum = p.sum(n)
		if _, err := t.exec(ctx, `UPDATE antiphon_entries SET sums = ? WHERE log = ? AND last = ?`, p.sums, log, last); err != nil {
			return err
		}
	}
	return nil
}

// sumSession computes the checksums of a session's row.
func (t *tx) sumSession(ctx context.Context, id string) error {
	r := &stored{Info: session.Info{ID: id}}
	var created int64
	err := t.row(ctx, `SELECT log, name, path, parent, at, nested, title, entries, created, archived, owner FROM antiphon_sessions WHERE id = ?`, id).
		Scan(&r.log, &r.Name, &r.Path, &r.Parent, &r.At, &r.Nested, &r.Title, &r.Entries, &created, &r.Archived, &r.belongs)
	if err != nil {
		return err
	}
	r.Created = time.UnixMilli(created).UTC()
	b, err := t.holderOf(ctx, r.log, r.Entries, r.Entries)
	var sum session.Sum
	if err == nil {
		sum, err = t.sumAt(ctx, b)
	}
	if err != nil && !errors.Is(err, session.ErrDamaged) {
		return err
	}
	_, err = t.exec(ctx, `UPDATE antiphon_sessions SET head = ?, sum = ?, key = ? WHERE id = ?`, sum[:], r.static(), keyOf(id), id)
	return err
}

// sumBlob computes the checksums of a blob's chunks.
func (t *tx) sumBlob(ctx context.Context, blob int64) error {
	var hash []byte
	if err := t.row(ctx, `SELECT hash FROM antiphon_blobs WHERE blob = ?`, blob).Scan(&hash); err != nil {
		return err
	}
	if len(hash) != len(session.Hash{}) {
		return nil // reading or verifying it reports the damage
	}
	chunks, err := t.numbers(ctx, `SELECT n FROM antiphon_chunks WHERE blob = ? ORDER BY n`, blob)
	if err != nil {
		return err
	}
	whole := sha256.New()
	sums := make([][]byte, len(chunks))
	for i, n := range chunks {
		var data []byte
		if err := t.row(ctx, `SELECT data FROM antiphon_chunks WHERE blob = ? AND n = ?`, blob, n).Scan(&data); err != nil {
			return err
		}
		_, _ = whole.Write(data) // a hash never returns an error
		sums[i] = chunkSum(session.Hash(hash), n, data)
	}
	if !bytes.Equal(whole.Sum(nil), hash) {
		return nil
	}
	for i, n := range chunks {
		if _, err := t.exec(ctx, `UPDATE antiphon_chunks SET sum = ? WHERE blob = ? AND n = ?`, sums[i], blob, n); err != nil {
			return err
		}
	}
	return nil
}
