// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

const (
	// lostTime is how old a response without an end is that nobody may have heard of.
	lostTime = 24 * time.Hour
	// mostLooks is how many sessions are looked at for such a response at once, so that others
	// do not wait for it.
	mostLooks = 1000
)

// Left implements [server.ProgressStore]. It finds responses whose end is to be sent to the Webhook and, once
// in an hour, those in which nobody has written for a day.
func (s *Store) Left(ctx context.Context) (ids []string, err error) {
	if nils.Is(s.In) {
		return nil, errNoSessions
	}
	s.sweep()
	names, problem := s.marked(ctx)
	lost, err := s.lost(ctx)
	problem = errors.Join(problem, err)
	own := s.own()
	for _, name := range append(names, lost...) {
		if own[name] {
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
	for mark, err := range nils.Each(s.In, "List", s.In.List(ctx, session.Query{Tags: []string{tagWebhook}, Owner: s.Owner, Nested: true, Archived: true})) {
		if err != nil {
			return names, err
		}
		if in, ok := session.ParentOf(mark.ID); ok && mark.Owner == s.Owner {
			names = append(names, in)
		}
	}
	return names, nil
}

// own returns the sessions of the responses that this process makes.
func (s *Store) own() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for id := range s.held {
		names[sessionOf(id)] = true
	}
	for id := range s.ready {
		names[sessionOf(id)] = true
	}
	return names
}

// untouched is what is known of the sessions in which nobody has written for a day.
type untouched struct {
	sync.Mutex
	listed  time.Time // when they were listed
	waiting []session.Info
	talks   map[string]bool // those that are conversations
}

// lost returns sessions in which nobody has written for a day, and which are responses that may have no
// end. Once in an hour it lists them, and each time it looks at a part of them.
func (s *Store) lost(ctx context.Context) (names []string, problem error) {
	s.old.Lock()
	defer s.old.Unlock()
	if now := time.Now(); len(s.old.waiting) == 0 && now.Sub(s.old.listed) >= sweepTime {
		if err := s.listOld(ctx, now); err != nil {
			return nil, err
		}
	}
	n := min(len(s.old.waiting), mostLooks)
	for _, info := range s.old.waiting[:n] {
		first, err := s.noteAt(ctx, info.ID, info.At+1)
		switch {
		case errors.Is(err, session.ErrNotFound):
		case err != nil:
			problem = errors.Join(problem, fmt.Errorf("%s: %w", info.ID, err))
		case first.Kind == kindConversation:
			s.old.talks[info.ID] = true
		case first.Kind == kindBegin:
			names = append(names, info.ID)
		}
	}
	s.old.waiting = s.old.waiting[n:]
	return names, problem
}

// listOld lists the sessions in which nobody has written for a day, and that may be responses without an
// end. Those of responses that have ended are archived, and a conversation never becomes a response.
func (s *Store) listOld(ctx context.Context, now time.Time) error {
	var waiting []session.Info
	talks := map[string]bool{}
	for info, err := range nils.Each(s.In, "List", s.In.List(ctx, session.Query{Owner: s.Owner, Prefix: objects})) {
		switch {
		case err != nil:
			return err
		case !isObject(info.ID) || info.Owner != s.Owner || info.Updated.IsZero() || now.Sub(info.Updated) <= lostTime:
		case s.old.talks[info.ID]:
			talks[info.ID] = true
		default:
			waiting = append(waiting, session.Info{ID: info.ID, At: info.At})
		}
	}
	s.old.waiting, s.old.talks, s.old.listed = waiting, talks, now
	return nil
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
	unlock, err := nils.Lock(ctx, s.In, name)
	if errors.Is(err, session.ErrBusy) {
		return "", nil
	}
	if err == nil {
		err = unlock()
	}
	if err != nil {
		return "", err
	}
	id, ended, err := s.begunIn(ctx, info)
	if err != nil || ended || sessionOf(id) != name {
		return "", err
	}
	return id, nil
}

// begunIn returns the response that begins in a session, and whether it has ended. It does not read what
// the session shares with another one.
func (s *Store) begunIn(ctx context.Context, info session.Info) (id string, ended bool, err error) {
	for e, err := range nils.Each(s.In, "Load", s.In.Load(ctx, info.ID, info.At)) {
		if errors.Is(err, session.ErrNotFound) {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		n, _, err := noteOf(e)
		if err != nil {
			return "", false, err
		}
		switch n.Kind {
		case kindBegin:
			id, ended = n.ID, false
		case kindEnd:
			ended = n.ID == id
		}
	}
	return id, ended, nil
}

var _ server.ProgressStore = (*Store)(nil)
