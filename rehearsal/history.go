// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"

	"github.com/antiphon-go/antiphon/item"
)

// asked is a request that was checked, with what it goes on from.
type asked struct {
	req     *item.Request
	body    item.Item     // the request's object, for its members
	input   []item.Item   // its own, with what it refers to
	history []item.Item   // what was before
	talk    *conversation // that it is a part of, and holds until it is released
	warm    bool          // no answer is wanted
	lane    string        // of a WebSocket
}

// all returns the history with the input after it.
func (q *asked) all() []item.Item {
	return append(q.history[:len(q.history):len(q.history)], q.input...)
}

// release lets others go on with the conversation.
func (s *Server) release(q *asked) {
	if q.talk != nil {
		s.memory.unlock(q.talk)
	}
}

// read parses and checks a body as strictly as the real endpoint does. Last is
// what a WebSocket remembers, or nil.
func (s *Server) read(body []byte, last *record) (*asked, *problem) {
	req, err := item.ParseRequest(body)
	if err != nil {
		return nil, unreadable(err)
	}
	object, err := item.Parse(body)
	if err != nil {
		return nil, unreadable(err)
	}
	return s.check(req, object, last)
}

// check checks a request and finds what it goes on from.
func (s *Server) check(req *item.Request, body item.Item, last *record) (*asked, *problem) {
	q := &asked{req: req, body: body, input: req.InputItems()}
	for _, p := range []*problem{checkMembers(req), checkTools(req), checkItems(q.input)} {
		if p != nil {
			return nil, p
		}
	}
	wrong := s.remember(q, last)
	if wrong == nil {
		wrong = s.dereference(q)
	}
	if wrong == nil && len(q.history)+len(q.input) == 0 {
		wrong = invalid("missing_required_parameter", "input", "Missing required parameter: 'input' with at least one item.")
	}
	if wrong == nil {
		wrong = checkPairs(q.all(), len(q.history))
	}
	if wrong != nil {
		s.release(q)
		return nil, wrong
	}
	return q, nil
}

// remember finds the history that a request goes on from.
func (s *Server) remember(q *asked, last *record) *problem {
	id := q.req.PreviousResponseID
	switch {
	case id != "" && q.req.Conversation != "":
		return invalid("mutually_exclusive_parameters", "",
			"Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.")
	case q.req.Conversation != "":
		return s.converse(q)
	case id == "":
		return nil
	case last != nil && last.id == id:
		q.history = last.covers()
		return nil
	}
	rec := s.memory.record(id)
	if rec == nil || !s.has(Stored) {
		return invalid("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", id)
	}
	if status := s.memory.status(rec); status != item.StatusCompleted {
		return invalid("", "previous_response_id", "Previous response with id '%s' is %s: only one that is completed can be gone on from.", id, status)
	}
	q.history = rec.covers()
	return nil
}

// dereference puts the items in place that a request only names.
func (s *Server) dereference(q *asked) *problem {
	for i, it := range q.input {
		if it.Type() != item.TypeItemReference {
			continue
		}
		found, ok := s.memory.item(it.ID())
		if !ok {
			return invalid("", fmt.Sprintf("input[%d].id", i), "Item with id '%s' not found.", it.ID())
		}
		q.input[i] = found
	}
	return nil
}
