// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// insert makes a session with a log of its own, which begins with base.
func (t *tx) insert(ctx context.Context, i session.Info, b base, at time.Time) error {
	var there int
	if err := t.row(ctx, `SELECT count(*) FROM antiphon_sessions WHERE id = ?`, i.ID).Scan(&there); err != nil {
		return err
	}
	if there > 0 {
		return fmt.Errorf("%w: %q", session.ErrExists, i.ID)
	}
	if err := t.nameFree(ctx, i.ID, i.Path, i.Name); err != nil {
		return err
	}
	owner, err := t.ownerOf(ctx, i)
	if err != nil {
		return err
	}
	if err := t.tick(ctx); err != nil {
		return err
	}
	var log int64
	if err := t.row(ctx, `INSERT INTO antiphon_logs (base, base_at) VALUES (?, ?) RETURNING log`, b.log, b.at).Scan(&log); err != nil {
		return err
	}
	n, err := t.exec(ctx, `INSERT INTO antiphon_sessions (id, log, entries, merged, touched, created, updated, title, name, path, parent, at, nested, owner)
		VALUES (?, ?, ?, ?, `+t.now()+`, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		i.ID, log, b.at, b.at, at.UnixMilli(), at.UnixMilli(), i.Title, i.Name, i.Path, i.Parent, i.At, i.Nested, owner)
	if err == nil && n == 0 { // somebody else made it at the same moment
		return fmt.Errorf("%w: %q", session.ErrExists, i.ID)
	}
	if err == nil { // those that were made before the one that they are nested in
		_, err = t.exec(ctx, `UPDATE antiphon_sessions SET owner = ? WHERE parent = ? AND nested AND owner = 0`, log, i.ID)
	}
	return err
}

// ownerOf returns the log that a nested session belongs to: its parent's, which
// names it. The session lives as long as that, which forks of the parent may
// need longer than the parent is there. An id that such sessions are nested in is
// not free: what they hold would be taken for what a new session has done.
func (t *tx) ownerOf(ctx context.Context, i session.Info) (owner int64, err error) {
	var left int
	err = t.row(ctx, `SELECT count(*) FROM antiphon_sessions WHERE parent = ? AND nested AND owner <> 0`, i.ID).Scan(&left)
	if err == nil && left > 0 {
		err = fmt.Errorf("%w: %q was deleted, and forks of it still show sessions that were nested in it; take another id", session.ErrExists, i.ID)
	}
	if err != nil || !i.Nested {
		return 0, err
	}
	if err := t.shareTree(ctx); err != nil {
		return 0, err
	}
	var end int64
	owner, err = t.logOf(ctx, i.Parent, &end)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return owner, err
}

// nameFree reports whether another session has the name.
func (t *tx) nameFree(ctx context.Context, id, path, name string) error {
	if name == "" {
		return nil
	}
	var other string
	err := t.row(ctx, `SELECT id FROM antiphon_sessions WHERE path = ? AND name = ? AND NOT archived AND id <> ?`, path, name, id).Scan(&other)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %q is the name of session %q", session.ErrExists, name, other)
}

const columns = `id, name, path, parent, at, nested, title, entries, created, updated, archived`

func scanInfo(row interface{ Scan(...any) error }) (i session.Info, err error) {
	var created, updated int64
	err = row.Scan(&i.ID, &i.Name, &i.Path, &i.Parent, &i.At, &i.Nested, &i.Title, &i.Entries, &created, &updated, &i.Archived)
	i.Created, i.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	return i, err
}

// Info implements [session.Catalog].
func (s *Store) Info(ctx context.Context, id string) (session.Info, error) {
	i, err := scanInfo(s.reads.row(ctx, `SELECT `+columns+` FROM antiphon_sessions WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return session.Info{}, notFound(id)
	}
	return i, s.fail("reading", err)
}

func notFound(id string) error { return fmt.Errorf("%w: %q", session.ErrNotFound, id) }

// List implements [session.Catalog].
func (s *Store) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		list, err := s.list(ctx, q)
		for _, i := range list {
			if !yield(i, nil) {
				return
			}
		}
		if err != nil {
			yield(session.Info{}, s.fail("reading", err))
		}
	}
}

func (s *Store) list(ctx context.Context, q session.Query) (list []session.Info, err error) {
	rows, err := s.reads.rows(ctx, `SELECT `+columns+` FROM antiphon_sessions
		WHERE (? = '' OR name = ?) AND (? = '' OR path = ?) AND (? OR NOT archived) AND (? OR NOT nested)
		ORDER BY touched DESC, id`, q.Name, q.Name, q.Path, q.Path, q.Archived, q.Nested)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		i, err := scanInfo(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	return list, rows.Err()
}

// Create implements [session.Catalog].
func (s *Store) Create(ctx context.Context, i session.Info) error {
	if err := checkID(i.ID); err != nil {
		return err
	}
	i.Title = ""
	return s.fail("writing", s.write(ctx, func(ctx context.Context, t *tx) error {
		return t.insert(ctx, i, base{}, s.now())
	}))
}

// Rename implements [session.Catalog].
func (s *Store) Rename(ctx context.Context, id, name string) error {
	return s.update(ctx, id, func(i *session.Info) { i.Name = name })
}

// Archive implements [session.Catalog].
func (s *Store) Archive(ctx context.Context, id string, archived bool) error {
	return s.update(ctx, id, func(i *session.Info) { i.Archived = archived })
}

// update changes what is known of a session besides its log.
func (s *Store) update(ctx context.Context, id string, change func(i *session.Info)) error {
	return s.fail("writing", s.write(ctx, func(ctx context.Context, t *tx) error {
		i, err := scanInfo(t.row(ctx, `SELECT `+columns+` FROM antiphon_sessions WHERE id = ?`, id))
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(id)
		}
		if err != nil {
			return err
		}
		change(&i)
		if !i.Archived {
			if err := t.nameFree(ctx, id, i.Path, i.Name); err != nil {
				return err
			}
		}
		_, err = t.exec(ctx, `UPDATE antiphon_sessions SET name = ?, archived = ? WHERE id = ?`, i.Name, i.Archived, id)
		return err
	}))
}
