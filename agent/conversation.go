// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// converse decides whether the next request joins the agent's conversation, leaving
// out the first skip items, which the conversation already holds. If that could lose
// or repeat items, the request carries the whole history outside the conversation,
// and why gives the reason, for people.
func (r *Run) converse() (in string, skip int, why string) {
	id, ok := api.ConversationID(r.agent.Request.Conversation)
	if !ok {
		return "", 0, ""
	}
	if skip, why = r.state.Join(id, r.session.ID(), r.setup().Endpoint); why != "" {
		return "", 0, why
	}
	return id, skip, ""
}

// conversation returns the owner of the conversation, for the entry that starts the
// run, so that a copy of the session does not continue the conversation as well.
func (r *Run) conversation() session.Conversation {
	id, _ := api.ConversationID(r.agent.Request.Conversation)
	if id == "" || r.state.HasConversation(id) {
		return session.Conversation{}
	}
	return session.Conversation{ID: id, Session: r.session.ID()}
}

// parts returns the request as it is sent: without the items that the conversation
// holds.
func (r *Run) parts(req *api.Request) *api.Request {
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

// checkKept returns an error for a request with contradictory settings of
// conversation, previous response and storage.
func checkKept(req *api.Request) error {
	switch {
	case req.Conversation == "":
		return nil
	case req.PreviousResponseID != "":
		return errors.New("agent: Request.Conversation and Request.PreviousResponseID are both set: endpoints accept only one of them")
	case req.Store != nil && !*req.Store:
		return errors.New("agent: Request.Conversation is set, but Request.Store is false: a conversation needs storage")
	}
	if id, ok := api.ConversationID(req.Conversation); !ok || id == "" {
		return fmt.Errorf("agent: Request.Conversation is %s: want an id, as api.ConversationByID makes it", req.Conversation)
	}
	return nil
}

// Resumer is implemented by a [Model] that can continue from a response stored at the
// endpoint, such as a responses.Chain. Before its first request, a run calls Resume
// with the session's last response: id is the response to req, whose Input is the
// whole history before it, and output holds its items. The Model must check whether
// later requests begin with this history.
type Resumer interface {
	Resume(req *api.Request, id string, output []item.Item)
}

// resume passes the session's last response to the model.
func (r *Run) resume() error {
	defer func() { r.state.Keep = r.first.Request.Conversation != "" }() // the model tracks the responses from here on
	base, last := r.agent.Request.PreviousResponseID, r.state.LastExchange()
	if base != "" {
		for e := range r.session.Entries() {
			if b, ok := e.Body.(session.TurnEnded); ok && b.ResponseID == base {
				return fmt.Errorf("agent: Request.PreviousResponseID is %s, a response of this session (turn %d): its history would be there twice. Leave it empty; as Model, a responses.Chain goes on from the last response", base, b.Turn)
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
