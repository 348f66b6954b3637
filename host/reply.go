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

// AsksSomething reports whether a session contains more than instructions and
// replies.
func AsksSomething(s *session.Session) bool {
	for e := range s.Entries() {
		if given, ok := e.Body.(session.InputItem); ok && !given.Item.Instructs() && given.Item.Role() != item.RoleAssistant {
			return true
		}
	}
	return false
}

// Unanswered reports whether a run without new input would continue.
func Unanswered(s *session.Session) bool {
	var state plan.State
	for e := range s.Entries() {
		state.Apply(e)
	}
	state.Apply(session.Entry{Body: session.RunStarted{}})
	stop, ok := state.Next().(plan.Stop)
	return !ok || stop.Why != agent.StopNothingToSend
}

// lastSaid returns the last message of a log that comes neither from the model nor from a run.
func lastSaid(s *session.Session) item.Item {
	log := s.Log()
	for i := len(log) - 1; i >= 0; i-- {
		given, ok := log[i].Body.(session.InputItem)
		if ok && !given.Own && given.Item.Type() == item.TypeMessage && given.Item.Role() != item.RoleAssistant {
			return given.Item
		}
	}
	return item.Item{}
}

// spoken returns a text as a message of the user, or nothing.
func spoken(text string) []item.Item {
	if text == "" {
		return nil
	}
	return []item.Item{item.User(text)}
}

// input returns what is said, or nothing if its last message already waits for its answer.
// In that case an earlier run sent the message and did not finish, and is repeated.
func input(said []item.Item, s *session.Session) []item.Item {
	if n := len(said); n == 0 || lastSaid(s) == said[n-1] && Unanswered(s) {
		return nil
	}
	return said
}

// Reply is the last reply of the model.
type Reply struct {
	Items []item.Item
	// Entries are the entries of the Items, and of the end of the run if the log has it.
	Entries []session.Entry
	// Turn is the number of the turn in its run, and Ended says whether the turn has
	// an end.
	Turn  int
	Ended bool

	status  string
	reason  string
	silence string // the run's explanation of an empty reply
}

// LastReply returns the reply at the end of a session. It has no items if the
// session ends with something else.
func LastReply(s *session.Session) (last Reply) {
	for e := range s.Entries() {
		switch b := e.Body.(type) {
		case session.TurnStarted:
			last = Reply{Turn: b.Turn}
		case session.OutputItem:
			last.Items, last.Entries = append(last.Items, b.Item), append(last.Entries, e)
		case session.CallOutput:
			last = Reply{}
		case session.InputItem: // in a transcript, replies are given items too
			if last.Ended || b.Item.Role() != item.RoleAssistant {
				last = Reply{}
			}
			if b.Item.Role() == item.RoleAssistant {
				last.Items, last.Entries = append(last.Items, b.Item), append(last.Entries, e)
				last.status = cmp.Or(b.Item.Status(), last.status)
			}
		case session.TurnEnded:
			last.Ended, last.status, last.reason = true, cmp.Or(b.Status, last.status), b.Reason
		case session.Stopped:
			last.Entries = append(last.Entries, e)
			if b.Why == string(agent.StopEmptyReply) {
				last.silence = b.Detail
			}
		}
	}
	return last
}

// Stop returns how the reply's run ended.
func (r Reply) Stop() session.Stopped {
	switch {
	case r.status == item.StatusIncomplete:
		return session.Stopped{Why: string(agent.StopIncomplete), Detail: r.reason}
	case !slices.ContainsFunc(r.Items, func(it item.Item) bool { return !it.SaysNothing() }):
		return session.Stopped{Why: string(agent.StopEmptyReply), Detail: cmp.Or(r.silence, "the model's reply is empty")}
	}
	return session.Stopped{Why: string(agent.StopEndTurn)}
}
