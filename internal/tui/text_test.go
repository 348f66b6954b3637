// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Both ways to count agree about the characters that only one of them counts, alone and behind
// a letter.
func TestUndisputedWidths(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if disputed(r) {
			continue
		}
		for _, s := range []string{string(r), "a" + string(r), "a" + string(r) + string(r) + "b"} {
			if one, other := ansi.StringWidth(s), ansi.StringWidthWc(s); one < other {
				t.Errorf("%q takes %d or %d columns", s, one, other)
			}
		}
	}
}

// TestTabs proves that tabs of notes are as wide as a terminal shows them, so that the pane beside them stays
// where it is.
func TestTabs(t *testing.T) {
	b := newBench(t, 120, 12, true)
	o := calls()
	o.Last = func(int) []Node { return o.Nodes() }
	b.t.Browse(o)
	b.t.wantFull = true
	b.t.notes("   | a\tb\n\x1b[2m日本\tc\x1b[0m\n" + strings.Repeat("\tx", 20) + "\n\tquestion? ")
	b.draw(t)
	rows := b.shown()
	if rows[0][:9] != "   | a  b"[:9] || !strings.HasPrefix(rows[1], "日本    c") || !strings.HasPrefix(rows[2], "        x       x") {
		t.Errorf("the rows are %q", rows)
	}
	for _, row := range rows[:4] {
		if before, _, _ := strings.Cut(row, "│"); columns(before) != 72 {
			t.Errorf("the pane is at column %d: %q", columns(before), row)
		}
	}
}
