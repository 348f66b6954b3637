// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a traced agent on a server over loopback.
type rig struct {
	t       *testing.T
	server  *agenttest.Server
	agent   *agent.Agent
	session *session.Session
	totals  agent.Totals
	traces  *sdktrace.TracerProvider
	spans   *tracetest.InMemoryExporter
	meters  *sdkmetric.MeterProvider
	reader  *sdkmetric.ManualReader
}

func newRig(t *testing.T, o tracing.Options, answers ...agenttest.Reply) *rig {
	t.Helper()
	r := &rig{t: t, server: agenttest.NewServer(t, answers...), spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	r.traces = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans))
	r.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	o.TracerProvider, o.MeterProvider = r.traces, r.meters
	client := r.server.Client()
	client.Key = endpoint.NewKey(secret)
	r.agent = &agent.Agent{Model: client, Retry: client.Retry, Hooks: []agent.Hooks{tracing.New(o)}}
	r.agent.Request.Model = "test-model"
	r.agent.Tools = []tool.Tool{echo(), broken(), agent.ForkTool()}
	s, err := session.Open(t.Context(), new(session.Memory), "memory")
	if err != nil {
		t.Fatal(err)
	}
	r.session = s
	return r
}

const secret = "sk-proj-0123456789abcdefghijklmnop"

// run runs below a span of the caller's.
func (r *rig) run(text string) (*agent.Result, error) {
	ctx, span := r.traces.Tracer("caller").Start(r.t.Context(), "caller")
	defer span.End()
	res, err := r.agent.Run(ctx, r.session, item.User(text))
	r.totals = res.Totals
	return res, err
}

type input struct {
	Text string `json:"text"`
}

func echo() tool.Tool {
	return tool.Must("echo", "Says it again.", func(_ context.Context, in input) (string, error) { return in.Text, nil }, tool.ReadOnly())
}

func broken() tool.Tool {
	return tool.Must("broken", "Fails.", func(_ context.Context, in input) (string, error) { return "", errors.New("broken: " + in.Text) }, tool.ReadOnly())
}

func call(id, name, text string) item.Item {
	return item.Call(id, name, `{"text":`+string(item.Quote(text))+`}`)
}

// attrs returns the attributes as texts.
func attrs(list []attribute.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range list {
		m[string(kv.Key)] = kv.Value.String()
	}
	return m
}

// tree draws the spans, those of one parent by turn and call id.
func (r *rig) tree() string {
	all := r.spans.GetSpans()
	below := map[trace.SpanID]tracetest.SpanStubs{}
	known := map[trace.SpanID]bool{}
	for _, s := range all {
		known[s.SpanContext.SpanID()] = true
	}
	for _, s := range all {
		parent := s.Parent.SpanID()
		if parent.IsValid() && !known[parent] {
			r.t.Errorf("the span around %s was never ended", s.Name)
		}
		if s.SpanContext.TraceID() != all[0].SpanContext.TraceID() {
			r.t.Errorf("%s is in another trace", s.Name)
		}
		below[parent] = append(below[parent], s)
	}
	var b strings.Builder
	var draw func(parent trace.SpanID, depth int)
	draw = func(parent trace.SpanID, depth int) {
		list := below[parent]
		slices.SortStableFunc(list, func(a, b tracetest.SpanStub) int {
			x, y := attrs(a.Attributes), attrs(b.Attributes)
			return cmp.Or(cmp.Compare(x["antiphon.turn"], y["antiphon.turn"]), cmp.Compare(x["gen_ai.tool.call.id"], y["gen_ai.tool.call.id"]))
		})
		for _, s := range list {
			a := attrs(s.Attributes)
			line := strings.Repeat("  ", depth) + s.Name
			for _, key := range []string{"gen_ai.tool.call.id", "gen_ai.response.finish_reasons", "antiphon.attempts", "antiphon.run.why", "error.type"} {
				if a[key] != "" {
					line += " " + key[strings.LastIndex(key, ".")+1:] + "=" + a[key]
				}
			}
			fmt.Fprintln(&b, line)
			for _, ev := range s.Events {
				fmt.Fprintf(&b, "%s! %s %s\n", strings.Repeat("  ", depth+1), ev.Name, attrs(ev.Attributes)["gen_ai.tool.call.id"])
			}
			draw(s.SpanContext.SpanID(), depth+1)
		}
	}
	draw(trace.SpanID{}, 0)
	return b.String()
}

// named returns the spans of a name.
func (r *rig) named(name string) (list tracetest.SpanStubs) {
	for _, s := range r.spans.GetSpans() {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

// metrics lists the sums, and of histograms how many were recorded, by their
// attributes. Of what endpoints count, and of cost, sums are returned apart.
func (r *rig) metrics() (string, map[string]float64) {
	sums := map[string]float64{}
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(r.t.Context(), &all); err != nil {
		r.t.Fatal(err)
	}
	var lines []string
	add := func(name string, set attribute.Set, value string, sum float64) {
		line := name
		if value == "" {
			sums[name] += sum
			return
		}
		for _, kv := range set.ToSlice() {
			if strings.HasPrefix(string(kv.Key), "server.") {
				continue // the port differs from run to run; TestServer checks it
			}
			line += " " + strings.TrimPrefix(string(kv.Key), "gen_ai.") + "=" + kv.Value.String()
		}
		lines = append(lines, line+": "+value)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					value := fmt.Sprint(p.Value)
					if m.Unit == "{token}" {
						value = ""
					}
					add(m.Name, p.Attributes, value, float64(p.Value))
				}
			case metricdata.Sum[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, "", p.Value)
				}
			case metricdata.Histogram[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, fmt.Sprint(p.Count), 0)
					add(m.Name, p.Attributes, "", float64(p.Sum))
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, fmt.Sprint(p.Count), 0)
				}
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n", sums
}
