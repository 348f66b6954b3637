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

// addition is what an append writes.
type addition struct {
	id    string
	after int64
	n     int
	data  []byte // lines
	title string
	blobs []*blob
	at    time.Time
}

func (s *Store) append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	a, err := s.encode(id, after, entries)
	if err != nil {
		return err
	}
	return s.write(ctx, a.write)
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

// move moves the session's end on, and reports whether it was where the append
// expects it.
func (a *addition) move(ctx context.Context, t *tx) (moved bool, err error) {
	if err := t.tick(ctx); err != nil {
		return false, err
	}
	title := ""
	args := []any{a.after + int64(a.n), a.at.UnixMilli(), a.id, a.after}
	if a.title != "" {
		title = `title = CASE WHEN title = '' THEN ? ELSE title END, `
		args = append([]any{a.title}, args...)
	}
	query := `UPDATE antiphon_sessions SET ` + title + `entries = ?, updated = ?, touched = ` + t.now() + ` WHERE id = ? AND entries = ?`
	if !t.postgres {
		n, err := t.exec(ctx, query, args...)
		return n > 0, err
	}
	err = t.row(ctx, query+` RETURNING pg_current_xact_id()::text`, args...).Scan(&t.xid)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// write is the append's part of a transaction. It begins with the only thing
// that can be refused.
func (a *addition) write(ctx context.Context, t *tx) error {
	if len(a.blobs) > 0 {
		if err := t.shareTree(ctx); err != nil {
			return err
		}
	}
	moved, err := a.move(ctx, t)
	if err == nil && !moved {
		if err = a.begin(ctx, t); err == nil {
			_, err = a.move(ctx, t)
		}
	}
	if err != nil {
		return err
	}
	if len(a.blobs) > 0 {
		var end int64
		log, err := t.logOf(ctx, a.id, &end)
		if err != nil {
			return err
		}
		if err := t.keepBlobs(ctx, a.blobs, log); err != nil {
			return err
		}
	}
	end := a.after + int64(a.n)
	if _, err := t.exec(ctx, `INSERT INTO antiphon_entries (log, last, n, data)
		SELECT log, entries, ?, ? FROM antiphon_sessions WHERE id = ?`, a.n, a.data, a.id); err != nil {
		return err
	}
	if a.after/mergeAlways == end/mergeAlways {
		return nil
	}
	return t.merge(ctx, a.id)
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
		log, err := t.logOf(ctx, parent, &end)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if log != 0 {
			info.Parent, info.Nested = parent, true
		}
	}
	err = t.insert(ctx, info, base{}, a.at)
	if errors.Is(err, session.ErrExists) && t.row(ctx, `SELECT entries FROM antiphon_sessions WHERE id = ?`, a.id).Scan(&end) == nil {
		return session.Conflict(end, a.after) // somebody else began it at the same moment
	}
	return err
}
