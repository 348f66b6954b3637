// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui_test

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/tui"
)

// TestStream proves that a stream returns each line once, and that what it shows of the
// unfinished end keeps to its rows.
func TestStream(t *testing.T) {
	s := tui.NewStream(20, 3, false)
	text := strings.Repeat("some words of a line ", 12) + "\n\n| a | b |\n|---|---|\n| 1 | 2 |\nend"
	var lines []string
	for _, r := range text {
		finished, end := s.Write(string(r))
		lines = append(lines, finished...)
		if len(end) > 3 {
			t.Fatalf("%d rows of 3: %q", len(end), end)
		}
	}
	lines = append(lines, s.End()...)
	got := strings.Fields(strings.Join(lines, " "))
	want := strings.Fields(strings.Repeat("some words of a line ", 12) + "a │ b ──┼── 1 │ 2 end")
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%q, want %q", got, want)
	}
	if more := s.End(); len(more) > 0 {
		t.Errorf("after the end: %q", more)
	}
}
