// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// This file has what a store does about responses that another server makes or has left, and how
// a response joins its conversation once.

// EndLeft implements [server.ProgressStore].
func (s *Store) EndLeft(ctx context.Context, id string, end func(server.StoredObject) (server.StoredObject, error)) (server.StoredObject, error) {
	log, f, unlock, err := s.locked(ctx, id, false)
	if err != nil {
		return server.StoredObject{}, err
	}
	ctx = context.WithoutCancel(ctx)
	rec, err := s.object(ctx, id, f)
	if err == nil && rec.Response != nil && !final(rec.Response) {
		if rec, err = end(rec); err == nil {
			err = s.end(ctx, &held{session: log}, rec)
		}
	}
	if err = s.release(err, unlock); err != nil {
		return server.StoredObject{}, err
	}
	return s.Get(ctx, id)
}

// Join implements [server.ProgressStore]. An entry in the session of the response proves that this process
// still has it: who has lost it adds nothing, because another server decides whether it joins. The
// conversation is locked before, so that nothing happens to it between the proof and the items.
func (s *Store) Join(ctx context.Context, rec server.StoredObject, items ...item.Item) error {
	if rec.Response == nil || rec.Response.Conversation == nil {
		return server.ErrNotFound
	}
	talk := rec.Response.Conversation.ID
	bodies, err := stored{Kind: kindAdded, ID: talk, Left: rec.ID()}.bodies(items)
	if err != nil {
		return err
	}
	log, _, unlock, err := s.locked(ctx, talk, true)
	if err != nil {
		return err
	}
	joined := false
	if err = s.stillMakes(ctx, rec.ID()); err == nil {
		joined, _, err = since(log.Log(), rec.ID())
	}
	if err == nil && !joined {
		if _, err = log.Append(context.WithoutCancel(ctx), bodies...); err == nil {
			s.remember(talk, items)
		}
	}
	return s.release(err, unlock)
}

// since reports what entries of a conversation say: whether a response has joined it, and whether
// it went on otherwise.
func since(entries []session.Entry, id string) (joined, wentOn bool, err error) {
	for _, e := range entries {
		n, _, err := noteOf(e)
		if err != nil {
			return false, false, err
		}
		if n.Kind == kindAdded && n.Left == id {
			return true, wentOn, nil
		}
		wentOn = wentOn || n.Kind == kindAdded || n.Kind == kindRemoved
	}
	return false, wentOn, nil
}

// stillMakes returns an error if this process has lost a response that it made.
func (s *Store) stillMakes(ctx context.Context, id string) error {
	s.mu.Lock()
	h, lost := s.held[id], s.gone[id]
	s.mu.Unlock()
	if lost != nil {
		return s.lostTo(ctx, id, lost)
	}
	if h == nil {
		return nil // it is not stored
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil // it was deleted
	}
	bodies, err := stored{Kind: kindJoins, ID: id}.bodies(nil)
	if err == nil {
		_, err = h.session.Append(ctx, bodies...)
	}
	if errors.Is(err, session.ErrLost) || errors.Is(err, session.ErrConflict) {
		err = s.lostTo(ctx, id, err)
	}
	return err
}

// AddLeft implements [server.ProgressStore]. The response is a fork of the conversation, so its
// session says where that one ended when the response began.
func (s *Store) AddLeft(ctx context.Context, rec server.StoredObject, items ...item.Item) (added bool, err error) {
	if nils.Is(s.In) || rec.Response == nil {
		return false, server.ErrNotFound
	}
	from, err := s.In.Info(ctx, sessionOf(rec.ID()))
	if err != nil || rec.Previous == "" || from.Parent != sessionOf(rec.Previous) {
		return false, err // it was deleted, or changed before the response began
	}
	log, _, unlock, err := s.locked(ctx, rec.Previous, true)
	if errors.Is(err, server.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	joined, wentOn, err := since(log.Log()[min(int(from.At), len(log.Log())):], rec.ID())
	if err != nil || joined || wentOn {
		return joined, err
	}
	bodies, err := stored{Kind: kindAdded, ID: rec.Previous, Left: rec.ID()}.bodies(items)
	if err == nil {
		_, err = log.Append(context.WithoutCancel(ctx), bodies...)
	}
	if err != nil {
		return false, err
	}
	s.remember(rec.Previous, items)
	return true, nil
}

// LockConversation implements [server.ConversationLocker]. The lock has a name of its own: the session is written
// to while a response is made.
func (s *Store) LockConversation(ctx context.Context, id string) (unlock func() error, err error) {
	if nils.Is(s.In) {
		return nil, errNoSessions
	}
	unlock, err = nils.Lock(ctx, s.In, sessionOf(id)+"-answers")
	if errors.Is(err, session.ErrBusy) {
		err = fmt.Errorf("%w: %w", server.ErrLocked, err)
	}
	return unlock, err
}

// Busy implements [server.SharedStore]. The lock may belong to another server that only looks, too, or
// that stores the end of the response, so Busy looks again after moments.
func (s *Store) Busy(ctx context.Context, id string) (bool, error) {
	if nils.Is(s.In) {
		return false, errNoSessions
	}
	for looks := 3; ; looks-- {
		unlock, err := nils.Lock(ctx, s.In, sessionOf(id))
		switch {
		case err == nil:
			return false, unlock()
		case !errors.Is(err, session.ErrBusy):
			return false, err
		case looks == 0:
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(moment):
		}
	}
}

// moment is about as long as a look at a lock takes.
const moment = 10 * time.Millisecond
