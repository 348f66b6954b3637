// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/antiphon-go/antiphon/session"
)

// Each append writes a row. Rows are put together in fewer when a writer lets go
// of a session that has mergeLeast entries since the last time, and by an append
// that passes a multiple of mergeAlways.
const (
	mergeLeast  = 256
	mergeAlways = 2048
	// mergeBytes is the length from which on a row is long enough.
	mergeBytes = 256 << 10
)

// tidy puts the rows of a session together that an unlock leaves.
func (s *Store) tidy(ctx context.Context, id string) error {
	var n int64
	err := s.reads.row(ctx, `SELECT entries - merged FROM antiphon_sessions WHERE id = ?`, id).Scan(&n)
	if err != nil || n < mergeLeast {
		return err
	}
	return s.write(ctx, func(ctx context.Context, t *tx) error { return t.merge(ctx, id) })
}

// run is rows that become one: the entries that follow number after up to last.
type run struct {
	after, last int64
	rows, bytes int
}

// merge puts the rows together that a session's own log has got since the last
// time. It leaves damaged rows as they are.
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

// runs plans what becomes of the rows that follow entry number after.
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

// mergeRun makes one row of several, if they are whole.
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

// add puts a row after this one, and reports whether it follows.
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
