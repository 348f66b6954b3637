// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/session"
)

func (t *tracer) beforeRun(ctx context.Context, c *agent.RunCall) (context.Context, error) {
	ctx, o := t.start(ctx, t.run, t.Agent, "", c.Started)
	if o != nil {
		o.span.SetAttributes(keyConversation.String(c.Session), keyDepth.Int(c.Depth), keyRequestModel.String(c.Model))
	}
	return ctx, nil
}

func (t *tracer) afterRun(ctx context.Context, c *agent.RunCall) error {
	class := classOf(c.Err)
	if class == other {
		class = cmp.Or(string(c.Why), other)
	}
	if t.meter.on(ctx) {
		t.meter.ran(ctx, c, class, t.labels(opRun, "", keyRequestModel.String(c.Model)))
	}
	o := opened(ctx, t.run)
	if o == nil {
		return nil
	}
	n := &c.Totals
	o.span.SetAttributes(
		keyWhy.String(string(c.Why)), keyTurns.Int(n.Turns), keyCalls.Int(n.Calls), keyFailedCalls.Int(n.FailedCalls),
		keyRefusedCalls.Int(n.RefusedCalls), keyTokens.Int64(n.TotalTokens), keyNestedTokens.Int64(n.Nested.Tokens),
		keyCompactions.Int(n.Compactions), keyInputTokens.Int64(n.InputTokens), keyCachedTokens.Int64(n.CachedTokens),
		keyOutputTokens.Int64(n.OutputTokens), keyReasoning.Int64(n.ReasoningTokens),
	)
	if cost := n.Cost + n.Nested.Cost; cost > 0 {
		o.span.SetAttributes(keyCost.Float64(cost))
	}
	if class != "" {
		t.fail(o.span, class, words(c.Err))
	}
	o.span.End(trace.WithTimestamp(c.Ended))
	return nil
}

// callRefused adds an event to the span of the run, because nothing was executed
// that could have a span of its own.
func (t *tracer) callRefused(ctx context.Context, c *agent.ToolCall) error {
	if t.meter.on(ctx) {
		t.meter.refusal(ctx, c.Call.Name, t.labels(opTool, c.Speaker))
	}
	if o := opened(ctx, t.run); o != nil {
		attrs := []attribute.KeyValue{keyTool.String(excerpt.Name(c.Call.Name)), keyCallID.String(excerpt.Name(c.Call.ID)), keyTurn.Int(c.Turn)}
		if t.Content {
			attrs = append(attrs, keyArguments.String(excerpt.Text(c.Call.Arguments, excerpt.MaxText)), keyRefusal.String(excerpt.Text(c.Error, excerpt.MaxText)))
		}
		o.span.AddEvent(eventRefused, trace.WithTimestamp(c.Started), trace.WithAttributes(attrs...))
	}
	return nil
}

// noticed adds an event to the span of the run.
func (t *tracer) noticed(ctx context.Context, n *session.Noticed) error {
	o := opened(ctx, t.run)
	if o == nil {
		return nil
	}
	attrs := []attribute.KeyValue{keyNotice.String(excerpt.Name(n.Kind))}
	if n.Turn > 0 {
		attrs = append(attrs, keyTurn.Int(n.Turn))
	}
	if n.CallID != "" {
		attrs = append(attrs, keyCallID.String(excerpt.Name(n.CallID)))
	}
	if t.Content {
		attrs = append(attrs, keyNoticeText.String(excerpt.Text(n.Text, excerpt.MaxText)))
	}
	o.span.AddEvent(eventNoticed, trace.WithAttributes(attrs...))
	return nil
}
