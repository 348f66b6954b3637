// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/tracing"
)

// A response has one span, whatever the number of upstreams, in the trace of its request and
// without what was said. Upstreams are not told of the trace.
func TestSpans(t *testing.T) {
	first, second := agenttest.NewServer(t), agenttest.NewServer(t)
	first.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Failure(http.StatusServiceUnavailable, "", "secret words")
	})
	second.Add(agenttest.Completed(item.Assistant("secret words")))
	second.Otherwise(func(int, agenttest.Request) agenttest.Reply {
		return agenttest.Failure(http.StatusBadRequest, "", "secret words")
	})
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	b := &gateway.Backend{
		Upstreams: []gateway.Upstream{open(t, first.URL, false), open(t, second.URL, false)},
		Hooks:     tracing.New(tracing.Options{TracerProvider: provider}),
	}
	w := &world{t: t, b: b}
	w.serve(&server.Server{Backend: b})
	ask := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+"/responses", strings.NewReader(`{"model":"m","input":"secret question"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		resp, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if a, b := ask(), ask(); a != http.StatusOK || b == http.StatusOK {
		t.Errorf("%d, then %d", a, b)
	}
	w.end() // the spans have ended
	list := spans.GetSpans()
	if len(list) != 2 {
		t.Fatalf("%d spans", len(list))
	}
	port := second.URL[strings.LastIndex(second.URL, ":")+1:]
	port, _, _ = strings.Cut(port, "/")
	for i, s := range list {
		got := map[string]string{}
		for _, kv := range s.Attributes {
			got[string(kv.Key)] = kv.Value.String()
			if strings.Contains(kv.Value.String(), "secret") {
				t.Errorf("%s: %s", kv.Key, kv.Value.String())
			}
		}
		if s.Name != "chat m" || s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || s.Parent.SpanID().String() != "b7ad6b7169203331" || s.EndTime.Before(s.StartTime) {
			t.Errorf("%+v", s)
		}
		if got["server.port"] != port || got["gen_ai.request.model"] != "m" || got["antiphon.attempts"] == "" || (s.Status.Code == codes.Error) != (i == 1) {
			t.Errorf("span %d: %v %v", i, got, s.Status)
		}
		_, turn := got["antiphon.turn"]
		tokens, err := strconv.Atoi(got["gen_ai.usage.output_tokens"])
		if i == 0 && (got["antiphon.response.status"] != "completed" || !strings.HasPrefix(got["gen_ai.response.id"], "resp_") || tokens == 0 || err != nil || turn) {
			t.Errorf("%v", got)
		}
		if i == 1 && (got["antiphon.response.status"] != "failed" || got["error.type"] == "") {
			t.Errorf("%v", got)
		}
	}
	for _, r := range append(first.Requests(), second.Requests()...) {
		if r.Header.Get("Traceparent") != "" {
			t.Error("an upstream was told of the trace")
		}
	}
}
