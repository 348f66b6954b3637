// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// A schedule is a row of antiphon_schedules. What it says and the note are encrypted in an
// encrypted store; its name and its times are not, because schedulers need them. A time of
// 0 means never.

func schedulePlace(name string) []byte { return fmt.Appendf(nil, "schedule %q", name) }

// noteID is the place of a schedule's note among the reasons of work. No session has such
// an id.
func noteID(name string) string { return "schedule/" + name }

// Schedule implements [queue.Schedules].
func (s *Store) Schedule(ctx context.Context, q queue.Schedule) error {
	if q.Name == "" {
		return fmt.Errorf("a schedule has a name")
	}
	return s.writeWork(ctx, "adding a schedule", func(ctx context.Context, t *tx) error {
		data := append([]byte{}, q.Data...) // nil would be NULL
		if s.seal != nil {
			data = s.seal.put(nil, q.Data, schedulePlace(q.Name))
		}
		sum := s.seal.name(session.Hash(sha256.Sum256(q.Data)))
		n, err := t.exec(ctx, `INSERT INTO antiphon_schedules (name, due, sum, data, note) VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING`,
			q.Name, dueOf(q.Due), sum[:], data, s.sealReason(noteID(q.Name), q.Note))
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: the schedule %q", session.ErrExists, q.Name)
		}
		return err
	})
}

// Fired implements [queue.Schedules].
func (s *Store) Fired(ctx context.Context, q queue.Schedule) error {
	return s.writeWork(ctx, "writing a schedule", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, `UPDATE antiphon_schedules SET due = ?, fired = ?, session = ?, note = ?, version = version + 1 WHERE name = ? AND version = ?`,
			dueOf(q.Due), dueOf(q.Fired), q.Session, s.sealReason(noteID(q.Name), q.Note), q.Name, q.Version)
		if err == nil && n == 0 {
			err = queue.ErrChanged
		}
		return err
	})
}

// Unschedule implements [queue.Schedules].
func (s *Store) Unschedule(ctx context.Context, name string) error {
	return s.writeWork(ctx, "removing a schedule", func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, `DELETE FROM antiphon_schedules WHERE name = ?`, name)
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: the schedule %q", session.ErrNotFound, name)
		}
		return err
	})
}

// Schedules implements [queue.Schedules].
func (s *Store) Schedules(ctx context.Context, due bool) (list []queue.Schedule, err error) {
	if err := cmp.Or(s.opened(), s.seal.usable()); err != nil {
		return nil, err
	}
	var damage error
	err = s.reading(ctx, func() error {
		list, damage = nil, nil
		rows, err := s.reads.rows(ctx, `SELECT name, due, sum, data, fired, session, note, version, `+s.reads.clock()+` FROM antiphon_schedules
			WHERE NOT ? OR due > 0 AND due <= `+s.reads.clock()+` ORDER BY name`, due)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var q queue.Schedule
			var due, fired, now int64
			var sum, note []byte
			if err := rows.Scan(&q.Name, &due, &sum, &q.Data, &fired, &q.Session, &note, &q.Version, &now); err != nil {
				return err
			}
			q.Due, q.Fired, q.Now, q.Note = timeOf(due), timeOf(fired), timeOf(now), s.openReason(noteID(q.Name), note)
			if q.Data, err = s.openSchedule(q, sum); err != nil {
				damage = errors.Join(damage, err)
				continue
			}
			list = append(list, q)
		}
		return cmp.Or(rows.Err(), rows.Close())
	})
	if err != nil {
		return nil, s.fail("reading schedules", err)
	}
	return list, s.fail("reading schedules", damage)
}

// timeOf returns a time that is stored.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// openSchedule returns the text of a schedule.
func (s *Store) openSchedule(q queue.Schedule, sum []byte) (text []byte, err error) {
	text = bytes.Clone(q.Data)
	if s.seal != nil {
		text, err = s.seal.get(text, schedulePlace(q.Name))
	}
	if err == nil {
		if want := s.seal.name(session.Hash(sha256.Sum256(text))); !bytes.Equal(want[:], sum) {
			err = session.ErrDamaged
		}
	}
	if err != nil {
		return nil, &session.Damage{Place: fmt.Sprintf("table antiphon_schedules, schedule %q", q.Name), Problem: err.Error()}
	}
	return text, nil
}

var _ queue.Schedules = (*Store)(nil)
