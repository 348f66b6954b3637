// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// State is what a log comes to: the view for the next request, and what there
// is left to do. [State.Apply] folds one entry, [State.Next] names the next
// effect. Both are pure: the same entries give the same effect, whenever and
// wherever they are read. A State is not safe for concurrent use.
type State struct {
	// Limits bound the run. MaxTime is not looked at: there is no clock in
	// here, its passing arrives as an entry.
	Limits Limits
	// Room bounds what is sent. Zero, nothing is made shorter.
	Room Room
	// Kinds are the kinds of calls of the API's own tools that can be run, such
	// as item.TypeApplyPatchCall.
	Kinds []item.Type

	view     session.View
	turn     int  // the last turn's number
	inTurn   bool // it has not ended
	needs    bool // something waits for an answer
	verdicts map[string]session.Approval
	rules    []session.Rule // that the session remembers
	sent     int            // items of the last request
	accepted int            // of these, how many some endpoint has taken
	cache    cacheState
	fill     fill

	run runState
}

// runState counts from the run's start.
type runState struct {
	turns     int
	tokens    int64
	cost      float64
	nested    Spent           // what nested runs used
	waits     map[string]bool // calls that wait for an approval, or whose nested run does
	last      session.TurnEnded
	refusal   bool   // the last reply is one
	withdrawn string // why a call of the last reply cannot be answered
	dropped   bool   // reasoning was left out
	ask       session.StopAsked
	repeats   repeats

	compactions compactions
}

// repeats counts equal calls in a row.
type repeats struct {
	name, arguments string
	count           int
}

func (r *repeats) add(it item.Item) {
	name, arguments := calledBy(it)
	if name != r.name || string(arguments) != r.arguments {
		*r = repeats{name: name, arguments: string(arguments)}
	}
	r.count++
}

// View returns the state's view.
func (s *State) View() *session.View { return &s.view }

// Apply folds the log's next entry.
func (s *State) Apply(e session.Entry) {
	if _, ok := e.Body.(session.ReasoningDropped); ok {
		s.accepted -= reasoningIn(s.view.Items(), s.accepted) // the rest moves up
	}
	taken, behind := s.view.Taken(), s.view.Items().Len()-s.accepted
	s.view.Apply(e)
	switch b := e.Body.(type) {
	case session.RunStarted:
		s.run = runState{}
		s.needs = s.needs || s.inTurn
		s.inTurn = false
	case session.Given:
		if s.view.Taken() > taken {
			s.given(b.Item)
		}
	case session.TurnStarted:
		s.turn, s.inTurn, s.needs = b.Turn, true, false
		s.run.turns++
		s.sent = s.view.Items().Len()
		s.cache.asked(&s.view)
		if s.Room.On {
			s.fill.asked = s.size()
		}
		s.run.refusal, s.run.withdrawn = false, ""
	case session.Received:
		s.received(b.Item)
	case session.TurnEnded:
		s.turnEnded(b)
	case session.ApprovalAsked:
		s.wait(b.CallID)
	case session.Approval:
		s.decided(b)
	case session.CallStarted:
		delete(s.run.waits, b.CallID)
	case session.Nested:
		s.run.nested.add(Spent{b.Turns, b.Tokens, b.Cost})
	case session.Paused:
		s.wait(b.CallID)
	case session.Answered:
		delete(s.verdicts, b.CallID)
		s.needs = true
	case session.Withdrawn:
		delete(s.verdicts, b.CallID)
		s.run.withdrawn = b.Reason
	case session.ReasoningDropped:
		s.run.dropped = true
		s.fill.again()
		s.mended()
	case session.Quarantined:
		s.fill.again()
		s.mended()
	case session.Compacted:
		s.accepted = max(0, s.view.Items().Len()-behind)
		s.fill.again()
		s.compacted(b)
	case session.Restored:
		if s.run.last.Class == string(endpoint.EncryptedContent) {
			s.mended()
		}
		s.accepted = max(0, s.view.Items().Len()-behind)
		s.fill.again()
	case session.Collapsed:
		s.fill.again()
	case session.StopAsked:
		if s.run.ask.Why == "" || !b.AfterTurn {
			s.run.ask = b
		}
	}
}

// given decides whether an item from outside waits for an answer: all do but
// a finished reply.
func (s *State) given(it item.Item) {
	switch {
	case it.IsCall(), it.Type() == item.TypeReasoning:
	case it.Role() == item.RoleAssistant:
		phase, _ := it.Member("phase")
		s.needs = it.Status() == item.StatusIncomplete || phase == `"`+item.PhaseCommentary+`"` // more was to come
	default:
		s.needs = true
	}
}

// wait keeps a call from being run until the next run. A verdict comes before
// that.
func (s *State) wait(callID string) {
	if s.run.waits == nil {
		s.run.waits = map[string]bool{}
	}
	s.run.waits[callID] = true
}

func (s *State) decided(b session.Approval) {
	if s.verdicts == nil {
		s.verdicts = map[string]session.Approval{}
	}
	s.verdicts[b.CallID] = b
	delete(s.run.waits, b.CallID)
	if b.Remember != nil {
		s.rules = append(s.rules, *b.Remember)
	}
}

func (s *State) received(it item.Item) {
	if it.IsCall() {
		s.run.repeats.add(it)
		return
	}
	if !strings.Contains(it.JSON(), `"refusal"`) {
		return // nearly all messages
	}
	if m, err := item.As[item.Message](it); err == nil {
		for _, p := range m.Content.Parts {
			_, refusal := p.(*item.Refusal)
			s.run.refusal = s.run.refusal || refusal
		}
	}
}

func (s *State) turnEnded(b session.TurnEnded) {
	s.inTurn = false
	s.run.last = b
	s.run.cost += b.Cost
	if b.Usage != nil {
		s.run.tokens += b.Usage.TotalTokens
	}
	s.cache.told(b)
	if b.BrokeOff() {
		s.needs = true // what was asked is not answered
		return
	}
	s.accepted = s.sent
	s.run.compactions.retried = false
	s.reported(b.Usage)
}

// mended makes the last turn one that is asked again.
func (s *State) mended() {
	s.run.last = session.TurnEnded{}
	s.needs = true
}

// lastCall returns the call that was just received, unless another open call
// has its id, which is all that entries name it by.
func (s *State) lastCall(it item.Item) *session.OpenCall {
	open := s.view.Open()
	if len(open) == 0 {
		return nil
	}
	last := open[len(open)-1]
	for _, c := range open[:len(open)-1] {
		if c.CallID == last.CallID {
			return nil
		}
	}
	if last.Item != it {
		return nil
	}
	return last
}
