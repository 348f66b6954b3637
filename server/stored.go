// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// response returns the current state of the response that a request is about, and its
// job while it is being made. See lookUp for the argument.
func (s *Server) response(c *call, interrupted string) (StoredObject, *job, *Error) {
	id := c.ids[0]
	rec, j, err := s.lookUp(c.r.Context(), id, interrupted)
	switch {
	case errors.Is(err, ErrNotFound):
		return rec, nil, notFound("Response", id)
	case err != nil:
		return rec, nil, s.failure(err)
	}
	return rec, j, nil
}

// lookUp returns the current state of a stored response, and its job while it is
// being made, or while the store lacks its end. A response that an earlier Server over
// this store left unfinished ends with the status interrupted: failed or cancelled.
func (s *Server) lookUp(ctx context.Context, id, interrupted string) (StoredObject, *job, error) {
	j := s.job(id)
	if j != nil {
		if err := j.awaitStored(ctx); ctx.Err() != nil {
			return StoredObject{}, nil, err
		}
		s.repay(j)
		if rec := j.record(); rec.Response != nil && s.job(id) == j {
			return rec, j, nil
		}
	}
	rec, err := s.store().Get(ctx, id)
	if err == nil && rec.Response == nil {
		err = ErrNotFound // it is a conversation
	}
	if shared, ok := s.store().(SharedStore); ok && err == nil && !ended(rec.Response) {
		if busy, err := shared.Busy(ctx, id); busy || err != nil {
			return rec, nil, err
		}
	}
	if err == nil && !ended(rec.Response) && s.keeper() == nil {
		rec, err = s.interrupt(ctx, id, interrupted)
	}
	return rec, nil, err
}

// job returns the job that makes a response, or nil.
func (s *Server) job(id string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[id]
}

// interrupt stores the end of a response that nobody makes any more. While it holds
// mu, no job can begin with this id, so a response without a job stays without one. A
// [ProgressStore] has locks of its own, and nothing else waits while it waits for them.
func (s *Server) interrupt(ctx context.Context, id, status string) (StoredObject, error) {
	if p, ok := s.store().(ProgressStore); ok {
		rec, err := s.store().Get(ctx, id)
		if err != nil || s.job(id) != nil || ended(rec.Response) {
			return rec, err
		}
		return s.endLeft(ctx, p, id, status == item.StatusCancelled && rec.Background, askedFor)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rec, err := s.store().Get(ctx, id)
	if err != nil || s.jobs[id] != nil || ended(rec.Response) {
		return rec, err
	}
	r := *rec.Response
	r.Status = item.StatusCancelled
	if status != item.StatusCancelled || !rec.Background {
		r.Status = item.StatusFailed
		r.Error = &api.APIError{Code: serverError, Message: "The server ended before the response did."}
		r.Extra = slices.Clone(r.Extra)
		r.Extra.Delete("error")
	}
	rec.Response = &r
	err = s.store().Put(context.WithoutCancel(ctx), rec)
	if err != nil && r.Status == item.StatusFailed {
		s.logf("antiphon server: the end of %s: %v", id, err)
		err = nil // the next request finds it unfinished and reports the same
	}
	return rec, err
}

// retrieve serves GET /responses/{id}.
func (s *Server) retrieve(c *call) *Error {
	query := c.r.URL.Query()
	streams := wantsStream(c.r, query)
	after, unclear := startOf(query)
	if events := s.events(); streams && events != nil && unclear == nil && s.has(Background) && s.job(c.ids[0]) == nil {
		if known, wrong := c.stored(s, events, c.ids[0], after); known {
			return wrong
		}
	}
	rec, j, wrong := s.response(c, item.StatusFailed)
	if wrong != nil {
		return wrong
	}
	if !streams {
		return c.send(rec.Response)
	}
	wrong = unclear
	switch {
	case wrong != nil:
		return wrong
	case !rec.Background || !s.has(Background):
		return Invalid("", "stream", "This response cannot be streamed: it was not created with 'background' set to true.")
	case j == nil && !ended(rec.Response) && s.followable(rec) != nil:
		return c.followElsewhere(s, s.followable(rec), rec, after)
	case j != nil && !isSet(j.r.Stream) || j == nil && rec.Events == nil:
		return Invalid("", "stream", "This response cannot be streamed: it was not created with 'stream' set to true, or the server ended before the response did.")
	case j == nil && after >= len(rec.Events):
		return Invalid("", "starting_after", "Invalid 'starting_after': the response has no event %d.", after)
	}
	if j == nil {
		j = &job{s: s, id: rec.ID(), rec: rec, ended: true}
	}
	return c.follow(j, after)
}

// followable returns what has the events of a response that another server makes, or nil.
func (s *Server) followable(rec StoredObject) ProgressStore {
	p, ok := s.store().(ProgressStore)
	if !ok || s.keeper() != nil || !rec.Background || !rec.Streamed && rec.Events == nil {
		return nil
	}
	return p
}

// wantsStream reports whether the answer is to be a stream. OpenAI's client for Go says so in the
// body of its GET, so that is read if the query does not say it.
func wantsStream(r *http.Request, query url.Values) bool {
	if query.Has("stream") {
		v := query.Get("stream")
		return v != "" && v != "false"
	}
	var body struct {
		Stream bool `json:"stream"`
	}
	return json.UnmarshalRead(io.LimitReader(r.Body, 4<<10), &body) == nil && body.Stream
}

// startOf returns the number of the event before the first one of the stream.
func startOf(query url.Values) (int, *Error) {
	v := query.Get("starting_after")
	if v == "" {
		return -1, nil
	}
	after, err := strconv.Atoi(v)
	if err != nil || after < 0 {
		return 0, Invalid("invalid_type", "starting_after", "Invalid type for 'starting_after': expected an integer of at least 0, but got '%s'.", v)
	}
	return after, nil
}

// cancel serves POST /responses/{id}/cancel.
func (s *Server) cancel(c *call) *Error {
	rec, j, wrong := s.response(c, item.StatusCancelled)
	switch {
	case wrong != nil:
		return wrong
	case !rec.Background:
		return Invalid("", "", "Cannot cancel a synchronous response.")
	case j != nil:
		if err := s.stop(j); err != nil {
			return s.failure(err)
		}
		rec = j.record()
	case !ended(rec.Response) && s.resumer() != nil:
		if rec, wrong = s.stopElsewhere(c.r.Context(), rec.ID()); wrong != nil {
			return wrong
		}
	}
	return c.send(rec.Response)
}

// remove serves DELETE /responses/{id}. It cancels a response that is being made in
// the background.
func (s *Server) remove(c *call) *Error {
	rec, j, wrong := s.response(c, item.StatusFailed)
	if wrong == nil && j == nil && rec.Background && !ended(rec.Response) && s.resumer() != nil {
		_, wrong = s.stopElsewhere(c.r.Context(), rec.ID())
	}
	if wrong != nil {
		return wrong
	}
	if j != nil {
		j.mu.Lock()
		j.keep = false
		j.mu.Unlock()
		s.repay(j) // nothing is owed any more
		if j.rec.Background || j.key != nil {
			if err := s.stop(j); err != nil {
				return s.failure(err)
			}
		}
	}
	s.forgetKey(c.ids[0])
	switch err := s.store().Delete(c.r.Context(), c.ids[0]); {
	case errors.Is(err, ErrNotFound):
		return notFound("Response", c.ids[0])
	case err != nil:
		return s.failure(err)
	}
	return c.send(&api.Deleted{ID: c.ids[0], Object: "response.deleted", Deleted: true})
}

// inputItems serves GET /responses/{id}/input_items: the complete input of the
// response.
func (s *Server) inputItems(c *call) *Error {
	rec, _, wrong := s.response(c, item.StatusFailed)
	if wrong != nil {
		return wrong
	}
	list, err := s.store().Items(c.r.Context(), rec.ID())
	if err != nil {
		return s.failure(err)
	}
	for i := range list {
		list[i] = listedAs(list[i], rec.ID(), i)
	}
	page, wrong := pageOf(c.r.URL.Query(), list)
	if wrong != nil {
		return wrong
	}
	return c.send(page)
}
