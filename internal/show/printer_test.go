// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// TestOutputKeepsBlanks proves that the end of an output is shown with its blanks, and a long line shortened.
func TestOutputKeepsBlanks(t *testing.T) {
	out, err := item.ParseString(`{"type":"function_call_output","call_id":"c","output":"f\n\treturn  1\n` + strings.Repeat("ü", 200) + `"}`)
	if err != nil {
		t.Fatal(err)
	}
	var screen strings.Builder
	p := NewPrinter(io.Discard, &screen, host.Environment{})
	p.Watched = true
	p.output(out, &agent.KnownCall{Tool: "read_file"}, false)
	if want := "   | f\n   |     return  1\n   | " + strings.Repeat("ü", 140) + "…\n"; screen.String() != want {
		t.Errorf("%q, want %q", screen.String(), want)
	}
}

// TestReasoningIsFolded proves that a chat shows the beginning of reasoning, and how much there is more, unless
// all is asked for.
func TestReasoningIsFolded(t *testing.T) {
	for _, folds := range []bool{true, false} {
		var screen strings.Builder
		p := NewPrinter(&screen, &screen, host.Environment{})
		p.Watched, p.Folds = true, folds
		for _, text := range []string{"one\ntw", "o\n\nthree\nfour\nfi", "ve"} {
			p.delta(agent.Delta{Kind: agent.DeltaSummary, Text: text})
		}
		p.delta(agent.Delta{Kind: agent.DeltaText, Text: "Yes."})
		p.delta(agent.Delta{Kind: agent.DeltaText, Text: " No."})
		want := "   one\n   two\n   three\n   four\n   five\nYes. No."
		if folds {
			want = "   one\n   two\n   three\n   … 2 more lines of reasoning, all of which a chat with -v shows\nYes. No."
		}
		if screen.String() != want {
			t.Errorf("folded %v: %q", folds, screen.String())
		}
	}
}

// TestResultShowsChange proves that the row of a call that has changed files shows the change, a
// part of a long one, and nothing if the person has just been asked about it.
func TestResultShowsChange(t *testing.T) {
	patch := "*** Begin Patch\n*** Update File: a.go\n@@\n-old word\n+new word\n" + strings.Repeat(" more\n", 30) + "*** End Patch\n"
	for _, c := range []struct {
		name, arguments, want string
		verdict               *session.Approval
		whole                 bool
	}{
		{"patch", patch, "   | \x1b[31m-\x1b[7mold\x1b[27m word\x1b[0m\n   | \x1b[32m+\x1b[7mnew\x1b[27m word\x1b[0m\n", nil, false},
		{"long patch", patch, "   | … 20 lines more, which --show-output shows\n", nil, false},
		{"whole patch", patch, "   | \x1b[1m*** End Patch\x1b[0m\n", nil, true},
		{"function", `{"input":` + string(item.Quote(patch)) + `}`, "   | \x1b[1m*** Update File: a.go\x1b[0m\n", nil, false},
		{"operation", `{"type":"update_file","path":"a","diff":"@@\n-x y\n+x z"}`, "   | \x1b[31m-x \x1b[7my\x1b[27m\x1b[0m\n", nil, false},
		{"edit", `{"path":"a","find":"x = 1","replace":"x = 2"}`, "   | \x1b[32m+x = \x1b[7m2\x1b[27m\x1b[0m\n", nil, false},
		{"append", `{"path":"a","content":"one\ntwo\n"}`, "   | \x1b[32m+one\x1b[0m\n   | \x1b[32m+two\x1b[0m\n", nil, false},
		{"asked", patch, "", &session.Approval{Allowed: true, From: AtTerminal}, false},
		{"rule", patch, "+\x1b[7mnew", &session.Approval{Allowed: true, By: "a rule"}, false},
		{"other", `{"path":"a"}`, "", nil, false},
	} {
		var screen bytes.Buffer
		p := NewPrinter(&screen, &screen, nil)
		p.Watched, p.Whole, p.Look = true, c.whole, Coloured
		p.change(&agent.KnownCall{Tool: "tool", Arguments: c.arguments, Verdict: c.verdict})
		if got := screen.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
