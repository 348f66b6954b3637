// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

const (
	// busyTime is how long a response that another process makes is left alone.
	busyTime = time.Minute
	// lostTime is how old a response without an end is that nobody may have heard of.
	lostTime = 24 * time.Hour
)

// Left implements [server.ProgressStore]. It finds responses whose end is to be sent to the Webhook and, once
// in an hour, those in which nobody has written for a day.
func (s *Store) Left(ctx context.Context) (ids []string, err error) {
	if nils.Is(s.In) {
		return nil, errNoSessions
	}
	s.sweep()
	names, problem := s.marked(ctx)
	skip, due := s.known(time.Now())
	if due {
		lost, err := s.lost(ctx)
		names, problem = append(names, lost...), errors.Join(problem, err)
	}
	for _, name := range names {
		if skip[name] {
			continue
		}
		id, err := s.leftIn(ctx, name)
		if err != nil {
			problem = errors.Join(problem, fmt.Errorf("%s: %w", name, err)) // it hides no other
		}
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids, problem
}

// marked returns the sessions of the responses about which something is to be sent.
func (s *Store) marked(ctx context.Context) (names []string, err error) {
	for mark, err := range s.In.List(ctx, session.Query{Tags: []string{tagWebhook}, Owner: s.Owner, Nested: true, Archived: true}) {
		if err != nil {
			return names, err
		}
		if in, ok := session.ParentOf(mark.ID); ok && mark.Owner == s.Owner {
			names = append(names, in)
		}
	}
	return names, nil
}

// known returns the sessions of responses that this process makes, or that another one made a short
// while ago. due says that an hour has gone since it was due the last time.
func (s *Store) known(now time.Time) (names map[string]bool, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names = map[string]bool{}
	for id := range s.held {
		names[sessionOf(id)] = true
	}
	for id := range s.ready {
		names[sessionOf(id)] = true
	}
	for name, until := range s.elsewhere {
		if names[name] = true; until.Before(now) {
			delete(s.elsewhere, name)
		}
	}
	if due = now.Sub(s.looked) >= sweepTime; due {
		s.looked = now
	}
	return names, due
}

// lost returns the sessions in which nobody has written for a day, and which may be responses
// without an end. Sessions of responses that have ended are archived.
func (s *Store) lost(ctx context.Context) (names []string, err error) {
	now := time.Now()
	for info, err := range s.In.List(ctx, session.Query{Owner: s.Owner}) {
		if err != nil {
			return names, err
		}
		if isObject(info.ID) && info.Owner == s.Owner && !info.Updated.IsZero() && now.Sub(info.Updated) > lostTime {
			names = append(names, info.ID)
		}
	}
	return names, nil
}

// leftIn returns the response of a session, if it has not ended and nobody makes it, or "".
func (s *Store) leftIn(ctx context.Context, name string) (id string, err error) {
	info, err := s.In.Info(ctx, name)
	if errors.Is(err, session.ErrNotFound) || err == nil && info.Archived {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	unlock, err := s.In.Lock(ctx, name)
	if errors.Is(err, session.ErrBusy) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.elsewhere == nil {
			s.elsewhere = map[string]time.Time{}
		}
		s.elsewhere[name] = time.Now().Add(busyTime)
		return "", nil
	}
	if err != nil {
		return "", err
	}
	log, err := session.Open(ctx, s.In, name)
	if errors.Is(err, session.ErrNotFound) {
		return "", unlock()
	}
	if err = errors.Join(err, unlock()); err != nil {
		return "", err
	}
	f, err := fold(log.Log())
	if err != nil || sessionOf(f.begin.ID) != name || f.end.ID == f.begin.ID {
		return "", err
	}
	return f.begin.ID, nil
}

var _ server.ProgressStore = (*Store)(nil)
