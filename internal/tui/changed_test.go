// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// marked returns lines with their marks in brackets.
func marked(lines []string, marks [][]Span) string {
	var b strings.Builder
	for n, line := range lines {
		at := 0
		for _, m := range marks[n] {
			b.WriteString(line[at:m.From] + "[" + line[m.From:m.To] + "]")
			at = m.To
		}
		b.WriteString(line[at:] + "\n")
	}
	return b.String()
}

// TestChanges pins which words of changed lines are marked.
func TestChanges(t *testing.T) {
	long := strings.Repeat("x ", 1<<19)
	for _, c := range []struct{ from, to, gone, fresh string }{
		{`    print("Hi")`, `    print("Hello,", name)`, `    print("[Hi]")`, `    print("[Hello,]"[, name])`},
		{"total := sum(a, b)", "total := sum(a, c)", "total := sum(a, [b])", "total := sum(a, [c])"},
		{"keep this word", "keep that word", "keep [this] word", "keep [that] word"},
		{"all of it goes", "nothing stays here, no!", "all of it goes", "nothing stays here, no!"},
		{"a long line that stays\nx = 1", "a long line that stays\nx = 2", "a long line that stays\nx = [1]", "a long line that stays\nx = [2]"},
		{"if ok {", "if ok && ready {", "if ok {", "if ok [&& ready ]{"},
		{"日本語の文章です", "日本語の長文です", "日本語の文[章]です", "日本語の[長]文です"},
		{"cafe\u0301 open today", "cafe open today", "[cafe\u0301] open today", "[cafe] open today"},
		{"sign 👩‍👩‍👧 here", "sign 👩‍👩‍👦 here", "sign [👩‍👩‍👧] here", "sign [👩‍👩‍👦] here"},
		{"a  b c d e", "a b c d e", "a[  ]b c d e", "a[ ]b c d e"},
		{"one two three", "one three\nfour five six", "one [two ]three", "one three\nfour five six"},
		{long + "old " + long, long + "new " + long, long + "[old] " + long, long + "[new] " + long},
		{"", "something", "", "something"},
	} {
		removed, added := strings.Split(c.from, "\n"), strings.Split(c.to, "\n")
		gone, fresh := new(Changes).Between(removed, added)
		if got := strings.TrimSuffix(marked(removed, gone), "\n"); got != c.gone {
			t.Errorf("removed %.80q: got %.200q", c.from, got)
		}
		if got := strings.TrimSuffix(marked(added, fresh), "\n"); got != c.fresh {
			t.Errorf("added %.80q: got %.200q", c.to, got)
		}
	}
}

// TestChangesBounded proves that the work for one diff is bounded: for lines without an end that
// have nothing in common, and for any number of pairs of lines.
func TestChangesBounded(t *testing.T) {
	var c Changes
	for _, piece := range []string{"x", "a ", "(", "e\u0301", "日"} {
		size := (1 << 20) / len(piece)
		c.Between([]string{strings.Repeat(piece, size) + "1"}, []string{"2 " + strings.Repeat(piece+".", size/2)})
	}
	pair := strings.Repeat("a b ", 250)
	for range 100 {
		c.Between([]string{"x" + pair + "y"}, []string{"z" + pair + "w"})
	}
	if c.compared > mostCompared {
		t.Errorf("%d pairs were compared", c.compared)
	}
}

// TestChangesOrder proves for any lines that marks are in order, stand in their line, and do not
// divide what people see as one character; and that what is not marked is the same text.
func TestChangesOrder(t *testing.T) {
	pieces := []string{"a", "word", " ", "  ", "(", ".", "日", "本", "e\u0301", "👩‍👩‍👧", "שלום", "\u0301", "_", "9"}
	line := rapid.Map(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12), func(p []string) string { return strings.Join(p, "") })
	rapid.Check(t, func(r *rapid.T) {
		removed, added := rapid.SliceOfN(line, 1, 4).Draw(r, "removed"), rapid.SliceOfN(line, 1, 4).Draw(r, "added")
		gone, fresh := new(Changes).Between(removed, added)
		for _, side := range []struct {
			lines []string
			marks [][]Span
		}{{removed, gone}, {added, fresh}} {
			for n, l := range side.lines {
				at := 0
				for _, m := range side.marks[n] {
					if m.From < at || m.To <= m.From || m.To > len(l) || !utf8.RuneStart(l[m.From]) {
						r.Fatalf("marks of %q: %v", l, side.marks[n])
					}
					for rest := l; len(rest) > 0; {
						c, _ := cluster(rest)
						begin := len(l) - len(rest)
						if m.From > begin && m.From < begin+len(c) || m.To > begin && m.To < begin+len(c) {
							r.Fatalf("a mark of %q divides %q: %v", l, c, m)
						}
						rest = rest[len(c):]
					}
					at = m.To
				}
			}
		}
	})
}
