// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
)

// Entry is one step of a session in the form that a store keeps.
type Entry struct {
	// Seq numbers the session's entries from 1, without gaps.
	Seq int64
	// Time is when the store accepted the entry. It is meant for people, and entries
	// are not ordered by it. It has one effect: the time limit of a run that continues
	// in another process counts from it. It is zero where the store does not keep it,
	// and in entries to be appended.
	Time time.Time
	Body
}

// Body is the content of an entry: [InputItem], [RunStarted], [TurnStarted], [OutputItem],
// [TurnEnded], [ApprovalAsked], [Approval], [CallStarted], [SubagentUsage], [Paused],
// [CallOutput], [CallDropped], [ItemsWithdrawn], [ReasoningDropped], [Quarantined],
// [Compacted], [Restored], [Collapsed], [Noticed], [Superseded], [Delivered],
// [StopAsked], [Stopped] or [Note].
type Body interface{ body() }

// InputItem is an item that came from outside the run: a person's message, the messages
// of the prompt, or an imported history.
type InputItem struct {
	Item item.Item
	// Own means that the run wrote the item, to tell the model about its answer or its
	// call. Nobody said it.
	Own bool
}

// RunStarted opens a run. Limits count from here, unless Resumes is set. A turn
// before it without an end has broken off, and calls that were started before it and
// have no output have an unknown outcome.
type RunStarted struct {
	// Resumes reports that this entry continues the previous run: the process that
	// performed one of its effects ended before the effect was complete, and another
	// process takes over.
	Resumes bool
	// Setup describes how the following turns are made. Nil means that the session's
	// last setup still holds: see [Setup.Apply].
	Setup *Setup
	// Conversation is a conversation kept by the endpoint that turns may belong to
	// from here on. It is set if the log does not name it yet.
	Conversation Conversation
}

// TurnStarted records that the model is about to be asked. Turn counts the turns of
// the session from 1.
type TurnStarted struct {
	Turn int
	// Setup is set if it changed since the run or the last turn began.
	Setup *Setup
	// Continues is the number of the entry whose message the reply should continue:
	// that message broke off and nobody said anything since. Both are parts of one
	// reply. It is 0 if there is no such message.
	Continues int64
	// InConversation is the id of the endpoint's conversation that the turn belongs
	// to, or "". The request carries only the items that this conversation does not
	// hold yet.
	InConversation string
}

// Conversation names a conversation that an endpoint keeps, and the session that
// uses it. A copy of the session does not use it, because it would add to the other
// session's conversation.
type Conversation struct{ ID, Session string }

// OutputItem is an item that the model produced in a turn. It is complete unless
// Partial is set, which marks the text of a message up to the point where the reply
// broke off. If the turn has no end, or its end says that it broke off, all its
// items are partial results, and its calls that were not started are not sent.
type OutputItem struct {
	Turn    int
	Item    item.Item
	Partial bool
}

// TurnEnded records how a turn ended.
type TurnEnded struct {
	Turn       int
	ResponseID string
	// Status is the response's status. The values failed and cancelled also mark
	// replies that broke off during transfer.
	Status string
	// Reason says why a reply is incomplete, or which error ended it.
	Reason string
	// Class is the kind of the error, with the names of package endpoint, or "".
	Class string
	Usage *api.Usage
	// Refused is the number of the entry whose item caused the endpoint to refuse the
	// request, if it is known and no replacement exists; otherwise 0.
	Refused int64
	// Cost is the cost of the reply according to the caller's prices.
	Cost float64
	// Model, ServiceTier and RequestID are the model, the tier and the name of the
	// exchange that the endpoint reported. Each is "" if the endpoint did not report
	// it.
	Model, ServiceTier, RequestID string
	// InConversation is the id of the conversation that the endpoint assigned the
	// response to, or "".
	InConversation string
	// Window is the size of the model's context in tokens, if the endpoint reported a
	// new value. It holds until the model or the endpoint changes.
	Window int64
	// Profile names the kind of endpoint, if the answer revealed another kind than the
	// [Setup] has. It holds from here on.
	Profile string
	// Setup is the setup of the request if a hook changed it. It holds for this turn
	// only.
	Setup *Setup
}

// BrokeOff reports whether the reply ended before its last event or with a failure.
func (b TurnEnded) BrokeOff() bool {
	return b.Status == item.StatusFailed || b.Status == item.StatusCancelled
}

// ApprovalAsked records that a call waits for a verdict. The call has not been
// started.
type ApprovalAsked struct {
	CallID string
	// Number identifies the call; see [OpenCall].
	Number int
	// Tool and Arguments are the call as the model made it. Custom means that the
	// arguments are the free text of a custom tool.
	Tool, Arguments string
	Custom          bool
	// Reason says why approval is needed.
	Reason string
	// Rules are the rules that an answer could establish for later calls.
	Rules []Rule
	// Sandbox is the profile of the sandbox in which the call would start programs, with its
	// hosts, or "" if it starts none, or if the log is imported or of an earlier version.
	Sandbox string
}

// Approval is the verdict on a call that was about to run. If there are several, the
// last one holds.
type Approval struct {
	CallID string
	// Number identifies the call, for verdicts that came from outside the run;
	// otherwise it is 0. See [OpenCall].
	Number  int
	Allowed bool
	// Reason is the text about a refusal that the model reads.
	Reason string
	// By names the person who gave the verdict, or the file it was read from; "" means
	// a rule. From says how the verdict was given, such as "terminal" or
	// "--approve-from", or where the rule comes from: see [Rule.From].
	By, From string
	// Rule is the text of the rule that decided if nobody was asked.
	Rule string
	// Decided says who or what decided.
	Decided Decider
	// Edited are the arguments that the tool gets instead of those that the model
	// sent, or "". The call itself is not changed.
	Edited string
	// Remember is a rule for later calls of the session, or nil.
	Remember *Rule
	// Definition is the fingerprint of the tool that a person was asked about, as in
	// [Rule]. If the tool is another one when the call is to start, it does not start.
	Definition string
	// Asked is the reason for which approval was requested, if a person then allowed the call.
	// If the tool has another reason to ask when the call is about to start, the call does not
	// start.
	Asked string
}

// CallStarted records that a tool is about to run for a call. It is written before
// the tool starts.
type CallStarted struct {
	CallID string
	// Arguments are the tool's arguments if a person or a hook changed those that the
	// model sent.
	Arguments string
	// Session is the session of the subagent's run that the call started, or "". Such
	// a call is not lost in a crash: its run continues as if it were [Paused].
	Session string
	// Repeatable means that the tool allows the same call to be started again if a crash
	// hides its outcome, because that does no harm or because the tool can tell the
	// outcome.
	Repeatable bool
}

// SubagentUsage records the totals of a run that a call started, of another agent or of a
// fork. Session holds the run's items. Without a CallID it is the run of an agent in
// a message that was complete before the session began, or, after the first
// [RunStarted], the usage of guards that asked a model, or of a request beside the conversation, such
// as for a title.
type SubagentUsage struct {
	CallID  string
	Session string
	Turns   int
	Tokens  int64
	Cost    float64
}

// Paused takes back the start of a call, which continues when it is started again: the
// subagent's run in session Session waits, or the tool's result is not there yet.
type Paused struct {
	CallID  string
	Session string // "" if there is no subagent
	// Until is when to start the call again. The zero value means that the subagent waits
	// for an approval.
	Until time.Time
	// Reason says what the call waits for, for people; "" if it is an approval.
	Reason string
}

// CallOutput is the output of a call.
type CallOutput struct {
	CallID string
	Item   item.Item
	Failed bool
	// Edited means that a hook changed the tool's output.
	Edited bool
}

// CallDropped removes a call from the view that cannot get an output, such as a
// computer call that was never carried out. The log keeps it. In a run, a message that
// tells the model why follows, with [InputItem.Own].
type CallDropped struct {
	CallID string
	// Reason says why, for people.
	Reason string
}

// ItemsWithdrawn records that a guard objected to items. From here on no request
// carries the items of the entries Seqs, which are of type [InputItem], [OutputItem] or
// [CallOutput]. The log keeps them. A call is withdrawn together with its output, and
// reasoning with the item that it led to. An output that is withdrawn alone is
// replaced by a text that says so. A compaction that was made from such an item
// before stays as it is.
type ItemsWithdrawn struct {
	Seqs []int64
	// Reason is the explanation for people. The model reads it in place of an output.
	Reason string
	// By names the guard.
	By string
}

// ReasoningDropped records that the endpoint could not read reasoning that it was
// sent, and the decision not to send any of the reasoning recorded before. The log
// keeps it.
type ReasoningDropped struct{ Reason string }

// Quarantined records that the endpoint refused a request because of the item of
// entry Seq, and the decision to send a marker instead. If Member is set, the rest
// of the item is sent without that member. The log keeps the item. See [Marker] for
// the items that can be replaced, and [Spare] for members.
type Quarantined struct {
	Seq int64
	// Member is the name of a member of the item, or "" for the whole item.
	Member string
	// Reason is the endpoint's explanation. The model reads it in the marker.
	Reason string
}

// Kinds of compaction, for [Compacted.By].
const (
	BySummary  = "summary"  // a model wrote a summary
	ByEndpoint = "endpoint" // the endpoint compacted the items
	ByDropping = "dropping" // a remark stands in place of the items
)

// Compacted records the decision to send something shorter instead of earlier items.
// The log keeps the items: a [Restored] brings them back, and a fork from an earlier
// entry still has them.
type Compacted struct {
	// Through is the number of the last entry that is replaced, together with all
	// items before it except for instructions: messages of the system and the
	// developer stay. A reply and the outputs of its calls are replaced together. If
	// Through falls inside such a unit, the unit stays, and so does everything after
	// it. See [View.Boundary].
	Through int64
	// Kept are the numbers of entries before it whose items stay too. Only items that
	// the model did not produce can be kept.
	Kept []int64
	// By is [BySummary], [ByEndpoint] or [ByDropping].
	By string
	// Items are sent in place of the replaced items, after the items that stay.
	Items []item.Item
	// Failure says why the compaction failed, or is "". After a failure everything is
	// sent as before.
	Failure string
	// Before and After estimate the tokens of a request before and after the
	// compaction.
	Before, After int64
	// Usage and Cost are those of the compaction itself.
	Usage *api.Usage
	Cost  float64
}

// Restored undoes the [Compacted] of entry Seq and all later ones. From here on the
// view carries the replaced items again.
type Restored struct{ Seq int64 }

// Collapsed records the decision to send a short marker instead of the outputs of
// reads that a later read repeated. The log keeps the outputs. Only outputs of
// functions and custom tools can be collapsed.
type Collapsed struct {
	// Seqs are the entries of the replaced outputs. By is the entry of the output that
	// holds their content.
	Seqs []int64
	By   int64
}

// Noticed records a remark for the person who uses the run. It is not an error, and
// the run continues. It is shown when it happens, and kept in the log for later
// readers. It is never sent. A run records a notice of one kind about one item or
// call at most once.
type Noticed struct {
	// Turn is the turn that the notice is about, or 0.
	Turn int
	// Kind is one of the Notice constants, or a name that a newer program uses.
	Kind string
	// ItemID and CallID identify the subject if they are known.
	ItemID, CallID string
	// Text describes the notice in a sentence for people. It contains no secrets.
	Text string
}

// The kinds of [Noticed]. They are documented only here; a new kind needs a
// constant.
const (
	// NoticeEntryLost marks the place of an entry that was damaged in storage, in a
	// copy that holds the rest of the log. The entry may have been anything: the start
	// of a call, its output, a guard's objection. So calls without an output at this
	// point count as lost, see [OpenCall.Lost]; earlier approvals are void; and
	// nothing is sent until a [NoticeGapsAccepted] follows.
	NoticeEntryLost = "entry_lost"
	// NoticePayloadLost is like NoticeEntryLost for an entry whose payload was
	// damaged: the entry is known to have been an item, such as the output of a call.
	NoticePayloadLost = "payload_lost"
	// NoticeSalvaged marks the end of the entries that were copied from a damaged
	// session. Approvals that were not used before it are void, because the damaged
	// session has them too.
	NoticeSalvaged = "salvaged"
	// NoticeGapsAccepted records that a person knows that earlier entries were lost,
	// and wants the session to continue. Items that a guard withdrew in a lost entry
	// are sent again.
	NoticeGapsAccepted = "gaps_accepted"
	// NoticeTextDiffers means that the text shown during the reply differs from the
	// text of the item that is stored and sent.
	NoticeTextDiffers = "text_differs"
	// NoticeReasoningDiffers means the same for reasoning or a summary of it.
	NoticeReasoningDiffers = "reasoning_differs"
	// NoticeArgumentsDiffer means the same for a call's arguments or input. The call
	// runs with the stored ones.
	NoticeArgumentsDiffer = "arguments_differ"
	// NoticeFinalDiffers means that the last event of a reply had another text for an
	// item than the event that completed the item. The text of the completed item is
	// stored and sent.
	NoticeFinalDiffers = "final_differs"
	// NoticeEventsMissing means that the sequence numbers of a reply's events have
	// gaps.
	NoticeEventsMissing = "events_missing"
	// NoticeEventsRepeated means that sequence numbers of a reply's events were
	// repeated.
	NoticeEventsRepeated = "events_repeated"
	// NoticeSameCallID means that two calls of a reply have the same call id. Both are
	// kept, and the second one is sent with another id.
	NoticeSameCallID = "same_call_id"
	// NoticeTextLost means that a reply contained text that is not part of any stored
	// item, such as text that was shown during the reply, or a second choice of Chat
	// Completions.
	NoticeTextLost = "text_lost"
	// NoticeItemMissing means that a completed reply lacks an item that had begun to
	// arrive. A message is kept as broken off; a call is not run.
	NoticeItemMissing = "item_missing"
	// NoticeHalfCharacter means that a text ended in half a UTF-16 surrogate pair.
	// U+FFFD is kept in its place.
	NoticeHalfCharacter = "half_character"
	// NoticeForeignRole means that a reply contained a message with the role user,
	// system or developer. It is kept as a message of the assistant.
	NoticeForeignRole = "foreign_role"
	// NoticeReadKeyFailed means that a tool's ReadKey panicked. What the tool reads
	// again is sent again.
	NoticeReadKeyFailed = "read_key_failed"
	// NoticeUsageWrong means that the endpoint reported impossible token counts.
	NoticeUsageWrong = "usage_wrong"
	// NoticeEventSkipped means that something in a stream was not an event and was
	// skipped.
	NoticeEventSkipped = "event_skipped"
	// NoticeDisarmed marks the place where an import dropped an entry that could have
	// caused something to run.
	NoticeDisarmed = "disarmed"
	// NoticeImported marks the end of the entries that were imported: those since the last
	// NoticeImportBegins, or all before it if there is none since the import before. A
	// stranger may have written them, so they prove nothing about what hooks and guards agreed
	// to: the next run asks them about the input and the last reply among them.
	NoticeImported = "imported"
	// NoticeImportBegins marks the place in a log from which on somebody else may have
	// written the entries, up to the next NoticeImported.
	NoticeImportBegins = "import_begins"
	// NoticeHistoryCut means that the endpoint left out the beginning of a request
	// because it exceeds the model's context.
	NoticeHistoryCut = "history_cut"
	// NoticeImagesRefused means that the endpoint refused a request, and accepted it
	// with markers in place of its images.
	NoticeImagesRefused = "images_refused"
	// NoticeWholeHistory means that the chosen transport sends only new items, but
	// this endpoint needs the whole history with each request.
	NoticeWholeHistory = "whole_history"
	// NoticeFallback means that a model did not answer, and that the run asks the next
	// one of its agent's candidates. A process that continues the run counts these
	// notices.
	NoticeFallback = "fallback"
	// NoticeHandoff means that a call handed the conversation to another agent, which
	// makes the following requests. CallID is the call, whose name identifies the agent.
	NoticeHandoff = "handoff"
	// NoticeSummaryInstead means that compaction by the endpoint was requested, but
	// the endpoint has no such function, and the model wrote a summary.
	NoticeSummaryInstead = "summary_instead"
	// NoticeUnfit means that the answer of the model did not fit what the caller asked
	// for. The message after it, which no person wrote, tells the model so.
	NoticeUnfit = "unfit"
	// NoticeAnswerNow means that the turn that begins next is expected to be the last one
	// that a limit allows, so it must be an answer: none of its calls runs. Text says
	// which limit.
	NoticeAnswerNow = "answer_now"
	// NoticeNotJudged means that the run ended while its hooks examined the last
	// reply. The next run has them examine it before anything is sent.
	NoticeNotJudged = "not_judged"
	// NoticeJudged means that the hooks have examined the last reply and do not
	// object. It is recorded where another process may perform the next effect.
	NoticeJudged = "judged"
	// NoticeStoppedByPerson means that a person stopped the run before it at its terminal, whose program goes on. A run
	// whose context ends for another reason does not have it.
	NoticeStoppedByPerson = "stopped_by_person"
)

// DetailStoppedByPerson is the Detail of a [StopAsked] by which a person stops the run at its terminal. It says what
// [NoticeStoppedByPerson] says, and is there also if the program ended before it wrote the notice.
const DetailStoppedByPerson = "the person at the terminal stopped this"

// Superseded records the decision to leave out the text of a reply that broke off,
// because another entry repeats it from its beginning. The log keeps it.
type Superseded struct {
	// Seqs are the entries that are left out. By is the entry of the message that
	// contains their text.
	Seqs []int64
	By   int64
}

// StopAsked records a request to end the run, either now or, with AfterTurn, after
// the current turn. Why is the resulting stop reason.
type StopAsked struct {
	Why       string
	AfterTurn bool
	// Detail adds an explanation for people.
	Detail string
	// Run is the number of the [RunStarted] of the run that should end, whose session then
	// goes on elsewhere. A run that takes such a request for another one does not end. 0
	// means the run that takes it. A [Delivery] may name the run and a Why: then the session
	// does not go on elsewhere, and the log gets the request without the number.
	Run int64
}

// Stopped ends a run.
type Stopped struct {
	// Why is the stop reason, as in package agent/plan, such as "answered" or "max_turns".
	Why string
	// Detail explains Why, for people.
	Detail string
}

// Note is a message for people, such as a debug or evaluation line. It is kept in
// the log and never sent.
type Note struct{ Item item.Item }

func (InputItem) body()        {}
func (RunStarted) body()       {}
func (TurnStarted) body()      {}
func (OutputItem) body()       {}
func (TurnEnded) body()        {}
func (ApprovalAsked) body()    {}
func (Approval) body()         {}
func (CallStarted) body()      {}
func (SubagentUsage) body()    {}
func (Paused) body()           {}
func (CallOutput) body()       {}
func (CallDropped) body()      {}
func (ItemsWithdrawn) body()   {}
func (ReasoningDropped) body() {}
func (Quarantined) body()      {}
func (Compacted) body()        {}
func (Restored) body()         {}
func (Collapsed) body()        {}
func (Noticed) body()          {}
func (Superseded) body()       {}
func (Delivered) body()        {}
func (StopAsked) body()        {}
func (Stopped) body()          {}
func (Note) body()             {}
