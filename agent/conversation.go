// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// converse decides how the next request goes to the conversation that the agent
// names: as a part of it, without the first skip items, which it holds already;
// or, if that could lose or double something, as the whole history and no part
// of it. Then why says so for people.
func (r *Run) converse() (in string, skip int, why string) {
	id, ok := item.ConversationID(r.agent.Request.Conversation)
	if !ok {
		return "", 0, ""
	}
	if skip, why = r.state.Join(id, r.session.ID(), r.setup().Endpoint); why != "" {
		return "", 0, why
	}
	return id, skip, ""
}

// conversation is what a run's start says of the conversation that it goes on
// with: whose it is, so that no copy of the session goes on with it as well.
func (r *Run) conversation() session.Conversation {
	id, _ := item.ConversationID(r.agent.Request.Conversation)
	if id == "" || r.state.HasConversation(id) {
		return session.Conversation{}
	}
	return session.Conversation{ID: id, Session: r.session.ID()}
}

// parts returns the request as it travels: without what the conversation holds.
func (r *Run) parts(req *item.Request) *item.Request {
	if r.skip == 0 {
		return req
	}
	part := *req
	part.Input = new(item.List)
	for i := r.skip; i < req.Input.Len(); i++ {
		part.Input.Append(req.Input.At(i))
	}
	return &part
}

// checkKept returns an error for a request that goes on from something at the
// endpoint in a way that cannot be right.
func checkKept(req *item.Request) error {
	switch {
	case req.Conversation == "":
		return nil
	case req.PreviousResponseID != "":
		return errors.New("agent: Request.Conversation and Request.PreviousResponseID are both set: endpoints take one of them")
	case req.Store != nil && !*req.Store:
		return errors.New("agent: Request.Conversation is set, and Request.Store is false: an endpoint that keeps nothing has no conversation")
	}
	if id, ok := item.ConversationID(req.Conversation); !ok || id == "" {
		return fmt.Errorf("agent: Request.Conversation is %s: want an id, as item.ConversationByID makes it", req.Conversation)
	}
	return nil
}

// Resumer is implemented by a [Model] that can go on from a response that the
// endpoint keeps, such as a responses.Thread. A run tells it, before its first
// request, of the last response of the session: id was the answer to req, whose
// Input is the whole history up to it, and said output. Whether requests that
// follow begin with just that is for the Model to see.
type Resumer interface {
	Resume(req *item.Request, id string, output []item.Item)
}

// resume tells the model of the session's last response.
func (r *Run) resume() error {
	defer func() { r.state.Keep = r.agent.Request.Conversation != "" }() // the model remembers by itself
	base, last := r.agent.Request.PreviousResponseID, r.state.LastExchange()
	if base != "" {
		for e := range r.session.Entries() {
			if b, ok := e.Body.(session.TurnEnded); ok && b.ResponseID == base {
				return fmt.Errorf("agent: Request.PreviousResponseID is %s, a response of this session (turn %d): its history would be there twice. Leave it empty; as Model, a responses.Thread goes on from the last response", base, b.Turn)
			}
		}
	}
	m, ok := r.agent.Model.(Resumer)
	if !ok || last.ID == "" || last.Endpoint != r.setup().Endpoint || last.Model != r.agent.Request.Model {
		return nil
	}
	req := r.agent.Request
	req.Input = last.Input
	m.Resume(&req, last.ID, last.Output)
	return nil
}
