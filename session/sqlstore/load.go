// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/antiphon-go/antiphon/session"
)

// base is a position in another log, at which a fork begins: a log number and an
// entry number. It is zero for a log that is not a fork.
type base struct{ log, at int64 }

// span is the part of a session that is stored in one log: the entries after number
// from up to and including number to.
type span struct{ log, from, to int64 }

// Load implements [session.Store]. It verifies the checksum of each entry before it
// yields it, and that of the log at the end, so that it yields only what was
// written.
func (s *Store) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return s.loadLog(ctx, id, 0, after)
}

// errReplaced reports that another session has the id.
var errReplaced = errors.New("another session has this id")

// loadLog is Load. If log is not 0 and the session with the id has another one, the error wraps [errReplaced].
func (s *Store) loadLog(ctx context.Context, id string, log, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		l := &loading{s: s, id: id, log: log, next: max(after, 0) + 1, known: after <= 0, yield: yield}
		if err := s.reading(ctx, func() error { return l.all(ctx) }); err != nil && !errors.Is(err, errStopped) {
			yield(session.Entry{}, s.fail("reading", l.named(err)))
		}
	}
}

// errStopped reports that the caller stopped iterating.
var errStopped = errors.New("stopped")

// loading is the state of a running Load.
type loading struct {
	s     *Store
	id    string
	log   int64       // the only log to read, or 0
	next  int64       // the number of the next entry
	sum   session.Sum // the sum after the previous entry, if known
	known bool
	from  string // the session for which the span's log was created; see [Store.origin]
	yield func(session.Entry, error) bool
}

// named adds the session's id to an error that reports damage.
func (l *loading) named(err error) error {
	var d *session.Damage
	if errors.As(err, &d) && d.Session == "" {
		d.Session = l.id
	}
	return err
}

// all yields the entries from l.next on.
func (l *loading) all(ctx context.Context) error {
	row, spans, err := l.s.spans(ctx, l.id, l.next-1)
	if err != nil || len(spans) == 0 {
		return err
	}
	if l.log != 0 && l.log != row.log {
		return errReplaced
	}
	if err := l.s.seal.usable(); err != nil {
		return err
	}
	for _, part := range spans {
		if l.from, err = l.s.origin(ctx, row, part.log); err != nil {
			return err
		}
		if err := l.span(ctx, part); err != nil {
			return err
		}
	}
	if !bytes.Equal(row.head, l.sum[:]) {
		return &session.Damage{Entry: row.Entries, Place: fmt.Sprintf("table antiphon_sessions, log %d", row.log),
			Problem: "the last entry is not the one that was written last"}
	}
	// The next append then does not have to query the sum.
	l.s.heads.put(l.id, head{row.Entries, l.sum})
	return nil
}

// spans returns the places of the entries after number after. It returns none for a
// session that does not exist.
func (s *Store) spans(ctx context.Context, id string, after int64) (*stored, []span, error) {
	row, err := s.reads.find(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil || row.Entries == after {
		return nil, nil, err
	}
	var spans []span
	for part, err := range s.reads.spansOf(ctx, row.log, row.Entries) {
		if err != nil {
			return nil, nil, err
		}
		begins := part.from
		if part.from = max(after, begins); part.from < part.to {
			spans = append(spans, part)
		}
		if begins <= after {
			break
		}
	}
	slices.Reverse(spans)
	return row, spans, nil
}

// spansOf yields the parts of a log that ends with entry end, the last part first.
// If a row of antiphon_logs is damaged, it yields the last part that it can find
// together with the error, and stops: it does not know how much of that part other
// logs hold.
func (t *tx) spansOf(ctx context.Context, log, end int64) iter.Seq2[span, error] {
	return func(yield func(span, error) bool) {
		for {
			b, err := t.baseOf(ctx, log)
			if err == nil && b.at > end {
				err = badBase(log)
			}
			if err != nil {
				yield(span{log: log, to: end}, err)
				return
			}
			if !yield(span{log, b.at, end}, nil) || b.log == 0 {
				return
			}
			log, end = b.log, b.at
		}
	}
}

// baseOf returns the position at which a log begins. It reports a base with a higher
// log number as damage: a log is created after its base, so a loop from base to base
// always ends.
func (t *tx) baseOf(ctx context.Context, log int64) (b base, err error) {
	err = t.row(ctx, `SELECT base, base_at FROM antiphon_logs WHERE log = ?`, log).Scan(&b.log, &b.at)
	if errors.Is(err, sql.ErrNoRows) {
		return base{}, &session.Damage{Place: fmt.Sprintf("table antiphon_logs, log %d", log), Problem: "the row is missing"}
	}
	if err == nil && (b.log < 0 || b.at < 0 || b.log >= log || (b.log == 0) != (b.at == 0)) {
		return base{}, badBase(log)
	}
	return b, err
}

// badBase returns the error for a row of antiphon_logs with an impossible base.
func badBase(log int64) error {
	return &session.Damage{Place: fmt.Sprintf("table antiphon_logs, log %d", log), Problem: "what it says of the log that it begins with cannot be"}
}

// loadPage is the largest number of rows that are read before their entries are yielded, and
// loadBytes the size from which no more are read: a caller who stops early waits for no more.
// No statement is open while entries are yielded: it would occupy a connection that the
// caller may need for its own work.
const (
	loadPage  = 64
	loadBytes = 64 << 10
)

// span yields the entries of a span.
func (l *loading) span(ctx context.Context, part span) error {
	for l.next <= part.to {
		page, err := l.page(ctx, part)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return l.lacks(ctx, part.log)
		}
		for _, p := range page {
			if l.next > part.to {
				break
			}
			if err = l.row(p, part.to); err != nil {
				return err
			}
		}
	}
	return nil
}

// page reads the rows that hold the next entries of a span.
func (l *loading) page(ctx context.Context, part span) (page []*packed, err error) {
	rows, err := l.s.reads.rows(ctx, `SELECT last, n, sums, data FROM antiphon_entries WHERE log = ? AND last > ? ORDER BY last LIMIT ?`, part.log, l.next-1, loadPage)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for size := 0; size < loadBytes && rows.Next(); {
		p := &packed{log: part.log}
		if err := rows.Scan(&p.last, &p.n, &p.sums, &p.data); err != nil {
			return nil, err
		}
		size += len(p.data)
		if page = append(page, p); p.last >= part.to {
			break
		}
	}
	return page, errors.Join(rows.Err(), rows.Close())
}

// lacks returns the error for a next entry that is missing.
func (l *loading) lacks(ctx context.Context, log int64) error {
	if _, err := l.s.reads.find(ctx, l.id); err != nil {
		return err // the session was deleted meanwhile
	}
	return &session.Damage{Entry: l.next, Place: fmt.Sprintf("table antiphon_entries, log %d", log), Problem: "the entry is missing"}
}

// row yields the entries of a row from number l.next up to number last.
func (l *loading) row(p *packed, last int64) error {
	if !p.shaped() {
		return p.damaged(l.next, 0, len(p.data), "the row does not have the checksums that belong to it")
	}
	switch n := p.before() + 1; {
	case n > l.next:
		return p.damaged(l.next, 0, 0, fmt.Sprintf("entry %d stands where it belongs", n))
	// After a start in the middle of a log, the previous sum is not known yet.
	case n == l.next && l.known && p.sum(0) != l.sum:
		return p.damaged(l.next, 0, 0, "it does not follow the entry before it")
	}
	text := string(p.data) // one copy, shared by all entries of the row
	at := 0
	for i := range p.n {
		n := bytes.IndexByte(p.data[at:], '\n')
		seq := p.before() + 1 + i
		switch {
		case seq > last:
			return nil
		case n < 0:
			return p.damaged(max(seq, l.next), at, len(p.data), "the row ends before the entry does")
		case seq < l.next:
			at += n + 1
			continue
		case p.sum(i).Next(seq, p.data[at:at+n]) != p.sum(i+1):
			return p.damaged(seq, at, at+n, "its bytes do not have the checksum that was written with it")
		}
		line := text[at : at+n]
		if l.s.seal != nil {
			opened, err := l.s.seal.openLine(l.from, seq, p.data[at:at+n])
			if err != nil {
				return p.damaged(seq, at, at+n, err.Error())
			}
			line = string(opened)
		}
		e, err := l.s.split.ParseEntry(line)
		if err != nil {
			return err
		}
		if e.Seq != seq {
			return p.damaged(seq, at, at+n, fmt.Sprintf("entry %d stands where it belongs", e.Seq))
		}
		at += n + 1
		l.next, l.sum, l.known = seq+1, p.sum(i+1), true
		if !l.yield(e, nil) {
			return errStopped
		}
	}
	return nil
}
