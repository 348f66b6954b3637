// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// The program traces a run with OpenTelemetry and writes its events to a log. The spans
// go to standard output here; a program sends them to a collector. Start it with
//
//	go run ./examples/go/traced
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/eventlog"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/responses"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tracing"
)

const script = `
turn
  call weather {"city": "Bergen"}
turn
  say Take an umbrella.
`

type place struct {
	City string `json:"city"`
}

func weather(_ context.Context, p place) (string, error) { return "It rains in " + p.City + ".", nil }

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	play, err := rehearsal.Parse("traced.script", []byte(script))
	if err != nil {
		return err
	}
	url, stop, err := (&rehearsal.Server{Script: play}).Start()
	if err != nil {
		return err
	}
	defer stop()
	spans := tracetest.NewInMemoryExporter() // otlptracehttp.New sends them to a collector
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	a := &agent.Agent{
		Model:   &responses.Client{BaseURL: url}, // another BaseURL and a Key select any other model
		Request: api.Request{Model: "rehearsal"},
		Tools:   []tool.Tool{tool.Must("weather", "Tells the weather in a city.", weather, tool.ReadOnly())},
		// Without Content no text of a person, a model or a tool is in a span.
		Hooks: []agent.Hooks{tracing.New(tracing.Options{Agent: "umbrella", TracerProvider: provider})},
	}
	events := eventlog.Log{Logger: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: plain}))}
	s := session.New()
	for ev, err := range a.Stream(ctx, s, item.User("Do I need an umbrella in Bergen?")) {
		if err != nil {
			return err
		}
		events.Add(ctx, ev)
	}
	if err := provider.ForceFlush(ctx); err != nil {
		return err
	}
	for _, span := range spans.GetSpans() {
		fmt.Fprintf(out, "span %s\n", span.Name)
	}
	return nil
}

// plain keeps a few attributes, so that each start of the program prints the same.
func plain(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.LevelKey, slog.MessageKey, "turn", "tool", "calls", "why":
		return a
	}
	return slog.Attr{}
}
