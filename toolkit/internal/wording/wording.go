// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package wording holds how tools show names and texts that are not theirs: in
// one line, cut at a whole character, without what would act on a terminal.
package wording

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/tool"
)

// Quoted returns a name as it can stand in a sentence or a listing: as it is,
// or quoted when it holds anything but visible characters.
func Quoted(name string) string {
	if utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return name
	}
	return strconv.Quote(name)
}

// maxShownLine is how much of a line an error text shows.
const maxShownLine = 160

// Clip quotes a line for an error text.
func Clip(line string) string { return strconv.Quote(Clipped(line)) }

// Clipped returns a line, or as much of it as an error text shows.
func Clipped(line string) string { return Shorten(line, maxShownLine) }

// Shorten returns a text, or so many bytes of it and "…".
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most-PartialRune([]byte(text[:most]))] + "…"
}

// PartialRune returns how many bytes at the end of b begin a rune that is not
// complete.
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

// Showable makes text fit for a terminal and for a model alike: valid, line
// ends as \n, no control characters but tabs, nothing that turns or hides text.
func Showable(s string) string {
	s, _ = tool.Sanitize(s)
	s = newlines.Replace(s)
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || TurnsText(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
}

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// TurnsText reports the characters by which text is made to look like other
// text: overrides and isolates of its direction, and tags that nobody sees.
func TurnsText(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0xe0000 && r <= 0xe007f
}
