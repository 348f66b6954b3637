// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"time"
)

// Schedule is an entry of a store that leaves work at certain times: see package worker,
// which knows what its Data means.
type Schedule struct {
	Name string
	Data []byte    // what it does
	Due  time.Time // when it fires next; the zero value means never

	// Fired is the time for which it fired last, Session the session of that work, and Note
	// says for people what became of the last time.
	Fired   time.Time
	Session string
	Note    string
	// Version rises with each change. Now is the store's time when the schedule was read. The
	// store sets both.
	Version int64
	Now     time.Time
}

// Schedules is implemented by stores that keep schedules. All times are the store's own.
type Schedules interface {
	// Schedules returns all schedules by their names or, with due, those that are due. If some
	// are damaged, it returns the others and an error that wraps session.ErrDamaged.
	Schedules(ctx context.Context, due bool) ([]Schedule, error)
	// Schedule adds a schedule. If there is one with the name, the error wraps
	// session.ErrExists.
	Schedule(ctx context.Context, s Schedule) error
	// Fired changes the fields from Due on, if the schedule is still as it was read.
	// Otherwise the error wraps [ErrChanged].
	Fired(ctx context.Context, s Schedule) error
	// Unschedule removes a schedule. If there is none, the error wraps session.ErrNotFound.
	Unschedule(ctx context.Context, name string) error
}
