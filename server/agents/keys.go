// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// The response that was made for an Idempotency-Key is named in a session of its own, whose
// id is made of the owner and the key. Its lock says that somebody begins the response. V4

const (
	// tagKeys marks these sessions.
	tagKeys = "responses-key"
	// keepKeys is how long they are kept.
	keepKeys = 24 * time.Hour
)

// keySession returns the session of a key.
func (b *Backend) keySession(key string) string {
	sum := sha256.Sum256([]byte(b.owner() + "\x00" + key))
	return prefix + "key-" + hex.EncodeToString(sum[:16])
}

// Claim implements [server.Rememberer].
func (b *Backend) Claim(ctx context.Context, key, body string) (made string, name func(context.Context, string) error, release func(), err error) {
	in := b.keySession(key)
	s, unlock, err := b.lockKey(ctx, in)
	if err != nil {
		return "", nil, nil, err
	}
	made, err = b.madeFor(ctx, s, body)
	if err != nil || made != "" {
		return made, nil, nil, errors.Join(err, unlock())
	}
	named := ""
	name = func(ctx context.Context, id string) error {
		_, err := s.Append(ctx, note{Kind: kindKey, ResponseID: id, Body: body}.body())
		if err == nil {
			named = id
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.claimed == nil {
				b.claimed = map[string]string{}
			}
			b.claimed[id] = in
		}
		return err
	}
	return "", name, func() {
		b.mu.Lock()
		delete(b.claimed, named)
		b.mu.Unlock()
		b.report(unlock())
	}, nil
}

// stillNamed returns an error if another server has named a response for the key of this one,
// whose beginning is in the log: the lock was lost before that, for example because the process
// stood still for longer than a lease. From now on, nobody names another one. V4
func (b *Backend) stillNamed(ctx context.Context, id string) error {
	b.mu.Lock()
	in := b.claimed[id]
	b.mu.Unlock()
	if in == "" {
		return nil
	}
	s, err := session.Open(ctx, b.store(), in)
	if err != nil {
		return err
	}
	log := s.Log()
	if len(log) > 0 {
		if n, ok := noteOf(log[len(log)-1]); ok && n.ResponseID == id {
			return nil
		}
	}
	return errLocked
}

// lockKey makes the session of a key, if there is none, and waits for its lock.
func (b *Backend) lockKey(ctx context.Context, in string) (*session.Session, func() error, error) {
	for {
		err := b.store().Create(ctx, session.Info{ID: in, Owner: b.owner(), Tags: []string{tagKeys}})
		if err == nil {
			err = b.store().Archive(ctx, in, true) // lists leave it out
		} else if errors.Is(err, session.ErrExists) {
			err = nil
		}
		if err != nil {
			return nil, nil, err
		}
		s, err := session.Open(ctx, b.store(), in)
		if err != nil {
			return nil, nil, err
		}
		unlock, err := s.WaitLock(ctx)
		if err == nil {
			if _, err = b.info(ctx, b.store(), in); err == nil {
				return s, unlock, nil
			}
			err = errors.Join(err, unlock())
		}
		if !errors.Is(err, session.ErrNotFound) && !errors.Is(err, server.ErrNotFound) { // otherwise it was too old, and is gone
			return nil, nil, err
		}
	}
}

// madeFor returns the response that was made for a key, or "". One that was deleted, or that
// did not begin, does not count. The caller has the lock.
func (b *Backend) madeFor(ctx context.Context, s *session.Session, body string) (string, error) {
	log := s.Log()
	if len(log) == 0 {
		return "", nil
	}
	last := log[len(log)-1]
	n, ok := noteOf(last)
	if !ok || n.Kind != kindKey || !last.Time.IsZero() && time.Since(last.Time) > b.keepKeys() {
		return "", nil
	}
	_, err := b.Get(ctx, n.ResponseID)
	switch {
	case errors.Is(err, server.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case n.Body != body:
		return "", server.ErrKeyUsed
	}
	return n.ResponseID, nil
}

func (b *Backend) keepKeys() time.Duration { return cmp.Or(b.KeepKeys, keepKeys) }

// sweepKeys removes the sessions of old keys.
func (b *Backend) sweepKeys(ctx context.Context, now time.Time) error {
	var old []string
	for info, err := range b.store().List(ctx, session.Query{Tags: []string{tagKeys}, Owner: b.owner(), Archived: true}) {
		if err != nil {
			return err
		}
		if now.Sub(info.Updated) > b.keepKeys() {
			old = append(old, info.ID)
		}
	}
	for _, in := range old {
		if err := b.removeKey(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// removeKey removes the session of a key, unless somebody begins a response for it.
func (b *Backend) removeKey(ctx context.Context, in string) error {
	s, err := session.Open(ctx, b.store(), in)
	if err != nil {
		return err
	}
	unlock, err := s.Lock(ctx)
	if errors.Is(err, session.ErrBusy) || errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := b.store().Info(ctx, in)
	if err == nil && time.Since(info.Updated) > b.keepKeys() {
		err = b.store().Delete(ctx, in)
	}
	if errors.Is(err, session.ErrNotFound) {
		err = nil
	}
	return errors.Join(err, unlock())
}

var _ server.Rememberer = (*Backend)(nil)
