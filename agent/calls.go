// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

const defaultParallel = 8

// toolCall reads a call item as its tool sees it. The view lets only function
// and custom calls come this far.
func toolCall(it item.Item) (tool.Call, error) {
	if it.Type() == item.TypeCustomToolCall {
		c, err := item.As[item.CustomToolCall](it)
		if err != nil {
			return tool.Call{}, err
		}
		return tool.Call{ID: c.CallID, Name: c.Name, Arguments: c.Input, Custom: true}, nil
	}
	c, err := item.As[item.FunctionCall](it)
	if err != nil {
		return tool.Call{}, err
	}
	return tool.Call{ID: c.CallID, Name: c.Name, Arguments: c.Arguments}, nil
}

func (r *Run) traits(name string) (tool.Traits, bool) {
	t, known := r.tools.Lookup(name)
	if !known {
		return tool.Traits{}, false
	}
	return tool.TraitsOf(t), true
}

// approve gets a verdict on each call, one after the other, and records them.
// A call of a tool that does not exist may go on: it comes back with the names
// of those that do.
func (r *Run) approve(ctx context.Context, calls []*session.OpenCall) error {
	for _, c := range calls {
		verdict, unasked := Verdict{Allowed: true}, false
		call, err := toolCall(c.Item)
		traits, known := r.traits(call.Name)
		switch {
		case err != nil:
			verdict = Verdict{Reason: "The call cannot be read: " + err.Error()}
		case known:
			verdict, unasked = r.agent.Policy.decide(ctx, call, traits)
		}
		verdict.Reason, _ = tool.Sanitize(verdict.Reason)
		if ctx.Err() != nil {
			return nil // whatever was said about it, the run is over
		}
		if err := r.record(ctx, session.Approval{CallID: c.CallID, Allowed: verdict.Allowed, Reason: verdict.Reason}); err != nil {
			return err
		}
		if !verdict.Allowed {
			r.totals.RefusedCalls++
			r.emit(CallRefused{CallID: c.CallID, Tool: c.Item.Name(), Reason: verdict.Reason, NoApprover: unasked})
		}
	}
	return nil
}

// close gives calls that will not run the output that says why. A call whose
// kind has no such output leaves the view.
func (r *Run) close(ctx context.Context, calls []Closing) error {
	for _, c := range calls {
		text := tool.Envelope(true, c.Call.Item.Name(), c.Reason, "")
		out, ok, err := item.OutputFor(c.Call.Item, item.Text(text))
		if err != nil {
			return err
		}
		if !ok {
			if err := r.record(ctx, session.Withdrawn{CallID: c.Call.CallID, Reason: c.Reason}); err != nil {
				return err
			}
			continue
		}
		done := CallDone{CallID: c.Call.CallID, Tool: c.Call.Item.Name(), Item: out, Failed: true, Error: c.Reason, Synthetic: true}
		if err := r.answer(ctx, done); err != nil {
			return err
		}
	}
	return nil
}

// call runs the calls' tools: side by side up to the bound, a tool that is
// marked exclusive by itself. It returns when all have their outputs.
func (r *Run) call(ctx context.Context, calls []*session.OpenCall) error {
	bound := max(1, cmp.Or(r.agent.Parallel, defaultParallel))
	if p := r.agent.Request.ParallelToolCalls; p != nil && !*p {
		bound = 1
	}
	done := make(chan CallDone, len(calls))
	running := 0
	var failure error
	wait := func(until int) {
		for running > until {
			d := <-done
			running--
			if failure == nil {
				failure = r.answer(ctx, d)
			}
			if failure != nil {
				r.cancel() // nothing can be recorded any more
			}
		}
	}
	for _, c := range calls {
		t, _ := r.traits(c.Item.Name())
		if t.Exclusive {
			wait(0)
		} else {
			wait(bound - 1)
		}
		if failure == nil && ctx.Err() == nil {
			failure = r.start(ctx, c, done)
			if failure == nil {
				running++
			}
		}
		if t.Exclusive {
			wait(0)
		}
	}
	wait(0)
	return failure
}

// start records that the call begins and starts its tool. The outcome comes on
// done, whatever the tool does.
func (r *Run) start(ctx context.Context, c *session.OpenCall, done chan<- CallDone) error {
	call, err := toolCall(c.Item)
	if err != nil {
		return err
	}
	if err := r.record(ctx, session.CallStarted{CallID: c.CallID}); err != nil {
		return err
	}
	r.emit(CallStarted{CallID: call.ID, Tool: call.Name, Arguments: call.Arguments})
	go func() {
		began := time.Now()
		out := r.tools.Invoke(ctx, call, r.agent.Shape)
		d := CallDone{CallID: c.CallID, Tool: call.Name, Failed: out.Failed, Error: out.Error, Took: time.Since(began)}
		d.Item = outputItem(c.Item, call.Name, &out)
		done <- d
	}()
	return nil
}

// outputItem puts an outcome into the item that answers the call. Invoke made
// the content valid; should it not encode all the same, the model is told.
func outputItem(call item.Item, name string, out *tool.Outcome) item.Item {
	it, ok, err := item.OutputFor(call, out.Content)
	if err == nil && ok {
		return it
	}
	reason := "The output cannot be sent."
	if err != nil {
		reason += " " + err.Error()
	}
	it, _, _ = item.OutputFor(call, item.Text(tool.Envelope(true, name, reason, "")))
	return it
}

// answer records an output and tells of it.
func (r *Run) answer(ctx context.Context, d CallDone) error {
	if err := r.record(ctx, session.Answered{CallID: d.CallID, Item: d.Item, Failed: d.Failed}); err != nil {
		return err
	}
	if !d.Synthetic {
		r.totals.Calls++
		if d.Failed {
			r.totals.FailedCalls++
		}
	}
	r.emit(d)
	return nil
}
