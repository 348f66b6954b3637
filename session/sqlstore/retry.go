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

// grace is how long an append is still retried after its caller has given up. The
// entry records something that has happened and should be written, but not at the
// cost of a long wait.
const grace = time.Second

// again calls do until it succeeds, fails with an error for which passes is false,
// or the store's retry time is over. It stops early when ctx is done, and within
// grace when the context of the caller is done.
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
		// When the caller gives up, wake up once, so that grace counts from that
		// moment.
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

// reading calls do, which only reads. On Postgres it retries after errors that may
// pass.
func (s *Store) reading(ctx context.Context, do func() error) error {
	if err := s.opened(); err != nil {
		return err
	}
	if !s.postgres {
		return do()
	}
	return s.again(ctx, s.isTransient, do)
}

// isTransient reports whether an error may pass: a server that restarts or fails
// over, a cut connection, a conflict with another transaction, a full disk.
func (s *Store) isTransient(err error) bool {
	if !s.postgres {
		return isBusy(err) || s.isFull(err)
	}
	switch state := stateOf(err); state {
	case "":
		return lostConnection(err)
	// Serialization failure, deadlock, disk full, out of memory, too many
	// connections, a transaction that was idle for too long because this process was
	// frozen, and read-only transaction: after a failover, the server may have become a
	// standby.
	case "40001", "40P01", "53100", "53200", "53300", "25P03", "25006":
		return true
	// Protocol violation. It is in the class of connection errors, but does not
	// pass, unless a pooler reports its own errors by it.
	case "08P01":
		return isPooler(err)
	default:
		// Class 08 is a connection that failed, and 57P0x a server that is shutting
		// down, has crashed or is starting.
		return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P0")
	}
}

// isStarting reports whether a server exists but does not accept connections at the
// moment: it is starting, stopping, or at its limit.
func isStarting(err error) bool {
	state := stateOf(err)
	return strings.HasPrefix(state, "57P0") || state == "53300"
}

// stateOf returns the SQLSTATE code of a Postgres error, or "" for other errors.
func stateOf(err error) string {
	var pg interface{ SQLState() string }
	if !errors.As(err, &pg) {
		return ""
	}
	return pg.SQLState()
}
