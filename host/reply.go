// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"slices"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// AsksSomething reports whether a session holds more than instructions and replies.
func AsksSomething(s *session.Session) bool {
	for e := range s.Entries() {
		if given, ok := e.Body.(session.Given); ok && !given.Item.Instructs() && given.Item.Role() != item.RoleAssistant {
			return true
		}
	}
	return false
}

// Unanswered reports whether a run that says nothing new would go on.
func Unanswered(s *session.Session) bool {
	var state plan.State
	for e := range s.Entries() {
		state.Apply(e)
	}
	state.Apply(session.Entry{Body: session.RunStarted{}})
	stop, ok := state.Next().(plan.Stop)
	return !ok || stop.Why != agent.NothingToSend
}

// lastSaid returns the last message of a log that is not the model's.
func lastSaid(s *session.Session) item.Item {
	log := s.Log()
	for i := len(log) - 1; i >= 0; i-- {
		given, ok := log[i].Body.(session.Given)
		if ok && given.Item.Type() == item.TypeMessage && given.Item.Role() != item.RoleAssistant {
			return given.Item
		}
	}
	return item.Item{}
}

// input is what is said as an item, unless the very same message waits for its
// answer: then an earlier run asked it, did not get to the end, and is repeated.
func input(text string, s *session.Session) []item.Item {
	if text == "" {
		return nil
	}
	said := item.User(text)
	if lastSaid(s) == said && Unanswered(s) {
		return nil
	}
	return []item.Item{said}
}

// Reply is what the model said last.
type Reply struct {
	Items []item.Item
	// Turn is in which turn of its run, and Ended that the turn has an end.
	Turn  int
	Ended bool

	status  string
	reason  string
	silence string // what the run said of a reply that says nothing
}

// LastReply returns the reply that a session ends with. It has no items if the
// session ends with something else.
func LastReply(s *session.Session) (last Reply) {
	for e := range s.Entries() {
		switch b := e.Body.(type) {
		case session.TurnStarted:
			last = Reply{Turn: b.Turn}
		case session.Received:
			last.Items = append(last.Items, b.Item)
		case session.Answered:
			last = Reply{}
		case session.Given: // in a transcript, replies are given too
			if last.Ended || b.Item.Role() != item.RoleAssistant {
				last = Reply{}
			}
			if b.Item.Role() == item.RoleAssistant {
				last.Items = append(last.Items, b.Item)
				last.status = cmp.Or(b.Item.Status(), last.status)
			}
		case session.TurnEnded:
			last.Ended, last.status, last.reason = true, cmp.Or(b.Status, last.status), b.Reason
		case session.Stopped:
			if b.Why == string(agent.EmptyReply) {
				last.silence = b.Detail
			}
		}
	}
	return last
}

// Stop is how the run ended that the reply is of.
func (r Reply) Stop() agent.Stopped {
	switch {
	case r.status == item.StatusIncomplete:
		return agent.Stopped{Why: agent.Incomplete, Detail: r.reason}
	case !slices.ContainsFunc(r.Items, func(it item.Item) bool { return !it.SaysNothing() }):
		return agent.Stopped{Why: agent.EmptyReply, Detail: cmp.Or(r.silence, "the model said nothing")}
	}
	return agent.Stopped{Why: agent.Answered}
}
