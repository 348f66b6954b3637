// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/kept"
)

const (
	// tagKeys marks the sessions that name the responses that were made for an Idempotency-Key.
	tagKeys = "gateway-key"
	// sweepTime is how often old ones are looked for, at most.
	sweepTime = time.Hour
)

// keys returns what remembers keys. V4
func (s *Store) keys() *kept.Book {
	s.once.Do(func() {
		s.book = &kept.Book{
			In: s.In, Owner: s.Owner, Prefix: "gateway-key-", Tag: tagKeys, Keep: s.KeepKeys, Log: s.log,
			Find: func(ctx context.Context, id string) error {
				_, _, err := s.open(ctx, id)
				return err
			},
		}
	})
	return s.book
}

func (s *Store) log(err error) {
	if s.Log != nil && err != nil {
		s.Log(err)
	}
}

// Claim implements [server.Rememberer].
func (s *Store) Claim(ctx context.Context, key, body string) (made string, name func(context.Context, string) error, release func(), err error) {
	if nils.Is(s.In) {
		return "", nil, nil, errNoSessions
	}
	s.sweep()
	return s.keys().Claim(ctx, key, body)
}

// sweep begins to remove old keys and files that have expired, if that is due.
func (s *Store) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.swept) < sweepTime {
		return
	}
	s.swept = now
	ctx, stop := context.WithCancel(context.Background())
	s.closed = stop
	s.sweeping.Go(func() {
		defer stop()
		for _, sweep := range []func(context.Context, time.Time) error{s.keys().Sweep, s.files().Sweep} {
			if err := sweep(ctx, now); err != nil && !errors.Is(err, context.Canceled) {
				s.log(err)
			}
		}
	})
}

var _ server.Rememberer = (*Store)(nil)
