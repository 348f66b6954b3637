// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// turn asks the model, if there are tools to be had and the budgets that the run
// shares allow it.
func (r *Run) turn(ctx context.Context, turn int) error {
	if err := r.equip(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // which ends the run
		}
		return r.stopFor(ctx, err)
	}
	if err := r.take(); err != nil {
		return r.stopFor(ctx, err)
	}
	return r.ask(ctx, turn)
}

// stopFor records that the run should end: because a budget that it shares is
// used up, or because a hook objects.
func (r *Run) stopFor(ctx context.Context, err error) error {
	var b *BudgetError
	if errors.As(err, &b) {
		return r.record(ctx, session.StopAsked{Why: string(b.Why), Detail: b.Detail})
	}
	r.failure = err
	return r.record(ctx, session.StopAsked{Why: string(Vetoed), Detail: err.Error()})
}

// ask makes one request and records the reply item by item. A reply that
// breaks off is an outcome of the turn; the error returned here is the store's.
// What was refused before anything came of it may be mended: that decision is
// recorded with the turn's end.
func (r *Run) ask(ctx context.Context, turn int) error {
	if err := r.record(ctx, session.TurnStarted{Turn: turn}); err != nil {
		return err
	}
	r.totals.Turns++
	r.held = false
	r.emit(TurnStarted{Turn: turn})

	seen := &r.asked
	*seen = ModelCall{Session: r.session.ID(), Depth: r.depth, Turn: turn, Request: r.request(), Started: time.Now()}
	inner, hooks, veto := r.admitModel(ctx, seen)
	if veto != nil {
		end := session.TurnEnded{Turn: turn, Status: item.StatusCancelled, Reason: veto.Error()}
		err := r.endTurn(ctx, end, nil)
		objection := r.afterModel(inner, hooks, seen, end, veto)
		if err != nil {
			return err
		}
		return r.stopFor(ctx, errors.Join(veto, objection))
	}

	end, failure, err := r.hear(inner, ctx, seen)
	if err != nil {
		end.Status, end.Reason, failure = item.StatusFailed, err.Error(), err
	}
	objection := r.afterModel(inner, hooks, seen, end, failure)
	if err != nil || objection == nil {
		return err
	}
	return r.stopFor(ctx, objection)
}

// hear records the reply and the turn's end. failure is what broke the reply
// off, err what the store reported.
func (r *Run) hear(inner, ctx context.Context, seen *ModelCall) (end session.TurnEnded, failure, err error) {
	turn := seen.Turn
	l := &r.heard
	*l = listener{run: r, ctx: ctx, seen: seen}
	shown, failure, err := l.listen(inner)
	acc := &l.acc
	resp, _ := acc.Response()
	seen.ResponseModel, seen.Output = resp.Model, resp.Output
	if err != nil {
		return session.TurnEnded{Turn: turn}, nil, err
	}
	failure = brokenOff(acc, failure)
	end = endOf(acc, turn, failure)
	end.Cost = r.price.Of(end.Usage)
	var decision session.Body
	if end.BrokeOff() {
		r.failure = failure
		if ctx.Err() != nil {
			end.Status = item.StatusCancelled
		} else if !shown {
			decision = r.mend(failure)
		}
		if decision == nil && !shown {
			end.Refused = r.blamed(failure)
		}
	}
	if end.Status != item.StatusCompleted {
		for _, it := range acc.Partial() {
			if err := r.receive(ctx, turn, it, true); err != nil {
				return end, nil, err
			}
		}
	}
	return end, failure, r.endTurn(ctx, end, decision)
}

// admitModel lets hooks see the request.
func (r *Run) admitModel(ctx context.Context, seen *ModelCall) (context.Context, []Hooks, error) {
	hooks := r.agent.Hooks
	if len(hooks) == 0 {
		return ctx, nil, nil
	}
	seen.Cache = r.state.cache.report()
	input, model := seen.Request.Input, seen.Request.Model
	items := input.Len()
	inner, n, err := before(ctx, "BeforeModel", hooks, beforeModel, seen)
	switch {
	case err != nil:
	case seen.Request == nil || seen.Request.Input != input || input.Len() != items:
		err = &HookError{Hook: "BeforeModel", Err: errors.New("it changed the request's input, which is the log's")}
	case seen.Request.Model != model:
		err = r.findPrice(seen.Request.Model)
	}
	return inner, hooks[:n], err
}

// afterModel lets hooks see what came of a request.
func (r *Run) afterModel(ctx context.Context, hooks []Hooks, seen *ModelCall, end session.TurnEnded, failure error) error {
	if len(hooks) == 0 {
		return nil
	}
	seen.Ended = time.Now()
	seen.ResponseID, seen.Status, seen.Reason, seen.Class, seen.Usage, seen.Cost = end.ResponseID, end.Status, end.Reason, end.Class, end.Usage, end.Cost
	seen.Err, seen.Cache = failure, r.state.cache.report()
	return after(ctx, "AfterModel", hooks, afterModel, seen)
}

// listener is what hears a reply.
type listener struct {
	run  *Run
	ctx  context.Context // of the run
	seen *ModelCall
	acc  item.Accumulator

	shown   bool  // output came
	failure error // what broke it off
	err     error // what the store reported
}

// listen reads the reply, which is asked for in the context inner, and starts
// what may start early in that of the run.
func (l *listener) listen(inner context.Context) (shown bool, failure, err error) {
	r := l.run
	if r.asks == nil || len(r.agent.Hooks) > 0 {
		r.asks = endpoint.WithBudget(inner, r.budget)
	}
	for ev, err := range r.agent.Model.Stream(r.asks, l.seen.Request) {
		if err != nil {
			l.failure = err
			break
		}
		if !l.event(&ev) {
			break
		}
	}
	return l.shown, l.failure, l.err
}

// event takes the next event and reports whether the reply goes on.
func (l *listener) event(ev *item.Event) bool {
	r := l.run
	items, err := l.acc.Add(*ev)
	if err != nil {
		l.failure = &endpoint.Error{Class: endpoint.Protocol, Message: err.Error(), Err: err}
		return false
	}
	if !l.shown && (len(items) > 0 || shows(ev.Type)) {
		l.shown, l.seen.First = true, time.Now()
	}
	if !r.quiet {
		r.emit(r.modelEvent(*ev))
	}
	for _, it := range items {
		if l.err = r.receive(l.ctx, l.seen.Turn, it, false); l.err != nil {
			return false
		}
		if l.err = r.startEarly(l.ctx, it); l.err != nil {
			return false
		}
	}
	if !strings.HasSuffix(string(ev.Type), ".delta") { // as nearly all are
		if apiErr, ok := ev.Err(); ok {
			l.failure = asFailure(apiErr) // a Model may say it again as an error of its own
		}
	}
	if r.left && !ev.Terminal() {
		l.failure = context.Canceled
		return false
	}
	return true
}

// shows reports whether an event is output: all are but those about the
// response as a whole.
func shows(t item.EventType) bool {
	switch t {
	case "", item.EventCreated, item.EventQueued, item.EventInProgress, item.EventCompleted, item.EventIncomplete,
		item.EventFailed, item.EventCancelled, item.EventError, "keepalive":
		return false
	}
	return true
}

// asFailure gives an error that came as an event its class.
func asFailure(e *item.APIError) error {
	return endpoint.FromAPI(e.Code, e.Type, e.Message, e.Param)
}

func (r *Run) receive(ctx context.Context, turn int, it item.Item, partial bool) error {
	if err := r.record(ctx, session.Received{Turn: turn, Item: it, Partial: partial}); err != nil {
		return err
	}
	r.emit(ItemDone{Turn: turn, Item: it, Partial: partial})
	return nil
}

var errTruncated = errors.New("the reply ended without its last event")

// brokenOff returns what broke the reply off, nil if nothing did: a model that
// just ends its stream may not know, and a response may say so of itself.
func brokenOff(acc *item.Accumulator, failure error) error {
	resp, whole := acc.Response()
	switch {
	case failure != nil:
		return failure
	case !whole:
		return &endpoint.Error{Class: endpoint.Truncated, Message: errTruncated.Error(), Err: errTruncated}
	case resp.Status == item.StatusFailed, resp.Status == item.StatusCancelled:
		return &endpoint.Error{Class: endpoint.Server, Message: "the response ended as " + resp.Status}
	}
	return nil
}

// endOf says how the turn ended.
func endOf(acc *item.Accumulator, turn int, failure error) session.TurnEnded {
	resp, _ := acc.Response()
	end := session.TurnEnded{Turn: turn, ResponseID: resp.ID, Usage: resp.Usage, Status: resp.Status}
	switch {
	case failure != nil:
		end.Status, end.Reason = item.StatusFailed, failure.Error()
		var e *endpoint.Error
		if errors.As(failure, &e) {
			end.Class = string(e.Class)
		}
	case resp.Status == item.StatusIncomplete:
		if d := resp.Incomplete; d != nil {
			end.Reason = d.Reason
		}
	default:
		end.Status = cmp.Or(end.Status, item.StatusCompleted)
	}
	return end
}

// endTurn records and tells the end of a turn, with the decision that follows
// from it, if one does. Of such a decision both are written or none.
func (r *Run) endTurn(ctx context.Context, end session.TurnEnded, decision session.Body) error {
	bodies := []session.Body{end}
	if decision != nil {
		bodies = append(bodies, decision)
	}
	if err := r.record(ctx, bodies...); err != nil {
		return err
	}
	if !end.BrokeOff() {
		r.fillBudget()
	}
	if u := end.Usage; u != nil {
		r.totals.InputTokens += u.InputTokens
		r.totals.CachedTokens += u.Cached()
		r.totals.OutputTokens += u.OutputTokens
		r.totals.ReasoningTokens += u.Reasoning()
		r.totals.TotalTokens += u.TotalTokens
		r.totals.Cost += end.Cost
		r.purse.Spend(Spent{Tokens: u.TotalTokens, Cost: end.Cost})
	}
	r.emit(TurnEnded{
		Turn: end.Turn, ResponseID: end.ResponseID, Status: end.Status, Reason: end.Reason, Usage: end.Usage,
		Partial: end.BrokeOff(), Cost: end.Cost, Cache: r.state.cache.report(),
	})
	switch d := decision.(type) {
	case session.ReasoningDropped:
		r.emit(ReasoningDropped{Reason: d.Reason})
	case session.Quarantined:
		r.emit(Quarantined{Seq: d.Seq, Reason: d.Reason})
	case session.Restored:
		r.emit(Restored{Seq: d.Seq, Reason: "the endpoint cannot read what another has made of the history"})
	}
	return nil
}

// request is the agent's template with the history and the tools in it.
func (r *Run) request() *item.Request {
	req := r.agent.Request
	req.Input = r.state.view.Items().Clone()
	req.Tools = r.tools.Definitions()
	if len(req.Tools) == 0 {
		req.Tools, req.ToolChoice, req.ParallelToolCalls = nil, "", nil
		return &req
	}
	req.ToolChoice = cmp.Or(req.ToolChoice, item.ChoiceAuto)
	return &req
}
