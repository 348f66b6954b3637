// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/internal/kept"
	"github.com/antiphon-go/antiphon/session"
)

const (
	// tagWebhook marks the sessions that say that something is to be sent.
	tagWebhook = "responses-webhook"
	// maxBegin is how long a response may take from the mark to its beginning.
	maxBegin = time.Hour
)

// owe records that events about the end of a stored response are to be sent.
func (b *Backend) owe(ctx context.Context, id string) error {
	in, seq, ok := parseID(id)
	b.mu.Lock()
	_, unstored := b.unstored[id]
	b.mu.Unlock()
	if b.Webhook == nil || unstored || !ok {
		return nil
	}
	return kept.Owe(ctx, b.store(), b.owner(), tagWebhook, in, seq)
}

// owed returns the events about a response: see [kept.Sender].
func (b *Backend) owed(ctx context.Context, mark session.Info) (list []kept.News, at time.Time, wait kept.Awaited, err error) {
	in, _ := session.ParentOf(mark.ID)
	s, err := b.read(ctx, b.store(), in)
	if errors.Is(err, server.ErrNotFound) {
		return nil, at, kept.Nothing, nil // it was deleted
	}
	if err != nil {
		return nil, at, kept.Nothing, err
	}
	log, id := s.Log(), responseID(in, mark.At)
	p := partOf(log, mark.At)
	switch {
	case p.from == 0 || p.begin.ResponseID != id:
		if mark.Created.IsZero() || time.Since(mark.Created) < maxBegin {
			wait = kept.ItsBeginning
		}
		return nil, at, wait, nil
	case p.deleted:
		return nil, at, kept.Nothing, nil
	case !p.ended && p.last:
		return nil, at, kept.ItsEnd, nil
	}
	r, err := responseOf(b.inner(ctx, b.store()), log, &p)
	if err != nil {
		return nil, at, kept.Nothing, err
	}
	if at = log[p.to-1].Time; at.IsZero() && r.CreatedAt != nil {
		at = time.Unix(int64(*r.CreatedAt), 0)
	}
	return kept.NewsOf(r, p.begin.Background, at), at, kept.Nothing, nil
}

// SendWebhooks sends events to the Webhook until ctx is done, unless another server over the
// same store does. An event that the receiver does not accept is sent again for three days.
// What is not sent when the server ends, the next one sends. Errors of sending are logged; the
// error is about the fields of the Webhook.
func (b *Backend) SendWebhooks(ctx context.Context) error {
	if b.Webhook == nil {
		return errors.New("agents: the Webhook is not set")
	}
	s := &kept.Sender{
		In: b.store(), Owner: b.owner(), Hook: b.Webhook, Lock: prefix + "webhooks-", Tag: tagWebhook, Owed: b.owed,
		Tells: func(e session.Entry) bool {
			_, noted := noteOf(e)
			return noted
		},
		Log: func(err error) { b.report(fmt.Errorf("agents: %w", err)) },
	}
	return s.Run(ctx)
}
