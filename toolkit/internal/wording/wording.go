// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package wording formats names and texts from outside the program, for example of
// files and models, so that they are safe to show: on one line, cut between
// characters, and without characters that control a terminal.
package wording

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/tool/output"
)

// Quoted returns a name for use in a sentence or a listing. It quotes the name only
// if it contains characters that are not visible.
func Quoted(name string) string {
	if utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// maxShownLine is the maximum length of a line in an error text, in bytes.
const maxShownLine = 160

// Clip returns a line in quotes, shortened for an error text.
func Clip(line string) string { return strconv.Quote(Clipped(line)) }

// Clipped returns a line, shortened for an error text.
func Clipped(line string) string { return Shorten(line, maxShownLine) }

// Shorten returns text if it has at most most bytes, and otherwise its beginning
// with "…" appended.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most-PartialRune([]byte(text[:most]))] + "…"
}

// PartialRune returns the number of bytes of an incomplete rune at the end of b.
func PartialRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// Showable makes text safe for a terminal and for a model: it is valid UTF-8 with
// line ends as \n, without control characters except tabs, and without characters
// that reorder or hide text.
func Showable(s string) string {
	s, _ = output.Sanitize(s)
	s = newlines.Replace(s)
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || TurnsText(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
}

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// TurnsText reports whether a character can make text look like other text:
// overrides and isolates of its direction, and invisible tags.
func TurnsText(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0xe0000 && r <= 0xe007f
}
