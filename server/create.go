// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"maps"
	"net/http"

	"github.com/antiphon-go/antiphon/api"
)

// create serves POST /responses.
func (s *Server) create(c *call) *Error {
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	if key := c.r.Header.Get("Idempotency-Key"); key != "" {
		return s.once(c, key, body)
	}
	r, wrong := s.accept(c, body)
	if wrong != nil {
		return wrong
	}
	if isSet(r.Background) {
		return s.createDetached(c, r, nil)
	}
	j, wrong := s.newJob(r)
	if wrong != nil {
		return wrong
	}
	defer func() { s.forget(r, j.id) }()
	if isSet(r.Stream) {
		w := s.stream(c.w)
		defer w.end()
		w.await(c.eventStream)
		j.to, j.flush = c.live(j, w), w.flush
		return w.refuse(s.run(c.r.Context(), j), string(api.EventError), (*Error).event)
	}
	if wrong = s.run(c.r.Context(), j); wrong != nil || !j.w.Ended() {
		return wrong
	}
	c.name(j)
	return c.send(j.w.Response())
}

// accept parses and checks a request for a response.
func (s *Server) accept(c *call, body []byte) (*Request, *Error) {
	r, wrong := s.read(c.r.Context(), body, "")
	if wrong != nil {
		return nil, wrong
	}
	if wrong = s.checkBackground(r.Request); wrong != nil {
		s.release(r)
		return nil, wrong
	}
	return r, nil
}

func isSet(b *bool) bool { return b != nil && *b }

// keeps reports whether a response is stored.
func (s *Server) keeps(r *api.Request) bool { return s.has(Stored) && (r.Store == nil || *r.Store) }

func (s *Server) checkBackground(r *api.Request) *Error {
	switch {
	case !isSet(r.Background):
		return nil
	case !s.has(Background) || !s.has(Stored):
		return Invalid("unsupported_parameter", "background", "Unsupported parameter: 'background' is not supported here.")
	case !s.keeps(r):
		return Invalid("", "background", "A response can be made in the background only if it is stored: 'store' must be true.")
	}
	return nil
}

// createDetached makes a response that does not end when its client is gone: one in the
// background, which is sent as soon as the backend has begun, or one with a key, which may be
// nil otherwise.
func (s *Server) createDetached(c *call, r *Request, k *keyed) *Error {
	j, wrong := s.newJob(r)
	if wrong != nil {
		s.refuse(k)
		return wrong
	}
	if !s.enter() {
		s.leave(j)
		s.refuse(k)
		return stopping()
	}
	background := isSet(r.Background)
	j.key, j.w.queued = k, background
	s.mu.Lock()
	lifetime := s.living()
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(c.r.Context()))
	if err := r.outlive(ctx); err != nil { // the content of files is needed when the client is gone, too
		cancel(nil)
		s.running.Done()
		s.leave(j)
		s.refuse(k)
		return s.failure(err)
	}
	j.cancel = func() { cancel(nil) }
	stop := context.AfterFunc(lifetime, func() {
		if background {
			cancel(s.closed())
		} else {
			cancel(nil)
		}
	})
	if keep := s.records(r); keep != nil && s.enter() {
		j.write(keep)
	}
	refused := make(chan *Error, 1)
	go func() {
		defer s.running.Done()
		defer cancel(nil)
		defer stop()
		wrong := s.run(ctx, j)
		if wrong == nil && !j.accepted {
			wrong = stopping()
		}
		if !j.accepted {
			j.quit()
			s.refuse(k)
		}
		s.keepKey(j)
		s.forget(r, j.id)
		if wrong != nil {
			refused <- wrong
		}
	}()
	var w *stream
	if isSet(r.Stream) {
		w = s.stream(c.w)
		defer w.end()
		w.await(c.eventStream)
	}
	select {
	case wrong := <-refused:
		if w != nil {
			return w.refuse(wrong, string(api.EventError), (*Error).event)
		}
		return wrong
	case <-c.r.Context().Done():
		return nil // the client is gone
	case <-j.began:
	}
	switch {
	case w != nil:
		return c.followIn(w, j, -1)
	case background:
		c.name(j)
		return c.send(j.first)
	}
	return c.await(j)
}

// stopping returns the error for a request that arrives while the server stops.
func stopping() *Error {
	return &Error{Status: http.StatusServiceUnavailable, Type: serverError, Code: serverError, Message: "The server is about to stop."}
}

// name sets the header that identifies the request in support requests, and those of the
// backend.
func (c *call) name(j *job) {
	maps.Copy(c.w.Header(), j.header)
	c.w.Header().Set("X-Request-Id", "req_"+name(j.id))
}

// streams sets the headers of a stream. It is called with the first event, so that
// the request can be refused before.
func (c *call) streams(j *job) {
	c.name(j)
	c.eventStream()
}

// eventStream sets the headers that every stream has.
func (c *call) eventStream() {
	c.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	c.w.Header().Set("Cache-Control", "no-cache")
	c.w.Header().Set("X-Accel-Buffering", "no") // a proxy is not to hold events back
}

// live returns a function that sends each event of a response: immediately, unless the backend
// calls Flush.
func (c *call) live(j *job, w *stream) func(api.Event) error {
	began := false
	return func(ev api.Event) error {
		if !began {
			w.start(func() { c.streams(j) })
			began = true
		}
		err := w.event(string(ev.Type), ev.JSON())
		if err == nil && ev.Terminal() {
			err = w.flush()
		}
		return err
	}
}

// follow sends the events of a response after event number after.
func (c *call) follow(j *job, after int) *Error {
	w := j.s.stream(c.w)
	defer w.end()
	return c.followIn(w, j, after)
}

// followIn is follow in a stream that may have begun.
func (c *call) followIn(w *stream, j *job, after int) *Error {
	w.start(func() { c.streams(j) }) // a stream may have no events
	w.begin()
	_ = j.follow(c.r.Context(), after, c.live(j, w)) // a client that is gone is not an error
	return nil
}
