// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/excerpt"
)

func (t *tracer) beforeTool(ctx context.Context, c *agent.ToolCall) (context.Context, error) {
	ctx, o := t.start(ctx, t.tool, excerpt.Name(c.Call.Name), c.Speaker, c.Started)
	if o != nil {
		o.span.SetAttributes(
			keyTool.String(excerpt.Name(c.Call.Name)), keyToolType.String("function"), keyCallID.String(excerpt.Name(c.Call.ID)),
			keyConversation.String(c.Session), keyTurn.Int(c.Turn), keyDepth.Int(c.Depth),
		)
	}
	return ctx, nil
}

func (t *tracer) afterTool(ctx context.Context, c *agent.ToolCall) error {
	class := string(c.Failure)
	if t.meter.on(ctx) {
		t.meter.called(ctx, c, t.labels(opTool, c.Speaker))
	}
	o := opened(ctx, t.tool)
	if o == nil {
		return nil
	}
	if c.Paused {
		o.span.SetAttributes(keyPaused.Bool(true))
	}
	if t.Content {
		o.span.SetAttributes(keyArguments.String(excerpt.Text(c.Call.Arguments, excerpt.MaxText)), keyResult.String(excerpt.Text(c.Output.Display(), excerpt.MaxText)))
	}
	if class != "" && !c.Paused {
		t.fail(o.span, class, c.Error)
	}
	o.span.End(trace.WithTimestamp(c.Ended))
	return nil
}
