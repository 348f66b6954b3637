// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
)

// now is the time of schedules.
func (db *DB) now() time.Time {
	if db.Clock != nil {
		return db.Clock()
	}
	return time.Now()
}

// Schedules is [queue.Schedules.Schedules].
func (db *DB) Schedules(due bool) (list []queue.Schedule) {
	db.mu.Lock()
	defer db.mu.Unlock()
	now := db.now()
	for _, name := range slices.Sorted(maps.Keys(db.schedules)) {
		if q := db.schedules[name]; !due || !q.Due.IsZero() && !q.Due.After(now) {
			q.Data, q.Now = bytes.Clone(q.Data), now
			list = append(list, q)
		}
	}
	return list
}

// Schedule is [queue.Schedules.Schedule].
func (db *DB) Schedule(q queue.Schedule) error {
	if q.Name == "" {
		return errors.New("a schedule has a name")
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, ok := db.schedules[q.Name]; ok {
		return fmt.Errorf("%w: the schedule %q", session.ErrExists, q.Name)
	}
	q.Data, q.Fired, q.Session, q.Version = bytes.Clone(q.Data), time.Time{}, "", 1
	put(&db.schedules, q.Name, q)
	return nil
}

// Fired is [queue.Schedules.Fired].
func (db *DB) Fired(q queue.Schedule) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	now, ok := db.schedules[q.Name]
	if !ok || now.Version != q.Version {
		return queue.ErrChanged
	}
	now.Due, now.Fired, now.Session, now.Note = q.Due, q.Fired, q.Session, q.Note
	now.Version++
	db.schedules[q.Name] = now
	return nil
}

// Unschedule is [queue.Schedules.Unschedule].
func (db *DB) Unschedule(name string) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, ok := db.schedules[name]; !ok {
		return fmt.Errorf("%w: the schedule %q", session.ErrNotFound, name)
	}
	delete(db.schedules, name)
	return nil
}

// Schedules implements [queue.Schedules].
func (s *Store) Schedules(ctx context.Context, due bool) (list []queue.Schedule, err error) {
	err = s.net(ctx, "schedules", func() error {
		list = s.db.Schedules(due)
		return nil
	})
	return list, err
}

// Schedule implements [queue.Schedules].
func (s *Store) Schedule(ctx context.Context, q queue.Schedule) error {
	return s.net(ctx, "schedule "+q.Name, func() error { return s.db.Schedule(q) })
}

// Fired implements [queue.Schedules].
func (s *Store) Fired(ctx context.Context, q queue.Schedule) error {
	return s.net(ctx, fmt.Sprint("fired ", q.Name, " ", q.Version), func() error { return s.db.Fired(q) })
}

// Unschedule implements [queue.Schedules].
func (s *Store) Unschedule(ctx context.Context, name string) error {
	return s.net(ctx, "unschedule "+name, func() error { return s.db.Unschedule(name) })
}

var _ queue.Schedules = (*Store)(nil)
