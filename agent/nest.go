// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/antiphon-go/antiphon/agent/plan"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// nest makes a tool whose calls are subagents. The tool is marked as one that only
// reads, because the tools that the subagent calls are judged on their own.
func nest[In any](name, description string, opts []tool.Option, run func(ctx context.Context, sc *scope, in In) (tool.Result, error)) (tool.Tool, error) {
	opts = append(slices.Clip(opts), tool.ReadOnly(), tool.Subagent())
	return tool.New(name, description, func(ctx context.Context, in In) (tool.Result, error) {
		sc, ok := ctx.Value(scopeKey{}).(*scope)
		if !ok {
			return tool.Result{}, fmt.Errorf("%s can only be called by a model in a run", name)
		}
		// If the call was abandoned, the goroutine that runs it waits for this
		// channel, so that the run does not end before the subagent.
		defer close(sc.ended)
		return run(ctx, sc, in)
	}, opts...)
}

type scopeKey struct{}

// scope is the state of the parent run that a subagent needs. It is taken when the
// call starts, so that concurrent calls do not affect it.
type scope struct {
	run  *Run
	call session.OpenCall
	log  []session.Entry
	id   string // of the subagent's session
	goOn bool   // it was paused, or interrupted
	// untold means that the parent's log does not have the usage of the subagent's
	// last run, because a crash interrupted it.
	untold bool
	fork   bool          // the subagent is a fork, whose answer is free
	rulers []ruler       // whose denials bind the subagent
	guards []Guard       // whose agreement the subagent's words need, because the parent holds its output
	ended  chan struct{} // closed when the subagent has ended

	mu     sync.Mutex
	spent  Usage
	ran    bool
	paused bool
	wanted []PendingApproval
	until  time.Time // when it goes on, if it does not wait for an approval
	waits  string    // what it waits for then
}

// scope prepares a call that starts a subagent.
func (r *Run) scope(c session.OpenCall) *scope {
	id := r.session.NestedID(c)
	return &scope{run: r, guards: r.agent.guardsOfHeld(), call: c, log: r.session.Log(), id: id, goOn: c.Paused != "", untold: untold(r.session.Log(), id), rulers: append(slices.Clip(r.rulers), ruler{r.agent.Policy, slices.Clip(r.state.Rules()), r.tools}), ended: make(chan struct{})}
}

// Texts that the model reads about calls that start no subagent.
const (
	subagentTooDeep  = "The call was refused: subagents may be at most %d deep, and that depth is reached. Do the work yourself."
	sessionElsewhere = "The run that this call started belongs to another session; this one is a copy of it. Whether it took effect is not known."
	sessionThere     = "The subagent was not started: another call already uses the id of its session."
	sessionGone      = "The run that this call started did not end, and its session is gone. Whether it took effect is not known."
)

const denyDeeper = "deny subagents beyond the allowed depth"

// told is an error with a text for the model.
type told string

func (t told) Error() string { return string(t) }

// maxDepth returns the largest allowed depth of subagents, counted from the outermost
// run.
func (r *Run) maxDepth() int {
	own := r.first.Limits.MaxDepth
	if r.around == nil {
		return cmp.Or(own, 1)
	}
	outer := r.around.run.maxDepth()
	if own > 0 {
		return min(outer, r.depth+own)
	}
	return outer
}

// tooDeep returns the refusal of a call whose subagent would be deeper than allowed, or
// nil.
func (r *Run) tooDeep(c *session.OpenCall, annotations tool.Annotations) *session.Approval {
	most := r.maxDepth()
	if !annotations.Subagent || r.depth < most {
		return nil
	}
	reason := fmt.Sprintf(subagentTooDeep, most)
	if before := startedBefore(c); before != "" {
		reason = before + " " + reason
	}
	return &session.Approval{Reason: reason, Rule: denyDeeper, From: plan.ByDefault, Decided: session.DeciderProgram}
}

// open opens the subagent's session.
func (sc *scope) open(ctx context.Context) (*session.Session, error) {
	s, err := sc.run.session.Nested(ctx, sc.id)
	if err != nil {
		return nil, err
	}
	switch begun := len(s.Log()) > 0; {
	case sc.goOn && !begun && !sc.run.session.KeepsNested():
		return nil, told(sessionGone)
	case begun && !sc.goOn: // another program wrote it for another task
		return nil, told(sessionThere)
	}
	return s, nil
}

// untold reports whether the log has the start of a subagent but not yet its usage,
// because the process ended first.
func untold(log []session.Entry, id string) bool {
	for _, e := range slices.Backward(log) {
		switch b := e.Body.(type) {
		case session.SubagentUsage:
			if b.Session == id {
				return false
			}
		case session.CallStarted:
			if b.Session == id {
				return true
			}
		}
	}
	return false
}

// begun reports whether the subagent's own run has begun in its log. A fork's log
// starts with the parent's runs; until the fork's own run begins, the log ends with
// its task, after the outputs of the calls beside it.
func begun(log []session.Entry) bool {
	for i, e := range slices.Backward(log) {
		switch e.Body.(type) {
		case session.InputItem:
		case session.CallOutput, session.CallDropped:
			return i == len(log)-1
		default:
			return true
		}
	}
	return false
}

// unreported returns the usage of subagents that were interrupted and not resumed,
// from their own logs, including the subagents inside them.
func unreported(ctx context.Context, s *session.Session, open []session.OpenCall) (Usage, error) {
	var sum Usage
	for _, c := range open {
		if c.Paused == "" || c.Paused != s.NestedID(c) || !untold(s.Log(), c.Paused) {
			continue
		}
		inner, err := s.Nested(ctx, c.Paused)
		if err != nil {
			return sum, err
		}
		if !begun(inner.Log()) {
			continue
		}
		state := fold(inner)
		sum.Add(state.Used())
		state.Apply(session.Entry{Body: session.RunStarted{Resumes: true}}) // marks the calls in progress as paused, with their sessions
		more, err := unreported(ctx, inner, state.View().Open())
		if err != nil {
			return sum, err
		}
		sum.Add(more)
	}
	return sum, nil
}

// play runs an agent in the session and returns the result of its call. A run that a
// crash interrupted continues with the rest of its limits. A run that had stopped
// before the parent's log recorded it does not run again.
func (sc *scope) play(ctx context.Context, a *Agent, s *session.Session, input ...item.Item) (tool.Result, error) {
	if !sc.fork { // a fork has the guards and the prices already
		a = a.heldFor(sc.guards).pricedBy(sc.run.agent)
	}
	child := a.Start(s, input...)
	child.around, child.depth, child.quiet, child.park = sc, sc.run.depth+1, sc.run.quiet, sc.run.park
	if sc.fork {
		child.wanted = nil
	}
	var before Usage
	if sc.goOn && sc.untold && begun(s.Log()) {
		state := fold(s)
		if child.takesOver = state.UnderWay(); child.takesOver {
			// The time limit counts from the original start, not from the crash.
			child.began = begunAt(s)
		} else {
			before = state.Used()
			if res, over := ended(s.Log()); over {
				sc.done(before, res)
				return res.output()
			}
		}
	}
	var err error
	for ev, failed := range child.Events(ctx) {
		if failed != nil {
			err = failed
			break
		}
		sc.tell(ev)
	}
	res := child.Result()
	if child.budget != nil {
		before.Add(child.budget.Used())
	}
	sc.done(before, res)
	if err != nil && ctx.Err() == nil && sc.postpone(err) {
		return tool.Result{Text: res.Text}, err
	}
	switch {
	// The call itself was cancelled, which explains the subagent's error.
	case err != nil && ctx.Err() != nil:
		return tool.Result{Text: res.Text}, ctx.Err()
	case err != nil:
		return tool.Result{Text: res.Text}, fmt.Errorf("the run stopped because of an error: %w", err)
	}
	return res.output()
}

// guardsOfHeld returns the output guards of an agent that holds its output back, for its
// subagents.
func (a *Agent) guardsOfHeld() (list []Guard) {
	if !a.holdsOutput() {
		return nil
	}
	for i, g := range a.Guards {
		if g.Output != nil {
			list = append(list, Guard{Name: cmp.Or(g.Name, nameOfGuard(a.Guards, i)+" of the caller"), Output: g.Output, Hold: true, Timeout: g.Timeout})
		}
	}
	return list
}

// heldFor returns the agent with guards of its caller, except for those with a Name that
// is there already. Its words are held back until all agree.
func (a *Agent) heldFor(guards []Guard) *Agent {
	if len(guards) == 0 {
		return a
	}
	own := *a
	own.HoldOutput, own.Guards = true, slices.Clip(a.Guards)
	for _, g := range guards {
		if !slices.ContainsFunc(a.Guards, func(o Guard) bool { return o.Name == g.Name && o.Output != nil }) {
			own.Guards = append(own.Guards, g)
		}
	}
	return &own
}

// pricedBy returns the agent with the prices of its caller if it has none of its own.
func (a *Agent) pricedBy(caller *Agent) *Agent {
	if a.Prices != nil || caller.Prices == nil {
		return a
	}
	own := *a
	own.Prices = caller.Prices
	return &own
}

// done stores the outcome of the subagent for entries. The lock is needed because
// the run may call entries for an abandoned call while the subagent is still ending.
func (sc *scope) done(spent Usage, res *Result) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.ran = true
	sc.spent.Add(spent)
	sc.paused, sc.wanted = res.Why == StopApprovalPending || res.Why == StopNotYet, res.Pending
	sc.until, sc.waits = time.Time{}, ""
	if res.Why == StopNotYet {
		sc.until, sc.waits = res.Due, strings.TrimPrefix(res.Detail, "waiting for ")
	}
}

// postpone lets the call wait if the subagent's error says when its request may be sent: see
// [endpoint.Gate]. The next run of the caller goes on with the subagent.
func (sc *scope) postpone(err error) bool {
	var closed interface {
		error
		Until() time.Time
	}
	if !errors.As(err, &closed) {
		return false
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.paused, sc.until, sc.waits = true, closed.Until(), closed.Error()
	return true
}

// ended returns the result of the log's last run, if it has stopped for good: neither
// for an approval, nor because its process was cancelled.
func ended(log []session.Entry) (*Result, bool) {
	stop, ok := log[len(log)-1].Body.(session.Stopped)
	why := StopReason(stop.Why)
	if !ok || why == StopApprovalPending || why == StopNotYet || why == StopCancelled {
		return nil, false
	}
	res, gone := &Result{Why: why, Detail: stop.Detail}, map[int64]bool{}
	for _, e := range slices.Backward(log) {
		switch b := e.Body.(type) {
		case session.RunStarted:
			if !b.Resumes {
				return res, true
			}
		case session.ItemsWithdrawn:
			for _, seq := range b.Seqs {
				gone[seq] = true
			}
		case session.OutputItem:
			if m, err := item.As[item.Message](b.Item); err == nil && !gone[e.Seq] && !b.Item.FromSubagent() {
				res.Text = m.Content.Display()
				return res, true
			}
		}
	}
	return res, true
}

// output returns the tool result of a subagent that stopped without an error. Only a
// run that came to its own end succeeded; for all other reasons the parent's model
// reads why the run stopped, together with the last text.
func (res *Result) output() (tool.Result, error) {
	out := tool.Result{Text: res.Text}
	switch {
	case res.Why == StopEndTurn:
		return out, nil
	case res.Detail != "":
		return out, fmt.Errorf("the run stopped before it was done: %s (%s)", res.Why, res.Detail)
	}
	return out, fmt.Errorf("the run stopped before it was done: %s", res.Why)
}

// tell passes an event to the caller that ranges over the parent's events.
func (sc *scope) tell(ev Event) {
	// Events of deeper subagents are already wrapped with their own depth.
	if _, inner := ev.(SubagentEvent); !inner {
		ev = SubagentEvent{Subagent{Depth: sc.run.depth + 1, Session: sc.id, CallID: sc.call.CallID, Tool: sc.call.Item.Name()}, ev}
	}
	sc.run.send(ev)
}

// entries returns the entries of the parent's log about the subagent, and reports
// whether the call waits instead of having an output.
func (sc *scope) entries() (bodies []session.Body, paused bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.ran {
		bodies = append(bodies, session.SubagentUsage{CallID: sc.call.CallID, Session: sc.id, Turns: sc.spent.Turns, Tokens: sc.spent.Tokens, Cost: sc.spent.Cost})
	}
	if sc.paused {
		bodies = append(bodies, session.Paused{CallID: sc.call.CallID, Session: sc.id, Until: sc.until, Reason: sc.waits})
	}
	return bodies, sc.paused
}

// AsTool makes a tool of an agent: a call gives it a task, and its answer is the
// call's output. Each call is a subagent with its own session, which begins with the
// agent's Preamble and whose id entries and events name. It draws on the parent's
// budgets, ends with the parent, and may not make calls that the parent's policy
// denies; otherwise the agent's own Policy and Limits apply. Without Prices of its own,
// it has the parent's.
//
// If the parent holds its output back, the subagent does so too, and the parent's output
// guards are asked about its replies, in addition to those of a. Otherwise events of the
// subagent are yielded at once, and the parent's Guards see only the call and its output:
// give a the Guards that its words need.
//
// Options describe the tool, as for tool.New. A call of it needs no approval unless a
// rule asks.
func AsTool(name, description string, a *Agent, opts ...tool.Option) (tool.Tool, error) {
	if a == nil || a.Model == nil {
		return nil, fmt.Errorf("agent: AsTool %s: the agent has no Model", name)
	}
	type input struct {
		Task string `json:"task" jsonschema:"what is to be done, with all that has to be known for it"`
	}
	return nest(name, description, opts, func(ctx context.Context, sc *scope, in input) (tool.Result, error) {
		s, err := sc.open(ctx)
		if err != nil {
			return tool.Result{}, err
		}
		if len(s.Log()) > 0 { // it was interrupted
			return sc.play(ctx, a, s)
		}
		return sc.play(ctx, a, s, append(slices.Clip(a.Preamble), item.User(in.Task))...)
	})
}
