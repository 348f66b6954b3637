// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/session"
)

// A response is cancelled through the inbox of its session, by any process. What waits there is
// durable. When the response ends, it is taken out, because it is not to stop the next run.

// cancelKey is the key of the delivery that cancels a response.
func cancelKey(id string) string { return session.OwnKey("cancel %s", id) }

// endKey begins the keys of the deliveries that end the runs of a response.
func endKey(id string) string { return session.OwnKey("end of %s", id) }

// The means of these deliveries. Those of others may have the same keys, because their senders choose them.
const (
	fromCancel = "cancel"
	fromServer = "the server"
)

// cancels reports whether an entry takes the delivery that cancels a response.
func cancels(e session.Entry, id string) bool {
	d, ok := e.Body.(session.Delivered)
	return ok && isCancel(d, id)
}

func isCancel(d session.Delivered, id string) bool {
	return d.Key == cancelKey(id) && d.From == fromCancel
}

// asksEnd leaves the delivery that cancels a response.
func (b *Backend) asksEnd(ctx context.Context, id string) error {
	in, seq, _ := parseID(id)
	s, err := b.read(ctx, b.store(), in)
	if err != nil {
		return err
	}
	d := session.Delivery{
		Delivered: session.Delivered{Key: cancelKey(id), By: cmp.Or(b.By, "a client"), From: fromCancel},
		Bodies:    []session.Body{session.StopAsked{Why: string(agent.StopRequested), Run: runOf(s.Log()[min(seq, int64(len(s.Log()))):])}},
	}
	switch _, err = s.Deliver(ctx, d); {
	case errors.Is(err, session.ErrKeyUsed): // for an earlier run
		return b.asked(ctx, id)
	case errors.Is(err, session.ErrNotFound):
		return server.ErrNotFound
	}
	return err
}

// asked returns an error if the delivery with the key that cancels a response does not cancel it.
func (b *Backend) asked(ctx context.Context, id string) error {
	in, _, _ := parseID(id)
	s, err := b.read(ctx, b.store(), in)
	if err != nil {
		return err
	}
	if cancelled, err := wasCancelled(ctx, s, id); cancelled || err != nil {
		return err
	}
	return fmt.Errorf("agents: %s cannot be cancelled: somebody else has used the key %q", id, cancelKey(id))
}

// wasCancelled reports whether somebody has cancelled a response, also if no run has read it.
func wasCancelled(ctx context.Context, s *session.Session, id string) (bool, error) {
	if slices.ContainsFunc(s.Log(), func(e session.Entry) bool { return cancels(e, id) }) {
		return true, nil
	}
	for d, err := range s.Deliveries(ctx) {
		if err != nil {
			return false, err
		}
		if isCancel(d.Delivered, id) {
			return true, nil
		}
	}
	return false, nil
}

// lapsed returns the entries that take out of the inbox what would end a response. The caller has
// the lock of the session, and writes that the response has ended.
func lapsed(ctx context.Context, s *session.Session) (taken []session.Body, _ error) {
	for d, err := range s.Deliveries(ctx) {
		if err != nil {
			return nil, err
		}
		if d.From == fromCancel && strings.HasPrefix(d.Key, cancelKey("resp_")) || d.From == fromServer && strings.HasPrefix(d.Key, endKey("resp_")) {
			d.Problem = "the response has ended"
			taken = append(taken, d.Delivered)
		}
	}
	return taken, nil
}

// alsoLapsed adds to the end of a response what lapses with it. What cannot be read now is left to the beginning of
// the next response.
func (b *Backend) alsoLapsed(ctx context.Context, s *session.Session, end session.Body) []session.Body {
	taken, err := lapsed(ctx, s)
	b.report(err)
	return append([]session.Body{end}, taken...)
}

// lapse takes out of the inbox what would end a response that has ended.
func lapse(ctx context.Context, s *session.Session) error {
	taken, err := lapsed(ctx, s)
	if err == nil && len(taken) > 0 {
		_, err = s.Append(ctx, taken...)
	}
	return err
}

// Stop implements [server.Resumer]. It tells the server that makes the response, through
// the inbox of the session, or ends the response if nobody makes it.
func (b *Backend) Stop(ctx context.Context, id string) error {
	in, seq, ok := parseID(id)
	if !ok {
		return server.ErrNotFound
	}
	told := false
	for until := time.Now().Add(lockTime); ; {
		s, err := b.read(ctx, b.store(), in)
		if err != nil {
			return err
		}
		p := partOf(s.Log(), seq)
		if p.from == 0 || p.deleted || p.begin.ResponseID != id {
			return server.ErrNotFound
		}
		if (p.ended || !p.last) && !told {
			return nil
		}
		unlock, err := s.Lock(ctx)
		switch {
		case err == nil:
			if unfinished(s.Log()) == id {
				err = b.cancelled(ctx, s, id)
			} else if unfinished(s.Log()) == "" { // it ended meanwhile
				err = lapse(ctx, s)
			}
			return errors.Join(err, unlock())
		case errors.Is(err, session.ErrBusy) && (p.ended || !p.last):
			return nil
		case !errors.Is(err, session.ErrBusy):
			return err
		case !told:
			if err := b.asksEnd(ctx, id); err != nil {
				return err
			}
			told = true
		case time.Now().After(until):
			return errLocked
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// cancelled writes that a response was cancelled. The caller has the lock of the session.
func (b *Backend) cancelled(ctx context.Context, s *session.Session, id string) error {
	_, seq, _ := parseID(id)
	p := partOf(s.Log(), seq)
	r, err := api.ParseResponse(p.begin.Response)
	if err != nil {
		return err
	}
	r.ID, r.Status = id, item.StatusCancelled
	return b.endsAs(context.WithoutCancel(ctx), s, &p, r)
}
