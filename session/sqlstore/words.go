// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/internal/words"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// A row of antiphon_docs stands for an entry of a log that contains words or, with
// seq 0, for the title of the log's session. On SQLite the words are in
// antiphon_words, an FTS5 table without the text itself, under the number of that
// row; on Postgres they are in a tsvector in the row. Both receive the words that
// package words extracts, and not the text, because the parsers of the two databases
// differ.
//
// The index lags behind the log. Appends mark their session as stale, and a search
// first indexes all stale sessions, so that it finds everything committed before. To
// keep that work small, releasing a lock indexes stale sessions, too, if there are
// enough. A damaged index never prevents an append.
//
// The words of an entry are removed when the entry is deleted or withdrawn. FTS5
// keeps removed words until it rewrites its index, which [Store.Sweep] makes it do.

const (
	// staleSome is the number of stale sessions from which releasing a lock indexes
	// them.
	staleSome = 16
	// staleBatch and staleBytes limit an indexing transaction: the number of
	// sessions, and the bytes of entries.
	staleBatch = 64
	staleBytes = 1 << 20
)

// searchable reports whether the database has an index of words.
func (t *tx) searchable(ctx context.Context) (bool, error) {
	var on int64
	err := t.row(ctx, `SELECT value FROM antiphon_state WHERE name = 'search'`).Scan(&on)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return on != 0, err
}

// indexSome indexes the stale sessions if there are staleSome or more.
func (s *Store) indexSome(ctx context.Context) error {
	stale, err := s.reads.numbers(ctx, `SELECT log FROM antiphon_sessions WHERE stale LIMIT ?`, staleSome)
	if err != nil || len(stale) < staleSome {
		return err
	}
	return s.indexStale(ctx)
}

// indexStale indexes all sessions that were written since they were last indexed. It
// uses transactions of limited size, so that other writers do not wait for long.
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
					// next becomes the last log that is indexed completely.
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

// indexSession indexes the new entries of a session's own log until left bytes are
// used up, and reports whether there are more.
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
		return false, nil // another process indexed or deleted the session
	}
	if err != nil {
		return false, err
	}
	i := &indexing{t: t, log: log}
	if titled {
		i.add(0, title)
	}
	for indexed < end && *left > 0 {
		if indexed, err = i.rows(ctx, indexed, end, left); err != nil {
			return false, err
		}
	}
	if err := i.flush(ctx); err != nil {
		return false, err
	}
	_, err = t.exec(ctx, `UPDATE antiphon_sessions SET indexed = ?, stale = ? WHERE log = ?`, indexed, indexed < end, log)
	return indexed < end, err
}

// indexing adds the words of one log.
type indexing struct {
	t      *tx
	log    int64
	owners string // the owners of the sessions that show entries of the log
	known  bool   // owners is set
	docs   []doc  // not written yet
}

// doc is the words of an entry or, with number 0, of the title.
type doc struct {
	seq   int64
	words string
}

// rows indexes entries after number after up to number last, as far as left allows,
// and returns the last one that it reached. It skips damaged entries without an
// error: reading them reports the damage.
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

// read returns the next rows until left bytes are used up, but at least one if there
// is one.
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

// texts parses entries without loading their payloads, which contain no words.
var texts = session.Split{Join: func(skeleton string, _ []item.Payload) (item.Item, error) { return item.ParseString(skeleton) }}

// entry indexes an entry.
func (i *indexing) entry(ctx context.Context, line string) error {
	e, err := texts.ParseEntry(line)
	if err != nil {
		return nil // reading it reports the error
	}
	unsaid := session.Unsaid(e.Body)
	if len(unsaid) > 0 { // what is to be hidden may not be written yet
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	for _, seq := range unsaid {
		if err := i.t.hide(ctx, i.log, seq); err != nil {
			return err
		}
	}
	_, text := session.SearchText(e.Body)
	i.add(e.Seq, text)
	return nil
}

// add notes the words of a text for flush.
func (i *indexing) add(seq int64, text string) {
	if i.t.postgres {
		text = vectorOf(text)
	} else {
		text = words.Text(text)
	}
	if text != "" {
		i.docs = append(i.docs, doc{seq, text})
	}
}

// flush writes the words of all texts that were added, unless their entries are in
// the index already. A statement of its own for each entry took most of the time.
func (i *indexing) flush(ctx context.Context) (err error) {
	if len(i.docs) == 0 {
		return nil
	}
	if !i.known {
		if i.owners, err = i.t.ownersOf(ctx, i.log); err != nil {
			return err
		}
		i.known = true
	}
	docs := i.docs
	i.docs = nil
	list, err := listOf(docs)
	if err != nil {
		return err
	}
	if i.t.postgres {
		_, err = i.t.exec(ctx, `INSERT INTO antiphon_docs (log, seq, words)
			SELECT CAST(? AS bigint), seq, CAST(words || CAST(? AS text) AS tsvector) FROM json_to_recordset(CAST(CAST(? AS text) AS json)) AS docs (seq bigint, words text)
			ON CONFLICT DO NOTHING`, i.log, i.owners, list)
		return err
	}
	added, err := i.t.numbers(ctx, `INSERT INTO antiphon_docs (log, seq) SELECT ?, value ->> 'seq' FROM json_each(?) WHERE TRUE ON CONFLICT DO NOTHING RETURNING seq`, i.log, list)
	if err != nil || len(added) == 0 {
		return err
	}
	if len(added) < len(docs) {
		docs = slices.DeleteFunc(docs, func(d doc) bool { return !slices.Contains(added, d.seq) })
		if list, err = listOf(docs); err != nil {
			return err
		}
	}
	_, err = i.t.exec(ctx, `INSERT INTO antiphon_words (rowid, words, owners)
		SELECT d.doc, value ->> 'words', ? FROM json_each(?) CROSS JOIN antiphon_docs d ON d.log = ? AND d.seq = value ->> 'seq'`, i.owners, list, i.log)
	return err
}

// listOf returns the texts as a JSON array, the argument of a statement that writes
// several of them.
func listOf(docs []doc) (string, error) {
	var b []byte
	for i, d := range docs {
		b = append(b, "[,"[min(i, 1)])
		b = strconv.AppendInt(append(b, `{"seq":`...), d.seq, 10)
		var err error
		if b, err = jsonx.AppendQuoted(append(b, `,"words":`...), d.words); err != nil {
			return "", err
		}
		b = append(b, '}')
	}
	return string(append(b, ']')), nil
}

// maxPosition is the last position of a word in a tsvector. All later words share
// it.
const maxPosition = 16383

// vectorOf returns the words of a text in the syntax of a tsvector.
func vectorOf(text string) string {
	var b []byte
	n := 0
	for w := range words.Of(text) {
		n = min(n+1, maxPosition)
		b = append(append(append(b, '\''), w.Text...), "':"...)
		b = append(strconv.AppendInt(b, int64(n), 10), ' ')
	}
	return string(b)
}

// ownerWord returns the word that stands for an owner in the index of words. It is a
// fingerprint, so that the index does not reveal the owner's name, and it begins
// with a character that no word of a text contains.
func ownerWord(owner string) string { return "=" + session.Fingerprint("owner "+owner) }

// ownersQuery returns the owners of a log's session and of its forks. CROSS JOIN
// makes SQLite read the tables in this order.
const ownersQuery = `WITH RECURSIVE below (log) AS (SELECT CAST(? AS BIGINT) UNION SELECT l.log FROM below b CROSS JOIN antiphon_logs l WHERE l.base = b.log)
	SELECT DISTINCT s.whose FROM below b CROSS JOIN antiphon_sessions s WHERE s.log = b.log AND s.whose <> ''`

// ownersOf returns the owner words of all sessions that show entries of a log: its
// own session and forks. A search by owner uses them to narrow down its hits, and
// then checks the sessions themselves.
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

// hide removes an entry from the results of a search in a log.
func (t *tx) hide(ctx context.Context, log, seq int64) error {
	found, err := t.forget(ctx, `log = ? AND seq = ?`, log, seq)
	if err != nil || found {
		return err
	}
	// The entry may belong to the log that this one begins with, where other
	// sessions still show it. It is then hidden in this log only.
	_, err = t.exec(ctx, `INSERT INTO antiphon_hidden (log, seq) VALUES (?, ?) ON CONFLICT DO NOTHING`, log, seq)
	return err
}

// forget removes rows of antiphon_docs and their words, and reports whether there
// were any.
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

// forgetWords removes the words of a log's entries after number after, because these
// entries are deleted. A negative number removes all.
func (t *tx) forgetWords(ctx context.Context, log, after int64) error {
	if after < 0 {
		if _, err := t.exec(ctx, `DELETE FROM antiphon_hidden WHERE log = ?`, log); err != nil {
			return err
		}
	}
	_, err := t.forget(ctx, `log = ? AND seq > ?`, log, after)
	return err
}

// forgetTitle removes the words of a session's title and marks the session as stale,
// so that its new title is indexed.
func (t *tx) forgetTitle(ctx context.Context, log int64) error {
	if _, err := t.forget(ctx, `log = ? AND seq = 0`, log); err != nil {
		return err
	}
	_, err := t.exec(ctx, `UPDATE antiphon_sessions SET stale = TRUE WHERE log = ?`, log)
	return err
}

// leave removes the tags and title words of a session that is being deleted. It
// indexes the entries that forks still show now, because without a session the log
// will not be indexed later.
func (t *tx) leave(ctx context.Context, log int64) error {
	if _, err := t.exec(ctx, `DELETE FROM antiphon_tags WHERE log = ?`, log); err != nil {
		return err
	}
	if _, err := t.forget(ctx, `log = ? AND seq = 0`, log); err != nil {
		return err
	}
	return t.indexLeft(ctx, log)
}

// indexLeft indexes a log without a session, as far as forks begin with it.
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
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// indexAnew makes the words of a log, and of the logs that it begins with, be
// indexed again, because the owner of the session has changed.
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

// optimizeWords makes FTS5 rewrite its index without the words that were removed.
func (t *tx) optimizeWords(ctx context.Context) error {
	_, err := t.exec(ctx, `INSERT INTO antiphon_words (antiphon_words) VALUES ('optimize')`)
	return err
}

// wordsTable creates the table of words on SQLite. With an empty content option it
// stores no text, but rows can still be deleted. The ascii tokenizer suffices
// because package words has already extracted the words.
const wordsTable = `CREATE VIRTUAL TABLE antiphon_words USING fts5 (words, owners, content = '', contentless_delete = 1, tokenize = 'ascii')`

// Index turns the index of words on or off. Turning it on builds it from the logs.
// Turning it off removes all words; [Store.Search] then returns [session.ErrNoIndex]
// in all programs that use the database. Bytes of the words may remain in the file
// until [Store.Sweep]. An encrypted store cannot have an index: Index returns
// [session.ErrNoIndex].
func (s *Store) Index(ctx context.Context, on bool) error {
	if err := s.opened(); err != nil {
		return err
	}
	if on && s.seal != nil {
		return fmt.Errorf("%w: the store is encrypted, and an index would hold the words", session.ErrNoIndex)
	}
	err := s.write(ctx, func(ctx context.Context, t *tx) error { return t.dropWords(ctx, on) })
	if err == nil && on {
		err = s.indexStale(ctx)
	}
	return s.fail("indexing", err)
}

// dropWords empties the index of words. On says whether it is to be filled again.
func (t *tx) dropWords(ctx context.Context, on bool) error {
	// FTS5 keeps deleted words until it rewrites its index, so the table is created
	// again.
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

// indexAllLeft indexes the logs without a session.
func (t *tx) indexAllLeft(ctx context.Context) error {
	logs, err := t.numbers(ctx, `SELECT log FROM antiphon_logs l WHERE NOT EXISTS (SELECT 1 FROM antiphon_sessions s WHERE s.log = l.log)`)
	for _, log := range logs {
		if err == nil {
			err = t.indexLeft(ctx, log)
		}
	}
	return err
}
