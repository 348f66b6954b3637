// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net/url"
	"strconv"

	"github.com/antiphon-go/antiphon/item"
)

// response returns a response that is kept, as it stands, and its job while it is
// being made.
func (s *Server) response(c *call) (Record, *job, *Error) {
	id := c.ids[0]
	s.mu.Lock()
	j := s.jobs[id]
	s.mu.Unlock()
	if j != nil {
		if rec := j.record(); rec.Response != nil {
			return rec, j, nil
		}
	}
	rec, err := s.store().Get(c.r.Context(), id)
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && rec.Response == nil:
		return rec, nil, notFound("Response", id)
	case err != nil:
		return rec, nil, s.failure(err)
	}
	return rec, nil, nil
}

// retrieve serves GET /responses/{id}.
func (s *Server) retrieve(c *call) *Error {
	rec, j, wrong := s.response(c)
	if wrong != nil {
		return wrong
	}
	query := c.r.URL.Query()
	if v := query.Get("stream"); v == "" || v == "false" {
		return c.send(rec.Response)
	}
	after, wrong := startOf(query)
	switch {
	case wrong != nil:
		return wrong
	case !rec.Background || !s.has(Background):
		return Invalid("", "stream", "This response cannot be streamed: it was not created with 'background' set to true.")
	case j != nil && !isSet(j.r.Stream) || j == nil && rec.Events == nil:
		return Invalid("", "stream", "This response cannot be streamed: it was not created with 'stream' set to true.")
	case j == nil && after >= len(rec.Events):
		return Invalid("", "starting_after", "Invalid 'starting_after': the response has no event %d.", after)
	}
	if j == nil {
		j = &job{id: rec.ID(), rec: rec, ended: true}
	}
	return c.follow(j, after)
}

// startOf returns the number of the event that a stream begins after.
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
	rec, j, wrong := s.response(c)
	switch {
	case wrong != nil:
		return wrong
	case !rec.Background:
		return Invalid("", "", "Cannot cancel a synchronous response.")
	case j != nil:
		s.stop(j)
		rec = j.record()
	}
	return c.send(rec.Response)
}

// remove serves DELETE /responses/{id}. What is still made in the background is
// cancelled.
func (s *Server) remove(c *call) *Error {
	_, j, wrong := s.response(c)
	if wrong != nil {
		return wrong
	}
	if j != nil {
		j.mu.Lock()
		j.keep = false
		j.mu.Unlock()
		if j.rec.Background {
			s.stop(j)
		}
	}
	switch err := s.store().Delete(c.r.Context(), c.ids[0]); {
	case errors.Is(err, ErrNotFound):
		return notFound("Response", c.ids[0])
	case err != nil:
		return s.failure(err)
	}
	return c.send(&item.Deleted{ID: c.ids[0], Object: "response.deleted", Deleted: true})
}

// inputItems serves GET /responses/{id}/input_items: the whole history that the
// response answers.
func (s *Server) inputItems(c *call) *Error {
	rec, _, wrong := s.response(c)
	if wrong != nil {
		return wrong
	}
	list := make([]item.Item, len(rec.Items))
	for i := range list {
		list[i] = rec.listed(i)
	}
	page, wrong := pageOf(c.r.URL.Query(), list)
	if wrong != nil {
		return wrong
	}
	return c.send(page)
}
