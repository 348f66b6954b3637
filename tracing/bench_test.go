// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tracing"
)

func untraced() agent.Hooks {
	return tracing.New(tracing.Options{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(), Content: true})
}

// turnOf plays the hooks of one turn with one call.
func turnOf(ctx context.Context, h agent.Hooks, m *agent.ModelCall, c *agent.ToolCall) {
	inner, _ := h.BeforeModel(ctx, m)
	_ = h.AfterModel(inner, m)
	inner, _ = h.BeforeTool(ctx, c)
	_ = h.AfterTool(inner, c)
}

func calls() (*agent.ModelCall, *agent.ToolCall) {
	now := time.Now()
	m := &agent.ModelCall{Request: &api.Request{Model: "m", Input: item.NewList(item.User("hi"))}, Started: now, First: now, Ended: now, Usage: &api.Usage{InputTokens: 1}}
	return m, &agent.ToolCall{Call: tool.Call{Name: "echo", ID: "c"}, Started: now, Ended: now}
}

// Where nobody listens, a turn costs next to nothing.
func TestNoListener(t *testing.T) {
	h := untraced()
	m, c := calls()
	if n := testing.AllocsPerRun(100, func() { turnOf(t.Context(), h, m, c) }); n > 16 {
		t.Errorf("%v allocations a turn", n)
	}
}

func BenchmarkNoListener(b *testing.B) {
	h := untraced()
	m, c := calls()
	b.ReportAllocs()
	for b.Loop() {
		turnOf(b.Context(), h, m, c)
	}
}
