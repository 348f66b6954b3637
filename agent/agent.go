// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// Model answers requests. A responses.Client is one.
//
// Stream sends the request once and yields the reply's events up to its last
// one, or an error in its place. Breaking out of the range or ending ctx stops the reply and releases
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
	// Request is what every request carries besides the history and the Tools
	// below: model, instructions, sampling. What is not set is not sent, but for
	// the tool choice, which is auto when there are tools. Its Tools are tools that
	// the endpoint runs, such as item.WebSearchTool; they are sent after those
	// below. Its Input must be empty: the session has the history.
	//
	// With a Conversation, requests carry only what that does not hold yet; the log
	// says what it holds, so that a later run goes on with it. What was in it before
	// the session is the caller's business. Where something could be lost or doubled
	// the run leaves it, sends the whole history and notices
	// [session.NoticeWholeHistory]: when the endpoint does not know it, when a
	// reply broke off, when the history was shortened or withdrawn, in a copy of the
	// session, and at another endpoint. A run has a conversation for itself: nobody
	// else may add to it meanwhile.
	//
	// PreviousResponseID is a response from before the session: the history stands
	// after it. To send only what is new without a conversation, use a
	// responses.Thread as Model.
	Request item.Request
	// KeepToolChoice sends a Request.ToolChoice that forces a call with every
	// request. Without it the choice is auto once a reply has made a call, until
	// there is new input: else the model could never answer.
	KeepToolChoice bool
	// Setup is what the caller knows of the program and the files that made the
	// agent, for the log; it changes nothing else. A run fills in the rest, but
	// for what is set here of where requests go: see [Describer].
	Setup session.Setup
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
	// HoldOutput keeps the events of a reply back until the AfterModel hooks have
	// seen all of it, so that nothing is yielded of a reply that they object to, and
	// no call is started before. Without it the text comes as it is written, and an
	// objection comes when it may have been read: see [ItemsWithdrawn]. Nested runs go
	// by their own agents.
	HoldOutput bool
	// Retry says how often and how patiently a question is repeated that the
	// endpoint did not answer: one budget for the client's retries and for the
	// loop's own, from the question to its answer. The zero value is what the
	// Model says (see [Retrier]), or else the defaults. If the context brings a
	// budget (see [endpoint.WithBudget]), that one counts, over the whole run.
	Retry endpoint.Retry
	// Parallel bounds how many calls run at once: 0 means 8. A request with
	// parallel_tool_calls false makes it 1.
	Parallel int
	// Shape says how outputs are written for the model. Where it has neither a
	// Limit nor a Turn, the model gets [tool.DefaultOutput] bytes of each output
	// and [tool.DefaultTurnOutput] of those of a turn; tool.Limit{} as the Limit is
	// no bound at all.
	Shape tool.Shape
	// Spill keeps whole what the model gets shortened. Nil means the session's
	// blobs: see [session.Session.Blobs]. The agent offers the tool of
	// [tool.ReadOutput] as soon as something was shortened, unless the Tools have it.
	Spill tool.Spill
	// Compaction says when what is sent is made shorter, and how.
	Compaction Compaction
	// CollapseReads sends a marker instead of what a tool read, once a later
	// call has read the same again: see tool.Annotations.ReadKey. The log keeps all of
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
	// checked between turns too: what a reply will cost is not known before it
	// ends, so the last turn, and nested runs beside it, may go beyond it. A model
	// without a price is not asked then.
	MaxCost float64
	// MaxDepth bounds how deep runs are nested in this one, by forks and by
	// agents as tools alike: 0 means 1. A nested run has what the run around it
	// has left, or less if its own agent says so.
	MaxDepth int
	// MaxRepeats stops a model that makes the same call, with the same
	// arguments, this many times in a row.
	MaxRepeats int
}

// plan returns the limits that the log decides on.
func (l *Limits) plan() plan.Limits {
	return plan.Limits{MaxTurns: l.MaxTurns, MaxTokens: l.MaxTokens, MaxCost: l.MaxCost, MaxRepeats: l.MaxRepeats}
}

// StopReason says why a run ended. After each of them the session holds a valid
// history that a later run can go on with.
type StopReason = plan.StopReason

// The stop reasons, as package plan describes them.
const (
	Answered       = plan.Answered
	Refused        = plan.Refused
	EmptyReply     = plan.EmptyReply
	Incomplete     = plan.Incomplete
	MaxTurns       = plan.MaxTurns
	MaxTime        = plan.MaxTime
	MaxTokens      = plan.MaxTokens
	MaxCost        = plan.MaxCost
	RepeatedCall   = plan.RepeatedCall
	ApprovalWanted = plan.ApprovalWanted
	Vetoed         = plan.Vetoed
	Cancelled      = plan.Cancelled
	StoppedAfter   = plan.StoppedAfter
	ProviderError  = plan.ProviderError
	ContextFull    = plan.ContextFull
	BadItem        = plan.BadItem
	NothingToSend  = plan.NothingToSend
)

// Values of package plan that a run reports, or takes as settings.
type (
	Spent      = plan.Spent
	Cache      = plan.Cache
	CacheBreak = plan.CacheBreak
	Estimator  = plan.Estimator
)

// ErrNothingToSend is what a run ends with when there is nothing that the model
// has not answered yet. No request was made.
var ErrNothingToSend = errors.New("nothing to send: the history holds no message that waits for an answer")

// ErrContextFull is what the error of a run that stopped with [ContextFull] is,
// where no refusal of the endpoint says it.
var ErrContextFull = errors.New("the model's context is full")

// contextFullError says why in its own words.
type contextFullError string

func (e contextFullError) Error() string { return string(e) }

func (e contextFullError) Is(target error) bool { return target == ErrContextFull }

// ErrStopped is what [Run.Say] returns when the run has stopped.
var ErrStopped = errors.New("the run has stopped")

// InputError reports an input item that no request can carry. Nothing was
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

// checkRequest returns an error for what an agent's request cannot say, because
// the loop says it, or would send it again with each turn.
func checkRequest(req *item.Request) error {
	switch {
	case req.Input != nil && req.Input.Len() > 0:
		return errors.New("agent: Request.Input is set, and is not sent: give what is to be said to Run, and append a history to the session")
	}
	if err := checkKept(req); err != nil {
		return err
	}
	for i, t := range req.Tools {
		switch t := t.(type) {
		case *item.FunctionTool:
			if t != nil {
				return fmt.Errorf("agent: Request.Tools[%d] is the function %q, which nothing here runs: make a tool of it (tool.New, tool.Raw) and put it into Tools", i, t.Name)
			}
		case *item.CustomTool:
			if t != nil {
				return fmt.Errorf("agent: Request.Tools[%d] is the custom tool %q, which nothing here runs: put it into Tools", i, t.Name)
			}
		}
		if t == nil || reflect.ValueOf(t).Kind() == reflect.Pointer && reflect.ValueOf(t).IsNil() {
			return fmt.Errorf("agent: Request.Tools[%d] is nil", i)
		}
	}
	return nil
}

// checkInput returns an error for the first value that is not an item, or is a
// message in a role that the API does not know.
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
	// Guard is the name of the [Hooks] that objected, if Why is Vetoed.
	Guard string
	// Text is the last reply's text, "" if a hook objected to it.
	Text string
	// Items are the items that the run added: what the model said and the
	// outputs of its calls, in the order in which they were recorded. A reply that
	// a hook objected to is not among them.
	Items []item.Item
	// Partial are those among them that came in replies that broke off. Their
	// calls were not run.
	Partial []item.Item
	// Wanted are the calls that wait for an answer. See [Decide].
	Wanted []Pending
	// Cache compares each request but the session's first with the one before.
	Cache []Cache
	Totals

	turn  int       // where among Items the turn under way begins
	broke bool      // it broke off
	said  item.Item // the last message
	whole bool      // it is of this turn, and did not break off
}

// Totals count what a run did. Tokens are as the endpoint reported them, but for
// counts that cannot be true: the total is at least what went in and came out.
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
	// Compactions counts the attempts. Their tokens count too.
	Compactions int `json:"compactions,omitempty"`
	// Cost is in the unit of Agent.Prices; 0 if they are not known.
	Cost float64 `json:"cost,omitempty"`
	// Nested is what nested runs used besides.
	Nested Spent `json:"nested,omitzero"`
}

// count adds the tokens of an answer.
func (t *Totals) count(u *item.Usage) {
	t.InputTokens = plan.Plus(t.InputTokens, u.InputTokens)
	t.CachedTokens = plan.Plus(t.CachedTokens, u.Cached())
	t.OutputTokens = plan.Plus(t.OutputTokens, u.OutputTokens)
	t.ReasoningTokens = plan.Plus(t.ReasoningTokens, u.Reasoning())
	t.TotalTokens = plan.Plus(t.TotalTokens, u.TotalTokens)
}

// All is what the run used, nested runs included.
func (t *Totals) All() Spent {
	all := Spent{Turns: t.Turns, Tokens: t.TotalTokens, Cost: t.Cost}
	all.Add(t.Nested)
	return all
}

// Run gives the input to the model and returns when the run has stopped. A run
// that ends because of an error returns it beside the result: a store that
// failed, [ErrNothingToSend], what the Model reported, or the context's error.
// Limits are not errors; see [Result.Why].
//
// The run takes the session's lock where the store has one (a
// [session.Locker]), unless the caller holds it by [session.Session.Lock], and
// gives it back at the end. If somebody else writes to the session, the error
// wraps [session.ErrBusy] and names them, and nothing is sent, written or told to
// tools. To wait instead, take the lock with [session.Session.WaitLock] first.
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
		r.turn, r.whole = len(r.Items), false
	case TurnEnded:
		if r.broke = ev.Partial; ev.Partial {
			r.Partial = append(r.Partial, r.Items[r.turn:]...)
		}
		if ev.Cache != nil {
			r.Cache = append(r.Cache, *ev.Cache)
		}
	case ItemDone:
		r.Items = append(r.Items, ev.Item)
		if ev.Item.Type() == item.TypeMessage && (!ev.Partial || !r.whole) { // what a reply left out is not its answer
			r.said, r.whole = ev.Item, !ev.Partial
		}
	case CallDone:
		r.Items = append(r.Items, ev.Item)
	case ItemsWithdrawn:
		if !ev.Input {
			r.withdraw()
		}
	case Stopped:
		r.Guard = ev.Guard
		r.Why, r.Detail, r.Totals, r.Wanted = ev.Why, ev.Detail, ev.Totals, ev.Wanted
	}
}

// withdraw leaves out the last reply.
func (r *Result) withdraw() {
	if n := len(r.Items) - r.turn; n > 0 && len(r.Partial) >= n && r.broke {
		r.Partial = r.Partial[:len(r.Partial)-n]
	}
	r.Items, r.said = r.Items[:r.turn], item.Item{}
}

// Stream is [Agent.Start] and [Run.Events] in one.
func (a *Agent) Stream(ctx context.Context, s *session.Session, input ...item.Item) iter.Seq2[Event, error] {
	return a.Start(s, input...).Events(ctx)
}
