// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package completions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/api"
	"github.com/antiphon-go/antiphon/completions"
	"github.com/antiphon-go/antiphon/internal/apispec"
	"github.com/antiphon-go/antiphon/item"
)

// responsesAPI calls visit with every recording of the Responses API of a kind.
func responsesAPI(t *testing.T, kind string, visit func(t *testing.T, text []byte)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(apispec.Shared(t, "corpus"), kind, "*"))
	if err != nil || len(files) == 0 {
		t.Skipf("no recordings of %s", kind)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) { visit(t, text) })
	}
}

// words is what a response says and calls, messages and reasoning each as one.
func words(t *testing.T, items []item.Item) []string {
	t.Helper()
	var said, refused, thought []string
	var calls []string
	for _, it := range items {
		v, err := it.Decode()
		if err != nil {
			t.Fatal(err)
		}
		switch v := v.(type) {
		case *item.Message:
			for _, p := range v.Content.Parts {
				switch p := p.(type) {
				case *item.OutputText:
					said = append(said, p.Text)
				case *item.Refusal:
					refused = append(refused, p.Refusal)
				}
			}
		case *item.Reasoning:
			for _, p := range append(v.Content, v.Summary...) {
				thought = append(thought, item.Parts(p).Display())
			}
		case *item.FunctionCall:
			calls = append(calls, v.CallID+" "+v.Name+" "+v.Arguments)
		case *item.CustomToolCall:
			calls = append(calls, v.CallID+" "+v.Name+" "+v.Input)
		}
	}
	fold := func(list []string) string { return strings.Join(strings.Fields(strings.Join(list, " ")), "") }
	return append([]string{fold(said), fold(refused), fold(thought)}, calls...)
}

// The events of the Responses API become chunks that say the same.
func TestForeignStreams(t *testing.T) {
	responsesAPI(t, "streams", func(t *testing.T, text []byte) {
		var acc api.Accumulator
		var e completions.Encoder
		e.Options.Reasoning = completions.ReasoningContent
		var chunks []string
		for _, c := range chunksOf(t, text) {
			ev, err := api.ParseEvent([]byte(c))
			if err != nil {
				t.Skip("no stream of events")
			}
			if _, err := acc.Add(ev); err != nil {
				t.Skip(err)
			}
			if err := e.Encode(ev, func(c []byte) error { chunks = append(chunks, string(c)); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		want, whole := acc.Response()
		if !whole || want.Status == "" || want.Status == item.StatusFailed {
			return
		}
		if ev := chunks[len(chunks)-1]; strings.HasPrefix(ev, `{"error"`) {
			return
		}
		got := decode(t, chunks)
		if got.err != nil {
			t.Fatal(got.err)
		}
		r, _ := got.acc.Response()
		if d := cmp.Diff(words(t, want.Output), words(t, r.Output)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if want.Status != r.Status || want.ID != r.ID || want.Usage != nil && want.Usage.TotalTokens != r.Usage.TotalTokens {
			t.Errorf("%s %s became %s %s", want.ID, want.Status, r.ID, r.Status)
		}
	})
}

// Requests of the Responses API become chat requests in which every call is
// followed by its output, and come back with what was said in them.
func TestForeignRequests(t *testing.T) {
	responsesAPI(t, "requests", func(t *testing.T, text []byte) {
		r, err := api.ParseRequest(text)
		if err != nil {
			t.Fatal(err)
		}
		r.PreviousResponseID, r.Conversation, r.Prompt = "", "", nil
		if n := len(r.InputItems()); n == 0 {
			t.Skip("nothing is said")
		}
		body, losses, err := completions.AppendRequest(nil, r, completions.Options{Reasoning: completions.ReasoningDetails})
		if err != nil {
			t.Skip(err) // what is sent is not always right
		}
		v := parsed(t, body)
		problem := unpaired(anyList(get(v, "messages")))
		orphans := strings.Contains(problem, "answers no call") || strings.Contains(problem, "no outputs") // that is how they came
		if problem != "" && !orphans {
			t.Errorf("%s: %s", problem, body)
		}
		back, _, err := completions.ParseRequest(body)
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		var was []item.Item
		for _, it := range r.InputItems() {
			if m, err := item.As[item.Message](it); err != nil || m.Role == item.RoleAssistant {
				was = append(was, it)
			}
		}
		want, got := words(t, was), words(t, back.InputItems())
		if d := cmp.Diff(want[3:], got[3:]); d != "" {
			t.Errorf("calls (-want +got):\n%s\nlosses %v", d, losses)
		}
	})
}
