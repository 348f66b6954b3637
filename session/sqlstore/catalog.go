// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// insert creates a session whose log begins with base. Sum is the checksum of the
// log at that point, and titled reports whether a person chose the title.
func (t *tx) insert(ctx context.Context, i session.Info, titled bool, b base, sum session.Sum, at time.Time) error {
	var there int
	if err := t.row(ctx, `SELECT count(*) FROM antiphon_sessions WHERE id = ?`, i.ID).Scan(&there); err != nil {
		return err
	}
	if there > 0 {
		return fmt.Errorf("%w: %q", session.ErrExists, i.ID)
	}
	belongs, err := t.ownerOf(ctx, i)
	if err != nil {
		return err
	}
	// A nested session has the owner of its parent, whatever the caller gave.
	if i.Nested && belongs != 0 {
		err := t.row(ctx, `SELECT whose FROM antiphon_sessions WHERE id = ?`, i.Parent).Scan(&i.Owner)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	i.Created, i.Archived = at, false
	row := stored{Info: i, belongs: belongs, titled: titled}
	if err := t.nameFree(ctx, row.Info); err != nil {
		return err
	}
	if err := t.tick(ctx); err != nil {
		return err
	}
	if err := t.row(ctx, `INSERT INTO antiphon_logs (base, base_at, origin) VALUES (?, ?, ?) RETURNING log`, b.log, b.at, i.ID).Scan(&row.log); err != nil {
		return err
	}
	n, err := t.exec(ctx, `INSERT INTO antiphon_sessions (id, log, entries, merged, touched, created, updated, title, name, path, parent, at, nested, owner, head, sum, key, whose, tags, titled, name_key, indexed)
		VALUES (?, ?, ?, ?, `+t.now()+`, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		i.ID, row.log, b.at, b.at, at.UnixMilli(), at.UnixMilli(), i.Title, i.Name, i.Path, i.Parent, i.At, i.Nested, belongs, sum[:], row.static(), keyOf(i.ID),
		i.Owner, joinTags(i.Tags), titled, nameKeyOf(i.Name), b.at)
	if err == nil && n == 0 { // another process created it at the same moment
		return fmt.Errorf("%w: %q", session.ErrExists, i.ID)
	}
	if err == nil {
		err = t.putTags(ctx, &row)
	}
	if err == nil {
		err = t.own(ctx, &row)
	}
	return err
}

// own attaches nested sessions that were created before their parent to it.
func (t *tx) own(ctx context.Context, outer *stored) error {
	nested, err := t.texts(ctx, `SELECT id FROM antiphon_sessions WHERE parent = ? AND nested AND owner = 0`, outer.ID)
	for _, id := range nested {
		if err == nil {
			err = t.change(ctx, id, func(r *stored) error { r.belongs, r.Owner = outer.log, outer.Owner; return nil })
		}
	}
	return err
}

// texts returns the values of a query with one text column.
func (t *tx) texts(ctx context.Context, query string, args ...any) (list []string, err error) {
	rows, err := t.rows(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, errors.Join(rows.Err(), rows.Close())
}

// ownerOf returns the log that a nested session belongs to, which is its parent's.
// The nested session lives as long as that log, and forks of the parent may need the
// log after the parent itself was deleted. While they do, the parent's id cannot be
// reused: the nested sessions would be taken for work of the new session.
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

const nameQuery = `SELECT id FROM antiphon_sessions WHERE path = ? AND name = ? AND whose = ? AND name <> '' AND NOT archived AND id <> ?`

// nameFree returns an error if another session has the name. The query repeats the
// condition of the partial index, that the name is not empty: the database does not
// use the index without it.
func (t *tx) nameFree(ctx context.Context, i session.Info) error {
	if i.Name == "" || i.Archived {
		return nil
	}
	var other string
	err := t.row(ctx, nameQuery, i.Path, i.Name, i.Owner, i.ID).Scan(&other)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %q is the name of session %q", session.ErrExists, i.Name, other)
}

const columns = `id, s.log, name, path, parent, at, nested, title, entries, created, updated, archived, owner, head, sum, s.whose, tags, titled, s.touched`

// scanStored reads a row with those columns. If the row is damaged, it returns the
// row as read together with the error.
func scanStored(row interface{ Scan(...any) error }) (r *stored, err error) {
	r = new(stored)
	var created, updated int64
	var tags string
	err = row.Scan(&r.ID, &r.log, &r.Name, &r.Path, &r.Parent, &r.At, &r.Nested, &r.Title, &r.Entries, &created, &updated, &r.Archived, &r.belongs, &r.head, &r.sum,
		&r.Owner, &tags, &r.titled, &r.touched)
	if err != nil {
		return nil, err
	}
	r.Tags = splitTags(tags)
	r.Created, r.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	return r, r.check()
}

// find returns the row of a session, or [session.ErrNotFound].
func (t *tx) find(ctx context.Context, id string) (*stored, error) { return t.findBy(ctx, id, "") }

// take is like find, and also locks the row until the transaction ends.
func (t *tx) take(ctx context.Context, id string) (*stored, error) {
	if t.postgres {
		return t.findBy(ctx, id, ` FOR UPDATE`)
	}
	return t.findBy(ctx, id, "")
}

// findBy is find with a locking clause appended to the query.
func (t *tx) findBy(ctx context.Context, id, how string) (*stored, error) {
	for {
		r, err := scanStored(t.row(ctx, `SELECT `+columns+` FROM antiphon_sessions s WHERE id = ?`+how, id))
		if errors.Is(err, sql.ErrNoRows) {
			// The session was created between the two queries.
			if err = t.missing(ctx, id); errors.Is(err, errAppeared) {
				continue
			}
			return nil, err
		}
		return r, err
	}
}

// change updates the columns of a session that appends do not change.
func (t *tx) change(ctx context.Context, id string, do func(r *stored) error) error {
	r, err := t.take(ctx, id)
	if err != nil {
		return err
	}
	was := *r
	if err := do(r); err != nil {
		return err
	}
	_, err = t.exec(ctx, `UPDATE antiphon_sessions SET name = ?, name_key = ?, path = ?, archived = ?, owner = ?, title = ?, titled = ?, whose = ?, tags = ?, sum = ? WHERE id = ?`,
		r.Name, nameKeyOf(r.Name), r.Path, r.Archived, r.belongs, r.Title, r.titled, r.Owner, joinTags(r.Tags), r.static(), id)
	if err == nil && (r.Owner != was.Owner || !slices.Equal(r.Tags, was.Tags)) {
		err = t.putTags(ctx, r)
	}
	if err == nil && (r.titled || was.titled) && r.Title != was.Title {
		err = t.forgetTitle(ctx, r.log)
	}
	if err == nil && r.Owner != was.Owner {
		err = t.changedOwner(ctx, r)
	}
	return err
}

// changedOwner gives a session's nested sessions its new owner, and marks the words
// of its log to be indexed again for that owner.
func (t *tx) changedOwner(ctx context.Context, r *stored) error {
	nested, err := t.ownedBy(ctx, r.log)
	for _, id := range nested {
		if err == nil {
			err = t.change(ctx, id, func(n *stored) error { n.Owner = r.Owner; return nil })
		}
	}
	if err != nil {
		return err
	}
	return t.indexAnew(ctx, r.log)
}

// joinTags and splitTags convert tags to and from one text. A space can separate
// them because tags have no white space.
func joinTags(tags []string) string { return strings.Join(tags, " ") }

func splitTags(tags string) []string {
	if tags == "" {
		return nil
	}
	return strings.Split(tags, " ")
}

// putTags rewrites a session's rows in antiphon_tags. They repeat the session's
// owner and position in the order of last writes, so that one index serves a list by
// tag.
func (t *tx) putTags(ctx context.Context, r *stored) error {
	if _, err := t.exec(ctx, `DELETE FROM antiphon_tags WHERE log = ?`, r.log); err != nil {
		return err
	}
	for _, tag := range r.Tags {
		_, err := t.exec(ctx, `INSERT INTO antiphon_tags (log, tag, whose, touched) SELECT log, ?, whose, touched FROM antiphon_sessions WHERE log = ?`, tag, r.log)
		if err != nil {
			return err
		}
	}
	return nil
}

// Info implements [session.Catalog].
func (s *Store) Info(ctx context.Context, id string) (session.Info, error) {
	var r *stored
	err := s.reading(ctx, func() (err error) {
		r, err = s.reads.find(ctx, id)
		return err
	})
	if err != nil {
		return session.Info{}, s.fail("reading", err)
	}
	return s.seal.info(r), nil
}

// notFound returns the error for a session that does not exist.
func notFound(id string) error { return fmt.Errorf("%w: %q", session.ErrNotFound, id) }

// Create implements [session.Catalog].
func (s *Store) Create(ctx context.Context, i session.Info, first ...session.Entry) error {
	if err := cmp.Or(checkID(i.ID), i.CheckID()); err != nil {
		return err
	}
	i, err := session.Labels{}.Apply(i)
	if err != nil {
		return err
	}
	var log *addition
	if len(first) > 0 {
		if log, err = s.encode(i.ID, 0, first); err != nil {
			return err
		}
	}
	titled := i.Title != ""
	if titled {
		if err := s.seal.usable(); err != nil {
			return err
		}
	}
	i.Title = s.seal.title(i.ID, i.Title)
	err = s.writeHeld(ctx, i.ID, func(ctx context.Context, t *tx) error {
		if log == nil {
			return t.insert(ctx, i, titled, base{}, session.Sum{}, s.now())
		}
		if len(log.blobs) > 0 { // before the first write, as everywhere
			if err := t.shareTree(ctx); err != nil {
				return err
			}
		}
		if err := t.insert(ctx, i, titled, base{}, session.Sum{}, log.at); err != nil {
			return err
		}
		return log.write(ctx, t)
	})
	if err != nil || log == nil {
		return s.fail("writing", err)
	}
	s.heads.put(i.ID, head{int64(log.n), log.end})
	s.holds.write(i.ID)
	s.tell(i.ID)
	s.wakes.appended(i.ID)
	return nil
}

// Rename implements [session.Catalog].
func (s *Store) Rename(ctx context.Context, id, name string) error {
	return s.update(ctx, id, func(r *stored) error { r.Name = name; return nil })
}

// Bind attaches a session to the agent file at path, under the given name. It
// returns [session.ErrNotFound] if there is no such session, and [session.ErrExists]
// if another session of that file has the name.
func (s *Store) Bind(ctx context.Context, id, path, name string) error {
	return s.update(ctx, id, func(r *stored) error { r.Path, r.Name = path, name; return nil })
}

// Label implements [session.Catalog].
func (s *Store) Label(ctx context.Context, id string, change session.Labels) error {
	return s.update(ctx, id, func(r *stored) (err error) {
		title := r.Title // as it is stored
		if r.Info, err = change.Apply(s.seal.info(r)); err != nil {
			return err
		}
		if change.Title != nil {
			title, r.titled, err = s.seal.title(id, r.Title), r.Title != "", s.seal.usable()
		}
		r.Title = title
		return err
	})
}

// Archive implements [session.Catalog].
func (s *Store) Archive(ctx context.Context, id string, archived bool) error {
	return s.update(ctx, id, func(r *stored) error { r.Archived = archived; return nil })
}

// update changes the catalog data of a session, but not its log.
func (s *Store) update(ctx context.Context, id string, change func(r *stored) error) error {
	err := s.writeHeld(ctx, id, func(ctx context.Context, t *tx) error {
		return t.change(ctx, id, func(r *stored) error {
			if err := change(r); err != nil {
				return err
			}
			return t.nameFree(ctx, r.Info)
		})
	})
	// This is a mistake of the caller and not a failure of the store.
	if errors.Is(err, session.ErrBadLabel) {
		return err
	}
	return s.fail("writing", err)
}
