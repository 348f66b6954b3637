// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// grace is how long an append is still tried when its caller has given up: what
// has happened is to be written, but nobody waits for long.
const grace = time.Second

// again calls do until it succeeds, fails for good, or has been tried for as
// long as the store's options say. It ends earlier with ctx.
func (s *Store) again(ctx context.Context, passes func(error) bool, do func() error) error {
	caller := session.Caller(ctx)
	began := time.Now()
	var ended time.Time
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		if err == nil || !passes(err) || ctx.Err() != nil {
			return err
		}
		if caller.Err() != nil && ended.IsZero() {
			ended = time.Now()
		}
		if time.Since(began) > s.retry || !ended.IsZero() && time.Since(ended) > grace {
			return err
		}
		wake := caller.Done()
		if !ended.IsZero() {
			wake = nil
		}
		select {
		case <-time.After(pause):
		case <-wake:
		case <-ctx.Done():
		}
	}
}

// reading calls do, which only reads, and again if the connection breaks.
func (s *Store) reading(ctx context.Context, do func() error) error {
	if !s.postgres {
		return do()
	}
	return s.again(ctx, s.isTransient, do)
}

// isTransient reports an error that may pass: a server that restarts or hands
// over to another, a connection that was cut, a transaction that stood in the
// way of another, a disk on which room may be made.
func (s *Store) isTransient(err error) bool {
	if !s.postgres {
		return isBusy(err) || s.isFull(err)
	}
	switch state := stateOf(err); {
	case state == "":
		return lostConnection(err)
	case state == "40001", state == "40P01", state == "53100", state == "53200", state == "53300", state == "25006":
		return true
	case state == "08P01":
		return false
	default:
		return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P0")
	}
}

// isStarting reports that a server is there and takes no connections yet, or no
// more.
func isStarting(err error) bool {
	state := stateOf(err)
	return strings.HasPrefix(state, "57P0") || state == "53300"
}

// stateOf returns the code of a Postgres error, "" for other errors.
func stateOf(err error) string {
	var pg interface{ SQLState() string }
	if !errors.As(err, &pg) {
		return ""
	}
	return pg.SQLState()
}
