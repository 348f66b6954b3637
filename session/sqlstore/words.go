// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/internal/words"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// How words are found. A row of antiphon_docs stands for an entry of a log that
// holds words, or with seq 0 for the title of the log's session. SQLite has their
// words in antiphon_words, an FTS5 table that holds no text and takes the row's
// number; Postgres in a tsvector beside it. Both get words as package words cuts
// them, and no text: the databases' own parsers differ.
//
// The index follows the log: appends mark their session as stale, and a search
// first indexes what is stale, so that it finds all that was committed before.
// So that there is little of it, the end of a lock indexes when it has become
// some. An index that is damaged never keeps an append from being written.
//
// The words of an entry are deleted with it, and when it is withdrawn. FTS5 keeps
// deleted words until it rewrites its index, which [Store.Sweep] has it do.

const (
	// staleSome is from how many sessions on the end of a lock indexes them.
	staleSome = 16
	// staleBatch and staleBytes bound a transaction that indexes: sessions, and
	// bytes of entries.
	staleBatch = 64
	staleBytes = 1 << 20
)

// searchable reports whether the database keeps an index of words.
func (t *tx) searchable(ctx context.Context) (bool, error) {
	var on int64
	err := t.row(ctx, `SELECT value FROM antiphon_state WHERE name = 'search'`).Scan(&on)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return on != 0, err
}

// indexSome indexes what is stale, if that is more than a search should have to
// do.
func (s *Store) indexSome(ctx context.Context) error {
	stale, err := s.reads.numbers(ctx, `SELECT log FROM antiphon_sessions WHERE stale LIMIT ?`, staleSome)
	if err != nil || len(stale) < staleSome {
		return err
	}
	return s.indexStale(ctx)
}

// indexStale indexes all sessions that were written to since they were indexed,
// in transactions of limited size.
func (s *Store) indexStale(ctx context.Context) error {
	for last := int64(0); ; {
		logs, err := s.reads.numbers(ctx, `SELECT log FROM antiphon_sessions WHERE stale AND log > ? ORDER BY log LIMIT ?`, last, staleBatch)
		if err != nil || len(logs) == 0 {
			return err
		}
		for len(logs) > 0 {
			var next int64
			err := s.write(ctx, func(ctx context.Context, t *tx) error {
				on, err := t.searchable(ctx)
				if err != nil || !on {
					next = logs[len(logs)-1]
					return err
				}
				left := staleBytes
				for _, log := range logs {
					if next = log; left <= 0 {
						next--
						break
					}
					more, err := t.indexSession(ctx, log, &left)
					if err != nil {
						return err
					}
					if more {
						next--
						break
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			for len(logs) > 0 && logs[0] <= next {
				last, logs = logs[0], logs[1:]
			}
		}
	}
}

// indexSession indexes what a session's own log has got since the last time, as
// far as left bytes allow, and reports whether there is more.
func (t *tx) indexSession(ctx context.Context, log int64, left *int) (more bool, err error) {
	query := `SELECT id, title, titled, entries, indexed FROM antiphon_sessions WHERE log = ? AND stale`
	if t.postgres {
		query += ` FOR UPDATE`
	}
	var id, title string
	var titled bool
	var end, indexed int64
	err = t.row(ctx, query, log).Scan(&id, &title, &titled, &end, &indexed)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil // somebody else has done it, or deleted the session
	}
	if err != nil {
		return false, err
	}
	i := &indexing{t: t, log: log}
	if titled {
		if err := i.add(ctx, 0, title); err != nil {
			return false, err
		}
	}
	for indexed < end && *left > 0 {
		if indexed, err = i.rows(ctx, indexed, end, left); err != nil {
			return false, err
		}
	}
	_, err = t.exec(ctx, `UPDATE antiphon_sessions SET indexed = ?, stale = ? WHERE log = ?`, indexed, indexed < end, log)
	return indexed < end, err
}

// indexing adds words of one log.
type indexing struct {
	t      *tx
	log    int64
	owners string // of the sessions that show entries of the log
	known  bool   // whether owners are
}

// rows indexes entries that follow number after up to the last one, and returns
// how far it came. It leaves out what is damaged: reading that tells.
func (i *indexing) rows(ctx context.Context, after, last int64, left *int) (done int64, err error) {
	list, err := i.read(ctx, after, last, left)
	if err != nil {
		return after, err
	}
	if len(list) == 0 {
		return last, nil
	}
	for _, p := range list {
		if p.shaped() {
			rest := p.data
			for n := range p.n {
				var line []byte
				line, rest, _ = bytes.Cut(rest, newline)
				if seq := p.before() + n + 1; seq > after && seq <= last && p.sum(n).Next(seq, line) == p.sum(n+1) {
					if err := i.entry(ctx, string(line)); err != nil {
						return after, err
					}
				}
			}
		}
		done = min(p.last, last)
	}
	return done, nil
}

// read returns the next rows, at least one if there is one.
func (i *indexing) read(ctx context.Context, after, last int64, left *int) (list []*packed, err error) {
	rows, err := i.t.rows(ctx, `SELECT last, n, sums, data FROM antiphon_entries WHERE log = ? AND last > ? ORDER BY last`, i.log, after)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for (len(list) == 0 || *left > 0 && list[len(list)-1].last < last) && rows.Next() {
		p := &packed{log: i.log}
		if err := rows.Scan(&p.last, &p.n, &p.sums, &p.data); err != nil {
			return nil, err
		}
		*left -= len(p.data)
		list = append(list, p)
	}
	return list, errors.Join(rows.Err(), rows.Close())
}

// texts reads entries without their payloads, which hold no words.
var texts = session.Split{Join: func(skeleton string, _ []item.Payload) (item.Item, error) { return item.ParseString(skeleton) }}

// entry indexes an entry.
func (i *indexing) entry(ctx context.Context, line string) error {
	e, err := texts.ParseEntry(line)
	if err != nil {
		return nil // reading it tells
	}
	for _, seq := range session.Unsaid(e.Body) {
		if err := i.t.hide(ctx, i.log, seq); err != nil {
			return err
		}
	}
	_, text := session.SearchText(e.Body)
	return i.add(ctx, e.Seq, text)
}

// add adds a text, unless it is there already.
func (i *indexing) add(ctx context.Context, seq int64, text string) (err error) {
	if i.t.postgres {
		text = vectorOf(text)
	} else {
		text = words.Text(text)
	}
	if text == "" {
		return nil
	}
	if !i.known {
		if i.owners, err = i.t.ownersOf(ctx, i.log); err != nil {
			return err
		}
		i.known = true
	}
	if i.t.postgres {
		_, err = i.t.exec(ctx, `INSERT INTO antiphon_docs (log, seq, words) VALUES (?, ?, CAST(CAST(? AS text) AS tsvector)) ON CONFLICT DO NOTHING`, i.log, seq, text+i.owners)
		return err
	}
	var doc int64
	err = i.t.row(ctx, `INSERT INTO antiphon_docs (log, seq) VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING doc`, i.log, seq).Scan(&doc)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = i.t.exec(ctx, `INSERT INTO antiphon_words (rowid, words, owners) VALUES (?, ?, ?)`, doc, text, i.owners)
	}
	return err
}

// maxPosition is the last place of a word in a tsvector; those after it share
// it.
const maxPosition = 16383

// vectorOf returns the words of a text as a tsvector.
func vectorOf(text string) string {
	var b strings.Builder
	n := 0
	for w := range words.Of(text) {
		n = min(n+1, maxPosition)
		fmt.Fprintf(&b, "'%s':%d ", w.Text, n)
	}
	return b.String()
}

// ownerWord stands for an owner in the index of words, in which no owner's name
// can be read. No word of a text has it.
func ownerWord(owner string) string { return "=" + session.Fingerprint("owner "+owner) }

// ownersQuery returns the owners of a log's session and of its forks. SQLite reads
// the tables of a CROSS JOIN in this order.
const ownersQuery = `WITH RECURSIVE below (log) AS (SELECT CAST(? AS BIGINT) UNION SELECT l.log FROM below b CROSS JOIN antiphon_logs l WHERE l.base = b.log)
	SELECT DISTINCT s.whose FROM below b CROSS JOIN antiphon_sessions s WHERE s.log = b.log AND s.whose <> ''`

// ownersOf returns the words for the owners of all sessions that show entries of
// a log: its own, and forks. A search by owner is narrowed down by them, and then
// asks the sessions.
func (t *tx) ownersOf(ctx context.Context, log int64) (string, error) {
	owners, err := t.texts(ctx, ownersQuery, log)
	var b strings.Builder
	for _, owner := range owners {
		if t.postgres {
			fmt.Fprintf(&b, "'%s' ", ownerWord(owner))
		} else {
			b.WriteString(ownerWord(owner)[1:] + " ")
		}
	}
	return b.String(), err
}

// hide takes an entry out of what a search finds in a log.
func (t *tx) hide(ctx context.Context, log, seq int64) error {
	found, err := t.forget(ctx, `log = ? AND seq = ?`, log, seq)
	if err != nil || found {
		return err
	}
	// It may be of the log that this one begins with.
	_, err = t.exec(ctx, `INSERT INTO antiphon_hidden (log, seq) VALUES (?, ?) ON CONFLICT DO NOTHING`, log, seq)
	return err
}

// forget removes docs and their words, and reports whether there were some.
func (t *tx) forget(ctx context.Context, where string, args ...any) (found bool, err error) {
	if !t.postgres {
		if _, err := t.exec(ctx, `DELETE FROM antiphon_words WHERE rowid IN (SELECT doc FROM antiphon_docs WHERE `+where+`)`, args...); err != nil {
			return false, err
		}
	}
	n, err := t.exec(ctx, `DELETE FROM antiphon_docs WHERE `+where, args...)
	if err == nil && n > 0 {
		err = t.markDeleted(ctx)
	}
	return n > 0, err
}

// forgetWords removes the words of a log after an entry, which are deleted.
func (t *tx) forgetWords(ctx context.Context, log, after int64) error {
	if after < 0 {
		if _, err := t.exec(ctx, `DELETE FROM antiphon_hidden WHERE log = ?`, log); err != nil {
			return err
		}
	}
	_, err := t.forget(ctx, `log = ? AND seq > ?`, log, after)
	return err
}

// forgetTitle removes the words of a session's title, and has the new one
// indexed.
func (t *tx) forgetTitle(ctx context.Context, log int64) error {
	if _, err := t.forget(ctx, `log = ? AND seq = 0`, log); err != nil {
		return err
	}
	_, err := t.exec(ctx, `UPDATE antiphon_sessions SET stale = TRUE WHERE log = ?`, log)
	return err
}

// leave is called when a session is deleted: its labels go, and what forks of it
// still show is indexed, for nobody will do it later.
func (t *tx) leave(ctx context.Context, log int64) error {
	if _, err := t.exec(ctx, `DELETE FROM antiphon_tags WHERE log = ?`, log); err != nil {
		return err
	}
	if _, err := t.forget(ctx, `log = ? AND seq = 0`, log); err != nil {
		return err
	}
	return t.indexLeft(ctx, log)
}

// indexLeft indexes a log that has no session, if forks begin with it.
func (t *tx) indexLeft(ctx context.Context, log int64) error {
	var upTo sql.NullInt64
	if err := t.row(ctx, `SELECT max(base_at) FROM antiphon_logs WHERE base = ? AND log <> base`, log).Scan(&upTo); err != nil || upTo.Int64 == 0 {
		return err
	}
	if on, err := t.searchable(ctx); err != nil || !on {
		return err
	}
	b, err := t.baseOf(ctx, log)
	if err != nil {
		return err
	}
	i := &indexing{t: t, log: log}
	for after := b.at; after < upTo.Int64; {
		left := staleBytes
		if after, err = i.rows(ctx, after, upTo.Int64, &left); err != nil {
			return err
		}
	}
	return nil
}

// indexAnew has the words of a log, and of those that it begins with, indexed
// again: for another owner.
func (t *tx) indexAnew(ctx context.Context, log int64) error {
	for log != 0 {
		if _, err := t.forget(ctx, `log = ?`, log); err != nil {
			return err
		}
		b, err := t.baseOf(ctx, log)
		if err != nil {
			return err
		}
		n, err := t.exec(ctx, `UPDATE antiphon_sessions SET indexed = ?, stale = TRUE WHERE log = ?`, b.at, log)
		if err == nil && n == 0 {
			err = t.indexLeft(ctx, log)
		}
		if err != nil {
			return err
		}
		log = b.log
	}
	return nil
}

// optimizeWords has FTS5 write its index anew, without what was deleted.
func (t *tx) optimizeWords(ctx context.Context) error {
	_, err := t.exec(ctx, `INSERT INTO antiphon_words (antiphon_words) VALUES ('optimize')`)
	return err
}

// wordsTable makes the table of words on SQLite.
const wordsTable = `CREATE VIRTUAL TABLE antiphon_words USING fts5 (words, owners, content = '', contentless_delete = 1, tokenize = 'ascii')`

// Index turns the index of words on, and builds it anew from the logs, or off: then
// no words are left in it, and [Store.Search] returns [session.ErrNoIndex] in all
// programs that use the database. Bytes of it may be in the file until
// [Store.Sweep]. An encrypted store has none.
func (s *Store) Index(ctx context.Context, on bool) error {
	if on && s.seal != nil {
		return fmt.Errorf("%w: the store is encrypted, and an index would hold the words", session.ErrNoIndex)
	}
	err := s.write(ctx, func(ctx context.Context, t *tx) error { return t.dropWords(ctx, on) })
	if err == nil && on {
		err = s.indexStale(ctx)
	}
	return s.fail("indexing", err)
}

// dropWords empties the index of words, and says whether it is to be filled
// again.
func (t *tx) dropWords(ctx context.Context, on bool) error {
	statements := []string{`DROP TABLE antiphon_words`, wordsTable, `DELETE FROM antiphon_docs`, `DELETE FROM antiphon_hidden`}
	if t.postgres {
		statements = []string{`TRUNCATE antiphon_docs`, `DELETE FROM antiphon_hidden`}
	}
	statements = append(statements,
		`UPDATE antiphon_sessions SET stale = TRUE, indexed = (SELECT base_at FROM antiphon_logs l WHERE l.log = antiphon_sessions.log)`,
		`DELETE FROM antiphon_state WHERE name = 'search'`)
	for _, statement := range statements {
		if _, err := t.q.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	value := 0
	if on {
		value = 1
	}
	if _, err := t.exec(ctx, `INSERT INTO antiphon_state (name, value) VALUES ('search', ?)`, value); err != nil {
		return err
	}
	if on {
		if err := t.indexAllLeft(ctx); err != nil {
			return err
		}
	}
	return t.markDeleted(ctx)
}

// indexAllLeft indexes the logs that have no session.
func (t *tx) indexAllLeft(ctx context.Context) error {
	logs, err := t.numbers(ctx, `SELECT log FROM antiphon_logs l WHERE NOT EXISTS (SELECT 1 FROM antiphon_sessions s WHERE s.log = l.log)`)
	for _, log := range logs {
		if err == nil {
			err = t.indexLeft(ctx, log)
		}
	}
	return err
}
