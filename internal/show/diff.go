// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"strings"
)

const (
	diffContext = 3       // lines around a change
	maxDiff     = 4 << 20 // maximum pairs of lines to compare
)

// diffLine is a line of a comparison: kept, removed or added.
type diffLine struct {
	op   byte // ' ', '-' or '+'
	text string
}

// UnifiedDiff returns the difference of two texts in the form of diff -u, or "" if
// they are equal.
func UnifiedDiff(name, from, to string) string {
	if from == to {
		return ""
	}
	lines := compareLines(splitLines(from), splitLines(to))
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", name, name)
	for at := 0; at < len(lines); {
		if lines[at].op == ' ' {
			at++
			continue
		}
		begin, end := max(at-diffContext, 0), hunkEnd(lines, at)
		writeHunk(&b, lines, begin, end)
		at = end
	}
	return b.String()
}

// hunkEnd returns the end of the hunk for the change at the given line. Nearby
// changes share a hunk.
func hunkEnd(lines []diffLine, at int) int {
	last := at
	for i := at; i < len(lines) && i-last <= 2*diffContext; i++ {
		if lines[i].op != ' ' {
			last = i
		}
	}
	return min(last+1+diffContext, len(lines))
}

func writeHunk(b *strings.Builder, lines []diffLine, begin, end int) {
	count := func(part []diffLine, op byte) (n int) {
		for _, l := range part {
			if l.op == ' ' || l.op == op {
				n++
			}
		}
		return n
	}
	place := func(op byte) string {
		first, n := count(lines[:begin], op)+1, count(lines[begin:end], op)
		if n == 0 {
			first--
		}
		return fmt.Sprintf("%c%d,%d", op, first, n)
	}
	fmt.Fprintf(b, "@@ %s %s @@\n", place('-'), place('+'))
	for _, l := range lines[begin:end] {
		b.WriteByte(l.op)
		b.WriteString(l.text)
		if !strings.HasSuffix(l.text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func splitLines(s string) (lines []string) {
	for line := range strings.Lines(s) {
		lines = append(lines, line)
	}
	return lines
}

// compareLines finds a longest common subsequence of lines. If that would take too
// long, the whole difference is one block.
func compareLines(a, b []string) (out []diffLine) {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	add := func(op byte, lines []string) {
		for _, l := range lines {
			out = append(out, diffLine{op, l})
		}
	}
	add(' ', a[:head])
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(x)*len(y) > maxDiff {
		add('-', x)
		add('+', y)
	} else {
		out = append(out, compareAll(x, y)...)
	}
	add(' ', a[len(a)-tail:])
	return out
}

// compareAll compares all pairs of lines.
func compareAll(x, y []string) (out []diffLine) {
	shared := make([][]int32, len(x)+1) // lengths of common subsequences of x[i:] and y[j:]
	for i := range shared {
		shared[i] = make([]int32, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				shared[i][j] = shared[i+1][j+1] + 1
			} else {
				shared[i][j] = max(shared[i+1][j], shared[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			out = append(out, diffLine{' ', x[i]})
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && shared[i+1][j] >= shared[i][j+1]:
			out = append(out, diffLine{'-', x[i]})
			i++
		default:
			out = append(out, diffLine{'+', y[j]})
			j++
		}
	}
	return out
}
