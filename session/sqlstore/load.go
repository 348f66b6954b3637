// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/session"
)

// base is the log that another one begins with, up to an entry; none is zero.
type base struct{ log, at int64 }

// span is a part of a session that one log holds: the entries behind from up to
// number to.
type span struct{ log, from, to int64 }

// Load implements [session.Store].
func (s *Store) Load(ctx context.Context, id string, after int64) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		spans, err := s.spans(ctx, id, max(after, 0))
		for _, part := range spans {
			if err == nil {
				err = s.loadSpan(ctx, part, yield)
			}
		}
		if err != nil && err != errStopped {
			yield(session.Entry{}, s.fail("reading", err))
		}
	}
}

// errStopped: whoever reads has had enough.
var errStopped = errors.New("stopped")

// spans returns where the entries behind number after are. A session that is
// not there has none.
func (s *Store) spans(ctx context.Context, id string, after int64) ([]span, error) {
	var end int64
	var of span
	var b base
	err := s.reads.row(ctx, `SELECT s.entries, s.log, l.base, l.base_at FROM antiphon_sessions s
		JOIN antiphon_logs l ON l.log = s.log WHERE s.id = ?`, id).Scan(&end, &of.log, &b.log, &b.at)
	if errors.Is(err, sql.ErrNoRows) || err == nil && end <= after {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	of.from, of.to = max(after, b.at), end
	spans := []span{of}
	for b.log != 0 && b.at > after {
		of = span{log: b.log, to: b.at}
		if b, err = s.reads.baseOf(ctx, b.log); err != nil {
			return nil, err
		}
		of.from = max(after, b.at)
		if of.from < of.to {
			spans = append(spans, of)
		}
	}
	slices.Reverse(spans)
	return spans, nil
}

func (t *tx) baseOf(ctx context.Context, log int64) (b base, err error) {
	err = t.row(ctx, `SELECT base, base_at FROM antiphon_logs WHERE log = ?`, log).Scan(&b.log, &b.at)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("log %d is missing, which others begin with", log)
	}
	return b, err
}

// loadSpan yields the entries of a span.
func (s *Store) loadSpan(ctx context.Context, p span, yield func(session.Entry, error) bool) error {
	rows, err := s.reads.rows(ctx, `SELECT last - n, data FROM antiphon_entries WHERE log = ? AND last > ? ORDER BY last`, p.log, p.from)
	if err != nil {
		return err
	}
	defer rows.Close()
	next := p.from + 1
	for next <= p.to && rows.Next() {
		var before int64
		var data sql.RawBytes
		if err := rows.Scan(&before, &data); err != nil {
			return err
		}
		if next, err = s.loadRow(string(data), before, next, p.to, yield); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if next <= p.to {
		return fmt.Errorf("entry %d of log %d is missing: the database is damaged, or the session was deleted just now", next, p.log)
	}
	return nil
}

// loadRow yields the entries of a row, the first of which follows number before,
// from number next up to the last one, and returns the number that comes then.
func (s *Store) loadRow(data string, before, next, last int64, yield func(session.Entry, error) bool) (int64, error) {
	for n := before + 1; data != "" && next <= last; n++ {
		line, rest, _ := strings.Cut(data, "\n")
		data = rest
		if n < next {
			continue
		}
		e, err := s.split.ParseEntry(line)
		if err != nil {
			return next, err
		}
		if n != next || e.Seq != next {
			return next, fmt.Errorf("entry %d stands where %d belongs: the database is damaged", e.Seq, next)
		}
		next++
		if !yield(e, nil) {
			return next, errStopped
		}
	}
	return next, nil
}
