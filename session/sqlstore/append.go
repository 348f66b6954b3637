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
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/lease"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// addition is the data that an append writes.
type addition struct {
	id      string
	after   int64
	n       int
	data    []byte // lines
	title   string
	retitle *string // instead of the one that it has, which was withdrawn
	blobs   []*blob
	taken   []taken // deliveries
	at      time.Time
	heads   *heads
	fence   lease.Lease // Postgres only
	quiet   bool        // it is not the first write under its lock, nor the end of a run
	end     session.Sum // the log's sum after the append
}

// append is Append without the naming of errors and the waking of watchers.
func (s *Store) append(ctx context.Context, id string, after int64, entries []session.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	a, err := s.encode(id, after, entries)
	if err != nil {
		return err
	}
	if a.retitle, err = s.withoutTitle(ctx, a, entries); err != nil {
		return err
	}
	if a.fence, err = s.holds.leases.Covering(id); err != nil {
		return err
	}
	a.quiet = s.holds.wrote(id) && !endsRun(entries)
	write := s.writeAddition
	if s.postgres {
		write = s.post
	}
	if err := write(ctx, a); err != nil {
		return s.checkLease(ctx, a.fence, err)
	}
	s.heads.put(id, head{after + int64(a.n), a.end})
	s.holds.write(id)
	return nil
}

// writeAddition is an append in a transaction.
func (s *Store) writeAddition(ctx context.Context, a *addition) error { return s.write(ctx, a.write) }

// errCreated says that another process created the session at the same moment. The
// session has no entries, so this is no conflict: [Store.write] tries again, and finds
// the session.
var errCreated = fmt.Errorf("%w: another process created the session at the same moment", session.ErrConflict)

// errFenced says that nothing was written because the lease on the session is another's.
var errFenced = fmt.Errorf("%w: another process holds the session", session.ErrConflict)

// endsRun reports whether the entries end a run.
func endsRun(entries []session.Entry) bool {
	return slices.ContainsFunc(entries, func(e session.Entry) bool { _, ok := e.Body.(session.Stopped); return ok })
}

// withoutTitle returns the session's new title if the append withdraws the message
// that gave the title, otherwise nil.
func (s *Store) withoutTitle(ctx context.Context, a *addition, entries []session.Entry) (*string, error) {
	withdraws := func(e session.Entry) bool { _, ok := e.Body.(session.ItemsWithdrawn); return ok }
	if a.after == 0 || !slices.ContainsFunc(entries, withdraws) {
		return nil, nil
	}
	row, err := s.reads.find(ctx, a.id)
	if err != nil || row.titled || row.Title == "" || row.Entries != a.after {
		return nil, nil // the append itself reports the error
	}
	var all []session.Entry
	for e, err := range s.Load(ctx, a.id, 0) {
		if err != nil {
			return nil, err
		}
		if _, given := e.Body.(session.InputItem); given || withdraws(e) {
			all = append(all, e)
		}
	}
	title := session.TitleOf(append(all, entries...))
	if title == s.seal.openTitle(a.id, row.Title) {
		return nil, nil
	}
	title = s.seal.title(a.id, title)
	return &title, nil
}

// encode returns the rows of an append.
func (s *Store) encode(id string, after int64, entries []session.Entry) (*addition, error) {
	if err := cmp.Or(s.opened(), checkID(id)); err != nil {
		return nil, err
	}
	if err := cmp.Or(session.CheckSeqs(after, entries), s.seal.usable()); err != nil {
		return nil, err
	}
	a := &addition{id: id, after: after, n: len(entries), heads: &s.heads, title: session.TitleOf(entries), at: s.now().UTC().Truncate(time.Millisecond)}
	split := s.split
	split.Keep = func(p item.Payload, payload func() ([]byte, error)) error {
		a.keep(s.seal, p, payload)
		return nil
	}
	a.title = s.seal.title(id, a.title)
	for key, seq := range session.Takes(entries) {
		a.taken = append(a.taken, taken{s.seal.name(session.KeyHash(key)), seq})
	}
	var line []byte
	for _, e := range entries {
		if e.Time.IsZero() {
			e.Time = a.at
		}
		var err error
		if line, err = split.AppendEntry(line[:0], e); err != nil {
			return nil, err
		}
		a.data = append(s.seal.line(a.data, id, e.Seq, line), '\n')
	}
	a.sortBlobs()
	return a, nil
}

// checkID returns an error for an id that a database cannot store.
func checkID(id string) error {
	if id == "" || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return fmt.Errorf("%q cannot be the id of a session: an id is text without control characters", id)
	}
	return nil
}

// move advances the session's end. It reports whether the log ended where the append
// expects, by number and by sum, and sets the log of the row p. A quiet append,
// within a running run, keeps the session's place in the order of sessions, and its
// mark as stale if it has one, so that no index has to be updated.
func (a *addition) move(ctx context.Context, t *tx, title *stored, p *packed) (moved bool, err error) {
	if a.quiet {
		if moved, err = a.moveBy(ctx, t, title, p, true); moved || err != nil {
			return moved, err
		}
	}
	return a.moveBy(ctx, t, title, p, false)
}

// moveBy is one attempt of move. A quiet one fails if the session is not marked as
// stale.
func (a *addition) moveBy(ctx context.Context, t *tx, title *stored, p *packed, quiet bool) (moved bool, err error) {
	from, end := p.sum(0), p.sum(p.n)
	args := []any{p.last, end[:], a.at.UnixMilli(), a.id, a.after, from[:]}
	set, where := "", ` AND stale`
	if title != nil {
		set = `title = ?, sum = ?, `
		args = append([]any{title.Title, title.static()}, args...)
	}
	set += `entries = ?, head = ?, updated = ?`
	if !quiet {
		if err := t.tick(ctx); err != nil {
			return false, err
		}
		set, where = set+`, stale = TRUE, touched = `+t.now(), ""
	}
	if t.postgres {
		where += fenced
		args = append(args, fenceArgs(a.fence)...)
	}
	query := `UPDATE antiphon_sessions SET ` + set + ` WHERE id = ? AND entries = ? AND head = ?` + where + ` RETURNING log, tags`
	var tags, setting string
	if t.postgres {
		// One statement moves the end and prepares the commit, which saves a round
		// trip.
		err = t.row(ctx, query+`, `+durable, args...).Scan(&p.log, &tags, &t.xid, &setting)
		t.proof = p.isThere
	} else {
		err = t.row(ctx, query, args...).Scan(&p.log, &tags)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err == nil && tags != "" && !quiet {
		_, err = t.exec(ctx, `UPDATE antiphon_tags SET touched = (SELECT touched FROM antiphon_sessions s WHERE s.log = antiphon_tags.log) WHERE log = ?`, p.log)
	}
	return err == nil, err
}

// from returns the sum that the append continues, if it is known without a query.
func (a *addition) from() (sum session.Sum, known bool) {
	if a.after == 0 {
		return sum, true
	}
	end, ok := a.heads.get(a.id)
	return end.sum, ok && end.entries == a.after
}

// write writes the append in a transaction. Its first step is the only one that can
// refuse the append, as [committer.write] requires.
func (a *addition) write(ctx context.Context, t *tx) error {
	if len(a.blobs) > 0 {
		if err := t.shareTree(ctx); err != nil {
			return err
		}
	}
	p, err := a.place(ctx, t)
	if err != nil {
		return err
	}
	if err := t.keepBlobs(ctx, a.blobs, p.log); err != nil {
		return err
	}
	if err := t.put(ctx, p); err != nil {
		return err
	}
	if err := t.takeLetters(ctx, a.taken, p.log); err != nil {
		return err
	}
	a.end = p.sum(p.n)
	if !a.merges() {
		return nil
	}
	return t.merge(ctx, a.id)
}

// merges reports whether rows are merged after the append.
func (a *addition) merges() bool { return a.after/mergeAlways != (a.after+int64(a.n))/mergeAlways }

// put writes a row of entries.
func (t *tx) put(ctx context.Context, p *packed) error {
	_, err := t.exec(ctx, `INSERT INTO antiphon_entries (log, last, n, sums, data) VALUES (?, ?, ?, ?, ?)`, p.log, p.last, p.n, p.sums, p.data)
	return err
}

// place advances the session's end, or creates the session, and returns the row to
// write.
func (a *addition) place(ctx context.Context, t *tx) (*packed, error) {
	from, known := a.from()
	var title *stored
	if !known || a.title != "" || a.retitle != nil {
		row, err := t.take(ctx, a.id)
		if errors.Is(err, session.ErrNotFound) {
			row, err = nil, nil // begin creates it
		}
		if err != nil {
			return nil, err
		}
		if row != nil && !known && row.Entries == a.after {
			from = session.Sum(row.head)
		}
		if row != nil && row.Title == "" && a.title != "" {
			title, row.Title = row, a.title
		}
		if row != nil && a.retitle != nil && !row.titled && row.Entries == a.after {
			title, row.Title = row, *a.retitle
		}
	}
	p := pack(0, a.after, int64(a.n), from, a.data)
	moved, err := a.move(ctx, t, title, p)
	if err == nil && !moved {
		if err = a.begin(ctx, t); err == nil {
			moved, err = a.move(ctx, t, nil, p)
		}
		if err == nil && !moved {
			err = errFenced
		}
	}
	return p, err
}

// begin creates the session if it does not exist, and otherwise reports the conflict.
func (a *addition) begin(ctx context.Context, t *tx) error {
	var end int64
	row, err := t.find(ctx, a.id)
	switch {
	case err == nil && row.Entries == 0 && a.after == 0 && a.n > 0:
		return errCreated
	case err == nil && row.Entries == a.after && a.n > 0:
		return fmt.Errorf("%w: it has %d entries, and they are not those that were read", session.ErrConflict, row.Entries)
	case err == nil:
		return session.Conflict(row.Entries, a.after)
	case !errors.Is(err, session.ErrNotFound):
		return err
	case a.after != 0:
		return session.Conflict(0, a.after)
	}
	info := session.Info{ID: a.id, Title: a.title}
	if parent, ok := session.ParentOf(a.id); ok {
		log, err := t.logOf(ctx, parent, &end)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if log != 0 {
			info.Parent, info.Nested = parent, true
		}
	}
	err = t.insert(ctx, info, false, base{}, session.Sum{}, a.at)
	if errors.Is(err, session.ErrExists) && t.row(ctx, `SELECT entries FROM antiphon_sessions WHERE id = ?`, a.id).Scan(&end) == nil {
		if end == a.after {
			return errCreated
		}
		return session.Conflict(end, a.after)
	}
	return err
}
