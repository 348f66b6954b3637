// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Shown returns a foreign text in which control characters, and characters that reorder
// the text around them, are shown as their numbers, such as <U+001B>. Line ends stay, and
// tabs become four spaces. Marks, joiners and variation selectors stay, because languages
// and emoji need them.
func Shown(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && hidden(r) }) {
		return text
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\t':
			b.WriteString("    ")
		case r != '\n' && hidden(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// untabbed returns a line with blanks in place of tabs, which have no columns of their own: as many as a
// terminal shows.
func untabbed(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	col := 0
	for i, part := range strings.Split(line, "\t") {
		if i > 0 {
			blanks := tabStop - col%tabStop
			b.WriteString(strings.Repeat(" ", blanks))
			col += blanks
		}
		b.WriteString(part)
		col += columns(part)
	}
	return b.String()
}

const tabStop = 8

// hidden reports whether a terminal obeys a character instead of showing it.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r >= 0xe0000 && r < 0xe0100
}

// columns returns the number of columns of a text, which may contain escape sequences of
// this package. Terminals disagree about some clusters, such as families of emoji. The
// larger number counts: a row that is too short does no harm, and one that is too long
// would wrap.
func columns(s string) int {
	wide := ansi.StringWidth(s)
	if strings.ContainsFunc(s, disputed) {
		return max(wide, ansi.StringWidthWc(s))
	}
	return wide
}

// disputed reports whether terminals may disagree about a character. For any other one the
// widths need not be compared: the table for that takes 2 MB, which the first frame would
// wait for.
func disputed(r rune) bool {
	return r >= 0x300 && (r < 0x2010 || r > 0x2027) && (r < 0x2030 || r > 0x205e) && (r < 0x2500 || r > 0x257f)
}

// cluster returns the first character of a text as people see it, and its columns.
func cluster(s string) (first string, wide int) {
	first, _ = ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	return first, columns(first)
}

// fitted cuts a text to a number of columns.
func fitted(s string, limit int) string {
	if columns(s) <= limit {
		return s
	}
	for most := limit; most > 0; most-- {
		if cut := ansi.Truncate(s, most, "…"); columns(cut) <= limit {
			return cut
		}
	}
	return ""
}

// wrapped breaks a styled line into rows of at most limit columns, wherever they end, as a
// terminal does. Styles go on in the next row.
func wrapped(line string, limit int) (rows []string) {
	limit = max(1, limit)
	var row strings.Builder
	style, used := "", 0
	for line != "" {
		if seq := escape(line); seq != "" {
			line = line[len(seq):]
			row.WriteString(seq)
			if style += seq; seq == reset {
				style = ""
			}
			continue
		}
		c, n := cluster(line)
		line = line[len(c):]
		if used+n > limit && used > 0 {
			if style != "" {
				row.WriteString(reset)
			}
			rows = append(rows, row.String())
			row.Reset()
			row.WriteString(style)
			used = 0
		}
		row.WriteString(c)
		used += n
	}
	return append(rows, row.String())
}

// worded breaks a text without styles into rows of at most limit columns, at a blank where one stands in
// the second half of the row.
func worded(line string, limit int) (rows []string) {
	for limit > 1 && columns(line) > limit {
		row := wrapped(line, limit)[0]
		if at := strings.LastIndexByte(row, ' '); at > len(row)/2 && !strings.HasPrefix(line[len(row):], " ") {
			row = row[:at+1]
		}
		rows = append(rows, row)
		line = strings.TrimPrefix(line[len(row):], " ")
	}
	return append(rows, line)
}

// withCursor returns a row with the character at a column inverted, as a cursor.
func withCursor(row string, col int) string {
	before, used := 0, 0
	for before < len(row) && used < col {
		c, _ := cluster(row[before:])
		before, used = before+len(c), used+ansi.StringWidth(c)
	}
	under, _ := cluster(row[before:])
	if under == "" {
		return row + "\x1b[7m " + reset
	}
	return row[:before] + "\x1b[7m" + under + reset + row[before+len(under):]
}

// escape returns the escape sequence that a text begins with, or "". The package writes
// only sequences that end with m, and links.
func escape(s string) string {
	switch {
	case strings.HasPrefix(s, "\x1b["):
		if end := strings.IndexByte(s, 'm'); end > 0 {
			return s[:end+1]
		}
	case strings.HasPrefix(s, "\x1b]"):
		if end := strings.Index(s, "\x1b\\"); end > 0 {
			return s[:end+2]
		}
	}
	return ""
}

const reset = "\x1b[0m"

// The styles, as SGR parameters.
const (
	bold    = "1"
	dim     = "2"
	italic  = "3"
	under   = "4"
	struck  = "9"
	green   = "32"
	yellow  = "33"
	blue    = "34"
	magenta = "35"
	cyan    = "36"
)
