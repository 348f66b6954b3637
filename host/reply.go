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

// spoken returns a text as a message of the user, or nothing.
func spoken(text string) []item.Item {
	if text == "" {
		return nil
	}
	return []item.Item{item.User(text)}
}

// unsaid returns what of said the session does not have yet. A prompt, which is the last of said, that
// waits for its answer since an earlier run is repeated: neither it nor what came with it is sent
// again. Beside are messages that may follow the prompt although they came with it, because they were
// new when it was repeated before; instructions may, too. Any other message that follows makes the
// prompt a new one.
func unsaid(said, beside []item.Item, s *session.Session) []item.Item {
	isPrompt := func(e session.Entry) bool {
		given, ok := e.Body.(session.InputItem)
		return ok && sameItem(given.Item, said[len(said)-1])
	}
	if !slices.ContainsFunc(s.Log(), isPrompt) || !Unanswered(s) { // mostly it is new, which needs no fold
		return said
	}
	left, repeated := slices.Clone(said), false
	for _, it := range slices.Backward(waiting(s)) {
		same := func(other item.Item) bool { return sameItem(it, other) }
		if !repeated && same(said[len(said)-1]) {
			left, repeated = left[:len(left)-1], true
		} else if i := slices.IndexFunc(left, same); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else if !it.Instructs() && !slices.ContainsFunc(beside, same) {
			break
		}
	}
	if !repeated {
		return said
	}
	return left
}

// waiting returns the messages that wait for their answer and come neither from the model nor
// from a run.
func waiting(s *session.Session) (list []item.Item) {
	var state plan.State
	var seqs []int64
	for e := range s.Entries() {
		state.Apply(e)
		switch b := e.Body.(type) {
		case session.InputItem:
			if !b.Own && b.Item.Type() == item.TypeMessage && b.Item.Role() != item.RoleAssistant {
				list, seqs = append(list, b.Item), append(seqs, e.Seq)
			}
		case session.ItemsWithdrawn:
			for i, seq := range slices.Backward(seqs) {
				if slices.Contains(b.Seqs, seq) {
					list, seqs = slices.Delete(list, i, i+1), slices.Delete(seqs, i, i+1)
				}
			}
		}
		if state.Answered() {
			list, seqs = nil, nil
		}
	}
	return list
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
