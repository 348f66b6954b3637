// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// kept is what an endpoint holds of a session: conversations of its own, and the
// last response that it completed. It is folded from the log, so that a run in
// another process goes on as this one would have.
type kept struct {
	on    bool // somebody asks for it
	talks []*talk
	open  *talk // that the turn under way is a part of; nil if it is of none
	// refused is that of the last turn, if something that the turn named is not
	// there.
	refused *talk
	// asked is the history that the turn under way carries, and said is what the
	// reply has brought of it so far.
	asked *item.List
	said  []item.Item
	last  answered
}

// talk is a conversation at the endpoint (G5).
type talk struct {
	session.Conversation
	endpoint string
	holds    answered // what the endpoint has of the history
	lost     string   // why nobody can say what it holds
}

// find returns the conversation with an id, nil if the session has none.
func (k *kept) find(id string) *talk {
	for _, t := range k.talks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// answered is a history and the reply to it, in the order of the log.
type answered struct {
	id, model, endpoint string // of the response
	input               *item.List
	output              []item.Item
}

// rest returns how many of the history's items are covered, and whether the
// history begins with just these. Items count by their bytes.
func (a *answered) rest(history *item.List) (int, bool) {
	n := a.input.Len()
	if history.Len() < n+len(a.output) {
		return 0, false
	}
	for i, it := range a.input.All() {
		if history.At(i) != it {
			return 0, false
		}
	}
	for i, it := range a.output {
		if history.At(n+i) != it {
			return 0, false
		}
	}
	return n + len(a.output), true
}

// keeps folds what an entry says about the endpoint's memory. It is called after
// the view and the setup have the entry.
func (s *State) keeps(e session.Entry) {
	k := &s.kept
	if !k.on {
		return
	}
	switch b := e.Body.(type) {
	case session.RunStarted:
		k.broke("the process ended while the endpoint was answering")
		if id := b.Conversation.ID; id != "" && k.find(id) == nil {
			k.talks = append(k.talks, &talk{Conversation: b.Conversation, endpoint: s.setup.Endpoint})
		}
	case session.TurnStarted:
		k.asked, k.said, k.open, k.refused = s.view.Items().Clone(), nil, nil, nil
		if b.InConversation != "" {
			k.open = k.find(b.InConversation)
		}
	case session.Received:
		k.said = append(k.said, b.Item)
	case session.TurnEnded:
		k.turnEnded(b, &s.setup)
	case session.Noticed:
		if b.Kind == session.NoticeWholeHistory && k.refused != nil {
			k.refused.lost, k.refused = "the endpoint does not know it any more", nil
			s.mended()
		}
	}
}

func (k *kept) turnEnded(b session.TurnEnded, setup *session.Setup) {
	whole := answered{b.ResponseID, setup.Model, setup.Endpoint, k.asked, k.said}
	class := endpoint.Class(b.Class)
	switch {
	case b.Status == item.StatusCompleted:
		k.last = whole
		if t := k.open; t != nil && b.InConversation == t.ID {
			t.holds = whole
		} else if t != nil {
			t.lost = "the endpoint answered as if it had not been named"
		}
	case b.BrokeOff() && len(k.said) == 0 && notBegun(class):
		if class == endpoint.NotFound || class == endpoint.PreviousResponse {
			k.refused = k.open
		}
	case b.BrokeOff():
		k.broke("a reply broke off, and the endpoint may have kept what it answered")
	default:
		k.broke("a reply came to no end of its own, and the endpoint may have kept it")
	}
	k.open, k.asked, k.said = nil, nil, nil
}

// broke notes that nobody can tell whether the turn under way is a part of its
// conversation.
func (k *kept) broke(why string) {
	if k.open != nil {
		k.open.lost = why
	}
	k.open, k.refused = nil, nil
}

// notBegun reports a refusal after which a conversation is as it was.
func notBegun(c endpoint.Class) bool {
	switch c {
	case endpoint.RateLimit, endpoint.Overloaded, endpoint.Auth, endpoint.Forbidden, endpoint.NotFound,
		endpoint.BadRequest, endpoint.Quota, endpoint.PreviousResponse:
		return true
	}
	return false
}

// converse decides how the next request goes to the conversation that the agent
// names: as a part of it, without the first skip items, which it holds already;
// or, if that could lose or double something, as the whole history and no part
// of it. Then why says so for people.
func (r *Run) converse() (in string, skip int, why string) {
	id, ok := item.ConversationID(r.agent.Request.Conversation)
	if !ok {
		return "", 0, ""
	}
	t := r.state.kept.find(id)
	switch {
	case t.Session != r.session.ID():
		why = fmt.Sprintf("it is that of session %s, which this one was copied from", t.Session)
	case t.endpoint != r.setup().Endpoint:
		why = "it is at another endpoint: " + t.endpoint
	case t.lost != "":
		why = t.lost
	case t.holds.input == nil:
		return id, 0, "" // nothing of this session
	}
	if why == "" {
		history := r.state.view.Items()
		if skip, ok = t.holds.rest(history); ok && skip < history.Len() {
			return id, skip, ""
		}
		why = "the history is not what the endpoint has any more: it was shortened, repaired or withdrawn"
	}
	return "", 0, fmt.Sprintf("the conversation %s is left as it is, and the whole history goes with each request: %s", id, why)
}

// conversation is what a run's start says of the conversation that it goes on
// with: whose it is, so that no copy of the session goes on with it as well.
func (r *Run) conversation() session.Conversation {
	id, _ := item.ConversationID(r.agent.Request.Conversation)
	if id == "" || r.state.kept.find(id) != nil {
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

// forgotten is the decision that follows when the endpoint does not know the
// conversation that a turn was a part of; nil if it was of none.
func (r *Run) forgotten(e *endpoint.Error) session.Body {
	t := r.state.kept.open
	if t == nil || e.Code == "model_not_found" {
		return nil
	}
	return session.Noticed{Turn: r.state.turn, Kind: session.NoticeWholeHistory, Text: fmt.Sprintf(
		"the endpoint does not know the conversation %s (%s): from here on the whole history goes with each request, and is not part of it", t.ID, reasonOf(e))}
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
	defer func() { r.state.kept.on = r.agent.Request.Conversation != "" }() // the model remembers by itself
	base, last := r.agent.Request.PreviousResponseID, &r.state.kept.last
	if base != "" {
		for e := range r.session.Entries() {
			if b, ok := e.Body.(session.TurnEnded); ok && b.ResponseID == base {
				return fmt.Errorf("agent: Request.PreviousResponseID is %s, a response of this session (turn %d): its history would be there twice. Leave it empty; as Model, a responses.Thread goes on from the last response", base, b.Turn)
			}
		}
	}
	m, ok := r.agent.Model.(Resumer)
	if !ok || last.id == "" || last.endpoint != r.setup().Endpoint || last.model != r.agent.Request.Model {
		return nil
	}
	req := r.agent.Request
	req.Input = last.input
	m.Resume(&req, last.id, last.output)
	return nil
}
