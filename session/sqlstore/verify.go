// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"github.com/antiphon-go/antiphon/session"
)

// Verify implements [session.Verifier]. Without ids it also runs SQLite's own check
// of the file, and checks all payloads, even those that no session needs.
func (s *Store) Verify(ctx context.Context, ids ...string) iter.Seq2[session.Damage, error] {
	return func(yield func(session.Damage, error) bool) {
		if err := s.opened(); err != nil {
			yield(session.Damage{}, err)
			return
		}
		v := &verifying{s: s, yield: yield}
		err := v.all(ctx, ids)
		if err != nil && !errors.Is(err, errStopped) {
			yield(session.Damage{}, s.fail("verifying", err))
		}
	}
}

// verifying is the state of a running Verify.
type verifying struct {
	s     *Store
	yield func(session.Damage, error) bool
}

// found yields the damage that an error reports, and returns all other errors.
func (v *verifying) found(id string, err error) error {
	var d *session.Damage
	switch {
	case errors.As(err, &d):
	case codeOf(err) == sqliteCorrupt:
		d = &session.Damage{Place: v.s.place, Problem: err.Error()}
	default:
		return err
	}
	one := *d
	one.Session = cmp.Or(one.Session, id)
	if !v.yield(one, nil) {
		return errStopped
	}
	return nil
}

// all verifies the sessions with the ids or, if there are none, the whole database.
func (v *verifying) all(ctx context.Context, ids []string) error {
	everything := len(ids) == 0
	if everything {
		if err := v.found("", v.s.intact(ctx)); err != nil {
			return err
		}
		var err error
		ids, err = v.s.reads.texts(ctx, `SELECT id FROM antiphon_sessions ORDER BY id`)
		if err = v.found("", err); err != nil {
			return err
		}
	}
	if everything {
		if err := v.orphans(ctx); err != nil {
			return err
		}
		if err := v.found("", v.s.reads.allKept(ctx)); err != nil {
			return err
		}
	}
	payloads := map[int64]string{} // needed payloads, each with a session that needs it
	for _, id := range ids {
		err := v.session(ctx, id, payloads)
		if everything && errors.Is(err, session.ErrNotFound) && v.gone(ctx, `SELECT count(*) FROM antiphon_sessions WHERE id || '' = ?`, id) { // id || '' makes SQLite search without an index, which may be damaged
			continue
		}
		if err != nil {
			return err
		}
	}
	if everything {
		others, err := v.s.reads.numbers(ctx, `SELECT blob FROM antiphon_blobs`)
		if err = v.found("", err); err != nil {
			return err
		}
		for _, blob := range others {
			payloads[blob] = cmp.Or(payloads[blob], "")
		}
	}
	for _, blob := range slices.Sorted(maps.Keys(payloads)) {
		err := v.s.checkBlob(ctx, blob)
		if err != nil && v.gone(ctx, `SELECT (SELECT count(*) FROM antiphon_refs WHERE blob = ?) + (SELECT count(*) FROM antiphon_blobs WHERE blob = ?)`, blob, blob) {
			continue
		}
		if err := v.found(payloads[blob], err); err != nil {
			return err
		}
	}
	return nil
}

// gone reports whether something no longer exists, by a query that counts it. If it
// was deleted while Verify looked at it, its missing parts are not damage.
func (v *verifying) gone(ctx context.Context, query string, args ...any) bool {
	var n int
	err := v.s.reads.row(ctx, query, args...).Scan(&n)
	return err == nil && n == 0
}

// orphans reports entries whose session is missing. Deleting a session also deletes
// its log, except for the beginning that forks need; Sweep removes the rest of it.
func (v *verifying) orphans(ctx context.Context) error {
	logs, err := v.s.reads.numbers(ctx, `SELECT DISTINCT e.log FROM antiphon_entries e
		LEFT JOIN (SELECT base, max(base_at) AS until FROM antiphon_logs GROUP BY base) f ON f.base = e.log
		WHERE NOT EXISTS (SELECT 1 FROM antiphon_sessions s WHERE s.log = e.log)
		AND (f.until IS NULL OR e.last > f.until AND (SELECT max(value) FROM antiphon_state WHERE name = 'deleted') = 0)
		ORDER BY e.log`)
	if err = v.found("", err); err != nil {
		return err
	}
	for _, log := range logs {
		if err := v.found("", &session.Damage{Place: fmt.Sprintf("table antiphon_entries, log %d", log), Problem: "it has entries, and the row of their session is missing in antiphon_sessions"}); err != nil {
			return err
		}
	}
	return nil
}

// session verifies one session and records the payloads that it needs.
func (v *verifying) session(ctx context.Context, id string, payloads map[int64]string) error {
	row, err := v.s.reads.find(ctx, id)
	if row == nil && errors.Is(err, session.ErrNotFound) {
		return err
	}
	if err = v.found(id, err); err != nil || row == nil {
		return err
	}
	c := &scan{s: v.s, row: row}
	for e := range c.entries(ctx) {
		if e.damage == nil {
			continue
		}
		if v.gone(ctx, `SELECT count(*) FROM antiphon_sessions WHERE id = ? AND log = ?`, id, row.log) {
			return nil
		}
		if !v.yield(*e.damage, nil) {
			return errStopped
		}
	}
	if c.err != nil {
		return v.found(id, c.err)
	}
	for _, err := range v.s.inbox(ctx, id) {
		if err != nil && !v.s.seal.closed() {
			if err = v.found(id, err); err != nil {
				return err
			}
		}
	}
	for _, part := range c.spans {
		needed, err := v.s.reads.numbers(ctx, `SELECT blob FROM antiphon_refs WHERE log = ?`, part.log)
		if err = v.found(id, err); err != nil {
			return err
		}
		for _, blob := range needed {
			payloads[blob] = id
		}
	}
	return nil
}

// checkBlob reads a payload and compares it with its hash.
func (s *Store) checkBlob(ctx context.Context, blob int64) error {
	place := fmt.Sprintf("table antiphon_blobs, payload %d", blob)
	var hash []byte
	err := s.reads.row(ctx, `SELECT hash FROM antiphon_blobs WHERE blob = ?`, blob).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) || err == nil && len(hash) != len(session.Hash{}) {
		return &session.Damage{Place: place, Problem: "the payload or its hash is missing"}
	}
	if err != nil {
		return err
	}
	b, err := s.openNamed(ctx, session.Hash(hash))
	if errors.Is(err, session.ErrNoBlob) {
		return &session.Damage{Place: place, Problem: "it cannot be found by its hash"}
	}
	if err != nil {
		return err
	}
	sum := sha256.New()
	// The hash covers the plain bytes, which cannot be read without the key.
	if s.seal.closed() {
		err = b.check()
	} else {
		_, err = io.Copy(sum, b)
	}
	if errors.Is(err, errNoPart) {
		return &session.Damage{Place: place, Problem: "a part of it is missing"}
	}
	if err != nil || s.seal.closed() {
		return err
	}
	if s.seal.name(session.Hash(sum.Sum(nil))) != b.name {
		return &session.Damage{Place: place, Problem: "its bytes are not those of its hash"}
	}
	return nil
}

// check compares the stored chunks with their checksums. It does not need the
// store's key.
func (r *reader) check() error {
	var chunk []byte
	for n := int64(0); n*chunkSize < r.size; n++ {
		err := r.s.reading(r.ctx, func() (err error) {
			chunk, err = r.stored(n, chunk[:0])
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scan reads everything that is readable in a session, however damaged it is.
type scan struct {
	s     *Store
	row   *stored
	spans []span
	err   error // why the scan is incomplete
}

// scanned is one entry found by a scan.
type scanned struct {
	seq  int64
	line []byte // nil if the entry is lost
	raw  []byte // the bytes stored in place of a lost entry, if any
	// damage says what is wrong. It is also set if only the checksum is damaged and
	// the entry itself is whole.
	damage *session.Damage
}

// entries yields each entry of the session once, in order, whether it is lost or
// not.
func (c *scan) entries(ctx context.Context) iter.Seq[scanned] {
	return func(yield func(scanned) bool) {
		for _, d := range c.plan(ctx) {
			if !yield(scanned{damage: d}) {
				return
			}
		}
		w := &walk{scan: c, yield: yield, known: true}
		for _, part := range c.spans {
			if !w.span(ctx, part) {
				return
			}
		}
		if !bytes.Equal(w.sum[:], c.row.head) {
			yield(scanned{damage: &session.Damage{Session: c.row.ID, Place: fmt.Sprintf("table antiphon_sessions, log %d", c.row.log),
				Problem: "the log does not end with the entry that was written last"}})
		}
	}
}

// walk goes through the entries of a session in order. Its methods return false to
// end it early.
type walk struct {
	*scan
	yield func(scanned) bool
	next  int64       // the number of the next entry
	sum   session.Sum // the sum after the previous entry, if known
	known bool
}

// span yields the entries of a span.
func (w *walk) span(ctx context.Context, part span) bool {
	from, err := w.s.origin(ctx, w.row, part.log)
	if damage := new(session.Damage); errors.As(err, &damage) {
		from, err = w.row.ID, nil // if it is the wrong id, its entries fail to decrypt
	}
	if err != nil {
		w.err = err
		return false
	}
	w.next = part.from + 1
	for _, last := range w.keys(ctx, part) {
		p, err := w.packed(ctx, part.log, last)
		if err != nil || !p.shaped() || p.before() >= part.to || p.last < w.next {
			continue // missing reports its entries
		}
		if !w.packedRow(ctx, p, part, from) {
			return false
		}
	}
	// The last entries of the span are missing, so the sum at its end is not known.
	if w.next <= part.to {
		w.known = false
	}
	return w.missing(part.log, part.to+1)
}

// packedRow yields the entries of a row that belong to a span, and as lost the
// missing ones before them.
func (w *walk) packedRow(ctx context.Context, p *packed, part span, from string) bool {
	w.known = w.known && p.before() < w.next
	follows := w.known && p.before()+1 == w.next
	if follows && p.sum(0) != w.sum {
		if !w.yield(scanned{damage: &session.Damage{Session: w.row.ID, Entry: w.next, Place: p.place(0, 0), Problem: "it does not follow the entry before it"}}) {
			return false
		}
	}
	for _, e := range p.scan(w.sum, follows) {
		if e.seq < w.next || e.seq > part.to {
			continue
		}
		if !w.missing(part.log, e.seq) {
			return false
		}
		w.open(&e, from, p)
		if w.err = w.needs(ctx, &e, part.log); w.err != nil {
			return false
		}
		if e.damage != nil {
			e.damage.Session = w.row.ID
		}
		if !w.yield(e) {
			return false
		}
		w.next++
	}
	w.sum, w.known = p.sum(min(p.last, part.to)-p.before()), true
	return true
}

// missing yields the entries before number upTo as lost.
func (w *walk) missing(log, upTo int64) bool {
	for ; w.next < upTo; w.next++ {
		if !w.yield(w.lost(log, w.next)) {
			return false
		}
	}
	return true
}

// open decrypts an entry if the store is encrypted and has its key.
func (c *scan) open(e *scanned, from string, p *packed) {
	if c.s.seal == nil || c.s.seal.closed() || e.line == nil {
		return
	}
	opened, err := c.s.seal.openLine(from, e.seq, e.line)
	if err != nil {
		e.line, e.damage = nil, &session.Damage{Entry: e.seq, Place: p.place(0, len(p.data)), Problem: err.Error()}
		return
	}
	e.line = opened
}

// lost returns an entry that is missing.
func (c *scan) lost(log, seq int64) scanned {
	return scanned{seq: seq, damage: &session.Damage{Session: c.row.ID, Entry: seq, Place: fmt.Sprintf("table antiphon_entries, log %d", log), Problem: "the entry is missing, or the row with it cannot be read"}}
}

// plan finds the spans where the session's entries should be, and returns the damage
// that it met.
func (c *scan) plan(ctx context.Context) (found []*session.Damage) {
	end := c.row.Entries
	if c.row.check() != nil { // the number may be damaged: take it from the log
		var last sql.NullInt64
		if c.s.reads.row(ctx, `SELECT max(last) FROM antiphon_entries WHERE log = ?`, c.row.log).Scan(&last) == nil && last.Valid {
			end = last.Int64
		}
	}
	for part, err := range c.s.reads.spansOf(ctx, c.row.log, end) {
		var d *session.Damage
		if errors.As(err, &d) {
			d.Session = c.row.ID
			found = append(found, d)
		} else if err != nil {
			c.err = err
			return found
		}
		if part.from < part.to {
			c.spans = append(c.spans, part)
		}
	}
	slices.Reverse(c.spans)
	return found
}

// keys returns the rows of a span, by their last entries. If an index or a page is
// damaged, one query may not find all rows, so keys searches with and without the
// index, and in both directions.
func (c *scan) keys(ctx context.Context, part span) []int64 {
	set := map[int64]bool{}
	queries := []string{` WHERE log = ? AND last > ? ORDER BY last`, ` WHERE log = ? AND last > ? ORDER BY last DESC`}
	if !c.s.postgres {
		queries = append(queries, ` NOT INDEXED WHERE log = ? AND last > ? ORDER BY rowid`, ` NOT INDEXED WHERE log = ? AND last > ? ORDER BY rowid DESC`)
	}
	for i, query := range queries {
		if i > 0 && len(set) > 0 && c.complete(ctx, part, set) {
			break
		}
		rows, err := c.s.db.QueryContext(ctx, (&tx{postgres: c.s.postgres}).text(`SELECT last FROM antiphon_entries`+query), part.log, part.from)
		if err != nil {
			continue
		}
		for rows.Next() {
			var last int64
			if rows.Scan(&last) == nil {
				set[last] = true
			}
		}
		_ = rows.Close() // the rows read before an error are still useful
	}
	return slices.Sorted(maps.Keys(set))
}

// complete reports whether the rows cover a span without a gap.
func (c *scan) complete(ctx context.Context, part span, set map[int64]bool) bool {
	next := part.from + 1
	for _, last := range slices.Sorted(maps.Keys(set)) {
		var n int64
		if c.s.reads.row(ctx, `SELECT n FROM antiphon_entries WHERE log = ? AND last = ?`, part.log, last).Scan(&n) != nil || last-n+1 > next {
			return false
		}
		next = last + 1
	}
	return next > part.to
}

// packed reads one row, without the index if that fails.
func (c *scan) packed(ctx context.Context, log, last int64) (*packed, error) {
	p := &packed{log: log, last: last}
	query := `SELECT n, sums, data FROM antiphon_entries WHERE log = ? AND last = ?`
	err := c.s.reads.row(ctx, query, log, last).Scan(&p.n, &p.sums, &p.data)
	if err != nil && !c.s.postgres {
		err = c.s.db.QueryRowContext(ctx, `SELECT n, sums, data FROM antiphon_entries NOT INDEXED WHERE log = ? AND last = ?`, log, last).Scan(&p.n, &p.sums, &p.data)
	}
	return p, err
}

// reach is how many entries ahead a line of a damaged row is looked for: a changed
// byte may have joined or split lines.
const reach = 8

// scan returns the entries of a row. Before is the sum of the entry before the row,
// if known is true.
func (p *packed) scan(before session.Sum, known bool) []scanned {
	r := &rowScan{packed: p, computed: before}
	if !known {
		r.computed = p.sum(0)
	}
	for r.at < len(p.data) {
		line, _, _ := bytes.Cut(p.data[r.at:], newline)
		r.take(line)
		r.at = min(r.at+len(line)+1, len(p.data))
	}
	r.lost(p.n)
	return r.list
}

// rowScan assigns the lines of a row to its entries by their sums.
type rowScan struct {
	*packed
	list     []scanned
	i        int64       // the index in the row of the next entry
	at       int         // the offset of the next line
	raw      []byte      // lines before it that match no entry
	computed session.Sum // the sum after the entry before it
}

// take assigns the next line.
func (r *rowScan) take(line []byte) {
	if match := r.match(line); match >= 0 {
		r.lost(match)
		r.list = append(r.list, scanned{seq: r.seq(r.i), line: line})
		r.computed = r.sum(r.i + 1)
		r.i++
		return
	}
	if r.i == r.n || r.computed.Next(r.seq(r.i), line) != r.sum(r.i+1) && !r.proven(r.i, r.at+len(line)+1, line) {
		r.raw = append(append(r.raw, line...), '\n')
		return
	}
	// The line is whole, and only a sum beside it is damaged.
	r.computed = r.sum(r.i).Next(r.seq(r.i), line)
	r.list = append(r.list, scanned{seq: r.seq(r.i), line: line, damage: &session.Damage{Entry: r.seq(r.i), Place: r.place(r.at, r.at+len(line)), Problem: "its checksum is damaged; the entry itself is whole"}})
	r.i++
}

// match returns the index of the next entry whose sum fits the line, or -1.
func (r *rowScan) match(line []byte) int64 {
	for j := r.i; j < min(r.i+reach, r.n); j++ {
		if r.sum(j).Next(r.seq(j), line) == r.sum(j+1) {
			return j
		}
	}
	return -1
}

// lost adds the entries before index upTo as lost. The first one gets the bytes that
// belong to no entry.
func (r *rowScan) lost(upTo int64) {
	for ; r.i < upTo; r.i++ {
		r.list = append(r.list, scanned{seq: r.seq(r.i), raw: r.raw, damage: &session.Damage{Entry: r.seq(r.i), Place: r.place(r.at-len(r.raw), r.at), Problem: "its bytes do not have the checksum that was written with it"}})
		r.raw = nil
	}
}

// seq returns the number of the i-th entry of the row.
func (p *packed) seq(i int64) int64 { return p.before() + 1 + i }

// proven reports whether a line whose own sum is damaged is whole, because the sum
// of the next line follows from it.
func (p *packed) proven(i int64, at int, line []byte) bool {
	if i+1 >= p.n || at >= len(p.data) {
		return false
	}
	next, _, _ := bytes.Cut(p.data[at:], newline)
	seq := p.seq(i)
	return p.sum(i).Next(seq, line).Next(seq+1, next) == p.sum(i+2)
}
