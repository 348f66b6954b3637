// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// kept describes the state that an endpoint holds for a session: its own
// conversations, and the last response that it completed. It is folded from the log,
// so that a run in another process continues in the same way.
type kept struct {
	talks []*talk
	open  *talk // the conversation of the current turn; nil if it has none
	// refused is the conversation of the last turn, if the endpoint did not find
	// something that the turn referred to.
	refused *talk
	// asked is the history that the current turn sent, and said holds the items of
	// the reply received so far.
	asked *item.List
	said  []item.Item
	last  Exchange
}

// talk is a conversation at the endpoint.
type talk struct {
	session.Conversation
	endpoint string
	holds    Exchange // the part of the history that the endpoint holds
	lost     string   // why the content of the conversation is unknown
}

// find returns the conversation with the given id, or nil.
func (k *kept) find(id string) *talk {
	for _, t := range k.talks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Exchange is a history and the reply to it, in the order of the log. The caller must
// not change its lists.
type Exchange struct {
	ID, Model, Endpoint string // of the response
	Input               *item.List
	Output              []item.Item
}

// rest returns the number of the history's items that the exchange covers. It reports
// false if the history does not begin with exactly these items. Items are compared by
// their bytes.
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

// keeps folds an entry into the state of the endpoint's memory. It must be called
// after the view and the setup have applied the entry.
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
	case session.OutputItem:
		k.said = append(k.said, b.Item)
	case session.TurnEnded:
		k.turnEnded(b, &s.setup)
	case session.Noticed:
		if b.Kind == session.NoticeImported { // a stranger may have named the response
			k.last = Exchange{}
		}
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

// broke records that it is unknown whether the current turn became part of its
// conversation.
func (k *kept) broke(why string) {
	if k.open != nil {
		k.open.lost = why
	}
	k.open, k.refused = nil, nil
}

// InConversation returns the id of the endpoint's conversation that the current turn
// belongs to, or "".
func (s *State) InConversation() string {
	if s.kept.open == nil {
		return ""
	}
	return s.kept.open.ID
}

// HasConversation reports whether the log records the owner of a conversation.
func (s *State) HasConversation(id string) bool { return s.kept.find(id) != nil }

// LastExchange returns the last response that the endpoint completed, with the
// history that it answers. Its ID is "" if there is none.
func (s *State) LastExchange() *Exchange { return &s.kept.last }

// Join decides whether the next request joins a conversation that the log knows. If
// it does, the request leaves out the first skip items, which the conversation
// already holds. If joining could lose or repeat items, the request carries the whole
// history outside the conversation, and why gives the reason, for people. SessionID
// and endpoint are the request's.
func (s *State) Join(id, sessionID, endpoint string) (skip int, why string) {
	t := s.kept.find(id)
	switch {
	case t == nil:
		return 0, fmt.Sprintf("the log does not say which session the conversation %s belongs to", id)
	case t.Session != sessionID:
		why = fmt.Sprintf("it belongs to session %s, which this session is a copy of", t.Session)
	case t.endpoint != endpoint:
		why = "it is at another endpoint: " + t.endpoint
	case t.lost != "":
		why = t.lost
	case t.holds.Input == nil:
		return 0, "" // it holds nothing from this session
	}
	if why == "" {
		history := s.view.Items()
		if skip, ok := t.holds.rest(history); ok && skip < history.Len() {
			return skip, ""
		}
		why = "the history differs from the endpoint's copy: it was shortened, repaired or withdrawn"
	}
	return 0, fmt.Sprintf("the conversation %s is no longer used, and each request carries the whole history: %s", id, why)
}

// notBegun reports whether an error class means that the conversation is unchanged.
func notBegun(class string) bool {
	switch class {
	case classRateLimit, classOverloaded, classAuth, classForbidden, classNotFound,
		classBadRequest, classQuota, classPreviousResponse:
		return true
	}
	return false
}

// The error classes that affect decisions, as they are written in entries. They are
// equal to the values of endpoint.Class; this package does not import endpoint.
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
