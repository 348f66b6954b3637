// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antiphon-go/antiphon/api"
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
	list, at, known, err := b.owedBy(ctx, in, mark.At)
	if known {
		return list, at, kept.Nothing, err
	}
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
	return kept.NewsOf(r, p.begin.Background, kept.Asks(r.Output), at), at, kept.Nothing, nil
}

// owedBy returns the events about the response that begins at an entry, as far as the notes about it tell, so
// that what it continues is not read. known is false if they do not: it has no end, was deleted, or is of an
// older version.
func (b *Backend) owedBy(ctx context.Context, in string, seq int64) (list []kept.News, at time.Time, known bool, _ error) {
	if _, err := b.info(ctx, b.store(), in); err != nil {
		return nil, at, false, nil // who reads all of it says so
	}
	var begin, end note
	for e, err := range b.store().Load(ctx, in, seq-1) {
		if err != nil {
			return nil, at, false, nil // likewise
		}
		n, ok := noteOf(e)
		switch {
		case e.Seq == seq && (!ok || n.Kind != kindBegin || n.ResponseID != responseID(in, seq)):
			return nil, at, false, nil
		case e.Seq == seq:
			begin = n
		case ok && n.Kind == kindBegin && end.Asks == nil: // an end behind it is none
			return nil, at, false, nil
		case !ok || n.ResponseID != begin.ResponseID:
		case n.Kind == kindDeleted:
			return nil, at, false, nil
		case n.Kind == kindEnd && end.Asks == nil:
			end, at = n, e.Time
		}
	}
	if end.Asks == nil {
		return nil, at, false, nil
	}
	r, err := api.ParseResponse(end.Response)
	if err != nil {
		return nil, at, true, err
	}
	if at.IsZero() && r.CreatedAt != nil {
		at = time.Unix(int64(*r.CreatedAt), 0)
	}
	return kept.NewsOf(r, begin.Background, *end.Asks, at), at, true, nil
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
