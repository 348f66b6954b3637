// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/internal/excerpt"
	"github.com/antiphon-go/antiphon/tool"
)

// maxTools is the maximum number of tools that are counted by name, because a model
// can call any name.
const maxTools = 200

// Bounds of the histograms, as in the conventions.
var (
	tokenBounds  = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	secondBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	runBounds    = []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}
	callBounds   = []float64{1, 2, 4, 8, 16, 32, 64, 128}
)

// meter holds the instruments.
type meter struct {
	inputs, outputs  metric.Int64Histogram   // tokens of one model call or compaction
	duration, first  metric.Float64Histogram // of model calls and compactions
	runs, tooling    metric.Float64Histogram // of runs and of tool calls
	turns, toolCalls metric.Int64Histogram   // of one run
	cost             metric.Float64Counter

	calls, failures, refused                            metric.Int64Counter
	input, output, cached, written, reasoning, expected metric.Int64Counter // tokens

	mu    sync.Mutex
	tools map[string]bool
}

func newMeter(m metric.Meter) *meter {
	return &meter{
		inputs: must(m.Int64Histogram(nameInputs, metric.WithUnit("{token}"), metric.WithExplicitBucketBoundaries(tokenBounds...),
			metric.WithDescription("Input tokens of one model call or compaction, including tokens read from a cache."))),
		outputs: must(m.Int64Histogram(nameOutputs, metric.WithUnit("{token}"), metric.WithExplicitBucketBoundaries(tokenBounds...),
			metric.WithDescription("Output tokens of one model call or compaction, including reasoning tokens."))),
		duration: must(m.Float64Histogram(nameDuration, metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(secondBounds...),
			metric.WithDescription("Duration of a model call or a compaction."))),
		runs: must(m.Float64Histogram(nameRun, metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(runBounds...),
			metric.WithDescription("Duration of a run."))),
		turns: must(m.Int64Histogram(nameTurns, metric.WithUnit("{inference_call}"), metric.WithExplicitBucketBoundaries(callBounds...),
			metric.WithDescription("Model calls of one run, without those of subagents."))),
		toolCalls: must(m.Int64Histogram(nameToolCalls, metric.WithUnit("{tool_call}"), metric.WithExplicitBucketBoundaries(callBounds...),
			metric.WithDescription("Tool calls of one run, without those of subagents."))),
		tooling: must(m.Float64Histogram(nameTool, metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(secondBounds...),
			metric.WithDescription("Duration of a tool call."))),
		first: must(m.Float64Histogram(nameFirstChunk, metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(secondBounds...),
			metric.WithDescription("Time until the first output of a model."))),
		cost:      must(m.Float64Counter(nameCost, metric.WithDescription("Cost of model calls and compactions, in the unit of the agent's prices."))),
		calls:     must(m.Int64Counter(nameCalls, metric.WithUnit("{call}"), metric.WithDescription("Runs, model calls, tool calls and compactions that ended."))),
		failures:  must(m.Int64Counter(nameFailures, metric.WithUnit("{call}"), metric.WithDescription("Runs, model calls, tool calls and compactions that failed."))),
		refused:   must(m.Int64Counter(nameRefused, metric.WithUnit("{call}"), metric.WithDescription("Tool calls that a rule, a person or a check refused."))),
		input:     must(m.Int64Counter(nameInput, metric.WithUnit("{token}"), metric.WithDescription("Input tokens, including tokens read from a cache."))),
		output:    must(m.Int64Counter(nameOutput, metric.WithUnit("{token}"), metric.WithDescription("Output tokens, including reasoning tokens."))),
		written:   must(m.Int64Counter(nameWritten, metric.WithUnit("{token}"), metric.WithDescription("Input tokens that were written to the prompt cache."))),
		reasoning: must(m.Int64Counter(nameReasoning, metric.WithUnit("{token}"), metric.WithDescription("Output tokens spent on reasoning."))),
		expected:  must(m.Int64Counter(nameExpected, metric.WithUnit("{token}"), metric.WithDescription("Input tokens that could have been read from the prompt cache."))),
		cached:    must(m.Int64Counter(nameCached, metric.WithUnit("{token}"), metric.WithDescription("Input tokens that were read from the prompt cache."))),
		tools:     map[string]bool{},
	}
}

// must reports an error in making an instrument. The instrument can still be used,
// but does nothing.
func must[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

// labels returns a function that makes the attributes of measurements of the agent that
// speaks. All of them have few values.
func (t *tracer) labels(op, speaker string, more ...attribute.KeyValue) func(...attribute.KeyValue) metric.MeasurementOption {
	return func(last ...attribute.KeyValue) metric.MeasurementOption {
		attrs := append(t.named(speaker), keyOperation.String(op))
		attrs = append(append(attrs, more...), last...)
		return metric.WithAttributeSet(attribute.NewSet(attrs...))
	}
}

// on reports whether any instrument is enabled.
func (m *meter) on(ctx context.Context) bool {
	return m.calls.Enabled(ctx) || m.duration.Enabled(ctx) || m.runs.Enabled(ctx) || m.tooling.Enabled(ctx) || m.turns.Enabled(ctx) || m.toolCalls.Enabled(ctx) ||
		m.inputs.Enabled(ctx) || m.outputs.Enabled(ctx) || m.input.Enabled(ctx) || m.output.Enabled(ctx) || m.cost.Enabled(ctx) || m.failures.Enabled(ctx) ||
		m.refused.Enabled(ctx) || m.first.Enabled(ctx) || m.reasoning.Enabled(ctx) || m.expected.Enabled(ctx) || m.cached.Enabled(ctx) || m.written.Enabled(ctx)
}

type labels = func(...attribute.KeyValue) metric.MeasurementOption

// ended counts an operation that has ended.
func (m *meter) ended(ctx context.Context, in metric.Float64Histogram, class string, took time.Duration, with labels) {
	m.calls.Add(ctx, 1, with())
	outcome := with()
	if class != "" {
		outcome = with(keyErrorType.String(class))
		m.failures.Add(ctx, 1, outcome)
	}
	in.Record(ctx, took.Seconds(), outcome)
}

// answered counts a model call.
func (m *meter) answered(ctx context.Context, c *agent.ModelCall, class string, with labels) {
	m.ended(ctx, m.duration, class, c.Ended.Sub(c.Started), with)
	if !c.First.IsZero() {
		m.first.Record(ctx, c.First.Sub(c.Started).Seconds(), with())
	}
	m.used(ctx, c.Usage, c.Cost, with)
	if c.Cache != nil {
		m.expected.Add(ctx, c.Cache.Expected, with())
	}
}

// compacted counts a compaction with all its requests.
func (m *meter) compacted(ctx context.Context, c *agent.CompactionCall, class string, with labels) {
	m.ended(ctx, m.duration, class, c.Ended.Sub(c.Started), with)
	m.used(ctx, c.Usage, c.Cost, with)
}

// used counts tokens and their cost.
func (m *meter) used(ctx context.Context, u *api.Usage, cost float64, with labels) {
	if cost > 0 {
		m.cost.Add(ctx, cost, with())
	}
	if u == nil {
		return
	}
	m.inputs.Record(ctx, u.InputTokens, with())
	m.outputs.Record(ctx, u.OutputTokens, with())
	each := with(keyModality.String("unknown")) // the API does not break tokens down by it
	m.input.Add(ctx, max(0, u.InputTokens), each)
	m.output.Add(ctx, max(0, u.OutputTokens), each)
	m.reasoning.Add(ctx, max(0, u.Reasoning()), each)
	m.cached.Add(ctx, max(0, u.Cached()), each)
	m.written.Add(ctx, max(0, u.CacheWrite()), each)
}

// ran counts a run.
func (m *meter) ran(ctx context.Context, c *agent.RunCall, class string, with labels) {
	m.ended(ctx, m.runs, class, c.Ended.Sub(c.Started), with)
	m.turns.Record(ctx, int64(c.Totals.Turns), with())
	m.toolCalls.Record(ctx, int64(c.Totals.Calls), with())
}

// called counts a tool call. A call that was refused at the last moment is counted
// as refused, and one that continues later is counted when it ends.
func (m *meter) called(ctx context.Context, c *agent.ToolCall, with labels) {
	if c.Paused || c.Failure == tool.NotRun {
		return
	}
	tool := keyTool.String(m.tool(c.Call.Name, c.Failure))
	m.ended(ctx, m.tooling, string(c.Failure), c.Ended.Sub(c.Started), func(more ...attribute.KeyValue) metric.MeasurementOption {
		return with(append(more, tool)...)
	})
}

// refusal counts a call that was refused and did not run.
func (m *meter) refusal(ctx context.Context, called string, with labels) {
	m.refused.Add(ctx, 1, with(keyTool.String(m.tool(called, tool.NoFailure))))
}

// tool returns the name under which to count a call.
func (m *meter) tool(called string, failure tool.Failure) string {
	called = excerpt.Name(called)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.tools[called]:
	case failure == tool.UnknownTool, len(m.tools) >= maxTools:
		return other
	default:
		m.tools[called] = true
	}
	return called
}
