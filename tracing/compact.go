// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/endpoint"
)

func (t *tracer) beforeCompact(ctx context.Context, c *agent.CompactionCall) (context.Context, error) {
	ctx, o := t.start(ctx, t.compact, "", c.Speaker, c.Started)
	if o != nil {
		o.span.SetAttributes(
			keyConversation.String(c.Session), keyDepth.Int(c.Depth),
			keyReplaced.Int(len(c.Replaced)), keyBefore.Int64(c.Before),
		)
		ctx, o.meta = endpoint.WithMeta(ctx)
	}
	return ctx, nil
}

func (t *tracer) afterCompact(ctx context.Context, c *agent.CompactionCall) error {
	class := classOf(c.Err)
	asked := []attribute.KeyValue{keyCompactBy.String(c.By)}
	if c.Model != "" {
		asked = append(append(asked, keyRequestModel.String(c.Model)), serverOf(c.Endpoint)...)
	}
	if t.meter.on(ctx) {
		t.meter.compacted(ctx, c, class, t.labels(opCompact, c.Speaker, asked...))
	}
	o := opened(ctx, t.compact)
	if o == nil {
		return nil
	}
	o.span.SetAttributes(asked...)
	o.span.SetAttributes(used(c.Usage, c.Cost)...)
	reached(o, c.Err)
	if class != "" {
		t.fail(o.span, class, words(c.Err))
	} else {
		o.span.SetAttributes(keyAfter.Int64(c.After))
	}
	if t.Content && len(c.Items) > 0 {
		o.span.SetAttributes(keyOutputMessages.String(reply(c.Items, "stop")))
	}
	o.span.End(trace.WithTimestamp(c.Ended))
	return nil
}
