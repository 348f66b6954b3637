// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// What the model reads about calls that did not run.
const (
	OutcomeUnknown = "The run was interrupted while this call was under way. Whether it took effect is not known."
	notStarted     = "The call was not started: the run was stopped first. Nothing was done."
	StoppedWaiting = "The run that this call started had not ended when all was stopped. What it did until then is done."
	callBrokeOff   = "The call was not started: the reply ended before the call was complete. Nothing was done."
)

// contextFull says what to do about a history that has become too long. Doing
// it is not up to the loop: nothing that was said is left out behind anybody's
// back.
const contextFull = "the history no longer fits into the model's context; go on in a new session with what matters of it, or with a model that takes more: "

// Next returns what to do. It changes nothing: an effect counts once its
// outcome is applied.
func (s *State) Next() Effect {
	var room [4]session.OpenCall
	if open := s.view.AppendOpen(room[:0]); len(open) > 0 {
		return s.nextForCalls(open)
	}
	if due := s.reads.due; len(due) > 0 {
		return Collapse{slices.Clone(due)}
	}
	switch asked, last := s.run.ask, s.run.last; {
	case asked.Why != "" && !asked.AfterTurn:
		return Stop{Why: StopReason(asked.Why), Detail: asked.Detail}
	case s.overflowed():
		return s.nextForOverflow()
	case last.BrokeOff() && last.Refused > 0:
		return Stop{Why: BadItem, Detail: fmt.Sprintf("the endpoint refuses the item of entry %d: %s", last.Refused, last.Reason)}
	case last.BrokeOff() && !interrupted(last):
		return Stop{Why: ProviderError, Detail: last.Reason}
	case asked.Why != "":
		return Stop{Why: StopReason(asked.Why), Detail: asked.Detail}
	case !s.needs:
		return s.settled()
	}
	if stop, reached := s.limit(); reached {
		return stop
	}
	if e := s.nextForRoom(); e != nil {
		return e
	}
	return Ask{Turn: s.turn + 1}
}

// interrupted reports a turn that was cancelled by the process that asked, without
// a wish to end the run: another one asks again.
func interrupted(last session.TurnEnded) bool { return last.Status == item.StatusCancelled }

// nextForCalls closes what cannot run, gets verdicts for the rest, runs what
// may run, and stops when all that is left waits for somebody. Of calls with one
// id, which is all that entries name a call by, each has its turn when the one
// before is done.
func (s *State) nextForCalls(open []session.OpenCall) Effect {
	var closing []Skipped
	var undecided, ready []CallRef
	var seen map[string]bool
	if len(open) > 1 {
		seen = make(map[string]bool, len(open))
	}
	for i := range open {
		c := &open[i]
		if seen[c.CallID] {
			continue
		}
		if seen != nil {
			seen[c.CallID] = true
		}
		ref := CallRef{c.Seq, c.Number, c.CallID}
		switch reason := s.hindrance(c); {
		case c.Started && !c.Lost:
			ready = append(ready, ref) // it runs already
		case reason != "":
			closing = append(closing, Skipped{ref, reason})
		case s.run.waits[c.Seq]:
		case c.Verdict == nil:
			undecided = append(undecided, ref)
		case !c.Verdict.Allowed:
			closing = append(closing, Skipped{ref, c.Verdict.Reason})
		default:
			ready = append(ready, ref)
		}
	}
	switch {
	case len(closing) > 0:
		return Skip{closing}
	case len(undecided) > 0:
		return Approve{undecided}
	case len(ready) > 0:
		return Call{ready}
	}
	return Stop{Why: ApprovalWanted, Detail: s.waiting(open)}
}

// waiting names the tools whose calls wait.
func (s *State) waiting(open []session.OpenCall) string {
	var names []string
	for _, c := range open {
		if name := ToolName(c.Item); s.run.waits[c.Seq] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "an answer is wanted about " + strings.Join(names, ", ")
}

// stopNow reports whether the run should end without waiting for its turn's end.
func (s *State) stopNow() bool { return s.run.ask.Why != "" && !s.run.ask.AfterTurn }

// settled says why there is nothing left to ask.
func (s *State) settled() Stop {
	switch last := s.run.last; {
	case s.run.turns == 0:
		return Stop{Why: NothingToSend}
	case last.Status == item.StatusIncomplete:
		return Stop{Why: Incomplete, Detail: last.Reason}
	case s.run.refusal:
		return Stop{Why: Refused}
	case s.run.unanswerable != "":
		return Stop{Why: Incomplete, Detail: s.run.unanswerable}
	case s.run.empty:
		return Stop{Why: EmptyReply, Detail: s.silence()}
	case s.run.truncation != "" && !s.Room.On:
		return Stop{Why: ContextFull, Detail: "the reply was made without the beginning of the history: " + s.run.truncation}
	}
	return Stop{Why: Answered}
}

// silence describes a reply that says nothing. Its calls, if it has any, were answered
// by the endpoint: others would have outputs that the model is asked about.
func (s *State) silence() string {
	if s.called {
		return "the reply holds calls that the endpoint answered itself, and no word about what came of them"
	}
	return "the model said nothing and called nothing"
}

const DefaultMaxTurns = 100

// limit says which limit forbids another turn.
func (s *State) limit() (Stop, bool) {
	l, r := s.Limits, &s.run
	turns, most := r.turns+r.nested.Turns, cmp.Or(l.MaxTurns, DefaultMaxTurns)
	tokens, cost := r.tokens+r.nested.Tokens, r.cost+r.nested.Cost
	byNested := ""
	if r.nested != (Spent{}) {
		byNested = ", nested runs included"
	}
	switch {
	case turns >= most:
		return Stop{MaxTurns, fmt.Sprintf("%d of %d turns are used%s", turns, most, byNested)}, true
	case l.MaxTokens > 0 && tokens >= l.MaxTokens:
		return Stop{MaxTokens, fmt.Sprintf("%d tokens were used, of %d%s", tokens, l.MaxTokens, byNested)}, true
	case l.MaxCost > 0 && cost >= l.MaxCost:
		return Stop{MaxCost, fmt.Sprintf("%.6g was spent, of %.6g%s", cost, l.MaxCost, byNested)}, true
	case l.MaxRepeats > 0 && r.repeats.count >= l.MaxRepeats:
		return Stop{RepeatedCall, fmt.Sprintf("%s was called %d times in a row with the same arguments", r.repeats.name, r.repeats.count)}, true
	}
	return Stop{}, false
}
