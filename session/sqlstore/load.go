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

// base is the log that another one begins with, up to an entry; none is zero.
type base struct{ log, at int64 }

// span is a part of a session that one log holds: the entries that follow number
// from, up to number to.
type span struct{ log, from, to int64 }

// Load implements [session.Store]. It checks the sum of each entry that it
// yields, and at the end that of the log: what it yields is what was written.
func (s *Store) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		l := &loading{s: s, id: id, next: max(after, 0) + 1, known: after <= 0, yield: yield}
		if err := s.reading(ctx, func() error { return l.all(ctx) }); err != nil && err != errStopped {
			yield(session.Entry{}, s.fail("reading", l.named(err)))
		}
	}
}

// errStopped: the caller has had enough.
var errStopped = errors.New("stopped")

// loading is a Load under way.
type loading struct {
	s     *Store
	id    string
	next  int64       // the number of the entry that comes next
	sum   session.Sum // after the entry before it, if that is known
	known bool
	from  string // the session that the span's log was made for; see [Store.origin]
	yield func(session.Entry, error) bool
}

// named adds the session to an error that says what is damaged.
func (l *loading) named(err error) error {
	var d *session.Damage
	if errors.As(err, &d) && d.Session == "" {
		d.Session = l.id
	}
	return err
}

// all yields what there is from entry next on.
func (l *loading) all(ctx context.Context) error {
	row, spans, err := l.s.spans(ctx, l.id, l.next-1)
	if err != nil || len(spans) == 0 {
		return err
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
	l.s.heads.put(l.id, head{row.Entries, l.sum})
	return nil
}

// spans returns where the entries that follow number after are. A session that
// does not exist has none.
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

// spansOf ranges over the parts that a log of end entries consists of, the last
// one first. Where a row of antiphon_logs is damaged, it yields the last part that
// it knows of with the error, and ends: how much of it other logs hold is not known.
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

// baseOf returns the log that a log begins with. That one was made before it, so
// who goes on from base to base comes to an end.
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

func badBase(log int64) error {
	return &session.Damage{Place: fmt.Sprintf("table antiphon_logs, log %d", log), Problem: "what it says of the log that it begins with cannot be"}
}

// span yields the entries of a span.
func (l *loading) span(ctx context.Context, part span) error {
	rows, err := l.s.reads.rows(ctx, `SELECT last, n, sums, data FROM antiphon_entries WHERE log = ? AND last > ? ORDER BY last`, part.log, l.next-1)
	if err != nil {
		return err
	}
	defer rows.Close()
	for l.next <= part.to && rows.Next() {
		p := packed{log: part.log}
		if err := rows.Scan(&p.last, &p.n, (*sql.RawBytes)(&p.sums), (*sql.RawBytes)(&p.data)); err != nil {
			return err
		}
		if err = l.row(&p, part.to); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if l.next <= part.to {
		return l.lacks(ctx, part.log)
	}
	return nil
}

// lacks is the error for the next entry, which is not there.
func (l *loading) lacks(ctx context.Context, log int64) error {
	if _, err := l.s.reads.find(ctx, l.id); err != nil {
		return err // the session was deleted meanwhile
	}
	return &session.Damage{Entry: l.next, Place: fmt.Sprintf("table antiphon_entries, log %d", log), Problem: "the entry is missing"}
}

// row yields the entries of a row from number next up to the last one.
func (l *loading) row(p *packed, last int64) error {
	if !p.shaped() {
		return p.damaged(l.next, 0, len(p.data), "the row does not have the checksums that belong to it")
	}
	switch n := p.before() + 1; {
	case n > l.next:
		return p.damaged(l.next, 0, 0, fmt.Sprintf("entry %d stands where it belongs", n))
	case n == l.next && l.known && p.sum(0) != l.sum:
		return p.damaged(l.next, 0, 0, "it does not follow the entry before it")
	}
	text := string(p.data) // all entries of the row share it
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
