// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// ask makes one request and records the reply item by item. A reply that
// breaks off is an outcome of the turn; the error returned here is the store's.
func (r *Run) ask(ctx context.Context, turn int) error {
	if err := r.record(ctx, session.TurnStarted{Turn: turn}); err != nil {
		return err
	}
	r.totals.Turns++
	r.emit(TurnStarted{Turn: turn})

	var acc item.Accumulator
	failure, err := r.listen(ctx, turn, &acc)
	if err != nil {
		return err
	}
	failure = brokenOff(&acc, failure)
	end := endOf(&acc, turn, failure)
	if end.BrokeOff() {
		r.failure = failure
		if ctx.Err() != nil {
			end.Status = item.StatusCancelled
		}
	}
	if end.Status != item.StatusCompleted {
		for _, it := range acc.Partial() {
			if err := r.receive(ctx, turn, it, true); err != nil {
				return err
			}
		}
	}
	return r.endTurn(ctx, end)
}

// listen reads the reply. failure is what broke it off, err what the store
// reported.
func (r *Run) listen(ctx context.Context, turn int, acc *item.Accumulator) (failure, err error) {
	for ev, streamErr := range r.agent.Model.Stream(ctx, r.request()) {
		if streamErr != nil {
			return streamErr, nil
		}
		items, readErr := acc.Add(ev)
		if readErr != nil {
			return &endpoint.Error{Class: endpoint.Protocol, Message: readErr.Error(), Err: readErr}, nil
		}
		r.emit(r.modelEvent(ev))
		for _, it := range items {
			if err := r.receive(ctx, turn, it, false); err != nil {
				return nil, err
			}
		}
		if apiErr, ok := ev.Err(); ok {
			failure = apiErr // a Model may say it again as an error of its own
		}
		if r.left && !ev.Terminal() {
			return context.Canceled, nil
		}
	}
	return failure, nil
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
	case resp.Status == item.StatusIncomplete:
		if d := resp.Incomplete; d != nil {
			end.Reason = d.Reason
		}
	default:
		end.Status = cmp.Or(end.Status, item.StatusCompleted)
	}
	return end
}

func (r *Run) endTurn(ctx context.Context, end session.TurnEnded) error {
	if err := r.record(ctx, end); err != nil {
		return err
	}
	if u := end.Usage; u != nil {
		r.totals.InputTokens += u.InputTokens
		r.totals.CachedTokens += u.Cached()
		r.totals.OutputTokens += u.OutputTokens
		r.totals.ReasoningTokens += u.Reasoning()
		r.totals.TotalTokens += u.TotalTokens
	}
	r.emit(TurnEnded{Turn: end.Turn, ResponseID: end.ResponseID, Status: end.Status, Reason: end.Reason, Usage: end.Usage})
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
