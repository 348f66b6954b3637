// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/words"
	"github.com/antiphon-go/antiphon/session"
)

// Search implements [session.Searcher]. It writes to the database, because it first
// indexes the entries appended since the last search. A search in one session reads
// the session instead and needs no index.
func (s *Store) Search(ctx context.Context, what session.Search) iter.Seq2[session.SearchResult, error] {
	return func(yield func(session.SearchResult, error) bool) {
		if err := s.opened(); err != nil {
			yield(session.SearchResult{}, err)
			return
		}
		w := &searching{s: s, what: what, left: what.Limit, seen: map[int64]bool{}, yield: yield}
		if err := w.all(ctx); err != nil && !errors.Is(err, errStopped) {
			if !isAsked(err) {
				err = s.fail("searching", err)
			}
			yield(session.SearchResult{}, err)
		}
	}
}

// isAsked reports whether an error is caused by the query and not by the store.
func isAsked(err error) bool {
	return errors.Is(err, session.ErrNoWords) || errors.Is(err, session.ErrBadCursor)
}

// searching is the state of a running Search.
type searching struct {
	s       *Store
	what    session.Search
	query   words.Query
	after   int64 // the cursor; 0 if there is none
	left    int   // how many more results are wanted; 0 means all
	seen    map[int64]bool
	damaged error
	yield   func(session.SearchResult, error) bool
}

// all yields the results. It reads pages of hits until it has enough.
func (w *searching) all(ctx context.Context) (err error) {
	if w.query, err = words.Parse(w.what.Words); err != nil {
		return fmt.Errorf("%w: %w", session.ErrNoWords, err)
	}
	if w.what.After != "" {
		if w.after, err = strconv.ParseInt(w.what.After, 10, 64); err != nil || w.after < 0 {
			return session.BadCursor(w.what.After)
		}
	}
	if w.what.In != "" {
		return w.within(ctx)
	}
	on, err := w.s.reads.searchable(ctx)
	if err == nil && !on {
		why := "it was removed, and can be built again"
		if w.s.seal != nil {
			why = "the store is encrypted, and an index would hold the words"
		}
		err = fmt.Errorf("%w: %s; a search in one session needs none", session.ErrNoIndex, why)
	}
	if err == nil {
		err = w.s.indexStale(ctx)
	}
	size := firstPage
	for before := int64(0); err == nil; size = min(2*size, largestPage) {
		var page []hit
		if page, err = w.page(ctx, before, size); err != nil || len(page) == 0 {
			break
		}
		for _, h := range page {
			if before = h.doc; err == nil {
				err = w.hit(ctx, h)
			}
		}
	}
	return cmp.Or(err, w.damaged)
}

// hit is a row of antiphon_docs whose text contains the words. Direct reports that
// the session of its log matches the query, and shared that forks show the entry,
// too.
type hit struct {
	doc, log, seq  int64
	direct, shared bool
}

// firstPage is the number of hits that are read first. Each further page is twice as
// large, up to largestPage: most searches need few hits, and others should not take
// many statements.
const (
	firstPage   = 128
	largestPage = 4096
)

// page returns the next hits below number before, the newest first. If before is 0,
// it returns the newest ones.
func (w *searching) page(ctx context.Context, before int64, size int) (page []hit, err error) {
	query, args := searchQuery(w.what.Query, w.query, before, size, w.s.postgres)
	rows, err := w.s.reads.rows(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var h hit
		if err := rows.Scan(&h.doc, &h.log, &h.seq, &h.direct, &h.shared); err != nil {
			return nil, err
		}
		page = append(page, h)
	}
	return page, errors.Join(rows.Err(), rows.Close())
}

// searchQuery returns the statement for a page of hits, newest first.
func searchQuery(q session.Query, what words.Query, before int64, size int, postgres bool) (query string, args []any) {
	q.Name, q.Prefix = "", ""
	var c conditions
	c.about(q, 0)
	direct := strings.Join(append(c.parts, `s.log IS NOT NULL`), ` AND `)
	var b strings.Builder
	fmt.Fprintf(&b, `SELECT d.doc, d.log, d.seq, coalesce(%s, FALSE) AND NOT EXISTS (SELECT 1 FROM antiphon_hidden h WHERE h.log = d.log AND h.seq = d.seq),
		EXISTS (SELECT 1 FROM antiphon_logs f WHERE f.base = d.log AND f.base_at >= d.seq AND d.seq > 0)`, direct)
	args = c.args
	if postgres {
		b.WriteString(` FROM antiphon_docs d LEFT JOIN antiphon_sessions s ON s.log = d.log WHERE d.words @@ CAST(CAST(? AS text) AS tsquery)`)
		args = append(args, matchPostgres(what, q.Owner))
	} else {
		b.WriteString(` FROM antiphon_words w CROSS JOIN antiphon_docs d ON d.doc = w.rowid LEFT JOIN antiphon_sessions s ON s.log = d.log WHERE w.antiphon_words MATCH ?`)
		args = append(args, matchSQLite(what, q.Owner))
	}
	// FTS5 can read its own row numbers in descending order without sorting.
	number := "w.rowid"
	if postgres {
		number = "d.doc"
	}
	if before > 0 {
		b.WriteString(` AND ` + number + ` < ?`)
		args = append(args, before)
	}
	b.WriteString(` ORDER BY ` + number + ` DESC LIMIT ?`)
	return b.String(), append(args, size)
}

// matchSQLite returns a query in the syntax of FTS5. Words need no escaping because
// they consist of letters and digits.
func matchSQLite(q words.Query, owner string) string {
	var phrases []string
	for _, phrase := range q {
		phrases = append(phrases, `"`+strings.Join(phrase, " ")+`"`)
	}
	match := `words : (` + strings.Join(phrases, ` AND `) + `)`
	if owner != "" {
		match += ` AND owners : "` + ownerWord(owner)[1:] + `"`
	}
	return match
}

// matchPostgres returns a query in the syntax of a tsquery.
func matchPostgres(q words.Query, owner string) string {
	var phrases []string
	for _, phrase := range q {
		phrases = append(phrases, `('`+strings.Join(phrase, `' <-> '`)+`')`)
	}
	if owner != "" {
		phrases = append(phrases, `'`+ownerWord(owner)+`'`)
	}
	return strings.Join(phrases, ` & `)
}

// hit yields the result for a hit, unless its session was found already.
func (w *searching) hit(ctx context.Context, h hit) error {
	var row *stored
	var err error
	switch {
	case h.direct && w.seen[h.log]:
		return nil
	case h.direct:
		row, err = w.sessionOf(ctx, h.log)
	case h.shared:
		row, err = w.fork(ctx, h.log, h.seq)
	}
	if errors.Is(err, session.ErrDamaged) {
		w.damaged, err = cmp.Or(w.damaged, err), nil
	}
	if row == nil || err != nil || w.seen[row.log] {
		return err
	}
	if w.after != 0 && h.doc >= w.after { // an earlier page had it
		w.seen[row.log] = true
		return nil
	}
	f := session.SearchResult{Session: row.Info, Entry: h.seq, By: "title", Cursor: strconv.FormatInt(h.doc, 10)}
	text := row.Title
	if h.seq > 0 {
		e, err := w.entry(ctx, h.log, h.seq)
		if errors.Is(err, session.ErrDamaged) {
			w.damaged = cmp.Or(w.damaged, err)
			return nil
		}
		if err != nil {
			return err
		}
		f.Time = e.Time
		f.By, text = session.SearchText(e.Body)
	}
	from, to, found := w.query.Find(text)
	if !found { // the text has changed since it was indexed
		return nil
	}
	w.seen[row.log] = true
	f.Snippet = words.Snippet(text, from, to)
	return w.give(f)
}

// give yields a result. It returns errStopped when the caller stops iterating, or
// when the limit is reached and no damage was found.
func (w *searching) give(f session.SearchResult) error {
	if !w.yield(f, nil) {
		return errStopped
	}
	if w.left > 0 {
		if w.left--; w.left == 0 {
			return cmp.Or(w.damaged, errStopped)
		}
	}
	return nil
}

// sessionOf returns the session that a log belongs to, or nil if there is none.
func (w *searching) sessionOf(ctx context.Context, log int64) (*stored, error) {
	row, err := scanStored(w.s.reads.row(ctx, `SELECT `+columns+` FROM antiphon_sessions s WHERE s.log = ?`, log))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

// fork returns a session that matches the query and is a fork of the log that
// includes the entry, or nil if there is none.
func (w *searching) fork(ctx context.Context, log, seq int64) (*stored, error) {
	forks, err := w.s.reads.numbers(ctx, `SELECT log FROM antiphon_logs f WHERE base = ? AND base_at >= ?
		AND NOT EXISTS (SELECT 1 FROM antiphon_hidden h WHERE h.log = f.log AND h.seq = ?) ORDER BY log DESC`, log, seq, seq)
	if err != nil {
		return nil, err
	}
	for _, fork := range forks {
		row, err := w.sessionOf(ctx, fork)
		if err == nil && (row == nil || !w.takes(row)) {
			// A fork of the fork shows the entry, too.
			row, err = w.fork(ctx, fork, seq)
		}
		if row != nil || err != nil {
			return row, err
		}
	}
	return nil, nil
}

// takes reports whether a session matches the conditions of the query.
func (w *searching) takes(row *stored) bool {
	q := w.what.Query
	q.Name, q.Prefix = "", ""
	return q.Takes(row.Info)
}

// entry reads one entry of a log.
func (w *searching) entry(ctx context.Context, log, seq int64) (e session.Entry, err error) {
	p := packed{log: log}
	err = w.s.reads.row(ctx, `SELECT last, n, sums, data FROM antiphon_entries WHERE log = ? AND last >= ? ORDER BY last LIMIT 1`, log, seq).Scan(&p.last, &p.n, &p.sums, &p.data)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return e, err
	}
	if err != nil || !p.shaped() || p.before() >= seq {
		return e, &session.Damage{Entry: seq, Place: fmt.Sprintf("table antiphon_entries, log %d", log), Problem: "the entry is missing"}
	}
	i, at := seq-p.before()-1, 0
	for range i {
		at += bytes.IndexByte(p.data[at:], '\n') + 1
	}
	line, _, _ := bytes.Cut(p.data[at:], newline)
	if p.sum(i).Next(seq, line) != p.sum(i+1) {
		return e, p.damaged(seq, at, at+len(line), "its bytes do not have the checksum that was written with it")
	}
	return texts.ParseEntry(string(line))
}

// within searches one session by reading all of it.
func (w *searching) within(ctx context.Context) error {
	row, err := w.s.reads.find(ctx, w.what.In)
	if err != nil {
		return err
	}
	if w.what.Owner != "" && w.what.Owner != row.Owner {
		return notFound(w.what.In)
	}
	var list []session.SearchResult
	add := func(f session.SearchResult, text string) {
		if from, to, found := w.query.Find(text); found {
			f.Session, f.Snippet, f.Cursor = w.s.seal.info(row), words.Snippet(text, from, to), strconv.FormatInt(f.Entry, 10)
			list = append(list, f)
		}
	}
	if row.titled {
		add(session.SearchResult{By: "title"}, w.s.seal.openTitle(row.ID, row.Title))
	}
	// These entries were withdrawn by later ones and must not be found.
	unsaid := map[int64]bool{}
	for e, err := range w.s.Load(ctx, w.what.In, 0) {
		if err != nil {
			return err
		}
		for _, seq := range session.Unsaid(e.Body) {
			unsaid[seq] = true
		}
		by, text := session.SearchText(e.Body)
		add(session.SearchResult{Entry: e.Seq, By: by, Time: e.Time}, text)
	}
	// The newest entry comes first, as in a search with the index.
	for _, f := range slices.Backward(list) {
		if unsaid[f.Entry] || w.what.After != "" && f.Entry >= w.after {
			continue
		}
		if err := w.give(f); err != nil {
			return err
		}
	}
	return nil
}
