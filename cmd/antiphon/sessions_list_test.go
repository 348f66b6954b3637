// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/show"
)

// A list of sessions on a terminal has a line for each, with a name that commands take: it is never cut,
// and it is the id where the name is not enough. What does not fit is left out.
func TestSessionsFitTheTerminal(t *testing.T) {
	rows := []sessionRow{
		{"NAME", "ID", "ENTRIES", "UPDATED", "FILE", "TITLE"},
		{"work", "work-ac919c6f3c", "47", "2026-11-30 06:16", "/home/ann/src/a/tour.md", "日本語の長い題名日本語の長い題名日本語の長い題名 (#bug)"},
		{"twice", "twice-1", "3", "2026-11-30 06:15", "/home/ann/src/a/agent.md", "one"},
		{"twice", "twice-2", "3", "2026-11-30 06:14", "/home/ann/src/b/agent.md", "two"},
		{"-", "0123456789abcdef", "1", "-", "-", ""},
	}
	for columns := 1; columns < 200; columns++ {
		lines := strings.Split(strings.TrimSuffix(fitSessions(rows, columns), "\n"), "\n")
		if len(lines) != len(rows) {
			t.Fatalf("%d columns: %q", columns, lines)
		}
		for i, name := range []string{"NAME", "work", "twice-1", "twice-2", "0123456789abcdef"} {
			if word, _, _ := strings.Cut(lines[i], " "); word != name {
				t.Errorf("%d columns: %q does not begin with %s", columns, lines[i], name)
			}
			if n := show.ColumnsOf(lines[i]); n >= max(columns, 18) {
				t.Errorf("%d columns: %d of %q", columns, n, lines[i])
			}
		}
	}
	for columns, want := range map[int]string{
		80:  "NAME              ENTRIES  UPDATED           FILE      TITLE",
		50:  "NAME              TITLE",
		130: "NAME              ID                ENTRIES  UPDATED           FILE      TITLE",
	} {
		if head, _, _ := strings.Cut(fitSessions(rows, columns), "\n"); strings.TrimRight(head, " ") != want {
			t.Errorf("%d columns: %q, want %q", columns, head, want)
		}
	}
}
