// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/server/internal/kept"
	"github.com/antiphon-go/antiphon/session"
)

// tagWebhook marks the sessions that say that something is to be sent.
const tagWebhook = "gateway-webhook"

// owe records that events about the end of a response are to be sent.
func (s *Store) owe(ctx context.Context, id string) error {
	if s.Webhook == nil {
		return nil
	}
	return kept.Owe(ctx, s.In, s.Owner, tagWebhook, sessionOf(id), 1)
}

// owed returns the events about a response: see [kept.Sender]. It does not read what the response
// continues.
func (s *Store) owed(ctx context.Context, mark session.Info) (list []kept.News, at time.Time, wait kept.Awaited, err error) {
	in, _ := session.ParentOf(mark.ID)
	log, err := s.unshared(ctx, in)
	if errors.Is(err, session.ErrNotFound) {
		return nil, at, kept.Nothing, nil // it was deleted
	}
	if err != nil {
		return nil, at, kept.Nothing, err
	}
	f, err := fold(log)
	if err != nil {
		return nil, at, kept.Nothing, err
	}
	id := f.begin.ID
	if sessionOf(id) != in {
		return nil, at, kept.Nothing, nil
	}
	rec, err := s.object(ctx, id, f)
	switch {
	case f.end.ID == id && err != nil:
		return nil, at, kept.Nothing, err
	case f.end.ID != id || !final(rec.Response):
		return nil, at, kept.ItsEnd, nil
	}
	for _, e := range slices.Backward(log) {
		if n, ok, err := noteOf(e); err == nil && ok && n.Kind == kindEnd {
			at = e.Time
			break
		}
	}
	if at.IsZero() && rec.Response.CreatedAt != nil {
		at = time.Unix(int64(*rec.Response.CreatedAt), 0)
	}
	return kept.NewsOf(rec.Response, rec.Background, kept.Asks(rec.Response.Output), at), at, kept.Nothing, nil
}

// unshared returns the entries of a session that it does not share with the one that it was forked from.
func (s *Store) unshared(ctx context.Context, name string) (own []session.Entry, err error) {
	info, err := s.In.Info(ctx, name)
	if err != nil {
		return nil, err
	}
	for e, err := range nils.Each(s.In, "Load", s.In.Load(ctx, name, info.At)) {
		if err != nil {
			return nil, err
		}
		own = append(own, e)
	}
	return own, nil
}

// SendWebhooks sends events to the Webhook until ctx is done, unless another server over the same
// store does. An event that the receiver does not accept is sent again for three days. What is not
// sent when the server ends, the next one sends. Errors of sending are logged; the error is about
// the fields.
func (s *Store) SendWebhooks(ctx context.Context) error {
	switch {
	case s.Webhook == nil:
		return errors.New("gateway: the Webhook is not set")
	case nils.Is(s.In):
		return errNoSessions
	}
	sender := &kept.Sender{
		In: s.In, Owner: s.Owner, Hook: s.Webhook, Lock: "gateway-webhooks-", Tag: tagWebhook, Owed: s.owed,
		Tells: func(e session.Entry) bool {
			n, ok, err := noteOf(e)
			return err != nil || ok && n.Kind == kindEnd
		},
		Log: func(err error) { s.log(fmt.Errorf("gateway: %w", err)) },
	}
	return sender.Run(ctx)
}
