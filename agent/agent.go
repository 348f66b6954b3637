// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Model answers requests. A responses.Client is one.
//
// Stream sends the request once and yields the reply's events up to its last
// one, or an error in its place. An event is a view that is good until the next
// one. Breaking out of the range or ending ctx stops the reply and releases
// what it holds. A Model is safe for concurrent use and does not keep or change
// req.
type Model interface {
	Stream(ctx context.Context, req *item.Request) iter.Seq2[item.Event, error]
}

// Retrier is implemented by a [Model] with a retry policy of its own, which a
// run takes over if the [Agent] has none.
type Retrier interface{ RetryPolicy() endpoint.Retry }

// Agent is a model with instructions, tools and limits. Its fields must not
// change while one of its runs is under way; one Agent may serve many runs at
// once.
type Agent struct {
	// Model answers. It is the only field that must be set.
	Model Model
	// Request is what every request carries besides the history and the tools:
	// model, instructions, sampling. Its Input and Tools are not used. What is
	// not set is not sent, but for the tool choice, which is auto when there
	// are tools.
	Request item.Request
	// Preamble begins each session of the agent as a tool, before the task: see
	// [AsTool]. It is not used otherwise.
	Preamble []item.Item
	// Tools are what the model may call.
	Tools []tool.Tool
	// ToolSource has further tools, which may come and go while a run is under
	// way, such as those of servers; nil has none. It is asked when a run begins
	// and before each request, and so should be quick where nothing changed: a
	// tool that stays is to be the same value. Calls of a tool that is gone are
	// answered as those of one that never was; what the history holds of it stays.
	// An error ends the run before the model is asked. It may be called by
	// several runs at once.
	ToolSource func(ctx context.Context) ([]tool.Tool, error)
	// Policy says which calls may run.
	Policy Policy
	// Limits bound a run.
	Limits Limits
	// Budget, if it is set, bounds what all runs of the agents that share it use
	// together.
	Budget *Budget
	// Prices tells what a model's tokens cost, and whether it knows. It may be
	// nil as long as no cost is limited.
	Prices func(model string) (Price, bool)
	// Hooks look at what happens, and may interfere.
	Hooks []Hooks
	// Retry says how often and how patiently a question is repeated that the
	// endpoint did not answer: one budget for the client's retries and for the
	// loop's own, from the question to its answer. The zero value is what the
	// Model says (see [Retrier]), or else the defaults. If the context brings a
	// budget (see [endpoint.WithBudget]), that one counts, over the whole run.
	Retry endpoint.Retry
	// Parallel bounds how many calls run at once: 0 means 8. A request with
	// parallel_tool_calls false makes it 1.
	Parallel int
	// Shape says how outputs are written for the model.
	Shape tool.Shape
	// Compaction says when what is sent is made shorter, and how.
	Compaction Compaction
	// CollapseReads sends a marker in the place of what a tool read, once a later
	// call has read the same again: see tool.Traits.Region. The log keeps all of
	// it, and what was decided stays when the setting changes.
	CollapseReads bool
}

// Limits bound one run. Zero means no limit, except for MaxTurns and MaxDepth.
// What nested runs use counts too.
type Limits struct {
	// MaxTurns bounds how often the model is asked: 0 means 100.
	MaxTurns int
	// MaxTime bounds the run's wall time. What is under way when it passes is
	// cancelled and recorded as such.
	MaxTime time.Duration
	// MaxTokens bounds the total tokens that the endpoint reports. It is
	// checked between turns, so the last turn may go beyond it.
	MaxTokens int64
	// MaxCost bounds what the tokens cost by Agent.Prices, in their unit. It is
	// checked between turns too. A model without a price is not asked then.
	MaxCost float64
	// MaxDepth bounds how deep runs are nested in this one, by forks and by
	// agents as tools alike: 0 means 1. A nested run has what the run around it
	// has left, or less if its own agent says so.
	MaxDepth int
	// MaxRepeats stops a model that makes the same call, with the same
	// arguments, this many times in a row.
	MaxRepeats int
}

// StopReason says why a run ended.
type StopReason string

// The stop reasons. After each of them the session holds a valid history that
// a later run can go on with.
const (
	Answered     StopReason = "answered"      // the model replied and called nothing
	Refused      StopReason = "refused"       // its reply is a refusal
	Incomplete   StopReason = "incomplete"    // its reply was cut by a limit of the endpoint, or made a call that nobody can answer
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

// ErrNothingToSend is what a run ends with when there is nothing that the model
// has not answered yet. No request was made.
var ErrNothingToSend = errors.New("nothing to send: the history holds no message that waits for an answer")

// ErrStopped is what [Run.Say] returns when the run has stopped.
var ErrStopped = errors.New("the run has stopped")

// InputError tells of an input item that no request can carry. Nothing was
// recorded and no request was made.
type InputError struct {
	// Index is the item's place among the input.
	Index   int
	Item    item.Item
	Problem string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("input item %d (%v): %s", e.Index+1, e.Item, e.Problem)
}

// checkInput returns an error for the first item that is none, or is a message
// in a role that the API does not know.
func checkInput(input []item.Item) error {
	for i, it := range input {
		switch {
		case it.IsZero():
			return &InputError{i, it, "it is empty"}
		case it.Type() != item.TypeMessage:
			continue
		}
		switch role := it.Role(); role {
		case item.RoleUser, item.RoleAssistant, item.RoleSystem, item.RoleDeveloper:
		default:
			return &InputError{i, it, fmt.Sprintf("unknown role %q, want user, assistant, system or developer", role)}
		}
	}
	return nil
}

// Result is what a run came to.
type Result struct {
	Why StopReason
	// Detail says more about it, for people.
	Detail string
	// Text is the last reply's text.
	Text string
	// Items are the items that the run added: what the model said and the
	// outputs of its calls, in the order in which they were recorded.
	Items []item.Item
	// Partial are those among them that came in replies that broke off. Their
	// calls were not run.
	Partial []item.Item
	// Wanted are the calls that wait for an answer. See [Decide].
	Wanted []Pending
	// Cache compares each request but the session's first with the one before.
	Cache []Cache
	Totals

	turn int       // where among Items the turn under way begins
	said item.Item // the last message
}

// Totals count what a run did. Tokens are as the endpoint reported them.
type Totals struct {
	Turns           int   `json:"turns"`
	Calls           int   `json:"calls"`
	FailedCalls     int   `json:"failed_calls"`
	RefusedCalls    int   `json:"refused_calls"`
	InputTokens     int64 `json:"input_tokens"`
	CachedTokens    int64 `json:"cached_tokens"`
	OutputTokens    int64 `json:"output_tokens"`
	ReasoningTokens int64 `json:"reasoning_tokens"`
	TotalTokens     int64 `json:"total_tokens"`
	// Compactions counts the attempts, of which the tokens count too.
	Compactions int `json:"compactions,omitempty"`
	// Cost is in the unit of Agent.Prices; 0 if they are not known.
	Cost float64 `json:"cost,omitempty"`
	// Nested is what nested runs used besides.
	Nested Spent `json:"nested,omitzero"`
}

// Run gives the input to the model and returns when the run has stopped. A run
// that ends because of an error returns it beside the result: a store that
// failed, [ErrNothingToSend], what the Model reported, or the context's error.
// Limits are no errors; see [Result.Why].
func (a *Agent) Run(ctx context.Context, s *session.Session, input ...item.Item) (*Result, error) {
	run := a.Start(s, input...)
	run.quiet = true
	return run.drain(ctx, func(Event) {})
}

// drain ranges over the run's events and sums them up.
func (r *Run) drain(ctx context.Context, visit func(Event)) (*Result, error) {
	res := new(Result)
	var failure error
	for ev, err := range r.Events(ctx) {
		if err != nil {
			failure = err
			break
		}
		res.add(ev)
		visit(ev)
	}
	if m, err := item.As[item.Message](res.said); err == nil {
		res.Text = m.Content.Display()
	}
	return res, failure
}

func (r *Result) add(ev Event) {
	switch ev := ev.(type) {
	case TurnStarted:
		r.turn = len(r.Items)
	case TurnEnded:
		if ev.Partial {
			r.Partial = append(r.Partial, r.Items[r.turn:]...)
		}
		if ev.Cache != nil {
			r.Cache = append(r.Cache, *ev.Cache)
		}
	case ItemDone:
		r.Items = append(r.Items, ev.Item)
		if ev.Item.Type() == item.TypeMessage {
			r.said = ev.Item
		}
	case CallDone:
		r.Items = append(r.Items, ev.Item)
	case Stopped:
		r.Why, r.Detail, r.Totals, r.Wanted = ev.Why, ev.Detail, ev.Totals, ev.Wanted
	}
}

// Stream is [Agent.Start] and [Run.Events] in one.
func (a *Agent) Stream(ctx context.Context, s *session.Session, input ...item.Item) iter.Seq2[Event, error] {
	return a.Start(s, input...).Events(ctx)
}
