// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/agents"
	"github.com/antiphon-go/antiphon/trust"
)

// Headers that HTTP does not allow are refused at the start.
func TestWrongTraces(t *testing.T) {
	t.Parallel()
	if _, err := newExporter("http://127.0.0.1:4318", "bad name=x", nil); err == nil {
		t.Error("a header with a blank in its name was taken")
	}
}

// A collector gets the spans of a run in the trace of the request, with the operator's headers and
// without what was said; a redirect gets nothing. An address that is only in the environment
// sends nothing. The program says once that a collector fails, and its responses go on. G13
func TestServeTraces(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var bodies []string
	headers, away := http.Header{}, 0
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		switch r.URL.Path {
		case "/v1/traces":
			bodies, headers = append(bodies, string(body)), r.Header
		case "/leads/v1/traces":
			http.Redirect(w, r, "/away", http.StatusTemporaryRedirect)
		default:
			away++
		}
	}))
	defer collector.Close()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "it.script"), "again\nturn\n  say the secret answer\n")
	file := write(t, filepath.Join(dir, "it.md"), "<config model=\"rehearsal:it.script\"/>\n")
	ask := func(c traceFlags, env environment, times int) (failures []error) {
		t.Helper()
		b := &agents.Backend{Agents: []agents.Agent{{Name: "it", Config: host.Config{File: file, Trust: trust.Everything, Sandbox: "full"}}}}
		hooks, end, err := c.trace(nil, env, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, err)
		})
		if err != nil {
			t.Fatal(err)
		}
		if hooks != nil {
			b.Agents[0].Hooks = hooks("it")
		}
		s := &server.Server{Backend: b}
		base, stop, err := s.Start()
		if err != nil {
			t.Fatal(err)
		}
		for range times {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/responses", strings.NewReader(`{"model":"it","input":"the secret question"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
			resp, err := collector.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if _, _ = io.Copy(io.Discard, resp.Body); resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
			resp.Body.Close()
		}
		stop()
		end()
		return failures
	}
	env := environment{otlpHeaders: "x-key=a%20b,x-team = one", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}
	if failures := ask(traceFlags{OTLP: collector.URL}, env, 2); len(failures) > 0 || len(bodies) != 1 {
		t.Fatalf("%v, %d requests", failures, len(bodies))
	}
	var got otlpRequest
	if err := json.Unmarshal([]byte(bodies[0]), &got); err != nil || strings.Contains(bodies[0], "secret") || headers.Get("X-Key") != "a b" || headers.Get("X-Team") != "one" {
		t.Fatalf("%v %v %s", err, headers, bodies[0])
	}
	names := map[string]int{}
	for _, s := range got.Resources[0].Scopes[0].Spans {
		if names[s.Name]++; s.TraceID != "0af7651916cd43dd8448eb211c80319c" || len(s.SpanID) != 16 || s.Parent == "" || len(s.Start) != 19 || s.End < s.Start {
			t.Errorf("%+v", s)
		}
		if strings.HasPrefix(s.Name, "invoke_agent") && s.Parent != "b7ad6b7169203331" {
			t.Errorf("%s is below %s", s.Name, s.Parent)
		}
	}
	if names["invoke_agent it"] != 2 || !strings.Contains(bodies[0], `"service.name"`) {
		t.Errorf("%v: %s", names, bodies[0])
	}
	if failures := ask(traceFlags{}, env, 1); len(failures) > 0 || len(bodies) != 1 {
		t.Errorf("without the flag: %v, %d requests", failures, len(bodies))
	}
	if failures := ask(traceFlags{OTLP: collector.URL + "/leads"}, env, 1); len(failures) != 1 || !strings.Contains(failures[0].Error(), "307") || away > 0 {
		t.Errorf("a redirect: %v, followed %d times", failures, away)
	}
	for address, want := range map[string]string{"collector:4318": "not an address", "http://collector.example:4318": "loopback alone", "https://u:p@x.example": "user", "https://x.example?key=1": "a query"} {
		if _, err := newExporter(address, "", nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := newExporter("https://x.example", "novalue", nil); err == nil {
		t.Error("a header without a value is accepted")
	}
}

// A response of an upstream has one span, also where no agent is served.
func TestUpstreamTraces(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- string(body)
	}))
	defer collector.Close()
	up := agenttest.NewServer(t, agenttest.Completed(item.Assistant("secret")))
	t.Run("serve", func(t *testing.T) {
		base, _ := gatewayOf(t, nil, "--upstream", up.URL, "--otlp-endpoint", collector.URL, "--store", filepath.Join(t.TempDir(), "s.db"))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/responses", strings.NewReader(`{"model":"m","input":"secret"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := collector.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	})
	if sent := <-got; strings.Count(sent, `"chat m"`) != 1 || strings.Contains(sent, "secret") || len(got) > 0 {
		t.Errorf("%s", sent)
	}
}
