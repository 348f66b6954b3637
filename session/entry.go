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
	// Time is when the store took it, for people: nothing is ordered by it. It
	// decides one thing, when the time of a run is over that goes on in another process.
	// It is zero where the store does not keep it, and in entries to be appended.
	Time time.Time
	Body
}

// Body is what an entry says: [Given], [RunStarted], [TurnStarted],
// [Received], [TurnEnded], [ApprovalAsked], [Approval], [CallStarted],
// [Nested], [Paused], [Answered], [Withdrawn], [ItemsWithdrawn],
// [ReasoningDropped], [Quarantined], [Compacted], [Restored], [Collapsed],
// [Noticed], [Superseded], [StopAsked], [Stopped] or [Note].
type Body interface{ body() }

// Given is an item that came from outside the run: what a person said, the
// prompt's messages, an imported history.
type Given struct{ Item item.Item }

// RunStarted opens a run. Limits count from here, unless it Resumes one; a turn without its end has
// broken off, and calls that were started before it and have no output have an
// unknown outcome.
type RunStarted struct {
	// Resumes says that the run before goes on: the process that performed an effect
	// of it ended before that was done, and this is another.
	Resumes bool
	// Setup says what makes the turns that follow. Nil means what the session's
	// last one says: see [Setup.Apply].
	Setup *Setup
	// Conversation is one of the endpoint's own that turns may be a part of from
	// here on. It is there if the log does not have it yet.
	Conversation Conversation
}

// TurnStarted records that the model is about to be asked, for the Turn-th
// time of the session, from 1.
type TurnStarted struct {
	Turn int
	// Setup is there if it changed since the run or the last turn began.
	Setup *Setup
	// Continues is the entry of the message that the reply is to go on with,
	// because that broke off and nobody said anything since: both are parts of one
	// reply. 0 if there is none.
	Continues int64
	// InConversation is the id of the endpoint's own conversation that the turn is a
	// part of, "" for none. The request carries what that does not hold yet.
	InConversation string
}

// Conversation names a conversation that an endpoint keeps, and the session that
// goes on with it: a copy of the session does not, for it would add to what the
// other has said.
type Conversation struct{ ID, Session string }

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
	// Model and ServiceTier are what the endpoint says answered, and RequestID is
	// its name for the exchange. Each is "" if it did not say.
	Model, ServiceTier, RequestID string
	// InConversation is the id of the conversation that the endpoint says the
	// response is a part of; "" if it named none.
	InConversation string
	// Window is the model's context in tokens if the endpoint tells it, and told
	// something else before. It holds from here on.
	Window int64
	// Profile names the kind of endpoint if the answer told another one than the
	// [Setup] has. It holds from here on.
	Profile string
	// Setup is what the request was made with if a hook changed it. It holds for
	// this turn alone.
	Setup *Setup
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
	// Reason is what the model reads about a refusal.
	Reason string
	// By names the person who gave the verdict, or the file it was taken from; ""
	// is a rule. From says how they answered, such as "terminal" or
	// "--approve-from", or where the rule comes from: see [Rule.From].
	By, From string
	// Rule is the rule that decided, in words, if nobody was asked.
	Rule string
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
// call started. Session is where its items are. Without a CallID it is the run
// of an agent that stood in a message, before the session began.
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

// ItemsWithdrawn records that a guard objected to what was said: from here on no
// request carries the items of the entries Seqs, which are of type [Given],
// [Received] or [Answered]. The log keeps them. A call goes with its output, and
// reasoning with the item that it led to; an output alone is replaced by a text
// that says so. A compaction that was made of such an item before stays as it is.
type ItemsWithdrawn struct {
	Seqs []int64
	// Reason says why, for people; the model reads it instead of an output.
	Reason string
	// By names the guard.
	By string
}

// ReasoningDropped records that the endpoint could not read reasoning that it
// was sent, and the decision to send none of what was recorded before: from
// here on the view leaves it out. The log keeps it.
type ReasoningDropped struct{ Reason string }

// Quarantined records that the endpoint refused a request because of one item,
// the one of entry Seq, and the decision to send a marker instead. With a Member
// the rest of the item is sent, without that member. The log keeps the item. See
// [Marker] for what can be replaced, and [Spare] for members.
type Quarantined struct {
	Seq int64
	// Member is the name of a member of the item, "" for the item as a whole.
	Member string
	// Reason is what the endpoint said. The model is told.
	Reason string
}

// How a [Compacted] came about.
const (
	BySummary  = "summary"  // a model wrote what there is to know of it
	ByEndpoint = "endpoint" // the endpoint's own compaction
	ByDropping = "dropping" // nothing stands in its place but a remark
)

// Compacted records the decision to send something shorter instead of items that
// were sent before. The log keeps them: a [Restored] brings them back, and a
// fork from before it has never lost them.
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
	// Items are sent instead of what was replaced, after what stays of it.
	Items []item.Item
	// Failure says why it failed; "" if it did not. With one, all is sent as it
	// was.
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

// Collapsed records the decision to send a short marker instead of the
// outputs of reads, because a later read of the same brought it again. The log
// keeps them. Only outputs of functions and custom tools can be meant.
type Collapsed struct {
	// Seqs are the numbers of the outputs' entries, By that of the output that
	// holds what they did.
	Seqs []int64
	By   int64
}

// Noticed records something that the person of the run is to know and that is
// not an error: the run goes on. It is shown when it happens, and kept here for
// those who read the log later. It is never sent. A run records a notice of one
// kind about one item or call once.
type Noticed struct {
	// Turn is the turn it is about; 0 if it is about none.
	Turn int
	// Kind is one of the constants Notice…, or a name that a newer program uses.
	Kind string
	// ItemID and CallID name what it is about, where they are known.
	ItemID, CallID string
	// Text says it in a sentence for people, without secrets.
	Text string
}

// The kinds of [Noticed]. Each is documented here and nowhere else; a new one
// needs a constant.
const (
	// NoticeEntryLost: what was stored of an entry was damaged, and this stands in
	// its place in a copy that holds the rest. It may have been anything: the start
	// of a call, its output, a guard's objection. So calls that have no output by
	// then count as lost, see [OpenCall.Lost], approvals given before are void, and
	// nothing is sent until a [NoticeGapsAccepted] follows.
	NoticeEntryLost = "entry_lost"
	// NoticePayloadLost: the same where a payload of the entry was damaged, so that
	// it is known that it was an item, such as the output of a call.
	NoticePayloadLost = "payload_lost"
	// NoticeSalvaged: the entries before it are a copy of those of a damaged session.
	// Approvals that were not used by then are void: the other session has them, too.
	NoticeSalvaged = "salvaged"
	// NoticeGapsAccepted: a person knows that entries before it were lost, and wants
	// the session to go on. What a guard had withdrawn by one of them is sent again.
	NoticeGapsAccepted = "gaps_accepted"
	// NoticeTextDiffers: the text that was shown while the reply came differs from
	// the text of the item that is stored and sent.
	NoticeTextDiffers = "text_differs"
	// NoticeReasoningDiffers: the same of reasoning, or a summary of it.
	NoticeReasoningDiffers = "reasoning_differs"
	// NoticeArgumentsDiffer: the same of a call's arguments or input. The call runs
	// with those that are stored.
	NoticeArgumentsDiffer = "arguments_differ"
	// NoticeFinalDiffers: the last event of a reply had another text of an item than
	// the item that was announced as done. That one is stored and sent.
	NoticeFinalDiffers = "final_differs"
	// NoticeEventsMissing: the numbers of a reply's events have gaps.
	NoticeEventsMissing = "events_missing"
	// NoticeEventsRepeated: numbers of a reply's events came again.
	NoticeEventsRepeated = "events_repeated"
	// NoticeSameCallID: two calls of a reply have one call id. Both are kept; what is
	// sent gives the second another id.
	NoticeSameCallID = "same_call_id"
	// NoticeTextLost: a reply said something that is part of no item that is stored, such
	// as text that was shown while it came, or a second choice of Chat Completions.
	NoticeTextLost = "text_lost"
	// NoticeItemMissing: a reply that was completed lacks an item of which a part had
	// come. A message is kept as one that broke off; a call is not run.
	NoticeItemMissing = "item_missing"
	// NoticeHalfCharacter: a text ended in half a character, as texts do that were cut
	// by UTF-16. U+FFFD is kept in its place.
	NoticeHalfCharacter = "half_character"
	// NoticeForeignRole: a reply had a message under the role of a person, the system
	// or the developer. It is kept as one of the assistant.
	NoticeForeignRole = "foreign_role"
	// NoticeUsageWrong: the endpoint reported numbers of tokens that cannot be true.
	NoticeUsageWrong = "usage_wrong"
	// NoticeEventSkipped: something in a stream was not an event, and was left out.
	NoticeEventSkipped = "event_skipped"
	// NoticeDisarmed: stands where an import dropped an entry that would let
	// something run.
	NoticeDisarmed = "disarmed"
	// NoticeHistoryCut: the endpoint answered a request of which it left out the
	// beginning, for its context does not hold all of it.
	NoticeHistoryCut = "history_cut"
	// NoticeImagesRefused: the endpoint refused a request, and took it with markers
	// instead of its images.
	NoticeImagesRefused = "images_refused"
	// NoticeWholeHistory: the transport that was asked for sends what is new alone;
	// at this endpoint the whole history goes with each request.
	NoticeWholeHistory = "whole_history"
	// NoticeSummaryInstead: a compaction by the endpoint was asked for, which has
	// none, and the model wrote a summary.
	NoticeSummaryInstead = "summary_instead"
	// NoticeNotJudged: the run ended while its hooks looked at the last reply. The
	// next run has them judge it before anything is sent.
	NoticeNotJudged = "not_judged"
	// NoticeJudged: the hooks have seen the last reply, and do not object. It is there
	// where the next effect may be performed by another process.
	NoticeJudged = "judged"
)

// Superseded records the decision to leave out what was said of a reply before it
// broke off, because another entry says it again from its beginning. The log
// keeps it.
type Superseded struct {
	// Seqs are the numbers of the entries that are left out, By that of the message
	// that holds what they said.
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
func (ItemsWithdrawn) body()   {}
func (ReasoningDropped) body() {}
func (Quarantined) body()      {}
func (Compacted) body()        {}
func (Restored) body()         {}
func (Collapsed) body()        {}
func (Noticed) body()          {}
func (Superseded) body()       {}
func (StopAsked) body()        {}
func (Stopped) body()          {}
func (Note) body()             {}
