// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// nest makes a tool whose calls are runs. It only reads, as far as it is
// concerned itself.
func nest[In any](name, description string, opts []tool.Option, run func(ctx context.Context, sc *scope, in In) (tool.Result, error)) (tool.Tool, error) {
	opts = append([]tool.Option{tool.ReadOnly(), tool.Nested()}, opts...)
	return tool.New(name, description, func(ctx context.Context, in In) (tool.Result, error) {
		sc, ok := ctx.Value(scopeKey{}).(*scope)
		if !ok {
			return tool.Result{}, fmt.Errorf("%s can be called by a model in a run only", name)
		}
		defer close(sc.ended)
		return run(ctx, sc, in)
	}, opts...)
}

type scopeKey struct{}

// scope is what a nested run has of the run around it: taken when its call
// starts, so that it does not depend on what happens beside it.
type scope struct {
	run   *Run
	call  session.OpenCall
	log   []session.Entry
	id    string // of the nested session
	goOn  bool   // it was paused
	rules []session.Rule
	tools *tool.Set
	ended chan struct{} // closed when the nested run is over

	mu     sync.Mutex
	spent  Spent
	ran    bool
	paused bool
	wanted []Pending
}

// scope prepares for a call of a nesting tool.
func (r *Run) scope(c session.OpenCall) *scope {
	return &scope{run: r, call: c, log: r.session.Log(), id: r.session.NestedID(c), goOn: c.Paused != "", rules: slices.Clip(r.state.Rules()), tools: r.tools, ended: make(chan struct{})}
}

// What the model reads about calls that start no run.
const (
	tooDeep          = "The call was refused: runs may be nested %d deep here, and this one is. Do the work without it."
	sessionElsewhere = "The run that this call started belongs to another session; this one is a copy of it. Whether it took effect is not known."
	sessionThere     = "The run was not started: the session that it would be kept in is there already, and is not of this call."
	sessionGone      = "The run that this call started did not end, and its session is gone. Whether it took effect is not known."
)

// told is an error whose text is for the model.
type told string

func (t told) Error() string { return string(t) }

// maxDepth is how deep runs may be nested in this one, counted from the
// outermost.
func (r *Run) maxDepth() int {
	own := r.agent.Limits.MaxDepth
	if r.around == nil {
		return cmp.Or(own, 1)
	}
	outer := r.around.run.maxDepth()
	if own > 0 {
		return min(outer, r.depth+own)
	}
	return outer
}

// open opens the session of the nested run.
func (sc *scope) open(ctx context.Context) (*session.Session, error) {
	if most := sc.run.maxDepth(); sc.run.depth >= most {
		return nil, told(fmt.Sprintf(tooDeep, most))
	}
	s, err := sc.run.session.Nested(ctx, sc.id)
	if err != nil {
		return nil, err
	}
	switch begun := len(s.Log()) > 0; {
	case sc.goOn && !begun && !sc.run.session.KeepsNested():
		return nil, told(sessionGone)
	case begun && !sc.goOn: // somebody else wrote it; its words are not this task's
		return nil, told(sessionThere)
	}
	return s, nil
}

// play runs an agent in the session and returns what its call comes to.
func (sc *scope) play(ctx context.Context, a *Agent, s *session.Session, input ...item.Item) (tool.Result, error) {
	child := a.Start(s, input...)
	child.around, child.depth, child.quiet = sc, sc.run.depth+1, sc.run.quiet
	res, err := child.drain(ctx, func(ev Event) {
		if !sc.run.quiet {
			sc.tell(ev)
		}
	})
	sc.mu.Lock()
	sc.ran = true
	if child.budget != nil {
		sc.spent.Add(child.budget.Used())
	}
	sc.paused, sc.wanted = res.Why == ApprovalWanted, res.Wanted
	sc.mu.Unlock()

	out := tool.Result{Text: res.Text}
	switch {
	case err != nil && ctx.Err() != nil:
		return out, ctx.Err()
	case err != nil:
		return out, fmt.Errorf("the run stopped because of an error: %w", err)
	case res.Why == Answered:
		return out, nil
	case res.Detail != "":
		return out, fmt.Errorf("the run stopped before it was done: %s (%s)", res.Why, res.Detail)
	}
	return out, fmt.Errorf("the run stopped before it was done: %s", res.Why)
}

// tell passes an event on to whoever ranges over those of the run around.
func (sc *scope) tell(ev Event) {
	if e, ok := ev.(Nested); ok {
		sc.run.send(e)
		return
	}
	sc.run.send(Nested{Depth: sc.run.depth + 1, Session: sc.id, CallID: sc.call.CallID, Tool: sc.call.Item.Name(), Kind: ev.Name(), Event: ev})
}

// entries are what the log of the run around says of the nested one.
func (sc *scope) entries() (bodies []session.Body, paused bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.ran {
		bodies = append(bodies, session.Nested{CallID: sc.call.CallID, Session: sc.id, Turns: sc.spent.Turns, Tokens: sc.spent.Tokens, Cost: sc.spent.Cost})
	}
	if sc.paused {
		bodies = append(bodies, session.Paused{CallID: sc.call.CallID, Session: sc.id})
	}
	return bodies, sc.paused
}

// AsTool makes a tool of an agent: a call gives it a task, and its answer is the
// call's output. Each call is a run in a session of its own, which begins with the
// agent's Preamble and whose id entries and events name. It draws on the budgets
// of the run around it, ends with it, and may use no tool in a way that the
// policy around it denies; otherwise the agent's own Policy and Limits count.
//
// Options that say what the tool does are those of tool.New. It asks for no
// approval unless a rule does.
func AsTool(name, description string, a *Agent, opts ...tool.Option) (tool.Tool, error) {
	if a == nil || a.Model == nil {
		return nil, fmt.Errorf("agent as tool %s: it has no Model", name)
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
