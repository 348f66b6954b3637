// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// When an append puts the rows of a log's end together in one: this many
// entries, or this many bytes.
const (
	mergeEntries = 256
	mergeBytes   = 256 << 10
)

// addition is what an append writes.
type addition struct {
	id    string
	after int64
	n     int
	data  []byte // lines
	title string
	blobs []*blob
	at    time.Time

	xid string // of the transaction that wrote it; Postgres
}

func (s *Store) append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	a, err := s.encode(id, after, entries)
	if err != nil {
		return err
	}
	for {
		err = s.write(ctx, a.write)
		var lost *commitError
		if !errors.As(err, &lost) {
			return err
		}
		ctx = context.WithoutCancel(ctx)
		if written, err := s.outcome(ctx, a.xid, lost); written || err != nil {
			return err
		}
	}
}

// encode makes the rows of an append.
func (s *Store) encode(id string, after int64, entries []session.Entry) (*addition, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	if err := session.CheckSeqs(after, entries); err != nil {
		return nil, err
	}
	a := &addition{id: id, after: after, n: len(entries), title: session.TitleOf(entries), at: s.now().UTC().Truncate(time.Millisecond)}
	split := s.split
	split.Keep = func(cut item.Cut, payload func() ([]byte, error)) error {
		a.keep(cut, payload)
		return nil
	}
	for _, e := range entries {
		if e.Time.IsZero() {
			e.Time = a.at
		}
		var err error
		if a.data, err = split.AppendEntry(a.data, e); err != nil {
			return nil, err
		}
		a.data = append(a.data, '\n')
	}
	a.sortBlobs()
	return a, nil
}

// checkID reports an id that a database cannot hold.
func checkID(id string) error {
	if id == "" || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return fmt.Errorf("%q is no id for a session: it must be a text without control characters", id)
	}
	return nil
}

// touched is the order of sessions by their last append: one more than the
// largest, unless it is the largest.
const touched = `(SELECT coalesce(max(touched), 0) FROM antiphon_sessions)`

const moveOn = `UPDATE antiphon_sessions SET entries = entries + ?, tail = tail + ?, updated = ?,
	title = CASE WHEN title = '' THEN ? ELSE title END,
	touched = CASE WHEN touched = ` + touched + ` THEN touched ELSE ` + touched + ` + 1 END
	WHERE id = ? AND entries = ? RETURNING log, merged, tail`

// write is the append's part of a transaction. It begins with the only thing
// that can be refused.
func (a *addition) write(ctx context.Context, t *tx) error {
	if len(a.blobs) > 0 {
		if err := t.shareTree(ctx); err != nil {
			return err
		}
	}
	log, merged, tail, err := a.move(ctx, t)
	if errors.Is(err, sql.ErrNoRows) {
		if err = a.begin(ctx, t); err == nil {
			log, merged, tail, err = a.move(ctx, t)
		}
	}
	if err != nil {
		return err
	}
	end := a.after + int64(a.n)
	if err := t.keepBlobs(ctx, a.blobs, log); err != nil {
		return err
	}
	if _, err := t.exec(ctx, `INSERT INTO antiphon_entries (log, last, n, data) VALUES (?, ?, ?, ?)`, log, end, a.n, a.data); err != nil {
		return err
	}
	if end-merged < mergeEntries && tail < mergeBytes {
		return nil
	}
	return t.merge(ctx, a.id, log, merged, end)
}

// move moves the session's end on. There is no row if it is elsewhere.
func (a *addition) move(ctx context.Context, t *tx) (log, merged, tail int64, err error) {
	args := []any{a.n, len(a.data), a.at.UnixMilli(), a.title, a.id, a.after}
	if t.postgres {
		err = t.row(ctx, moveOn+`, pg_current_xact_id()::text`, args...).Scan(&log, &merged, &tail, &a.xid)
	} else {
		err = t.row(ctx, moveOn, args...).Scan(&log, &merged, &tail)
	}
	return log, merged, tail, err
}

// begin makes the session if there is none, and else reports the conflict.
func (a *addition) begin(ctx context.Context, t *tx) error {
	var end int64
	err := t.row(ctx, `SELECT entries FROM antiphon_sessions WHERE id = ?`, a.id).Scan(&end)
	if err == nil || errors.Is(err, sql.ErrNoRows) && a.after != 0 {
		return session.Conflict(end, a.after)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	info := session.Info{ID: a.id}
	if parent, ok := session.NestedIn(a.id); ok {
		var n int
		if err := t.row(ctx, `SELECT count(*) FROM antiphon_sessions WHERE id = ?`, parent).Scan(&n); err != nil {
			return err
		}
		if n > 0 {
			info.Parent, info.Nested = parent, true
		}
	}
	err = t.insert(ctx, info, base{}, a.at)
	if errors.Is(err, session.ErrExists) { // somebody else began it at the same moment
		return session.Conflict(0, a.after)
	}
	return err
}

// merge puts the rows behind entry number merged together in one.
func (t *tx) merge(ctx context.Context, id string, log, merged, end int64) error {
	rows, err := t.rows(ctx, `SELECT data FROM antiphon_entries WHERE log = ? AND last > ? ORDER BY last`, log, merged)
	if err != nil {
		return err
	}
	defer rows.Close()
	var data []byte
	n := 0
	for ; rows.Next(); n++ {
		var part sql.RawBytes
		if err := rows.Scan(&part); err != nil {
			return err
		}
		data = append(data, part...)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	if n > 1 {
		if _, err := t.exec(ctx, `DELETE FROM antiphon_entries WHERE log = ? AND last > ?`, log, merged); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `INSERT INTO antiphon_entries (log, last, n, data) VALUES (?, ?, ?, ?)`, log, end, end-merged, data); err != nil {
			return err
		}
	}
	_, err = t.exec(ctx, `UPDATE antiphon_sessions SET merged = ?, tail = 0 WHERE id = ?`, end, id)
	return err
}
