// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"
)

// markup returns s as text of a page. It escapes markup and shows invisible
// characters, and characters that change the display of others, by name.
func markup(s string) template.HTML {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	writeText(&b, s)
	return template.HTML(b.String())
}

// writeText writes the result of [markup].
func writeText(b *strings.Builder, s string) {
	done := 0
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		instead := escape(r, s[i+n:])
		if instead == "" && r == utf8.RuneError && n == 1 {
			instead = "\uFFFD"
		}
		if instead != "" {
			b.WriteString(s[done:i])
			b.WriteString(instead)
			done = i + n
		}
		i += n
	}
	b.WriteString(s[done:])
}

// escape returns the replacement for a character in a text, or "" if it needs none.
// The following text distinguishes a line end from a lone carriage return.
func escape(r rune, rest string) string {
	switch {
	case r == '<':
		return "&lt;"
	case r == '>':
		return "&gt;"
	case r == '&':
		return "&amp;"
	case r == '"':
		return "&#34;"
	case r == '\'':
		return "&#39;"
	case r == '\r' && strings.HasPrefix(rest, "\n"):
		return "&#13;"
	case hidden(r):
		return `<span class="ctl">` + nameOf(r) + `</span>`
	}
	return ""
}

// plain returns s as text for a context without markup, such as an attribute: it
// shows hidden characters by name and leaves the escaping to the template.
func plain(s string) string {
	if strings.IndexFunc(s, hidden) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			b.WriteString(nameOf(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character is invisible or changes the display of others:
// controls including terminal escapes, direction marks, zero-width blanks, tags.
// Joiners do not count, because scripts and emoji need them.
func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r == 0x7f:
		return true
	case r < 0x80:
		return false
	case r == '\u200c' || r == '\u200d':
		return false
	case r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0' || r == '\u2028' || r == '\u2029':
		return true
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	}
	return r <= 0x9f || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r)
}

// nameOf returns a visible form of a hidden character: the symbol of a control, or
// its number.
func nameOf(r rune) string {
	switch {
	case r < 0x20:
		return string('\u2400' + r)
	case r == 0x7f:
		return "\u2421"
	}
	return fmt.Sprintf("U+%04X", r)
}

// shorten returns the beginning of s on one line, with at most n characters.
func shorten(s string, n int) string {
	// Do not split more than needed, because the text may be long.
	words := strings.Fields(s[:min(len(s), 8*n)])
	line := []rune(strings.ToValidUTF8(strings.Join(words, " "), ""))
	if len(line) <= n && len(s) <= 8*n {
		return string(line)
	}
	return strings.TrimRight(string(line[:min(len(line), n)]), " ,.;:") + "…"
}

// firstLine returns the first line of s that is not blank.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
