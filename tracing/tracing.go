// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/internal/traceparent"
)

// scope is the name of this package in OpenTelemetry.
const scope = "github.com/antiphon-go/antiphon/tracing"

// Options configure spans and measurements. The zero value is ready for use.
type Options struct {
	// TracerProvider and MeterProvider default to the global ones.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Provider names the provider of the model as in the conventions, such as "openai"
	// or "azure.ai.openai". The conventions want it with every span; "" means "openai",
	// whose form of requests and replies this module speaks, whoever answers them.
	Provider string
	// Agent names the agent. It is omitted if it is empty. What an agent does to which the
	// conversation was handed has the name of the [agent.Handoff] instead.
	Agent string
	// Content adds instructions, messages, arguments, outputs and error texts to
	// spans: shortened, with images and other data described by size only. It does not
	// remove secrets.
	Content bool
}

// tracer is the state that the hooks of one New share.
type tracer struct {
	Options

	spans                     trace.Tracer
	meter                     *meter
	run, model, tool, compact *operation
}

// operation is a kind of span. It is also the context key of the tracer's span,
// because the context's current span may belong to a hook that was called in
// between.
type operation struct {
	name string
	kind trace.SpanKind
}

// New returns hooks that trace every run of the agents that use them. They do not
// change or refuse anything. If they are the first of several Hooks, they see the
// effects of the others on a call, and the others' spans are inside of theirs.
//
// The spans of a run are children of the span in the caller's context, or else of the
// traceparent of the request to package server that the run answers. Those of an
// agent that is a tool are children of the span of the tool's call. Such an agent
// needs the hooks in its own Agent; they may come from the same New, or from another
// one with the agent's name.
//
// BeforeModel and AfterModel also serve the Hooks of package server/gateway, whose spans are those
// of model calls.
func New(o Options) agent.Hooks {
	o.Provider = cmp.Or(o.Provider, "openai")
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	t := &tracer{
		Options: o,
		spans:   o.TracerProvider.Tracer(scope),
		meter:   newMeter(o.MeterProvider.Meter(scope)),
		run:     &operation{opRun, trace.SpanKindInternal},
		model:   &operation{opModel, trace.SpanKindClient},
		tool:    &operation{opTool, trace.SpanKindInternal},
		compact: &operation{opCompact, trace.SpanKindInternal},
	}
	return agent.Hooks{
		Name:      "tracing", // so that an agent after a handoff, which has them too, is traced once
		BeforeRun: t.beforeRun, AfterRun: t.afterRun, CallRefused: t.callRefused, Noticed: t.noticed,
		BeforeModel: t.beforeModel, AfterModel: t.afterModel,
		BeforeTool: t.beforeTool, AfterTool: t.afterTool,
		BeforeCompact: t.beforeCompact, AfterCompact: t.afterCompact,
	}
}

// open is the state that a hook before an operation leaves for the hook after it.
type open struct {
	span trace.Span
	meta *endpoint.Meta // for operations that call a model
}

// start opens a span of the agent that speaks. It returns nil if the span is not recorded;
// such a span need not be ended.
func (t *tracer) start(ctx context.Context, op *operation, what, speaker string, at time.Time) (context.Context, *open) {
	if carried := traceparent.Of(ctx); carried != nil && !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(carried))
	}
	name := op.name
	if what != "" {
		name += " " + what
	}
	ctx, span := t.spans.Start(ctx, name, trace.WithSpanKind(op.kind), trace.WithTimestamp(at), trace.WithAttributes(keyOperation.String(op.name)))
	if !span.IsRecording() {
		if opened(ctx, op) != nil { // a span of an enclosing operation
			ctx = context.WithValue(ctx, op, (*open)(nil))
		}
		return ctx, nil
	}
	span.SetAttributes(t.named(speaker)...)
	o := &open{span: span}
	return context.WithValue(ctx, op, o), o
}

// opened returns the state that start stored.
func opened(ctx context.Context, op *operation) *open {
	o, _ := ctx.Value(op).(*open)
	return o
}

// named returns the attributes of all spans. Speaker is the name of the handoff to the agent
// that the span is about, or "".
func (t *tracer) named(speaker string) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 2), keyProvider.String(t.Provider))
	if name := cmp.Or(excerpt.Name(speaker), t.Agent); name != "" {
		attrs = append(attrs, keyAgent.String(name))
	}
	return attrs
}

// fail marks a span as failed. The error's text is included only with Content,
// because servers and tools quote their input in errors.
func (t *tracer) fail(span trace.Span, class, words string) {
	span.SetAttributes(keyErrorType.String(class))
	if !t.Content {
		words = class
	}
	span.SetStatus(codes.Error, excerpt.Text(words, excerpt.MaxText))
}

// classOf returns the kind of an error as one of a few words, or "".
func classOf(err error) string {
	if err == nil {
		return ""
	}
	var e *endpoint.Error
	var hook *agent.HookError
	var refused *endpoint.RefusedError
	switch {
	case errors.As(err, &e) && e.Class != "":
		return string(e.Class)
	case errors.As(err, &hook):
		return string(agent.StopVetoed)
	case errors.As(err, &refused):
		return string(endpoint.BadRequest)
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return string(endpoint.Canceled)
	}
	return other
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprint(err) // handles an Error method that panics
}
