// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package plan

// Effect is the next step of a run: [Ask], [Skip], [Approve], [Call], [Collapse],
// [Compact] or [Stop]. [State.Next] predicts it from a log, and agent.Agent.Step
// performs it and returns it.
//
//sumtype:decl
type Effect interface{ effect() }

// Ask is the effect of asking the model.
type Ask struct{ Turn int }

// CallRef identifies a call in the log: Seq is the number of its entry, and Number
// counts the calls of the session. [State.Call] finds the call.
type CallRef struct {
	Seq    int64  `json:"entry"`
	Number int    `json:"number"`
	CallID string `json:"call_id"`
}

// Skip is the effect of answering calls that will not run, so that each call has an
// output.
type Skip struct{ Calls []Skipped }

// Skipped is a call to close, with the reason that the model reads.
type Skipped struct {
	CallRef
	Reason string `json:"reason,omitzero"`
}

// Approve is the effect of getting a verdict on each call. A program gives verdicts
// with agent.Decide or an approver.
type Approve struct{ Calls []CallRef }

// Call is the effect of running the calls' tools. It includes waiting for calls that
// started while the reply was still arriving.
type Call struct{ Calls []CallRef }

// Collapse is the effect of sending markers instead of outputs that a later output
// repeats. Performing it only records the decision.
type Collapse struct{ Outputs []Collapsed }

// Collapsed is one such decision: the entries Seqs are sent as markers, because the
// output of entry By has the same content.
type Collapsed struct {
	Seqs []int64 `json:"entries"`
	By   int64   `json:"by"`
}

// Compact is the effect of sending a shorter text in place of older items. To compact
// a session, use Agent.Compact of package agent; the log records it as
// [session.Compacted].
type Compact struct {
	Through int64
	Kept    []int64
	By      string
	// Before estimates the size of the next request, and Replaced the size of the
	// items to replace, both in tokens.
	Before, Replaced int64
}

// Stop is the effect of ending the run. To end a run, cancel its context, or call
// Run.StopAfterTurn of package agent.
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

// The stop reasons. After each of them the session holds a valid history that a later
// run can continue.
const (
	StopEndTurn      StopReason = "answered"      // the model replied and called nothing
	StopRefused      StopReason = "refused"       // the reply is a refusal
	StopUnfit        StopReason = "unfit"         // the answer does not fit what it must be, and repairs are used up
	StopEmptyReply   StopReason = "empty_reply"   // the reply has no text and no call to run
	StopIncomplete   StopReason = "incomplete"    // the reply reached a limit of the endpoint
	StopMaxTurns     StopReason = "max_turns"     // Limits.MaxTurns, or a Budget's
	StopMaxTime      StopReason = "max_time"      // Limits.MaxTime
	StopMaxTokens    StopReason = "max_tokens"    // Limits.MaxTokens, or a Budget's
	StopMaxCost      StopReason = "max_cost"      // Limits.MaxCost, or a Budget's
	StopRepeatedCall StopReason = "repeated_call" // Limits.MaxRepeats
	// StopApprovalPending means that calls wait for an approval. They stay open in the
	// history; see PendingApprovals and Decide of package agent.
	StopApprovalPending StopReason = "approval_wanted"
	// StopNotYet means that all that is left to do is to wait for calls whose tools said
	// [tool.NotYet]. They stay open in the history. See Agent.Park of package agent.
	//
	// [tool.NotYet]: https://pkg.go.dev/github.com/antiphon-go/antiphon/tool#NotYet
	StopNotYet StopReason = "not_yet"
	// StopVetoed means that a hook or a guard objected or failed, or that the agent's
	// ToolSource returned an error.
	StopVetoed StopReason = "vetoed"
	// StopCancelled means that the context ended, or that the caller stopped ranging over the
	// events. The detail is the cause of the context, if its caller gave one.
	StopCancelled StopReason = "cancelled"
	// StopRequested means that somebody asked the run to stop: by Run.StopAfterTurn, or by
	// a session.StopAsked in the inbox, such as that of antiphon sessions stop.
	StopRequested     StopReason = "stopped"
	StopProviderError StopReason = "provider_error" // the model could not be asked, or its reply broke off
	StopContextFull   StopReason = "context_full"   // the history does not fit into the model's context
	StopBadItem       StopReason = "bad_item"       // the endpoint refuses an item, and a marker cannot replace it
	// StopNothingToSend means that the run was given no input, and the log has nothing
	// that the model has not answered. The run's error is ErrNothingToSend of package agent.
	StopNothingToSend StopReason = "nothing_to_send"
)
