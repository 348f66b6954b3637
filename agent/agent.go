// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Model answers requests. responses.Client implements it.
//
// Stream sends the request once and yields the reply's events, including the last, or
// an error instead. Breaking out of the range or cancelling ctx stops the reply and
// releases its resources. A Model must be safe for concurrent use and must not keep
// or change req. A panic in Stream reaches the caller of the run; the session is
// unlocked, and the next run goes on as after a crash.
type Model interface {
	Stream(ctx context.Context, req *api.Request) iter.Seq2[api.Event, error]
}

// streamOf asks a model. A nil iterator is an error, not a panic of the range over it.
func streamOf(ctx context.Context, m Model, req *api.Request) iter.Seq2[api.Event, error] {
	if events := m.Stream(ctx, req); events != nil {
		return events
	}
	return func(yield func(api.Event, error) bool) {
		yield(api.Event{}, fmt.Errorf("agent: the Stream of the Model %T returned nil: want an iterator", m))
	}
}

// Retrier is implemented by a [Model] with its own retry policy. A run uses it if the
// [Agent] sets none.
type Retrier interface{ RetryPolicy() endpoint.Retry }

// Agent is a model with instructions, tools and limits. Its fields must not
// change while one of its runs is under way; one Agent may serve many runs at
// once.
type Agent struct {
	// Model answers the requests. It is the only required field.
	Model Model
	// Request holds the values that every request carries besides the history and the
	// Tools below: model, instructions, sampling. Unset values are not sent, except
	// for the tool choice, which is auto if there are tools. Its Tools are run by the
	// endpoint, such as item.WebSearchTool, and are sent after the Tools below. Its
	// Input must be empty, because the session holds the history.
	//
	// If a Conversation is set, requests carry only the items that it does not hold
	// yet. The log records which items it holds, so that a later run continues with
	// it. The content of the conversation from before the session is the caller's
	// responsibility. If joining it could lose or repeat items, the run stops using
	// it, sends the whole history and records the notice
	// [session.NoticeWholeHistory]. This happens if the endpoint does not know the
	// conversation, after a reply broke off, after the history was shortened or
	// withdrawn, in a copy of the session, and at another endpoint. No other program
	// may add to the conversation during a run.
	//
	// PreviousResponseID names a response from before the session, which precedes the
	// history. To send only new items without a conversation, use a responses.Chain
	// as Model.
	Request api.Request
	// KeepToolChoice sends a Request.ToolChoice that forces a call with every
	// request. If it is false, the choice becomes auto after a reply has made a call,
	// until there is new input; otherwise the model could never answer.
	KeepToolChoice bool
	// Setup describes, for the log only, the program and the files that define the
	// agent. A run fills in the rest. Endpoint values that are set here take
	// precedence over the model's: see [Describer].
	Setup session.Setup
	// Preamble begins each session of the agent when it is used as a tool, before the
	// task: see [AsTool]. It has no other use.
	Preamble []item.Item
	// Tools are the tools that the model may call. A call needs an approval unless the
	// tool is read-only or the Policy allows it; if nobody can give one, it does not run.
	Tools []tool.Tool
	// ToolSource returns further tools, which may change during a run, such as the
	// tools of servers. It may be nil. A run calls it at its start and before each
	// request, so it should be fast if nothing changed, and should return the same
	// value for the same tool. A call of a removed tool is answered like a call of an
	// unknown tool; its earlier calls and outputs stay in the history. An error ends
	// the run before the model is asked. Several runs may call ToolSource at once.
	ToolSource func(ctx context.Context) ([]tool.Tool, error)
	// Handoffs are tools with which the model hands the conversation to other agents.
	Handoffs []Handoff
	// Policy says which calls may run.
	Policy Policy
	// Answer says what the answer of a run must be; nil means any text.
	Answer *Answer
	// Limits bound a run.
	Limits Limits
	// Budget, if it is set, bounds the total usage of all agents that share it.
	Budget *Budget
	// Prices returns the price of a model's tokens and whether it is known. It may be
	// nil if no cost is limited. Without it, an agent that is a tool, or that gets the
	// conversation by a [Handoff], has the prices of the agent that called it.
	Prices func(model string) (Price, bool)
	// Hooks observe the run, and can change or stop it.
	Hooks []Hooks
	// Guards check input before a model has answered it, and replies before anything
	// follows from them. All must agree.
	Guards []Guard
	// HoldOutput withholds the events of a reply until the AfterModel hooks have seen
	// all of it. Events of a reply that a hook objects to are then never yielded, and
	// no call starts early. If it is false, text is yielded as it arrives, and a user
	// may have read it before a hook objects: see [session.ItemsWithdrawn]. Subagents of
	// an agent with output guards hold theirs back, too, until these guards agree; hooks
	// are those of each agent.
	HoldOutput bool
	// Retry is the retry policy for requests that the endpoint did not answer. It is
	// one budget for the client's retries and the loop's own, from the request to its
	// reply. The zero value uses the Model's policy (see [Retrier]) or the defaults.
	// If the context carries a budget (see [endpoint.WithBudget]), it applies
	// instead, to the whole run.
	Retry endpoint.Retry
	// Parallel bounds the number of concurrent calls: 0 means 8, and below 0 means 1. A request with
	// parallel_tool_calls false sets it to 1. If it is more than 1, a call that waits
	// for its tool's rate lets another one take its place.
	Parallel int
	// Park is the longest time that a run waits for tools that returned [tool.NotYet]. If
	// nothing else is left to do and the wait would be longer, the run stops with
	// [StopNotYet], and [Result.Due] says when a later run should continue. 0 means that
	// the run waits however long it takes; a negative value, that it never waits.
	Park time.Duration
	// Output says how outputs are written for the model. Without a Limit, the
	// model gets [output.DefaultBytes] bytes of each output unless there is a Usual
	// limit, and [output.DefaultTurnBytes] bytes of all outputs of a turn unless
	// there is a PerTurn limit; &output.Limit{} as the Limit means no bound.
	Output output.Policy
	// OutputStore keeps the complete text of outputs that the model gets shortened.
	// Nil means the session's blobs: see [session.Session.Blobs]. The agent offers
	// the tool of [tool.ReadOutput] as soon as something was shortened, unless the
	// Tools have it.
	OutputStore output.Store
	// Compaction sets when and how older items are replaced by something shorter.
	Compaction Compaction
	// CollapseReads sends a marker in place of an output of a reading tool once a
	// later call has read the same content again: see tool.Annotations.ReadKey. The
	// log keeps every output, and recorded decisions stay if the setting changes.
	CollapseReads bool
}

// Limits bound one run, subagents included. Zero means no limit, except for
// MaxTurns (100), MaxDepth (1) and MaxHandoffs (10).
type Limits struct {
	// MaxTurns bounds the number of requests to the model: 0 means 100.
	MaxTurns int
	// MaxTime bounds the run's wall time. Work in progress is then cancelled and
	// recorded as cancelled.
	MaxTime time.Duration
	// MaxTokens bounds the total tokens that the endpoint reports. It is checked
	// between turns, so the last turn may exceed it.
	MaxTokens int64
	// MaxCost bounds the cost of tokens, in the unit of Agent.Prices. The cost of a
	// reply is known only at its end, so it is checked between turns: the last turn,
	// and subagents beside it, may exceed it. A model without a known price is not
	// asked.
	MaxCost float64
	// AnswerNow uses the last turn for an answer: the request that is expected to be the
	// last one within these limits, the [Budget]s of the run and the deadline of its
	// context forbids calls and ends with a developer message that says so, which the log
	// records with the notice [session.NoticeAnswerNow]. Without it a run stops at the
	// limit with the outputs of its last calls unread. If the run ends with [StopEndTurn]
	// all the same, its Detail says that the model had to answer.
	//
	// The next reply is expected to use at least as much as the last one. The time that
	// is left must be enough for another reply, its calls and an answer, each as long as
	// last time. So a first reply, slower ones, and other runs that use up a shared
	// Budget meanwhile may still reach a limit.
	AnswerNow bool
	// MaxDepth bounds the depth of subagents below this run, forks and agents as
	// tools alike: 0 means 1. A subagent gets the remaining depth of its parent, or
	// less if its own agent sets less.
	MaxDepth int
	// MaxHandoffs bounds the handoffs of a run: 0 means 10. A call that would be one
	// more fails, and the run continues.
	MaxHandoffs int
	// MaxRepeats stops a model that makes the same call, with the same arguments, this
	// many times in a row, or the same two or three calls in turn: 2 or more, because
	// a first call repeats nothing. 0 and negative numbers are no limit. Calls of tools
	// that are meant to be repeated do not count: see [tool.Polling].
	MaxRepeats int
}

// plan returns the limits that depend only on the log.
func (l *Limits) plan() plan.Limits {
	return plan.Limits{MaxTurns: l.MaxTurns, MaxTokens: l.MaxTokens, MaxCost: l.MaxCost, MaxRepeats: l.MaxRepeats, AnswerNow: l.AnswerNow}
}

// StopReason is the reason why a run ended. After each of them the session holds a
// valid history that a later run can continue.
type StopReason = plan.StopReason

// The stop reasons, as package plan describes them.
const (
	StopEndTurn         = plan.StopEndTurn
	StopRefused         = plan.StopRefused
	StopUnfit           = plan.StopUnfit
	StopEmptyReply      = plan.StopEmptyReply
	StopIncomplete      = plan.StopIncomplete
	StopMaxTurns        = plan.StopMaxTurns
	StopMaxTime         = plan.StopMaxTime
	StopMaxTokens       = plan.StopMaxTokens
	StopMaxCost         = plan.StopMaxCost
	StopRepeatedCall    = plan.StopRepeatedCall
	StopApprovalPending = plan.StopApprovalPending
	StopNotYet          = plan.StopNotYet
	StopVetoed          = plan.StopVetoed
	StopCancelled       = plan.StopCancelled
	StopRequested       = plan.StopRequested
	StopProviderError   = plan.StopProviderError
	StopContextFull     = plan.StopContextFull
	StopBadItem         = plan.StopBadItem
	StopNothingToSend   = plan.StopNothingToSend
)

// Types of package plan that a run reports or takes as settings.
type (
	// Usage is [plan.Usage].
	Usage = plan.Usage
	// Cache is [plan.Cache].
	Cache = plan.Cache
	// CacheBreak is [plan.CacheBreak].
	CacheBreak = plan.CacheBreak
	// Estimator is [plan.Estimator].
	Estimator = plan.Estimator
)

// ErrNothingToSend is the error of a run that has nothing for the model to answer. It
// makes no request.
var ErrNothingToSend = errors.New("nothing to send: the history holds no message that waits for an answer")

// ErrContextFull is the error of a run that stopped with [StopContextFull], unless the
// endpoint's refusal is the error.
var ErrContextFull = errors.New("the model's context is full")

// contextFullError is an ErrContextFull with its own text.
type contextFullError string

func (e contextFullError) Error() string { return string(e) }

func (e contextFullError) Is(target error) bool { return target == ErrContextFull }

// ErrStopped is the error of [Run.Say] after the run has stopped.
var ErrStopped = errors.New("the run has stopped")

// InputError reports an input item that no request can carry. The run records nothing
// and makes no request.
type InputError struct {
	// Index is the item's index in the input.
	Index   int
	Item    item.Item
	Problem string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("input item %d (%v): %s", e.Index+1, e.Item, e.Problem)
}

// check returns an error for a negative limit, which could be meant as no limit or as one
// that is exceeded already, and for a limit of repetitions that would allow no call.
func (l *Limits) check() error {
	for _, one := range []struct {
		name     string
		value    any
		negative bool
	}{
		{"MaxTurns", l.MaxTurns, l.MaxTurns < 0},
		{"MaxTime", l.MaxTime, l.MaxTime < 0},
		{"MaxTokens", l.MaxTokens, l.MaxTokens < 0},
		{"MaxCost", l.MaxCost, !(l.MaxCost >= 0)}, // NaN, too
		{"MaxDepth", l.MaxDepth, l.MaxDepth < 0},
		{"MaxHandoffs", l.MaxHandoffs, l.MaxHandoffs < 0},
	} {
		if one.negative {
			return fmt.Errorf("agent: Limits.%s is %v: a limit is positive, and 0 is the default; if nothing is left of a limit, do not start the run", one.name, one.value)
		}
	}
	if l.MaxRepeats == 1 {
		return errors.New("agent: Limits.MaxRepeats is 1, which would stop at the first call: a call that is made once is not a repetition, so set 2 or more, or 0 for no limit")
	}
	return nil
}

// checkOutput returns an error for a limit of outputs that is not one. A small one is raised.
func checkOutput(p *output.Policy) error {
	for name, l := range map[string]*output.Limit{"Limit": p.Limit, "PerTurn": p.PerTurn, "Usual": p.Usual} {
		if l == nil {
			continue
		}
		known := output.Limit{Bytes: min(l.Bytes, 0), Tokens: min(l.Tokens, 0), Mode: l.Mode}
		if err := known.Check(); err != nil {
			return fmt.Errorf("agent: Output.%s: %w", name, err)
		}
	}
	return nil
}

// checkRequest returns an error for values of an agent's request that the loop sets
// itself or that would be sent again with each turn.
func checkRequest(req *api.Request) error {
	switch {
	case req.Input != nil && req.Input.Len() > 0:
		return errors.New("agent: Request.Input is set, but is never sent: pass input to Run, or append a history to the session")
	}
	if _, err := api.ParseToolChoice(req.ToolChoice); err != nil {
		return fmt.Errorf("agent: Request.ToolChoice: %w", err)
	}
	if err := checkKept(req); err != nil {
		return err
	}
	labels := map[string]int{}
	for i, t := range req.Tools {
		if err := checkDeclared(t); err != nil {
			return fmt.Errorf("agent: Request.Tools[%d] %w", i, err)
		}
		server := serverOf(t)
		if server == nil {
			continue
		}
		if before, twice := labels[server.ServerLabel]; twice {
			return fmt.Errorf("agent: Request.Tools[%d] is an MCP server with the label %q, as Request.Tools[%d] is: rules and people know a server by its label, so give each its own", i, server.ServerLabel, before)
		}
		labels[server.ServerLabel] = i
	}
	return nil
}

// serverOf returns the MCP server that a tool of the endpoint is, or nil. It may be declared
// as JSON.
func serverOf(def item.Tool) *item.MCPTool {
	if raw, ok := def.(*item.UnknownTool); ok && raw.ToolType() == item.ToolMCP {
		def, _ = item.ParseTool([]byte(raw.Raw)) // what is not JSON is not sent
	}
	server, _ := def.(*item.MCPTool)
	return server
}

// checkDeclared returns what is wrong with a tool in an agent's request: it is nil, it
// needs a program that runs it, or the endpoint would refuse it. G8
func checkDeclared(def item.Tool) error {
	if nils.Is(def) {
		return errors.New("is nil")
	}
	switch t := def.(type) {
	case *item.FunctionTool:
		return fmt.Errorf("is the function %q, which nothing runs: make a tool of it (tool.New, tool.Raw) and put it into Tools", t.Name)
	case *item.CustomTool:
		return fmt.Errorf("is the custom tool %q, which nothing runs: put it into Tools", t.Name)
	case *item.NamespaceTool:
		for _, def := range t.Tools {
			switch f := def.(type) {
			case *item.FunctionTool:
				return fmt.Errorf("is the namespace %s with the function %q, which nothing runs: make a tool of it (tool.New, tool.Raw), with tool.Namespace, and put it into Tools", t.Name, f.Name)
			case *item.CustomTool:
				return fmt.Errorf("is the namespace %s with the custom tool %q, which nothing runs: put it into Tools, with tool.Namespace", t.Name, f.Name)
			}
		}
	}
	switch field, _ := item.MissingOption(def); field {
	case "":
	case "Container":
		return errors.New("is an *item.CodeInterpreterTool without a Container: the endpoint would refuse it; `{\"type\":\"auto\"}` is a new container")
	case "Raw":
		return errors.New("is an *item.UnknownTool whose Raw has no type: the endpoint would refuse it; set Raw to the JSON of the tool")
	default:
		return fmt.Errorf("is an %T without %s: the endpoint would refuse it; set the field", def, field)
	}
	kind, here := item.CallKindOf(def)
	if shell, ok := def.(*item.ShellTool); ok && shell.Environment != nil && shell.Environment.Type != item.EnvironmentLocal {
		return nil // it runs in a container of the endpoint
	}
	if here {
		return fmt.Errorf("is the tool %s, which nothing runs: make a tool of it (%s) and put it into Tools", kind.Tool, makerOf(kind))
	}
	return nil
}

// makerOf returns the function that makes a tool for a kind of calls.
func makerOf(kind item.CallKind) string {
	switch kind.Call {
	case item.TypeComputerCall:
		return "tool.Computer"
	case item.TypeToolSearchCall:
		return "tool.Search"
	}
	return "tool.Raw"
}

// checkInput returns an error for the first value that is not an item, or that is a
// message with an unknown role.
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

// Result is the result of a run.
type Result struct {
	Why StopReason
	// Detail explains Why, for people.
	Detail string
	// Guard is the name of the [Guard] or the [Hooks] that objected or could not
	// decide, if Why is [StopVetoed].
	Guard string
	// Tripwire is the objection of a [Guard], or nil. If another process recorded it,
	// its Value is nil.
	Tripwire *Tripwire
	// Text is the last reply's text, "" if a hook objected to it.
	Text string
	// Answer is the JSON of the answer if the run has an [Answer], and ended with
	// [StopEndTurn] because the answer fits; otherwise "".
	Answer string
	// Speaker is the name of the [Handoff] to the agent that holds the conversation now;
	// "" means the first agent.
	Speaker string
	// Items are the items that the run added: the model's items and the outputs of
	// its calls, in the order in which they were recorded. A reply that a hook
	// objected to is not included.
	Items []item.Item
	// Partial are the Items of replies that broke off. Their calls were not run.
	Partial []item.Item
	// Pending are the calls that wait for an approval. See [Decide].
	Pending []PendingApproval
	// Due is when the run should continue because a call of it waits for its result: see
	// [Agent.Park]. The zero value means that none does.
	Due time.Time
	// Cache compares each request with the previous one, except the session's first.
	Cache []Cache
	Totals

	turn  int       // index in Items where the current turn begins
	first int64     // entry of the model's first item in the turn
	broke bool      // the turn broke off
	said  item.Item // the last message
	whole bool      // said is of this turn, which did not break off
	// readText is the text of the message read, which was decoded already.
	read     item.Item
	readText string
}

// Totals count the work of a run. Token counts are the endpoint's, with impossible
// counts corrected: the total is at least input plus output.
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
	// Compactions counts the attempts to compact. Their tokens are included above.
	Compactions int `json:"compactions,omitempty"`
	// Cost is in the unit of Agent.Prices; 0 if the prices are unknown.
	Cost float64 `json:"cost,omitempty"`
	// Nested is the additional usage of subagents.
	Nested Usage `json:"nested,omitzero"`
}

// count adds the tokens of a reply.
func (t *Totals) count(u *api.Usage) {
	t.InputTokens = plan.Plus(t.InputTokens, u.InputTokens)
	t.CachedTokens = plan.Plus(t.CachedTokens, u.Cached())
	t.OutputTokens = plan.Plus(t.OutputTokens, u.OutputTokens)
	t.ReasoningTokens = plan.Plus(t.ReasoningTokens, u.Reasoning())
	t.TotalTokens = plan.Plus(t.TotalTokens, u.TotalTokens)
}

// All returns the usage of the run and its subagents.
func (t *Totals) All() Usage {
	all := Usage{Turns: t.Turns, Tokens: t.TotalTokens, Cost: t.Cost}
	all.Add(t.Nested)
	return all
}

// Run gives the input to the model and returns when the run has stopped. If the run
// ends because of an error, Run returns the error with the result: a failure of the
// store, [ErrNothingToSend], an error of the Model, or the context's error. Reaching
// a limit is not an error; see [Result.Why].
//
// The run locks the session if the store supports it (see [session.Locker]) and the
// caller does not hold the lock by [session.Session.Lock], and unlocks it at the end.
// If another process writes to the session, the error wraps [session.ErrBusy] and
// names the process, and the run does nothing. To wait instead, call
// [session.Session.WaitLock] first.
func (a *Agent) Run(ctx context.Context, s *session.Session, input ...item.Item) (*Result, error) {
	run := a.start(s, input)
	run.quiet = true
	var failure error
	for _, err := range run.Events(ctx) {
		failure = err
	}
	return run.Result(), failure
}

// Stream combines [Agent.Start] and [Run.Events]. A program that needs the [Result]
// calls these instead.
func (a *Agent) Stream(ctx context.Context, s *session.Session, input ...item.Item) iter.Seq2[Event, error] {
	return a.Start(s, input...).Events(ctx)
}
