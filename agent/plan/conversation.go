// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// kept is what an endpoint holds of a session: conversations of its own, and the
// last response that it completed. It is folded from the log, so that a run in
// another process goes on as this one would have.
type kept struct {
	talks []*talk
	open  *talk // that the turn under way is a part of; nil if it is of none
	// refused is that of the last turn, if something that the turn named is not
	// there.
	refused *talk
	// asked is the history that the turn under way carries, and said is what the
	// reply has brought of it so far.
	asked *item.List
	said  []item.Item
	last  Exchange
}

// talk is a conversation at the endpoint (G5).
type talk struct {
	session.Conversation
	endpoint string
	holds    Exchange // what the endpoint has of the history
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

// Exchange is a history and the reply to it, in the order of the log. Its lists must
// not be changed.
type Exchange struct {
	ID, Model, Endpoint string // of the response
	Input               *item.List
	Output              []item.Item
}

// rest returns how many of the history's items are covered, and whether the
// history begins with just these. Items count by their bytes.
func (a *Exchange) rest(history *item.List) (int, bool) {
	n := a.Input.Len()
	if history.Len() < n+len(a.Output) {
		return 0, false
	}
	for i, it := range a.Input.All() {
		if history.At(i) != it {
			return 0, false
		}
	}
	for i, it := range a.Output {
		if history.At(n+i) != it {
			return 0, false
		}
	}
	return n + len(a.Output), true
}

// keeps folds what an entry says about the endpoint's memory. It is called after
// the view and the setup have the entry.
func (s *State) keeps(e session.Entry) {
	k := &s.kept
	if !s.Keep {
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
	whole := Exchange{b.ResponseID, setup.Model, setup.Endpoint, k.asked, k.said}
	class := b.Class
	switch {
	case b.Status == item.StatusCompleted:
		k.last = whole
		if t := k.open; t != nil && b.InConversation == t.ID {
			t.holds = whole
		} else if t != nil {
			t.lost = "the endpoint answered as if it had not been named"
		}
	case b.BrokeOff() && len(k.said) == 0 && notBegun(class):
		if class == classNotFound || class == classPreviousResponse {
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

// InConversation returns the id of the endpoint's own conversation that the turn
// under way is a part of, "" if it is of none.
func (s *State) InConversation() string {
	if s.kept.open == nil {
		return ""
	}
	return s.kept.open.ID
}

// HasConversation reports whether the log says of a conversation whose it is.
func (s *State) HasConversation(id string) bool { return s.kept.find(id) != nil }

// LastExchange returns the last response that the endpoint completed, with what it
// answers; its ID is "" if there is none.
func (s *State) LastExchange() *Exchange { return &s.kept.last }

// Join decides whether the next request goes to a conversation that the log knows,
// as a part of it. If so, the request leaves out the first skip items, which the
// conversation holds already. If not, because something could be lost or doubled, it
// carries the whole history outside of the conversation, and why explains that to
// people. SessionID and endpoint are those of the request.
func (s *State) Join(id, sessionID, endpoint string) (skip int, why string) {
	t := s.kept.find(id)
	switch {
	case t == nil:
		return 0, fmt.Sprintf("the log does not say whose the conversation %s is", id)
	case t.Session != sessionID:
		why = fmt.Sprintf("it is that of session %s, which this one was copied from", t.Session)
	case t.endpoint != endpoint:
		why = "it is at another endpoint: " + t.endpoint
	case t.lost != "":
		why = t.lost
	case t.holds.Input == nil:
		return 0, "" // nothing of this session
	}
	if why == "" {
		history := s.view.Items()
		if skip, ok := t.holds.rest(history); ok && skip < history.Len() {
			return skip, ""
		}
		why = "the history is not what the endpoint has any more: it was shortened, repaired or withdrawn"
	}
	return 0, fmt.Sprintf("the conversation %s is left as it is, and the whole history goes with each request: %s", id, why)
}

// notBegun reports a refusal after which a conversation is as it was.
func notBegun(class string) bool {
	switch class {
	case classRateLimit, classOverloaded, classAuth, classForbidden, classNotFound,
		classBadRequest, classQuota, classPreviousResponse:
		return true
	}
	return false
}

// The classes of errors that decide something, as entries have them: those of
// endpoint.Class, which this package does not import.
const (
	classRateLimit        = "rate_limit"
	classOverloaded       = "overloaded"
	classAuth             = "auth"
	classForbidden        = "forbidden"
	classNotFound         = "not_found"
	classBadRequest       = "bad_request"
	classQuota            = "quota"
	classServer           = "server"
	classTooLarge         = "too_large"
	classContextOverflow  = "context_overflow"
	classPreviousResponse = "previous_response"
	classEncryptedContent = "encrypted_content"
)
