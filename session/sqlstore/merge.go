// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/antiphon-go/antiphon/session"
)

// Each append writes a row. Rows are merged when a writer releases a session that
// got mergeLeast or more entries since the last merge, and by an append that passes
// a multiple of mergeAlways entries.
const (
	mergeLeast  = 256
	mergeAlways = 2048
	// mergeBytes is the size in bytes from which a row is not extended further.
	mergeBytes = 256 << 10
)

// tidy merges the rows of a session after its lock was released.
func (s *Store) tidy(ctx context.Context, id string) error {
	var n int64
	err := s.reads.row(ctx, `SELECT entries - merged FROM antiphon_sessions WHERE id = ?`, id).Scan(&n)
	if err != nil || n < mergeLeast {
		return err
	}
	return s.write(ctx, func(ctx context.Context, t *tx) error { return t.merge(ctx, id) })
}

// run is a group of rows that become one row: the entries after number after up to
// number last.
type run struct {
	after, last int64
	rows, bytes int
}

// merge merges the rows that were added to a session's own log since the last merge.
// It leaves damaged rows unchanged, so that salvage can use all that is left of
// them.
func (t *tx) merge(ctx context.Context, id string) error {
	find := `SELECT log, merged, entries FROM antiphon_sessions WHERE id = ?`
	if t.postgres {
		find += ` FOR UPDATE`
	}
	var log, merged, end int64
	if err := t.row(ctx, find, id).Scan(&log, &merged, &end); err != nil {
		return err
	}
	runs, err := t.runs(ctx, log, merged)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.rows == 1 {
			continue
		}
		if err := t.mergeRun(ctx, log, r); err != nil {
			return err
		}
	}
	_, err = t.exec(ctx, `UPDATE antiphon_sessions SET merged = ? WHERE id = ?`, end, id)
	return err
}

// runs groups the rows after entry number after.
func (t *tx) runs(ctx context.Context, log, after int64) (runs []run, err error) {
	rows, err := t.rows(ctx, `SELECT last, n, length(data) FROM antiphon_entries WHERE log = ? AND last > ? ORDER BY last`, log, after)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var last, n int64
		var bytes int
		if err := rows.Scan(&last, &n, &bytes); err != nil {
			return nil, err
		}
		if n := len(runs); n == 0 || runs[n-1].bytes >= mergeBytes {
			runs = append(runs, run{})
		}
		r := &runs[len(runs)-1]
		if r.rows == 0 {
			r.after = last - n
		}
		r.last, r.rows, r.bytes = last, r.rows+1, r.bytes+bytes
	}
	return runs, errors.Join(rows.Err(), rows.Close())
}

// mergeRun replaces the rows of a run with one row. It does nothing if one of them
// is damaged.
func (t *tx) mergeRun(ctx context.Context, log int64, r run) error {
	rows, err := t.rows(ctx, `SELECT last, n, sums, data FROM antiphon_entries WHERE log = ? AND last > ? AND last <= ? ORDER BY last`, log, r.after, r.last)
	if err != nil {
		return err
	}
	defer rows.Close()
	all := &packed{log: log, last: r.after, data: make([]byte, 0, r.bytes)}
	for rows.Next() {
		p := packed{log: log}
		if err := rows.Scan(&p.last, &p.n, (*sql.RawBytes)(&p.sums), (*sql.RawBytes)(&p.data)); err != nil {
			return err
		}
		if !p.whole() || !all.add(&p) {
			return rows.Close()
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if _, err := t.exec(ctx, `DELETE FROM antiphon_entries WHERE log = ? AND last > ? AND last <= ?`, log, r.after, r.last); err != nil {
		return err
	}
	return t.put(ctx, all)
}

// add appends a row to p. It returns false, and changes nothing, if the row does not
// follow p.
func (p *packed) add(next *packed) bool {
	if next.before() != p.last || p.n > 0 && p.sum(p.n) != next.sum(0) {
		return false
	}
	sums := next.sums
	if p.n > 0 {
		sums = sums[len(session.Sum{}):]
	}
	p.last, p.n = next.last, p.n+next.n
	p.sums, p.data = append(p.sums, sums...), append(p.data, next.data...)
	return true
}
