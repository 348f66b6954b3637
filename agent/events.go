// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/session"
)

// Event is an event of a run: a [Recorded] entry of the log, a [Delta] of text as it
// arrives, or [Progress]. Events of a subagent are wrapped in a [SubagentEvent], so
// that a program that prints the text of a run does not mix in the text of others.
//
// Events are values: a yielded event does not change. [AppendEvent] and [ParseEvent]
// write and read their JSON, which docs/events.md describes.
type Event interface{ event() }

// Recorded is an entry of the session's log. It is yielded only after the entry is
// durable, so a crash cannot lose an entry that an observer has seen. The last event
// of every run is the entry [session.Stopped].
//
// A run yields its entries from [session.RunStarted] on, including those of the input
// that it was started with. It does not yield what was in the log before; [Watch] does.
//
// Entries are yielded in the order of the log, with two exceptions: if a server
// interleaves the messages of a reply, the entry of a message follows the message's
// text; and with [Agent].HoldOutput the items of a reply that a hook objects to are
// left out. Neither exception applies to [Watch].
type Recorded struct {
	session.Entry
}

// Delta is a piece of a text as it arrives. It is never stored: the entry of its item
// holds the whole text.
//
// The texts of a reply's messages are yielded one after another, each part complete
// before the next. If a server interleaves them, the later text waits.
type Delta struct {
	Kind DeltaKind
	// ItemID is the server's id of the item; it may be "".
	ItemID string
	// Part is the index of the text's part in its message or summary.
	Part int
	Text string
}

// DeltaKind is the kind of text that a [Delta] extends.
type DeltaKind string

// The kinds of [Delta].
const (
	DeltaText      DeltaKind = "text"      // the text of a message
	DeltaRefusal   DeltaKind = "refusal"   // the text of a refusal
	DeltaReasoning DeltaKind = "reasoning" // reasoning, if the server sends it
	DeltaSummary   DeltaKind = "summary"   // a summary of reasoning
	DeltaArguments DeltaKind = "arguments" // the arguments or the input of a call
	DeltaCode      DeltaKind = "code"      // the code of a call of the code interpreter
	DeltaAgent     DeltaKind = "agent"     // the text of a message between agents at the endpoint: see [item.Item.FromSubagent]
)

// Progress reports something about a run that the log does not hold. The Kind
// determines which fields are set.
type Progress struct {
	Kind ProgressKind

	// Turn is the number of the turn in the session, from 1. CallID and Tool are the id of
	// the call that the report is about, and the name of its tool.
	Turn   int
	CallID string
	Tool   string

	// By, Tokens and Items belong to [ProgressCompacting]: session.BySummary,
	// ByEndpoint or ByDropping, an estimate of the next request in tokens, and the
	// number of items to replace.
	By     string
	Tokens int64
	Items  int

	// Took, Error, LeftOut and Kept belong to [ProgressReturned]. LeftOut is the
	// number of bytes of text that the model does not get. Kept are the ids of stored
	// originals: complete texts, and images and files that were refused or replaced.
	// See [output.Store].
	Took    time.Duration
	Error   string
	LeftOut int
	Kept    []string

	// Wait, Reason and Retry belong to [ProgressDelayed]: how long the call waits, why,
	// in words for people, and whether its tool has failed and will run again. With
	// [ProgressUnapproved], Reason says why no rule that allows the tool would cover the
	// call; it is empty if one would.
	Wait   time.Duration
	Reason string
	Retry  bool

	Handoff string           // of ProgressSpeaker: the name of the Handoff
	Pending *PendingApproval // of ProgressWaiting
	Cache   *Cache           // of ProgressCache
	Totals  *Totals          // of ProgressTotals
	// Tripwire belongs to [ProgressTripped]. Its Value is left out of the JSON if it has
	// none.
	Tripwire *Tripwire
	Event    *api.Event // of ProgressModel
}

// ProgressKind is the kind of a [Progress].
type ProgressKind string

// The kinds of [Progress].
const (
	// ProgressModel is an event of the model's stream that neither a delta nor an
	// entry represents: the start of an item, the progress of a search, a partial
	// image.
	ProgressModel ProgressKind = "model"
	// ProgressReturned means that the tool of a call has returned. The entry of its
	// output follows, unless the call waits.
	ProgressReturned ProgressKind = "returned"
	// ProgressWaiting means that a call waits for an approval, which Pending
	// describes. The run continues with the calls that need none, and then stops.
	ProgressWaiting ProgressKind = "waiting"
	// ProgressUnapproved means that a call is refused because it needs an approval
	// and no approver is available. The entry of the verdict follows.
	ProgressUnapproved ProgressKind = "unapproved"
	// ProgressDelayed means that a call waits before its tool runs, or runs again after
	// an error or because its result is not there yet: see [tool.Rate], [tool.Retry] and
	// [tool.NotYet].
	ProgressDelayed ProgressKind = "delayed"
	// ProgressSpeaker reports that an agent to which the conversation was handed makes
	// the turn's request. Handoff names it. It is reported at the first request of a run
	// and after each handoff.
	ProgressSpeaker ProgressKind = "speaker"
	// ProgressCache compares the request of a turn that has ended with the one before.
	ProgressCache ProgressKind = "cache"
	// ProgressCompacting means that a compaction has started, which may take as long
	// as a reply. The entry session.Compacted follows.
	ProgressCompacting ProgressKind = "compacting"
	// ProgressTripped means that a guard objects, which Tripwire describes. The entry
	// session.ItemsWithdrawn follows.
	ProgressTripped ProgressKind = "tripped"
	// ProgressTotals reports the usage of the run. The entry session.Stopped follows.
	ProgressTotals ProgressKind = "totals"
)

// Subagent identifies the subagent of an event.
type Subagent struct {
	// Depth is 1 for a subagent that a call of this run started, and higher for
	// subagents inside it.
	Depth int `json:"depth"`
	// Session is the id of the subagent's session, and CallID and Tool identify the
	// call that started it.
	Session string `json:"session"`
	CallID  string `json:"call_id"`
	Tool    string `json:"tool"`
}

// SubagentEvent is an event of a subagent: a [Recorded] of its own session, a [Delta]
// or a [Progress], and never another SubagentEvent. The entry session.Stopped in it
// ends the subagent's run.
type SubagentEvent struct {
	Subagent
	Event Event
}

func (Recorded) event()      {}
func (Delta) event()         {}
func (Progress) event()      {}
func (SubagentEvent) event() {}

// Watch yields the entries of a session with numbers greater than after, and
// continues with entries that this or another process appends, until ctx ends. A
// reader that stores the Seq of the last entry it has seen can resume from there
// after a crash of the reader or of the run. The events are the same [Recorded]
// events that the run yields. There are no deltas and no progress, because they are
// not stored. Watch yields an error once; the error wraps [errors.ErrUnsupported] if
// the session's store cannot watch. Watch may be used during a run.
func Watch(ctx context.Context, s *session.Session, after int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for e, err := range s.Watch(ctx, after) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(Recorded{e}, nil) {
				return
			}
		}
	}
}

// deltaKind returns the kind of [Delta] for a stream event, or "".
func deltaKind(t api.EventType) DeltaKind {
	switch t {
	case api.EventTextDelta:
		return DeltaText
	case api.EventRefusalDelta:
		return DeltaRefusal
	case api.EventReasoningTextDelta:
		return DeltaReasoning
	case api.EventSummaryTextDelta:
		return DeltaSummary
	case api.EventArgumentsDelta, api.EventCustomInputDelta, api.EventMCPArgumentsDelta:
		return DeltaArguments
	case api.EventCodeDelta:
		return DeltaCode
	}
	return ""
}

// saidByEntries reports whether entries or deltas fully represent a stream event: the
// start and end of the reply, and its complete parts.
func saidByEntries(t api.EventType) bool {
	switch t {
	case api.EventCreated, api.EventInProgress, api.EventCompleted, api.EventIncomplete, api.EventFailed, api.EventCancelled,
		api.EventItemDone, api.EventPartAdded, api.EventPartDone, api.EventTextDone, api.EventRefusalDone,
		api.EventReasoningTextDone, api.EventSummaryPartAdded, api.EventSummaryPartDone, api.EventSummaryTextDone,
		api.EventArgumentsDone, api.EventCustomInputDone, api.EventMCPArgumentsDone, api.EventCodeDone:
		return true
	}
	return strings.HasPrefix(string(t), "keepalive")
}
