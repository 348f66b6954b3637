// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/antiphon-go/antiphon/item"
)

// Entry is one step of a session, as a store keeps it.
type Entry struct {
	// Seq counts the session's entries from 1, without gaps.
	Seq int64
	// Time is when the store took it, for people: nothing is decided by it. It is
	// zero where the store does not keep it, and in entries to be appended.
	Time time.Time
	Body
}

// Body is what an entry says: [Given], [RunStarted], [TurnStarted],
// [Received], [TurnEnded], [ApprovalAsked], [Approval], [CallStarted],
// [Nested], [Paused], [Answered], [Withdrawn], [ReasoningDropped],
// [Quarantined], [Compacted], [Restored], [Collapsed], [StopAsked], [Stopped] or
// [Note].
type Body interface{ body() }

// Given is an item that came from outside the run: what a person said, the
// prompt's messages, an imported history.
type Given struct{ Item item.Item }

// RunStarted opens a run. Limits count from here; a turn without its end has
// broken off, and calls that were started before it and have no output have an
// unknown outcome.
type RunStarted struct{}

// TurnStarted records that the model is about to be asked, for the Turn-th
// time of the session, from 1.
type TurnStarted struct{ Turn int }

// Received is an item that the model said in a turn, whole unless Partial is
// set: then it is what had been said of a message when the reply broke off. If
// the turn has no end, or one that says that it broke off, all its items are
// partial results; their calls that were not started are not sent.
type Received struct {
	Turn    int
	Item    item.Item
	Partial bool
}

// TurnEnded records how a turn ended.
type TurnEnded struct {
	Turn       int
	ResponseID string
	// Status is a response's status; failed and cancelled also stand for
	// replies that broke off on the way.
	Status string
	// Reason says why a reply is incomplete, or which error ended it.
	Reason string
	// Class is the kind of that error, as package endpoint names it, or "".
	Class string
	Usage *item.Usage
	// Refused is the number of the entry whose item the request was refused for,
	// if one is known and nothing could be put in its place; 0 if not.
	Refused int64
	// Cost is what the reply cost, as the caller's prices say.
	Cost float64
}

// BrokeOff reports whether the reply ended before its last event, or with a
// failure.
func (t TurnEnded) BrokeOff() bool {
	return t.Status == item.StatusFailed || t.Status == item.StatusCancelled
}

// ApprovalAsked records that a call waits for somebody's verdict. It has not
// been started.
type ApprovalAsked struct {
	CallID string
	// Number is the call's own; see [OpenCall].
	Number int
	// Tool and Arguments are the call as the model made it; Custom says that
	// the arguments are the free text of a custom tool.
	Tool, Arguments string
	Custom          bool
	// Reason says why it is asked about.
	Reason string
	// Rules are what an answer could leave behind.
	Rules []Rule
}

// Approval is the verdict on a call that was about to run. Of several, the last
// one holds.
type Approval struct {
	CallID string
	// Number is the call's own, for verdicts that came from outside the run; 0 in
	// others. See [OpenCall].
	Number  int
	Allowed bool
	// Reason is what the model is told about a refusal.
	Reason string
	// By names who gave the verdict; "" is the policy.
	By string
	// Edited is what the tool is given in place of the arguments that the model
	// sent, "" for those. The call itself stays as it was said.
	Edited string
	// Remember is a rule for later calls of the session, if one was given.
	Remember *Rule
}

// CallStarted records that a tool is about to run for a call. It is written
// before the tool starts.
type CallStarted struct {
	CallID string
	// Arguments is what the tool is given if that is not what the model sent:
	// somebody edited it, or a hook did.
	Arguments string
	// Session is where the run goes on that the call stands for, if it is one:
	// then the call is not lost in a crash, but goes on as if it were [Paused].
	Session string
	// Repeatable says that the tool declares that the same call may be run again
	// if a crash hides what became of it.
	Repeatable bool
}

// Nested records what the run of another agent, or of a fork, came to that a
// call started. Session is where its items are.
type Nested struct {
	CallID  string
	Session string
	Turns   int
	Tokens  int64
	Cost    float64
}

// Paused takes the start of a call back: the run in the session Session that it
// stands for waits for an approval, and goes on when the call is started again.
type Paused struct {
	CallID  string
	Session string
}

// Answered is the output of a call.
type Answered struct {
	CallID string
	Item   item.Item
	Failed bool
	// Edited says that a hook changed what the tool put out.
	Edited bool
}

// Withdrawn takes a call out of the view that can have no output, such as a
// computer call that was never carried out. The log keeps it.
type Withdrawn struct {
	CallID string
	Reason string
}

// ReasoningDropped records that the endpoint could not read reasoning that it
// was sent, and the decision to send none of what was recorded before: from
// here on the view leaves it out. The log keeps it.
type ReasoningDropped struct{ Reason string }

// Quarantined records that the endpoint refused a request because of one item,
// the one of entry Seq, and the decision to send a marker in its place. The log
// keeps the item. See [Marker] for what can be replaced.
type Quarantined struct {
	Seq int64
	// Reason is what the endpoint said. The model is told.
	Reason string
}

// How a [Compacted] came about.
const (
	BySummary  = "summary"  // a model wrote what there is to know of it
	ByEndpoint = "endpoint" // the endpoint's own compaction
	ByDropping = "dropping" // nothing stands in its place but a remark
)

// Compacted records the decision to send something shorter in the place of
// items that were sent before. The log keeps them: a [Restored] brings them
// back, and a fork from before it has never lost them.
type Compacted struct {
	// Through is the number of the last entry that is replaced, with all items
	// before it but the instructions: messages of the system and the developer
	// stay as they are. A reply and the outputs of its calls are replaced together:
	// one of which Through has a part only stays, and so does what follows it. See
	// [View.Boundary].
	Through int64
	// Kept are the numbers of entries before it whose items stay too: what
	// others said, and not the model.
	Kept []int64
	// By says how: [BySummary], [ByEndpoint] or [ByDropping].
	By string
	// Items stand in the place of what was replaced, behind what stays of it.
	Items []item.Item
	// Failure says why nothing came of it; "" if something did. With one, all is
	// sent as it was.
	Failure string
	// Before and After are estimates of what a request carries, in tokens.
	Before, After int64
	// Usage and Cost are what it took.
	Usage *item.Usage
	Cost  float64
}

// Restored takes the [Compacted] of entry Seq back, and those that came after
// it: from here on the view carries again what they replaced.
type Restored struct{ Seq int64 }

// Collapsed records the decision to send a short marker in the place of the
// outputs of reads, because a later read of the same brought it again. The log
// keeps them. Only outputs of functions and custom tools can be meant.
type Collapsed struct {
	// Seqs are the numbers of the outputs' entries, By that of the output that
	// holds what they did.
	Seqs []int64
	By   int64
}

// StopAsked records that the run should end: now, or when the turn under way
// has ended. Why is the stop reason that follows from it.
type StopAsked struct {
	Why       string
	AfterTurn bool
	// Detail says more about it, for people.
	Detail string
}

// Stopped closes a run.
type Stopped struct {
	Why    string
	Detail string
}

// Note is a message for people, such as a debug or evaluation line. It is kept
// and never sent.
type Note struct{ Item item.Item }

func (Given) body()            {}
func (RunStarted) body()       {}
func (TurnStarted) body()      {}
func (Received) body()         {}
func (TurnEnded) body()        {}
func (ApprovalAsked) body()    {}
func (Approval) body()         {}
func (CallStarted) body()      {}
func (Nested) body()           {}
func (Paused) body()           {}
func (Answered) body()         {}
func (Withdrawn) body()        {}
func (ReasoningDropped) body() {}
func (Quarantined) body()      {}
func (Compacted) body()        {}
func (Restored) body()         {}
func (Collapsed) body()        {}
func (StopAsked) body()        {}
func (Stopped) body()          {}
func (Note) body()             {}
