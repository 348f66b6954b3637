// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package collector tests package tracing against a real OpenTelemetry Collector: its
// OTLP receiver reads what an agent's run exports, and its debug exporter prints it.
// It is a module of its own, because a collector has many dependencies. .ci/otel runs
// it.
package collector

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tracing"
)

// configVariable makes the test's program a collector with the named configuration.
const configVariable = "ANTIPHON_COLLECTOR_CONFIG"

func TestMain(m *testing.M) {
	if config := os.Getenv(configVariable); config != "" {
		if err := collect(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// collect is the collector, until it is interrupted.
func collect(config string) error {
	factories := func() (otelcol.Factories, error) {
		receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
		if err != nil {
			return otelcol.Factories{}, err
		}
		exporters, err := otelcol.MakeFactoryMap[exporter.Factory](debugexporter.NewFactory())
		return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: otelconftelemetry.NewFactory()}, err
	}
	c, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "test"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{"file:" + config}, ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
		}},
	})
	if err != nil {
		return err
	}
	return c.Run(context.Background())
}

// settings is the configuration of the collector.
const settings = `
receivers:
  otlp:
    protocols:
      http:
        endpoint: %s
exporters:
  debug:
    verbosity: detailed
    use_internal_logger: false
    output_paths: [%q]
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [debug]
    metrics:
      receivers: [otlp]
      exporters: [debug]
`

// start starts a collector, and returns its address and a function that ends it and
// returns what its debug exporter printed.
func start(t *testing.T) (address string, end func() string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config, printed := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "printed")
	if err := os.WriteFile(config, fmt.Appendf(nil, settings, address, printed), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), configVariable+"="+config)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(log)
	ready := false
	for !ready && lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		ready = strings.Contains(lines.Text(), "Everything is ready")
	}
	if !ready {
		cancel()
		t.Fatalf("the collector did not start: %v\n%s", cmd.Wait(), &said)
	}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		for lines.Scan() { // so that it never waits for a reader
		}
	}()
	return address, func() string {
		defer cancel()
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		<-rest
		if err := cmd.Wait(); err != nil {
			t.Errorf("the collector: %v", err)
		}
		text, err := os.ReadFile(printed)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

type place struct {
	City string `json:"city"`
}

// TestDebugExporter runs an agent with a tool that works, one that fails, and a
// subagent, and compares what a collector received with the file in testdata, and
// with the names that the conventions have.
func TestDebugExporter(t *testing.T) {
	address, end := start(t)
	ctx := t.Context()
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpoint(address), otlptracehttp.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	measures, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpoint(address), otlpmetrichttp.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(measures)))

	weather := tool.Must("weather", "Tells the weather.", func(_ context.Context, p place) (string, error) {
		if p.City == "Atlantis" {
			return "", errors.New("no such city")
		}
		return "It rains in " + p.City + ".", nil
	}, tool.ReadOnly())
	hooks := func(name string) []agent.Hooks {
		return []agent.Hooks{tracing.New(tracing.Options{TracerProvider: traces, MeterProvider: meters, Agent: name, Provider: "openai", Content: true})}
	}
	inner := &agent.Agent{Model: agenttest.NewServer(t, agenttest.Completed(item.Assistant("Wool."))).Client(), Hooks: hooks("clothes")}
	inner.Request.Model = "gpt-5-nano"
	ask, err := agent.AsTool("ask", "Asks about clothes.", inner)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent.Agent{
		Model: agenttest.NewServer(t,
			agenttest.Completed(item.Call("call_1", "weather", `{"city":"Bergen"}`), item.Call("call_2", "weather", `{"city":"Atlantis"}`)),
			agenttest.Completed(item.Call("call_3", "ask", `{"task":"What do I wear?"}`)),
			agenttest.Incomplete("max_output_tokens", item.Assistant("An umbrella and"))).Client(),
		Tools: []tool.Tool{weather, ask}, Hooks: hooks("umbrella"), Parallel: 1,
		Prices: func(string) (agent.Price, bool) { return agent.Price{Input: 1, Cached: 1, Output: 2}, true },
	}
	a.Request.Model, a.Request.Instructions = "gpt-5", "Be brief."
	s, err := session.Open(ctx, new(session.Memory), "memory")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Run(ctx, s, item.User("What do I need in Bergen?")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(traces.Shutdown(ctx), meters.Shutdown(ctx)); err != nil {
		t.Fatal(err)
	}

	got := steady(end())
	const file = "testdata/printed.txt"
	if os.Getenv("ANTIPHON_UPDATE") != "" {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("the collector printed, with ANTIPHON_UPDATE=1 into %s:\n%s", file, got)
	}
	known, err := os.ReadFile("testdata/gen_ai.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server.address", "server.port"} { // of the general conventions, on every call of a model
		if n, calls := strings.Count(got, "  "+name+": "), strings.Count(got, "Name : chat "); n != calls || n == 0 {
			t.Errorf("%s is on %d of %d calls", name, n, calls)
		}
	}
	for _, name := range regexp.MustCompile(`\bgen_ai\.[a-z_.]+`).FindAllString(got, -1) {
		if !strings.Contains(string(known), "\n"+name+"\n") {
			t.Errorf("the conventions have no %s", name)
		}
	}
}

// steady returns the spans and the instruments of a print, without what differs from
// run to run: times, ids, measured values, and the order of spans and of series.
func steady(printed string) string {
	var spans, instruments []string
	var one *[]string
	keep := func(list *[]string, first string) { *list = append(*list, first); one = list }
	seen := map[string]bool{}
	value := regexp.MustCompile(`^ *-> (\S+): (.*)$`)
	var section string
	for line := range strings.Lines(printed) {
		line = strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "Span #"):
			section = "span"
			keep(&spans, "")
		case strings.HasPrefix(trimmed, "Metric #"):
			section, one = "metric", nil
		case strings.HasPrefix(trimmed, "Resource"), strings.HasPrefix(trimmed, "ScopeSpans"), strings.HasPrefix(trimmed, "ScopeMetrics"):
			section, one = "", nil
		case section == "span" && (strings.HasPrefix(trimmed, "Name ") || strings.HasPrefix(trimmed, "Kind ") || strings.HasPrefix(trimmed, "Status ")):
			add(one, strings.Join(strings.Fields(trimmed), " "))
		case section == "span" && value.MatchString(line):
			m := value.FindStringSubmatch(line)
			if strings.Contains(m[1], "time_to_first") {
				m[2] = "Double(…)"
			}
			if m[1] == "server.port" {
				m[2] = "Int(…)"
			}
			add(one, "  "+m[1]+": "+m[2])
		case section == "metric" && strings.HasPrefix(trimmed, "-> Name: "):
			name := strings.TrimPrefix(trimmed, "-> Name: ")
			if !seen[name] {
				seen[name] = true
				keep(&instruments, name)
			} else {
				one = nil
			}
		case section == "metric" && one != nil && strings.HasPrefix(trimmed, "-> Unit: "), section == "metric" && one != nil && strings.HasPrefix(trimmed, "-> DataType: "):
			add(one, "  "+strings.TrimPrefix(trimmed, "-> "))
		}
	}
	return "spans\n\n" + strings.Join(sorted(spans), "\n\n") + "\n\ninstruments\n\n" + strings.Join(sorted(instruments), "\n") + "\n"
}

// add adds a line to the last text of a list.
func add(list *[]string, line string) {
	if list == nil || len(*list) == 0 {
		return
	}
	last := &(*list)[len(*list)-1]
	if *last != "" {
		*last += "\n"
	}
	*last += line
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}
