// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/tracing"
)

// The run of a response belongs to the trace of its request.
func TestTraceparent(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	w := serving(t, "", "turn\n  say hello\nagain\nturn\n  say hello\n", func(b *agents.Backend) {
		b.Agents[0].Hooks = []agent.Hooks{tracing.New(tracing.Options{TracerProvider: provider, Agent: "it"})}
	})
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, test := range []struct{ given, trace string }{{parent, "0af7651916cd43dd8448eb211c80319c"}, {"00-nonsense" + strings.Repeat("x", 60), ""}, {"", ""}} {
		spans.Reset()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+"/responses", strings.NewReader(`{"model":"it","input":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Traceparent", test.given)
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s %v", resp.StatusCode, text, err)
		}
		list := spans.GetSpans()
		if len(list) == 0 {
			t.Fatal("no spans")
		}
		for _, s := range list {
			if got := s.SpanContext.TraceID().String(); test.trace != "" && got != test.trace || test.trace == "" && got == "0af7651916cd43dd8448eb211c80319c" {
				t.Errorf("%q: %s is in the trace %s", test.given, s.Name, got)
			}
			if strings.HasPrefix(s.Name, "invoke_agent") && (s.Parent.SpanID().String() == "b7ad6b7169203331") != (test.trace != "") {
				t.Errorf("%q: the parent of %s is %s", test.given, s.Name, s.Parent.SpanID())
			}
		}
	}
}
