// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
)

const (
	// lookEvery is how often a server looks for responses that others left.
	lookEvery = 2 * time.Second
	// mostLooks is how many responses it tries to take up at once.
	mostLooks = 16
	// endEvery is how often a server ends what others left in a [ProgressStore].
	endEvery = 10 * time.Second
)

// resumer returns the backend if its background responses survive a server, or nil.
func (s *Server) resumer() Resumer {
	if k, ok := s.keeper().(Resumer); ok && !nils.Is(k) {
		return k
	}
	return nil
}

// closed returns the cause of the end of background responses when the server is closed.
func (s *Server) closed() error {
	if s.resumer() != nil {
		return ErrLeft
	}
	return context.Canceled
}

// Resume begins to look for background responses that other servers over the same store
// left, as the first request and [Server.Start] do. A [Resumer] goes on with them; those of a
// [ProgressStore] end.
func (s *Server) Resume() {
	if s.Backend != nil && s.noStore() == nil {
		s.lookForLeft()
	}
}

// lookForLeft begins to look for background responses that other servers left, until the
// server is closed.
func (s *Server) lookForLeft() {
	if o := s.pair(); o != nil {
		o.lookForLeft()
	}
	s.resuming.Do(func() {
		if k := s.resumer(); k != nil && s.has(Background) {
			s.lookEach(lookEvery, func(ctx context.Context) { s.takeUpAll(ctx, k) })
		} else if p, ok := s.store().(ProgressStore); ok && s.keeper() == nil && s.has(Stored) {
			s.lookEach(endEvery, func(ctx context.Context) { s.endAllLeft(ctx, p) })
		}
	})
}

// lookEach calls look now, and again and again until the server is closed.
func (s *Server) lookEach(interval time.Duration, look func(context.Context)) {
	if !s.enter() {
		return
	}
	s.mu.Lock()
	ctx := s.living()
	s.mu.Unlock()
	go func() {
		defer s.running.Done()
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			look(ctx)
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// takeUpAll takes up what others left. It returns when each of the responses was taken up,
// or is made by somebody else.
func (s *Server) takeUpAll(ctx context.Context, k Resumer) {
	ids, err := k.Unfinished(ctx)
	if err != nil && ctx.Err() == nil {
		s.logf("antiphon server: looking for responses to go on with: %v", err)
	}
	places := make(chan struct{}, mostLooks)
	for _, id := range ids {
		select {
		case places <- struct{}{}:
			s.takeUp(ctx, k, id, func() { <-places })
		case <-ctx.Done():
			return
		}
	}
	for range mostLooks {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// takeUp goes on with a response, if nobody makes it. It calls begun once, when that is
// known.
func (s *Server) takeUp(ctx context.Context, k Resumer, id string, begun func()) {
	rec, err := k.Get(ctx, id)
	if err != nil || rec.Response == nil || ended(rec.Response) && !rec.Streamed || !s.enter() {
		begun() // an error is told when somebody asks for the response
		return
	}
	j := s.again(k, rec)
	lifetime, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	if rec.Caller.Key != "" {
		lifetime = WithCaller(lifetime, rec.Caller)
	}
	j.cancel = func() { cancel(nil) }
	streams := rec.Streamed && s.enter()
	if streams {
		j.r.Stream = j.r.Background
		j.w.replayed = func(events []api.Event) {
			j.rec.Events = slices.Clone(events)
			j.write(k)
		}
	}
	stop := context.AfterFunc(ctx, func() { cancel(ErrLeft) })
	done := make(chan struct{})
	go func() {
		defer s.running.Done()
		defer cancel(nil)
		defer stop()
		defer close(done)
		if wrong := s.run(lifetime, j); wrong != nil {
			s.logf("antiphon server: going on with %s: %s", id, wrong.Message)
		}
		j.quit()
		if j.scribe == nil && streams {
			s.running.Done()
		}
	}()
	go func() {
		select {
		case <-j.began:
		case <-done:
		}
		begun()
	}()
}

// again returns the job for the rest of a response.
func (s *Server) again(k Resumer, rec StoredObject) *job {
	yes := true
	j := &job{
		s: s, resume: k, began: make(chan struct{}), keep: true, rec: rec,
		r: &Request{Request: &api.Request{Model: rec.Response.Model, Background: &yes}, Stored: true},
	}
	j.w = NewWriter(*rec.Response, j.emit)
	j.w.clock, j.w.queued = s.now, true
	j.w.admit = func(id string) (string, error) { return s.admit(j, id) }
	return j
}

// stopElsewhere cancels a response that another server makes.
func (s *Server) stopElsewhere(ctx context.Context, id string) (StoredObject, *Error) {
	err := s.resumer().Stop(ctx, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return StoredObject{}, s.failure(err)
	}
	rec, _, err := s.lookUp(ctx, id, item.StatusCancelled)
	switch {
	case errors.Is(err, ErrNotFound):
		return rec, notFound("Response", id)
	case err != nil:
		return rec, s.failure(err)
	case !ended(rec.Response):
		return rec, &Error{Status: http.StatusConflict, Type: invalidRequest, Message: "The response goes on in another server, which was told to cancel it. Please retry in a few seconds."}
	}
	return rec, nil
}
