// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/endpoint"
)

// scope names this package to OpenTelemetry.
const scope = "github.com/antiphon-go/antiphon/tracing"

// Options say where spans and measurements go. The zero value works.
type Options struct {
	// TracerProvider and MeterProvider are the global ones if they are nil.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Provider names who serves the model, as the conventions do: "openai",
	// "azure.ai.openai". It is left out if it is empty.
	Provider string
	// Agent names the agent. It is left out if it is empty.
	Agent string
	// Content puts instructions, messages, arguments, outputs and the words of
	// errors into spans: shortened, and images and other data by size only. It
	// does not look for secrets in what was said.
	Content bool
}

// tracer is what the hooks of one New share.
type tracer struct {
	Options

	spans                     trace.Tracer
	meter                     *meter
	run, model, tool, compact *operation
}

// operation is a kind of span. A context has the span of a tracer under it: the
// one that the context itself names may be one that a hook inside opened.
type operation struct {
	name string
	kind trace.SpanKind
}

// New returns hooks that trace every run of the agents that have them. They
// change nothing and object to nothing. As the first of several Hooks they see
// what those after them make of a call, and the spans that these open are
// inside of theirs.
//
// The spans of a run are below that of the caller's context. Those of an agent
// that is a tool are below the span of the tool's call; it needs the hooks in
// its own Agent, for which one New is enough, or another with its name.
func New(o Options) agent.Hooks {
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
		BeforeRun: t.beforeRun, AfterRun: t.afterRun, CallRefused: t.callRefused, Noticed: t.noticed,
		BeforeModel: t.beforeModel, AfterModel: t.afterModel,
		BeforeTool: t.beforeTool, AfterTool: t.afterTool,
		BeforeCompact: t.beforeCompact, AfterCompact: t.afterCompact,
	}
}

// open is what a before leaves for its after.
type open struct {
	span trace.Span
	meta *endpoint.Meta // of what asks a model
}

// start opens a span. It returns nil for one that nobody records, which need
// not be ended either.
func (t *tracer) start(ctx context.Context, op *operation, what string, at time.Time) (context.Context, *open) {
	name := op.name
	if what != "" {
		name += " " + what
	}
	ctx, span := t.spans.Start(ctx, name, trace.WithSpanKind(op.kind), trace.WithTimestamp(at), trace.WithAttributes(keyOperation.String(op.name)))
	if !span.IsRecording() {
		if opened(ctx, op) != nil { // which is not this one
			ctx = context.WithValue(ctx, op, (*open)(nil))
		}
		return ctx, nil
	}
	span.SetAttributes(t.named()...)
	o := &open{span: span}
	return context.WithValue(ctx, op, o), o
}

// opened returns what start left.
func opened(ctx context.Context, op *operation) *open {
	o, _ := ctx.Value(op).(*open)
	return o
}

// named are the attributes of all spans.
func (t *tracer) named() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 2)
	if t.Provider != "" {
		attrs = append(attrs, keyProvider.String(t.Provider))
	}
	if t.Agent != "" {
		attrs = append(attrs, keyAgent.String(t.Agent))
	}
	return attrs
}

// fail marks a span as failed. The words are the error's with Content only:
// servers and tools quote what they were given.
func (t *tracer) fail(span trace.Span, class, words string) {
	span.SetAttributes(keyErrorType.String(class))
	if !t.Content {
		words = class
	}
	span.SetStatus(codes.Error, shown(words, maxText))
}

// classOf says what kind of error one is, in one of few words; "" if there is
// none.
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
		return string(agent.Vetoed)
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
	return fmt.Sprint(err) // which survives an Error method that panics
}
