// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

// Effect is what a run does next: [Ask], [Skip], [Approve], [Call], [Compact] or
// [Stop]. Effects are what [State.Next] says, for tests and for tools that look into
// a log; a program that runs agents does not need them.
type Effect interface{ effect() }

// Ask is the effect of asking the model.
type Ask struct{ Turn int }

// CallRef names a call of the log: Seq is the number of its entry, Number that of
// the call among those of the session. [State.Call] finds it.
type CallRef struct {
	Seq    int64  `json:"entry"`
	Number int    `json:"number"`
	CallID string `json:"call_id"`
}

// Skip is the effect of answering calls that will not run, so that each has an
// output.
type Skip struct{ Calls []Skipped }

// Skipped is one call to close, and what the model reads about it.
type Skipped struct {
	CallRef
	Reason string `json:"reason,omitzero"`
}

// Approve is the effect of getting a verdict on each of the calls. To give one,
// see [Decide] and [Agent].Approver.
type Approve struct{ Calls []CallRef }

// Call is the effect of running the calls' tools, and of waiting for those that run already: calls that
// were started while the reply still came.
type Call struct{ Calls []CallRef }

// Collapse is the effect of sending markers instead of outputs that a later one
// holds again. It decides nothing: performing it is recording it.
type Collapse struct{ Outputs []Collapsed }

// Collapsed is one such decision: of the entries Seqs nothing is sent any more, for
// the output of the entry By holds what they do.
type Collapsed struct {
	Seqs []int64 `json:"entries"`
	By   int64   `json:"by"`
}

// Compact is the effect of sending something shorter instead of what was sent
// before. To do that to a session, see [Agent.Compact]; for what is in the log,
// [session.Compacted]; for the event, [Compacted].
type Compact struct {
	Through int64
	Kept    []int64
	By      string
	// Before is an estimate of the next request, Replaced of what is replaced in
	// it, in tokens.
	Before, Replaced int64
}

// Stop is the effect of ending the run. To end one, end its context, or call
// [Run.StopAfterTurn].
type Stop struct {
	Why    StopReason
	Detail string
}

func (Ask) effect()      {}
func (Skip) effect()     {}
func (Approve) effect()  {}
func (Call) effect()     {}
func (Collapse) effect() {}
func (Compact) effect()  {}
func (Stop) effect()     {}

// StopReason says why a run ended.
type StopReason string

// The stop reasons. After each of them the session holds a valid history that
// a later run can go on with.
const (
	Answered     StopReason = "answered"      // the model replied and called nothing
	Refused      StopReason = "refused"       // its reply is a refusal
	EmptyReply   StopReason = "empty_reply"   // its reply says nothing, and leaves no call to run
	Incomplete   StopReason = "incomplete"    // its reply reached a limit of the endpoint, or made a call that nobody can answer
	MaxTurns     StopReason = "max_turns"     // Limits.MaxTurns
	MaxTime      StopReason = "max_time"      // Limits.MaxTime
	MaxTokens    StopReason = "max_tokens"    // Limits.MaxTokens
	MaxCost      StopReason = "max_cost"      // Limits.MaxCost, or a Budget's
	RepeatedCall StopReason = "repeated_call" // Limits.MaxRepeats
	// ApprovalWanted: calls wait for somebody's answer. They are open in the
	// history; see [Wanted] and [Decide].
	ApprovalWanted StopReason = "approval_wanted"
	Vetoed         StopReason = "vetoed"         // a hook objected, or the tools could not be had
	Cancelled      StopReason = "cancelled"      // the context ended, or the range over the events did
	StoppedAfter   StopReason = "stopped"        // Run.StopAfterTurn
	ProviderError  StopReason = "provider_error" // the model could not be asked, or its reply broke off
	ContextFull    StopReason = "context_full"   // the history is longer than what the model takes
	BadItem        StopReason = "bad_item"       // the endpoint refuses an item that no marker can replace, or refuses the marker
	NothingToSend  StopReason = "nothing_to_send"
)
