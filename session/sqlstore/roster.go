// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/session/queue"
)

// A worker that runs is a row of antiphon_workers, which counts until its time. What it says
// about itself is not secret: labels, folders and hashes, as in the rows of work. A time that is further ahead than
// mostAhead was written while the clock was ahead.

// there returns the condition that a worker counts.
func (t *tx) there() string {
	return fmt.Sprintf(`until > %[1]s AND until <= %[1]s + %d`, t.clock(), (mostAhead + clockSlack).Milliseconds())
}

// Enter implements [queue.Roster].
func (s *Store) Enter(ctx context.Context, w queue.Present, lasts time.Duration) error {
	if w.ID == "" {
		return errors.New("a worker has an id")
	}
	if err := s.opened(); err != nil {
		return err
	}
	// Nobody is woken: no work becomes ready by it.
	err := s.write(ctx, func(ctx context.Context, t *tx) error {
		if _, err := t.exec(ctx, `DELETE FROM antiphon_workers WHERE NOT (`+t.there()+`)`); err != nil {
			return err
		}
		_, err := t.exec(ctx, `INSERT INTO antiphon_workers (id, data, until) VALUES (?, ?, `+t.clock()+` + CAST(? AS BIGINT))
			ON CONFLICT (id) DO UPDATE SET data = excluded.data, until = excluded.until`, w.ID, append([]byte{}, w.Data...), min(lasts, mostAhead).Milliseconds())
		return err
	})
	if err != nil {
		return s.fail("telling that a worker runs", err)
	}
	return nil
}

// Roster implements [queue.Roster].
func (s *Store) Roster(ctx context.Context) (list []queue.Present, err error) {
	if err := s.opened(); err != nil {
		return nil, err
	}
	err = s.reading(ctx, func() error {
		list = nil
		rows, err := s.reads.rows(ctx, `SELECT id, data FROM antiphon_workers WHERE `+s.reads.there()+` ORDER BY id`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var w queue.Present
			if err := rows.Scan(&w.ID, &w.Data); err != nil {
				return err
			}
			list = append(list, w)
		}
		return cmp.Or(rows.Err(), rows.Close())
	})
	if err != nil {
		return nil, s.fail("reading which workers run", err)
	}
	return list, nil
}

var _ queue.Roster = (*Store)(nil)
