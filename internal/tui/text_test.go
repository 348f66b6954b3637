// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
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
