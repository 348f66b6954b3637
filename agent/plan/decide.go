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

// Texts that the model reads about calls that did not run.
const (
	OutcomeUnknown = "The run was interrupted while this call was under way. Whether it took effect is not known."
	notStarted     = "The call was not started: the run was stopped first. Nothing was done."
	StoppedWaiting = "The run that this call started had not ended when all was stopped. What it did until then is done."
	StoppedAsking  = "The run was stopped before the result of this call was there. What it did until then is done."
	noMoreCalls    = "The call was not started: the reply had to be an answer, because a limit of the run is reached. Nothing was done."
	callBrokeOff   = "The call was not started: the reply ended before the call was complete. Nothing was done."
)

// contextFull tells the user what to do about a history that has become too long. The
// loop does not shorten a history silently.
const contextFull = "the history no longer fits into the model's context; start a new session with a summary, or use a model with a larger context: "

// Next returns the next effect. It does not change the state: an effect counts once
// its outcome is applied.
func (s *State) Next() Effect {
	var room [4]session.OpenCall
	if open := s.view.AppendOpen(room[:0]); len(open) > 0 {
		return s.nextForCalls(open)
	}
	if due := s.reads.due; len(due) > 0 {
		return Collapse{slices.Clone(due)}
	}
	// The order of the cases matters: a request to stop at once takes precedence over
	// the outcome of the last turn, and the outcome over a request to stop after the
	// turn.
	switch asked, last := s.run.ask, s.run.last; {
	case asked.Why != "" && !asked.AfterTurn:
		return Stop{Why: StopReason(asked.Why), Detail: asked.Detail}
	case s.overflowed():
		return s.nextForOverflow()
	case last.BrokeOff() && last.Refused > 0:
		return Stop{Why: StopBadItem, Detail: fmt.Sprintf("the endpoint refuses the item of entry %d: %s", last.Refused, last.Reason)}
	case last.BrokeOff() && !interrupted(last):
		return Stop{Why: StopProviderError, Detail: strings.Join(append([]string{last.Reason}, s.run.failed...), "; before that: ")}
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

// interrupted reports whether the process cancelled the turn without a request to end
// the run. The next process then asks again.
func interrupted(last session.TurnEnded) bool { return last.Status == item.StatusCancelled }

// nextForCalls closes calls that cannot run, gets verdicts for the rest, runs those
// that are allowed, and stops when all remaining calls wait for an answer. Entries
// identify a call only by its id, so calls with the same id are handled one after
// another.
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
		// The order matters: first wait for running calls, then close those that
		// cannot run, and only then look at the verdict.
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
	if slices.ContainsFunc(open, func(c session.OpenCall) bool { return s.run.waits[c.Seq] && c.Until.IsZero() }) {
		return Stop{Why: StopApprovalPending, Detail: s.waiting(open)}
	}
	return Stop{Why: StopNotYet, Detail: waitingForResults(open)}
}

// waitingForResults says what the calls wait for whose results are not there yet.
func waitingForResults(open []session.OpenCall) string {
	var list []string
	for _, c := range open {
		if what := ToolName(c.Item) + " (" + c.Reason + ")"; !c.Until.IsZero() && !slices.Contains(list, what) {
			list = append(list, what)
		}
	}
	return waitsFor + "the result of " + strings.Join(list, ", ")
}

// waitsFor begins the detail of a run that waits.
const waitsFor = "waiting for "

// waiting returns a text that names the tools of the calls that wait for an approval.
func (s *State) waiting(open []session.OpenCall) string {
	var names []string
	for _, c := range open {
		if name := ToolName(c.Item); s.run.waits[c.Seq] && c.Until.IsZero() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return waitsFor + "approval of " + strings.Join(names, ", ")
}

// stopNow reports whether the run should end without waiting for the end of its turn.
func (s *State) stopNow() bool { return s.run.ask.Why != "" && !s.run.ask.AfterTurn }

// settled returns the stop for a run in which nothing waits for an answer.
func (s *State) settled() Stop {
	switch last := s.run.last; {
	case s.run.turns == 0:
		return Stop{Why: StopNothingToSend}
	case last.Status == item.StatusIncomplete:
		return Stop{Why: StopIncomplete, Detail: last.Reason}
	case s.run.refusal:
		return Stop{Why: StopRefused}
	case s.run.empty:
		return Stop{Why: StopEmptyReply, Detail: s.silence()}
	case s.run.truncation != "" && !s.Room.On:
		return Stop{Why: StopContextFull, Detail: "the model replied without seeing the beginning of the history: " + s.run.truncation}
	}
	return Stop{Why: StopEndTurn, Detail: s.run.answering}
}

// silence describes an empty reply. If it contains calls, the endpoint answered them
// itself: outputs of other calls would be sent to the model.
func (s *State) silence() string {
	if s.called {
		return "the reply contains only calls that the endpoint answered itself, and no text about their results"
	}
	return "the model said nothing and called nothing"
}

// DefaultMaxTurns is the limit of turns of a run that sets none.
const DefaultMaxTurns = 100

// limit returns the stop for the first limit that forbids another turn.
func (s *State) limit() (Stop, bool) {
	l, r := s.Limits, &s.run
	l.MaxTurns = cmp.Or(l.MaxTurns, DefaultMaxTurns)
	byNested := ""
	if r.nested != (Usage{}) {
		byNested = ", subagents included"
	}
	if stop, reached := l.Reached(s.Used(), byNested); reached {
		return stop, true
	}
	if l.MaxRepeats > 0 {
		if text := r.repeats.found(l.MaxRepeats); text != "" {
			return Stop{StopRepeatedCall, text}, true
		}
	}
	return Stop{}, false
}

// AnswerNow reports whether the next turn is the last one that the limits are expected
// to allow, so that the model has to answer in it; and why, for people. It is false if
// Limits.AnswerNow is not set.
func (s *State) AnswerNow() (why string, now bool) {
	l := s.Limits
	if !l.AnswerNow {
		return "", false
	}
	l.MaxTurns = cmp.Or(l.MaxTurns, DefaultMaxTurns)
	return l.Near(s.Used(), s.LastReply(), "")
}

// Near reports whether the limits are expected to allow only one turn more after the
// given usage, and why, for people. The next reply is assumed to take at least as much
// as the last one. The reason ends with by, which says who used it.
func (l Limits) Near(used, last Usage, by string) (why string, near bool) {
	switch {
	case l.MaxTurns > 0 && used.Turns+1 >= l.MaxTurns:
		return fmt.Sprintf("the model had to answer in its last turn: %d of %d%s", used.Turns+1, l.MaxTurns, by), true
	case l.MaxTokens > 0 && last.Tokens > 0 && Plus(used.Tokens, last.Tokens) >= l.MaxTokens:
		return fmt.Sprintf("the model had to answer, because %d of %d tokens were used%s", used.Tokens, l.MaxTokens, by), true
	case l.MaxCost > 0 && last.Cost > 0 && used.Cost+last.Cost >= l.MaxCost:
		return fmt.Sprintf("the model had to answer, because %.6g of %.6g was spent%s", used.Cost, l.MaxCost, by), true
	}
	return "", false
}

// LastReply returns the usage of the run's last complete reply.
func (s *State) LastReply() Usage {
	return Usage{Turns: 1, Tokens: s.run.lastTokens, Cost: s.run.lastCost}
}

// Reached reports whether a limit allows no further turn after the given usage, and
// returns the stop that follows. A limit of 0 means no limit, and a negative one is
// reached at once: it is what is left of a limit that was exceeded. So is NaN. The detail ends with
// by, which says who used it.
func (l Limits) Reached(used Usage, by string) (Stop, bool) {
	switch {
	case l.MaxTurns != 0 && used.Turns >= l.MaxTurns:
		return Stop{StopMaxTurns, fmt.Sprintf("%d of %d turns are used%s", used.Turns, l.MaxTurns, by)}, true
	case l.MaxTokens != 0 && used.Tokens >= l.MaxTokens:
		return Stop{StopMaxTokens, fmt.Sprintf("%d tokens were used, of %d%s", used.Tokens, l.MaxTokens, by)}, true
	case l.MaxCost != 0 && !(used.Cost < l.MaxCost): // nothing is below a NaN, so it stops the run
		return Stop{StopMaxCost, fmt.Sprintf("%.6g was spent, of %.6g%s", used.Cost, l.MaxCost, by)}, true
	}
	return Stop{}, false
}
