// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Event is something that happened in a run: [TurnStarted], [TextDelta],
// [ReasoningDelta], [ModelEvent], [ItemDone], [ApprovalAsked], [CallStarted],
// [CallRefused], [CallDone], [CallPaused], [TurnEnded], [ReasoningDropped],
// [ItemsWithdrawn], [Quarantined], [Compacting], [Compacted], [Restored], [Collapsed], [Noticed],
// [Nested] or [Stopped].
type Event interface {
	// Name is the event's name in JSON lines.
	Name() string
}

// TurnStarted says that the model is being asked.
type TurnStarted struct {
	Turn int `json:"turn"`
	// Setup says who is asked, with what: in the first turn of a run, and when it
	// changed. It is not to be changed.
	Setup *session.Setup `json:"setup,omitempty"`
}

// TextDelta is text of the reply as it comes. A refusal comes as text too. The texts
// of a reply's messages come one after another, each part whole before the next:
// where a server mixes them, what belongs to a later one waits.
type TextDelta struct {
	ItemID string `json:"item_id,omitempty"`
	Text   string `json:"text"`
	// Part is the part of the message that the text belongs to, from 0.
	Part int `json:"part,omitempty"`
}

// ReasoningDelta is reasoning, or a summary of it, as it comes.
type ReasoningDelta struct {
	ItemID string `json:"item_id,omitempty"`
	Text   string `json:"text"`
}

// ModelEvent is every other event of the model's stream.
type ModelEvent struct {
	Event item.Event `json:"-"`
}

// ItemDone is an item that the model said, whole and recorded. Partial says
// that the reply broke off in it.
type ItemDone struct {
	Turn    int       `json:"turn"`
	Item    item.Item `json:"item"`
	Partial bool      `json:"partial,omitempty"`
}

// ApprovalAsked says that a call waits for an answer. The run goes on with the
// calls that need none, and then stops.
type ApprovalAsked struct {
	Pending
}

// CallStarted says that a tool is about to run. Arguments are what it gets;
// Edited says that they are not what the model sent, and Early that the reply
// still comes.
type CallStarted struct {
	CallID    string `json:"call_id"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
	Edited    bool   `json:"edited,omitempty"`
	Early     bool   `json:"early,omitempty"`
	// By, From and Rule say who allowed it, or which rule: see session.Approval.
	By   string `json:"by,omitempty"`
	From string `json:"from,omitempty"`
	Rule string `json:"rule,omitempty"`
}

// CallRefused says that a call will not run because the policy, or somebody
// asked, said no. Its output follows as [CallDone].
type CallRefused struct {
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
	// NoApprover says that the call would have needed an approval and that
	// there was nobody to give one.
	NoApprover bool `json:"no_approver"`
	// By, From and Rule say who refused it, or which rule: see session.Approval.
	By   string `json:"by,omitempty"`
	From string `json:"from,omitempty"`
	Rule string `json:"rule,omitempty"`
}

// CallDone is the output of a call, recorded. Synthetic says that no tool ran
// for it.
type CallDone struct {
	CallID    string        `json:"call_id"`
	Tool      string        `json:"tool"`
	Item      item.Item     `json:"item"`
	Failed    bool          `json:"failed"`
	Error     string        `json:"error,omitempty"`
	Synthetic bool          `json:"synthetic,omitempty"`
	Took      time.Duration `json:"took_ns"`
	// Edited says that a hook changed the output.
	Edited bool `json:"edited,omitzero"`
	// LeftOut is how many bytes of text the model does not get, as the marks in the
	// output say. Kept are the ids under which texts are kept whole, and images and
	// files as they were before they were refused or replaced: see [tool.Spill].
	LeftOut int      `json:"left_out,omitzero"`
	Kept    []string `json:"kept,omitempty"`
	// Session is that of the nested run that the call was, if it was one.
	Session string `json:"session,omitempty"`
}

// CallPaused says that the nested run of a call waits for an approval. The call
// goes on, in the same session, when the run does.
type CallPaused struct {
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	Session string `json:"session"`
}

// TurnEnded says how a turn ended. Partial says that the reply broke off: its
// items are partial results, and its calls are not run.
type TurnEnded struct {
	Turn       int         `json:"turn"`
	ResponseID string      `json:"response_id,omitempty"`
	Status     string      `json:"status"`
	Reason     string      `json:"reason,omitempty"`
	Usage      *item.Usage `json:"usage,omitempty"`
	Partial    bool        `json:"partial,omitempty"`
	// Cost is what the reply cost, by [Agent.Prices].
	Cost float64 `json:"cost,omitempty"`
	// Model and ServiceTier are what the endpoint says answered, RequestID its
	// name for the exchange.
	Model       string `json:"model,omitempty"`
	ServiceTier string `json:"service_tier,omitempty"`
	RequestID   string `json:"request_id,omitempty"`
	// Cache compares the request with the one before; nil for a session's first.
	Cache *Cache `json:"cache,omitempty"`
}

// Nested is an event of a nested run, each that a run has but those of runs
// nested in it, which come as they are: Depth is 1 for a run that a call of this
// one started, more for those inside of it. CallID and Tool name the call that
// started it, Session is where its items are.
type Nested struct {
	Depth   int    `json:"depth"`
	Session string `json:"session"`
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
	// Kind is the name of the Event.
	Kind  string `json:"kind"`
	Event Event  `json:"data"`
}

// Innermost returns the event that is no [Nested]. A call that was refused in a
// nested run is told as a [CallRefused] in here.
func (n Nested) Innermost() Event {
	for {
		inner, ok := n.Event.(Nested)
		if !ok {
			return n.Event
		}
		n = inner
	}
}

// ReasoningDropped says that the endpoint could not read the reasoning that it
// was sent, so that the model is asked again without any.
type ReasoningDropped struct {
	Reason string `json:"reason"`
}

// Quarantined says that the endpoint refused the request for one item, or for
// one Member of it, so that
// the model is asked again with a marker in its place. Seq is the number of the
// session's entry that holds the item.
type Quarantined struct {
	Seq    int64  `json:"seq"`
	Member string `json:"member,omitempty"`
	Reason string `json:"reason"`
}

// Compacting says that something shorter is being made of what was sent before,
// which may take as long as a reply.
type Compacting struct {
	// By is session.BySummary, ByEndpoint or ByDropping.
	By string `json:"by"`
	// Tokens is an estimate of the next request, Items the number of those in it
	// that are to be replaced.
	Tokens int64 `json:"tokens"`
	Items  int   `json:"items"`
}

// Compacted is the event with the outcome of [Compacting]; the entry of the log
// is a [session.Compacted], and what an endpoint returns an [item.Compacted].
// The session's entry Seq records it; [Restore] takes it back.
type Compacted struct {
	Seq int64  `json:"seq"`
	By  string `json:"by"`
	// Items is how many were replaced, and Before and After are estimates of what
	// a request takes, in tokens.
	Items  int         `json:"items"`
	Before int64       `json:"before"`
	After  int64       `json:"after"`
	Usage  *item.Usage `json:"usage,omitempty"`
	Cost   float64     `json:"cost,omitempty"`
	// Failure says why it failed: then all is sent as it was.
	Failure string `json:"failure,omitempty"`
}

// Restored says that a compaction was taken back, that of the entry Seq, so that
// the model is asked again with what it stood for.
type Restored struct {
	Seq    int64  `json:"seq"`
	Reason string `json:"reason"`
}

// Collapsed says that markers are sent instead of the outputs of the entries
// Seqs from now on, because that of the entry By holds what they do.
type Collapsed struct {
	Seqs []int64 `json:"seqs"`
	By   int64   `json:"by"`
}

// Noticed is something that the person of the run is to know and that is not an
// error. It is recorded as a session.Noticed, which says what its members mean;
// a run tells of one kind about one item or call once.
type Noticed struct {
	Turn   int    `json:"turn,omitempty"`
	Kind   string `json:"kind"`
	ItemID string `json:"item_id,omitempty"`
	CallID string `json:"call_id,omitempty"`
	Text   string `json:"text"`
}

// Stopped is the last event of every run.
type Stopped struct {
	Why    StopReason `json:"why"`
	Detail string     `json:"detail,omitempty"`
	// Guard is the name of the Hooks that objected, if they have one.
	Guard  string `json:"guard,omitempty"`
	Totals Totals `json:"totals"`
	// All is what the run used, nested runs included: [Totals.All].
	All Spent `json:"all"`
	// Wanted are the calls that wait for an answer.
	Wanted []Pending `json:"wanted,omitempty"`
}

// Name implements [Event].
func (TurnStarted) Name() string { return "turn_started" }

// Name implements [Event].
func (TextDelta) Name() string { return "text_delta" }

// Name implements [Event].
func (ReasoningDelta) Name() string { return "reasoning_delta" }

// Name implements [Event].
func (ModelEvent) Name() string { return "model_event" }

// Name implements [Event].
func (ItemDone) Name() string { return "item_done" }

// Name implements [Event].
func (ApprovalAsked) Name() string { return "approval_asked" }

// Name implements [Event].
func (CallPaused) Name() string { return "call_paused" }

// Name implements [Event].
func (Nested) Name() string { return "nested" }

// Name implements [Event].
func (CallStarted) Name() string { return "call_started" }

// Name implements [Event].
func (CallRefused) Name() string { return "call_refused" }

// Name implements [Event].
func (CallDone) Name() string { return "call_done" }

// Name implements [Event].
func (TurnEnded) Name() string { return "turn_ended" }

// Name implements [Event].
func (ReasoningDropped) Name() string { return "reasoning_dropped" }

// Name implements [Event].
func (Quarantined) Name() string { return "quarantined" }

// Name implements [Event].
func (Compacting) Name() string { return "compacting" }

// Name implements [Event].
func (Compacted) Name() string { return "compacted" }

// Name implements [Event].
func (Restored) Name() string { return "restored" }

// Name implements [Event].
func (Collapsed) Name() string { return "collapsed" }

// Name implements [Event].
func (Noticed) Name() string { return "noticed" }

// Name implements [Event].
func (Stopped) Name() string { return "stopped" }

// modelEvent says a stream event the way a reader of the run wants it.
func (r *Run) modelEvent(e item.Event) Event {
	switch e.Type {
	case item.EventTextDelta, item.EventRefusalDelta:
		return TextDelta{ItemID: e.ItemID, Text: e.Delta}
	case item.EventReasoningTextDelta, item.EventSummaryTextDelta:
		return ReasoningDelta{ItemID: e.ItemID, Text: e.Delta}
	}
	return ModelEvent{Event: e}
}
