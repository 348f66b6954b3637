// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/show"
)

// This file writes contents of files and of sessions to standard output. A file or a pipe gets each byte.
// A terminal obeys some characters: they move the cursor, set the clipboard, or make text look like
// other text. There, people see these characters and the terminal does not.

// writeForeign writes a text that somebody else wrote.
func writeForeign(out io.Writer, text string) error {
	if show.IsTerminal(out) {
		text = shownAt(text)
	}
	_, err := io.WriteString(out, text)
	return err
}

// shownAt returns a text for a terminal, with the characters that steer as numbers, such as <U+001B>.
func shownAt(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\ufffd")
	return show.Numbered(text, steers)
}

// steers reports whether a character changes what a terminal shows of the text around it, or has no shape.
// Joiners are parts of letters and of emoji.
func steers(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return r != '\n' && r != '\t' && r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// toJSON returns a writer for JSON to standard output. At a terminal it escapes the characters that steer, so
// the values stay the same.
func toJSON(out io.Writer) io.Writer {
	if show.IsTerminal(out) {
		return &escaping{out: out}
	}
	return out
}

// escaping is the writer of [toJSON] at a terminal.
type escaping struct {
	out  io.Writer
	rest []byte // the beginning of a character
}

func (e *escaping) Write(p []byte) (int, error) {
	text := append(e.rest, p...)
	var b []byte
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		switch {
		case r == '\r': // outside of a string
			b = append(b, ' ')
		case !steers(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	e.rest = append([]byte(nil), text...)
	if _, err := e.out.Write(b); err != nil {
		return 0, err
	}
	return len(p), nil
}
