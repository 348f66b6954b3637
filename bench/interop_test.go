// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	oai "github.com/openai/openai-go/v3/responses"

	"github.com/antiphon-go/antiphon/rehearsal"
)

// TestRehearsalSpeaksToOfficialClient runs the official Go client against the
// rehearsal's server, streamed and whole.
func TestRehearsalSpeaksToOfficialClient(t *testing.T) {
	script, err := rehearsal.Parse("script", []byte("turn\n  reason Think.\n  say You said {{question}}\n  call look {\"at\": \"it\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	base, stop, err := (&rehearsal.Server{Script: script}).Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client := openai.NewClient(option.WithAPIKey("none"), option.WithBaseURL(base))
	params := oai.ResponseNewParams{
		Model: "rehearsal",
		Input: oai.ResponseNewParamsInputUnion{OfString: openai.String("Cori spezzati")},
	}

	whole, err := client.Responses.New(context.Background(), params)
	if err != nil {
		t.Fatal(err)
	}
	stream := client.Responses.NewStreaming(context.Background(), params)
	var text strings.Builder
	var streamed oai.Response
	for stream.Next() {
		switch ev := stream.Current(); ev.Type {
		case "response.output_text.delta":
			text.WriteString(ev.Delta)
		case "response.completed":
			streamed = ev.Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	const want = "You said Cori spezzati"
	if whole.OutputText() != want || text.String() != want || streamed.OutputText() != want {
		t.Errorf("got %q whole, %q in deltas, %q at the end; want %q", whole.OutputText(), text.String(), streamed.OutputText(), want)
	}
	if n := len(whole.Output); n != 3 || whole.Output[2].Type != "function_call" || whole.Output[2].Name != "look" {
		t.Errorf("output: %+v", whole.Output)
	}
}
