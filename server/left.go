// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// endAllLeft ends the responses that others left, and whose end somebody waits for.
func (s *Server) endAllLeft(ctx context.Context, p ProgressStore) {
	ids, err := p.Left(ctx)
	for _, id := range ids {
		if s.job(id) != nil {
			continue // its end is owed
		}
		if _, wrong := s.endLeft(ctx, p, id, false, heardOf); !errors.Is(wrong, ErrNotFound) {
			err = errors.Join(err, wrong)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.logf("antiphon server: looking for responses that nobody makes: %v", err)
	}
}

// endLeft stores the end of a response that its server left: it is incomplete, with what was
// complete, or cancelled. Before that it becomes a part of its conversation if joins says so, so
// that a failure between the two is made up for.
func (s *Server) endLeft(ctx context.Context, p ProgressStore, id string, cancelled bool, joins func(StoredObject) bool) (StoredObject, error) {
	return p.EndLeft(ctx, id, func(rec StoredObject) (StoredObject, error) {
		rec = left(rec, cancelled)
		if !joins(rec) {
			return rec, nil
		}
		return rec, s.growLeft(ctx, p, rec)
	})
}

// askedFor is for a response that a client asks for.
func askedFor(StoredObject) bool { return true }

// heardOf reports whether the client of a response that nobody asks for must have heard of it. If it
// has not, it asks the same again, and a model would read the input twice.
func heardOf(rec StoredObject) bool { return rec.Background || len(rec.Response.Output) > 0 }

// growLeft adds a response that its server left to its conversation, unless this one went on
// without it.
func (s *Server) growLeft(ctx context.Context, p ProgressStore, rec StoredObject) error {
	talk := rec.Response.Conversation
	if talk == nil || !joins(rec.Response) {
		return nil
	}
	added := false
	if r := (&Request{conversation: talk.ID}); s.holdHere(talk.ID, r) {
		defer s.release(r)
		var err error
		if added, err = p.AddLeft(ctx, rec, s.added(append(slices.Clip(rec.Input), lasting(rec.Response)...))...); err != nil {
			return err
		}
	}
	if !added {
		s.logf("antiphon server: %s, whose server ended, is not in %s, which goes on without it", rec.ID(), talk.ID)
	}
	return nil
}

// left returns the end of a response that its server left. If its stream was kept, the
// messages that clients have seen the beginning of are items too.
func left(rec StoredObject, cancelled bool) StoredObject {
	var all []api.Event
	head := *rec.Response
	head.Extra = slices.Clone(head.Extra)
	w := NewWriter(head, func(ev api.Event) error {
		all = append(all, ev)
		return nil
	})
	w.queued = rec.Background
	for _, ev := range rec.Events {
		_ = w.Relay(ev) // the error is kept
	}
	_ = w.Begin("")
	if rec.Events == nil {
		w.response.Output = slices.Clone(rec.Response.Output)
	}
	if cancelled {
		r := w.Response()
		r.Status = item.StatusCancelled
		rec.Response = r
		return rec
	}
	_ = w.Interrupt(serverError, "The server ended before the response did. What was complete is kept, and the response can be continued.")
	rec.Response = w.Response()
	switch n := len(rec.Events); {
	case w.err == nil && n > 0 && continuesEvents(rec.Events, all):
		rec.Events = append(slices.Clip(rec.Events), all[n:]...)
	case w.err == nil && n == 0 && rec.Streamed && len(rec.Response.Output) == 0: // nobody has seen an event
		rec.Events = all
	default:
		rec.Events = nil
	}
	return rec
}

// continuesEvents reports whether a list begins with the same events.
func continuesEvents(events, all []api.Event) bool {
	return len(all) > len(events) && slices.EqualFunc(events, all[:len(events)], func(a, b api.Event) bool {
		return a.Type == b.Type && a.SequenceNumber == b.SequenceNumber
	})
}

// looksLess is how many times in a row a follower finds no new event before it asks whether
// the response is still being made.
const looksLess = 10

// followElsewhere sends the events of a response that another server makes, after event number
// after.
func (c *call) followElsewhere(s *Server, p ProgressStore, rec StoredObject, after int) *Error {
	at := &job{id: rec.ID()}
	w := s.stream(c.w)
	defer w.end()
	w.start(func() { c.streams(at) })
	w.begin()
	c.followsIn(s, p, at, w, rec, after)
	return nil
}

// followsIn is followElsewhere in a stream that has begun.
func (c *call) followsIn(s *Server, p ProgressStore, at *job, w *stream, rec StoredObject, after int) {
	send, since, idle := c.live(at, w), int64(0), 0
	pass := func(events []api.Event) bool {
		for _, ev := range events {
			if ev.SequenceNumber <= int64(after) {
				continue
			}
			if send(ev) != nil {
				return false // the client is gone
			}
			after, idle = int(ev.SequenceNumber), 0
		}
		return true
	}
	for pass(rec.Events) && !ended(rec.Response) {
		select {
		case <-c.r.Context().Done():
			return
		case <-time.After(askEvery):
		}
		events, next, err := p.EventsSince(c.r.Context(), at.id, since)
		since, rec.Events = next, events
		if idle++; errors.Is(err, ErrNotFound) || err == nil && len(events) == 0 && idle >= looksLess {
			idle = 0
			rec, _, err = s.lookUp(c.r.Context(), at.id, item.StatusFailed)
		}
		if err != nil {
			if c.r.Context().Err() == nil {
				s.logf("antiphon server: the stream of %s: %v", at.id, err)
			}
			return // the client sees that the stream broke off
		}
	}
}
