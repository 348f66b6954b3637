// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/session"
)

// List implements [session.Catalog]. It reads each session when it yields it, and
// lists the sessions that existed when it began.
func (s *Store) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		l := &listing{s: s, q: q, yield: yield}
		if err := s.reading(ctx, func() error { return l.all(ctx) }); err != nil && !errors.Is(err, errStopped) {
			if !isAsked(err) {
				err = s.fail("reading", err)
			}
			yield(session.Info{}, err)
		}
	}
}

// listing is the state of a running List.
type listing struct {
	s       *Store
	q       session.Query // advances with each result, so that a retry continues
	some    bool          // at least one row was found
	damaged error         // the first damaged row; the others are still listed
	yield   func(session.Info, error) bool
}

// all yields the sessions of the list.
func (l *listing) all(ctx context.Context) error {
	query, args, err := listQuery(l.q, l.s.postgres)
	if err != nil {
		return err
	}
	found, err := l.find(ctx, query, args)
	if err != nil {
		return err
	}
	for _, r := range found {
		r.Cursor = cursorOf(l.q, r)
		if !l.yield(l.s.seal.info(r), nil) {
			return errStopped
		}
		// If the connection breaks, the list continues after this session.
		l.q.After = r.Cursor
		if l.q.Limit > 0 {
			if l.q.Limit--; l.q.Limit == 0 {
				return l.damaged
			}
		}
	}
	if !l.some && l.q.After == "" {
		return l.s.reads.missed(ctx, l.q)
	}
	return l.damaged
}

// find reads all sessions before the first is yielded, so that no statement is open
// while the caller handles them, as in [loading.page].
func (l *listing) find(ctx context.Context, query string, args []any) (found []*stored, err error) {
	rows, err := l.s.reads.rows(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanStored(rows)
		l.some = true
		switch {
		case errors.Is(err, session.ErrDamaged):
			l.damaged = cmp.Or(l.damaged, err)
		case err != nil:
			return nil, err
		default:
			found = append(found, r)
		}
	}
	return found, errors.Join(rows.Err(), rows.Close())
}

// cursorOf returns the cursor with which a list continues after a session.
func cursorOf(q session.Query, r *stored) string {
	if q.Prefix != "" {
		return "=" + r.ID
	}
	return fmt.Sprintf("%d-%d", r.touched, r.log)
}

// conditions collects the conditions of a WHERE clause and their arguments.
type conditions struct {
	parts []string
	args  []any
}

// add adds a condition and its arguments.
func (c *conditions) add(part string, args ...any) {
	c.parts, c.args = append(c.parts, part), append(c.args, args...)
}

// about adds the conditions of a query on a session s, except for its order, its
// cursor and the first skip tags.
func (c *conditions) about(q session.Query, skip int) {
	// The second condition, like those below, is the one of a partial index.
	if q.Name != "" {
		c.add(`s.name = ? AND s.name <> ''`, q.Name)
	}
	if q.Path != "" {
		c.add(`s.path = ? AND s.path <> ''`, q.Path)
	}
	if q.Owner != "" {
		c.add(`s.whose = ? AND s.whose <> ''`, q.Owner)
	}
	for _, tag := range q.Tags[min(skip, len(q.Tags)):] {
		c.add(`EXISTS (SELECT 1 FROM antiphon_tags g WHERE g.log = s.log AND g.tag = ?)`, tag)
	}
	if !q.Archived {
		c.add(`NOT s.archived`)
	}
	if !q.Nested {
		c.add(`NOT s.nested`)
	}
}

// listQuery returns the statement for a list. It includes only the conditions that
// the query sets, so that one index serves both these conditions and the order.
// SQLite is given the name of that index because it has no statistics to choose by.
func listQuery(q session.Query, postgres bool) (query string, args []any, err error) {
	var c conditions
	from, table, order := `antiphon_sessions s`, "s", ` ORDER BY %s.touched DESC, %[1]s.log DESC`
	index := "antiphon_sessions_touched"
	switch {
	case q.Prefix != "":
		index, order = "antiphon_sessions_begins", ` ORDER BY s.id`
		c.add(`s.id >= ? AND s.id < ?`, q.Prefix, q.Prefix+"\U0010FFFF")
		c.about(q, 0)
	case q.Name != "":
		index = "antiphon_sessions_by_name"
		if q.Path != "" && !q.Archived {
			index = "antiphon_sessions_name"
		}
		c.about(q, 0)
	case len(q.Tags) > 0:
		from, table = `antiphon_tags t JOIN antiphon_sessions s ON s.log = t.log`, "t"
		if !postgres {
			// CROSS JOIN makes SQLite read the tags first.
			from = `antiphon_tags t INDEXED BY antiphon_tags_by_tag CROSS JOIN antiphon_sessions s ON s.log = t.log`
			if q.Owner != "" {
				from = strings.Replace(from, "by_tag", "by_whose", 1)
			}
		}
		index = ""
		if q.Owner != "" {
			c.add(`t.whose = ? AND t.whose <> ''`, q.Owner)
		}
		c.add(`t.tag = ?`, q.Tags[0])
		c.about(q, 1)
	case q.Path != "" && q.Owner == "":
		index = "antiphon_sessions_by_path"
		c.about(q, 0)
	case q.Owner != "":
		index = "antiphon_sessions_by_whose"
		c.about(q, 0)
	default:
		c.about(q, 0)
	}
	if err := c.behind(q, table); err != nil {
		return "", nil, err
	}
	if index != "" && !postgres {
		from += ` INDEXED BY ` + index
	}
	query = `SELECT ` + columns + ` FROM ` + from
	if len(c.parts) > 0 {
		query += ` WHERE ` + strings.Join(c.parts, ` AND `)
	}
	if q.Prefix == "" {
		order = fmt.Sprintf(order, table)
	}
	query += order
	if q.Limit > 0 {
		query += ` LIMIT ?`
		c.args = append(c.args, q.Limit)
	}
	return query, c.args, nil
}

// behind adds the condition for a list that continues after a cursor.
func (c *conditions) behind(q session.Query, table string) error {
	if q.After == "" {
		return nil
	}
	if id, ok := strings.CutPrefix(q.After, "="); ok && q.Prefix != "" {
		c.add(`s.id > ?`, id)
		return nil
	}
	before, after, _ := strings.Cut(q.After, "-")
	touched, err := strconv.ParseInt(before, 10, 64)
	log, err2 := strconv.ParseInt(after, 10, 64)
	if err != nil || err2 != nil || q.Prefix != "" {
		return session.BadCursor(q.After)
	}
	c.add(fmt.Sprintf(`(%s.touched, %[1]s.log) < (?, ?)`, table), touched, log)
	return nil
}

// missed returns an error if an empty list is wrong because an index is damaged:
// another index finds a session. It checks only queries by name or prefix, because
// the caller acts on an empty result of these by creating a new session.
func (t *tx) missed(ctx context.Context, q session.Query) error {
	var query string
	var c conditions
	switch {
	case q.Prefix != "" && !t.postgres:
		query = `SELECT ` + columns + ` FROM antiphon_sessions s INDEXED BY sqlite_autoindex_antiphon_sessions_1 WHERE s.id >= ? AND s.id < ?`
		c.args = []any{q.Prefix, q.Prefix + "\U0010FFFF"}
	case q.Prefix == "" && q.Name != "":
		query = `SELECT ` + columns + ` FROM antiphon_sessions s WHERE s.name_key = ? AND s.name <> ''`
		c.args = []any{nameKeyOf(q.Name)}
	default:
		return nil
	}
	rows, err := t.rows(ctx, query, c.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scanStored(rows)
		if err != nil {
			return err // possibly that the row is damaged
		}
		if q.Takes(r.Info) {
			return &session.Damage{Session: r.ID, Place: "table antiphon_sessions", Problem: "it cannot be found by its name or the beginning of its id: an index is damaged"}
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
