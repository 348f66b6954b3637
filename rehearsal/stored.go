// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"net/url"
	"strconv"

	"github.com/antiphon-go/antiphon/item"
)

// recordOf returns the response that a request is about.
func (s *Server) recordOf(c *call) (*record, *problem) {
	if rec := s.memory.record(c.ids[0]); rec != nil {
		return rec, nil
	}
	return nil, notFound("Response", c.ids[0])
}

// retrieve serves GET /responses/{id}.
func (s *Server) retrieve(c *call) *problem {
	rec, wrong := s.recordOf(c)
	if wrong != nil {
		return wrong
	}
	query := c.r.URL.Query()
	if v := query.Get("stream"); v == "" || v == "false" {
		return s.sendRecord(c, rec)
	}
	after, wrong := startOf(query)
	switch {
	case wrong != nil:
		return wrong
	case rec.run == nil || !s.has(Background):
		return invalid("", "stream", "This response cannot be streamed: it was not created with 'background' set to true.")
	case !isSet(rec.req.Stream):
		return invalid("", "stream", "This response cannot be streamed: it was not created with 'stream' set to true.")
	case after >= len(rec.run.log):
		return invalid("", "starting_after", "Invalid 'starting_after': the response has no event %d.", after)
	}
	return c.follow(rec, after)
}

// startOf returns the number of the event that a stream begins after.
func startOf(query url.Values) (int, *problem) {
	v := query.Get("starting_after")
	if v == "" {
		return -1, nil
	}
	after, err := strconv.Atoi(v)
	if err != nil || after < 0 {
		return 0, invalid("invalid_type", "starting_after", "Invalid type for 'starting_after': expected an integer of at least 0, but got '%s'.", v)
	}
	return after, nil
}

// sendRecord answers with a response as far as it is made.
func (s *Server) sendRecord(c *call, rec *record) *problem {
	status, done := s.memory.progress(rec)
	return c.send(rec.response(status, rec.items()[:done]))
}

// cancel serves POST /responses/{id}/cancel.
func (s *Server) cancel(c *call) *problem {
	rec, wrong := s.recordOf(c)
	if wrong != nil {
		return wrong
	}
	if rec.run == nil {
		return invalid("", "", "Cannot cancel a synchronous response.")
	}
	rec.run.cancel()
	return s.sendRecord(c, rec)
}

// remove serves DELETE /responses/{id}.
func (s *Server) remove(c *call) *problem {
	if !s.memory.forget(c.ids[0]) {
		return notFound("Response", c.ids[0])
	}
	return c.send(&item.Deleted{ID: c.ids[0], Object: "response.deleted", Deleted: true})
}

// inputItems serves GET /responses/{id}/input_items: the whole history that the
// response answers.
func (s *Server) inputItems(c *call) *problem {
	rec, wrong := s.recordOf(c)
	if wrong != nil {
		return wrong
	}
	list := rec.all()
	for i, it := range list {
		list[i] = resource(it, rec.name(), i)
	}
	page, wrong := pageOf(c.r.URL.Query(), list)
	if wrong != nil {
		return wrong
	}
	return c.send(page)
}
