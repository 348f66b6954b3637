// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"strings"
	"testing"
)

// TestRunHelpIsGrouped: the flags of run stand under headings, none but --help
// outside of them. Run has no clients.
func TestRunHelpIsGrouped(t *testing.T) {
	o := program(t, "run", "--help")
	at := 0
	for _, g := range flagGroups {
		if g.Key == "clients" {
			continue
		}
		i := strings.Index(o.out, "\n"+g.Title+"\n")
		if i < at {
			t.Errorf("%q stands at %d, behind %d", g.Title, i, at)
		}
		at = i
	}
	_, flags, _ := strings.Cut(o.out, "\nFlags:\n")
	loose, _, _ := strings.Cut(flags, "\n\n")
	if strings.Count(loose, "--") != 1 || !strings.Contains(loose, "--help") {
		t.Errorf("without a heading:\n%s", loose)
	}
}

// TestDocNamesCommands: the package's comment has a line for each command.
func TestDocNamesCommands(t *testing.T) {
	doc := read(t, "main.go")
	for _, f := range reflect.VisibleFields(reflect.TypeFor[grammar]()) {
		if !strings.Contains(doc, "//	antiphon "+strings.ToLower(f.Name)) {
			t.Errorf("main.go says nothing of %s", f.Name)
		}
	}
}

// U8: the helps that speak of transcripts say what one is.
func TestHelpSaysWhatATranscriptIs(t *testing.T) {
	for _, args := range [][]string{{"help", "run"}, {"sessions"}, {"help", "sessions", "import"}} {
		said := strings.ToLower(strings.Join(strings.Fields(program(t, args...).out), " "))
		if !strings.Contains(said, "transcript: a text file") && !strings.Contains(said, "transcript is one in a text file") && !strings.Contains(said, "a transcript, of run --out") {
			t.Errorf("%v: %s", args, said)
		}
		if strings.Contains(said, "context-sensitive") {
			t.Errorf("%v: --help is explained in a programmer's words", args)
		}
	}
}
