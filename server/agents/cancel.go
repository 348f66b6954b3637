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

// ends reports whether a delivery was to end one response, whose id is in its key.
func ends(d *session.Delivery) bool {
	return d.From == fromCancel && strings.HasPrefix(d.Key, cancelKey("resp_")) || d.From == fromServer && strings.HasPrefix(d.Key, endKey("resp_"))
}

// stops returns what finds the deliveries that lapse when a response begins: besides those that ends finds, other requests to
// stop, which were for what ran before. One that was given while a call waits is also for that call, and is left to the run.
func stops(s *session.Session) func(*session.Delivery) bool {
	if callsOpen(s) {
		return ends
	}
	return func(d *session.Delivery) bool {
		other := func(b session.Body) bool { _, stop := b.(session.StopAsked); return !stop }
		return ends(d) || len(d.Bodies) > 0 && !slices.ContainsFunc(d.Bodies, other)
	}
}

// lapsed returns the entries that take out of the inbox the deliveries that lapse. The caller has
// the lock of the session, and writes that the response has ended.
func lapsed(ctx context.Context, s *session.Session, lapses func(*session.Delivery) bool) (taken []session.Body, _ error) {
	for d, err := range s.Deliveries(ctx) {
		if err != nil {
			return nil, err
		}
		if lapses(&d) {
			d.Problem = "the response has ended"
			taken = append(taken, d.Delivered)
		}
	}
	return taken, nil
}

// alsoLapsed adds to the end of a response what lapses with it. What cannot be read now is left to the beginning of
// the next response.
func (b *Backend) alsoLapsed(ctx context.Context, s *session.Session, end session.Body) []session.Body {
	taken, err := lapsed(ctx, s, ends)
	b.report(err)
	return append([]session.Body{end}, taken...)
}

// lapse takes out of the inbox what would end a response that has ended.
func lapse(ctx context.Context, s *session.Session) error {
	taken, err := lapsed(ctx, s, ends)
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

// fromRoute is the means of the deliveries of package server/sessions.
const fromRoute = "session route"

// stoppedBy says who stopped the run of a response and, if a client of the same project did, why. What operators write is for
// those who read the session.
func stoppedBy(log []session.Entry) string {
	var by session.Delivered
	last := int64(0) // the last entry of the delivery
	said := "stopped"
	for _, e := range log {
		switch b := e.Body.(type) {
		case session.Delivered:
			by, last = b, e.Seq+int64(b.Entries)
		case session.StopAsked:
			switch {
			case e.Seq > last:
				said = "stopped"
			case by.From != fromRoute:
				said = "an operator stopped it"
			default:
				said = fmt.Sprintf("%q stopped it", by.By)
				if reason := "asked" + session.DecidedBy(by.By, by.From, ""); b.Detail != reason {
					said += ": " + strings.TrimSuffix(b.Detail, ".")
				}
			}
		}
	}
	return said
}
