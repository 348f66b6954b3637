// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// This file has what a [Server] with another one beside it does differently. Each of the
// two has its own backend and its own store, so what one of them keeps does not depend on
// how the other one does.

// pair returns the server beside this one, or nil. It gets what it lacks.
func (s *Server) pair() *Server {
	o := s.Beside
	if o == nil || o == s {
		return nil
	}
	s.paired.Do(func() {
		o.Beside = nil
		if o.Admit == nil {
			o.Admit = s.Admit
		}
		if o.Now == nil {
			o.Now = s.Now
		}
		if o.NewID == nil {
			o.NewID = s.NewID
		}
		o.MaxBody, o.Silence, o.Patience = cmp.Or(o.MaxBody, s.MaxBody), cmp.Or(o.Silence, s.Silence), cmp.Or(o.Patience, s.Patience)
		o.ErrorLog = cmp.Or(o.ErrorLog, s.ErrorLog)
		s.other, o.other = o, s
	})
	return o
}

// serve serves a request at the server that it is for.
func (s *Server) serve(found *route, c *call) *Error {
	o := s.pair()
	switch {
	case o == nil || found.feature == Models || found.feature == WebSocket || found.feature == Sessions || found.feature == Files: // these ask both, or neither, and files are of this one
		return found.serve(s, c)
	case len(c.ids) > 0:
		t, err := s.holder(c.r.Context(), c.ids[0])
		if err != nil {
			return s.failure(err)
		}
		return t.servesAs(found, c)
	case found.feature == Conversations: // nobody has answered in it
		return o.servesAs(found, c)
	}
	body, wrong := s.body(c)
	if wrong != nil {
		return wrong
	}
	c.read, c.given = true, body
	t, done, wrong := s.chooses(c.r.Context(), body, found.feature != Chat, nil)
	if wrong != nil {
		return wrong
	}
	wrong = t.servesAs(found, c)
	done(wrong == nil && found.feature == Responses)
	return wrong
}

// servesAs serves a request, if this server has the feature.
func (s *Server) servesAs(found *route, c *call) *Error {
	if !s.has(found.feature) {
		return &Error{Status: http.StatusNotFound, Type: invalidRequest, Code: "unknown_url",
			Message: fmt.Sprintf("Unknown request URL: %s is not served for this model.", found.name())}
	}
	return found.serve(s, c)
}

// who is what a request says about who is to answer it.
type who struct{ model, previous, conversation string }

// whoIn reads a body. What it cannot read is an error of the server that the request is
// given to. continues says whether the request may continue something.
func whoIn(body []byte, continues bool) (w who) {
	object, err := item.Parse(body)
	if err != nil {
		return w
	}
	text := func(name string) string {
		v, _ := object.Member(name)
		said, _ := v.Unquote()
		return said
	}
	w.model = text("model")
	if continues {
		v, _ := object.Member("conversation")
		w.previous = text("previous_response_id")
		w.conversation, _ = api.ConversationID(v)
	}
	return w
}

func nothing(bool) {}

// chooses returns the server that answers a request with a body. continues says whether the
// request may continue something. last is the response that a WebSocket remembers, or nil.
// done must be called when the request was served; it is told whether a response has begun.
func (s *Server) chooses(ctx context.Context, body []byte, continues bool, last *remembered) (t *Server, done func(answered bool), _ *Error) {
	o := s.pair()
	if o == nil {
		return s, nothing, nil
	}
	w := whoIn(body, continues)
	by, err := s.answers(ctx, w.model)
	if err != nil {
		return nil, nil, s.failure(err)
	}
	switch {
	case w.previous != "" && w.conversation != "":
		return by, nothing, nil // which refuses it
	case w.conversation != "":
		return s.claims(ctx, w, by)
	case w.previous == "":
		return by, nothing, nil
	case last != nil && last.id == w.previous:
		t = last.by
	default:
		if t, err = s.whose(ctx, w.previous); err != nil {
			return nil, nil, s.failure(err)
		}
	}
	switch {
	case t == nil:
		return by, nothing, nil // which does not find it
	case t != by && w.model != "":
		return nil, nil, Invalid("invalid_value", "model", "The previous response was made by a model that '%s' cannot go on for: begin a new conversation with it.", w.model)
	}
	return t, nothing, nil
}

// answers returns the server whose backend has a model.
func (s *Server) answers(ctx context.Context, model string) (*Server, error) {
	k, ok := s.Backend.(ModelLister)
	switch {
	case !ok:
		return s, nil
	case model == "":
		return s.other, nil
	}
	list, err := k.Models(ctx, model)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return s.other, nil
	}
	return s, nil
}

// whose returns the server that has a response or a conversation, or nil.
func (s *Server) whose(ctx context.Context, id string) (*Server, error) {
	for _, t := range []*Server{s, s.other} {
		if t.job(id) != nil {
			return t, nil
		}
	}
	for _, t := range []*Server{s, s.other} {
		_, err := t.store().Get(ctx, id)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return nil, nil
}

// holder is like whose, and returns a server that does not find the object if none has it.
func (s *Server) holder(ctx context.Context, id string) (*Server, error) {
	t, err := s.whose(ctx, id)
	if t == nil && err == nil {
		t = s
	}
	return t, err
}

// claimed is the note of a conversation in which the other server has answered.
const claimed = item.JSON(`{"answered":true}`)

// claims returns the server for a conversation. A new one is kept by the other server.
// The first model that answers in it decides who keeps it for ever: this server gets it
// when its model is asked, and gives it back if there is no answer.
func (s *Server) claims(ctx context.Context, w who, by *Server) (t *Server, done func(answered bool), _ *Error) {
	o, id := s.other, w.conversation
	refused := func() (*Server, func(bool), *Error) {
		return nil, nil, Invalid("invalid_value", "model", "Another model answers in this conversation, and '%s' cannot go on for it: begin a new one with it.", w.model)
	}
	o.changing.Lock()
	defer o.changing.Unlock()
	_, err := s.store().Get(ctx, id)
	switch {
	case err == nil && by != s && w.model != "":
		return refused()
	case err == nil:
		return s, nothing, nil
	case !errors.Is(err, ErrNotFound):
		return nil, nil, s.failure(err)
	}
	rec, err := o.store().Get(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound) || err == nil && rec.Conversation == nil:
		return by, nothing, nil // which does not find it
	case err != nil:
		return nil, nil, s.failure(err)
	case rec.Note != "" && by == s:
		return refused()
	case rec.Note != "" || w.model == "":
		return o, nothing, nil
	}
	items, err := o.store().Items(ctx, id)
	if err == nil && by == s {
		err = moves(ctx, rec, items, o, s)
	} else if err == nil {
		rec.Note = claimed
		err = o.store().Put(ctx, rec)
	}
	if err != nil {
		return nil, nil, s.failure(err)
	}
	return by, func(answered bool) {
		if !answered {
			s.returns(context.WithoutCancel(ctx), id, by, len(items))
		}
	}, nil
}

// returns makes a conversation of n items nobody's again, because its first request was
// refused.
func (s *Server) returns(ctx context.Context, id string, by *Server, n int) {
	o, holds := s.other, &Request{conversation: id}
	o.changing.Lock()
	defer o.changing.Unlock()
	if !by.holdHere(id, holds) {
		return // the next request is being answered
	}
	defer by.release(holds)
	rec, err := by.store().Get(ctx, id)
	var items []item.Item
	if err == nil {
		items, err = by.store().Items(ctx, id)
	}
	switch {
	case err != nil:
	case len(items) != n: // it was answered
	case by == s:
		err = moves(ctx, rec, items, s, o)
	default:
		rec.Note = ""
		err = o.store().Put(ctx, rec)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		s.logf("antiphon server: the conversation %s: %v", id, err)
	}
}

// moves moves a conversation from one server to the other. If the program ends in the
// middle, both have it. A file that only an upstream may know is an error for agents.
func moves(ctx context.Context, rec StoredObject, items []item.Item, from, to *Server) error {
	id := rec.ID()
	items, _, wrong := to.withFiles(ctx, items, "items")
	if wrong != nil {
		return wrong
	}
	if err := to.store().Put(ctx, StoredObject{Conversation: rec.Conversation, Input: items}); err != nil {
		return err
	}
	if err := from.store().Delete(ctx, id); err != nil && !errors.Is(err, ErrNotFound) {
		return errors.Join(err, to.store().Delete(ctx, id))
	}
	return nil
}

// listModels returns the models of both servers, or the one with an id.
func (s *Server) listModels(ctx context.Context, id string) ([]Model, error) {
	list, err := s.Backend.(ModelLister).Models(ctx, id)
	o := s.pair()
	if err != nil || o == nil || id != "" && len(list) > 0 {
		return list, err
	}
	k, ok := o.Backend.(ModelLister)
	if !ok {
		return list, nil
	}
	known := map[string]bool{}
	for _, m := range list {
		known[m.ID] = true
	}
	more, err := k.Models(ctx, id)
	if err != nil && len(list) > 0 { // those of this server do not depend on the other
		s.logf("antiphon server: the models of the other server: %v", err)
		return list, nil
	}
	for _, m := range more {
		if !known[m.ID] {
			list = append(list, m)
		}
	}
	return list, err
}

// item finds an item by its id, also one that the other server keeps. The same project
// owns both.
func (s *Server) item(ctx context.Context, id string) (item.Item, error) {
	it, err := s.ownItem(ctx, id)
	if s.other != nil && errors.Is(err, ErrNotFound) && strings.Contains(id, "_") {
		return s.other.ownItem(ctx, id)
	}
	return it, err
}
