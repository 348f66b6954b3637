// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"strings"
	"unicode/utf8"
)

// Sanitize makes text fit for a model and counts the repairs: what is not UTF-8
// and NUL become U+FFFD (one for each run, one for each surrogate), escape
// sequences meant for a terminal are removed. Everything else stays, white
// space and line ends of every kind included. Text without such bytes is
// returned as it is.
func Sanitize(s string) (clean string, repairs int) {
	i := firstDirty(s)
	if i == len(s) {
		return s, 0
	}
	var b strings.Builder
	b.Grow(len(s))
	for start := 0; ; {
		b.WriteString(s[start:i])
		if i == len(s) {
			return b.String(), repairs
		}
		n, replace := dirtyAt(s[i:])
		if replace {
			b.WriteRune(utf8.RuneError)
		}
		repairs++
		start = i + n
		i = start + firstDirty(s[start:])
	}
}

// firstDirty returns the index of the first byte to repair, or len(s).
func firstDirty(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == 0 || c == esc:
			return i
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 || controlString(r) || r == c1CSI || r == c1ST {
				return i
			}
			i += n
		}
	}
	return len(s)
}

// dirtyAt returns how long the dirt at the start of s is and whether it leaves
// a replacement character after.
func dirtyAt(s string) (n int, replace bool) {
	switch s[0] {
	case 0:
		return 1, true
	case esc:
		return escapeLen(s), false
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return invalidLen(s), true
	case r == c1CSI:
		return size + csiLen(s[size:]), false
	case controlString(r):
		return size + stringLen(s[size:]), false
	}
	return size, false
}

// invalidLen returns the length of a run of bytes that are not UTF-8. An
// encoded surrogate is a run of its own.
func invalidLen(s string) int {
	if isSurrogate(s) {
		return 3
	}
	n := 1
	for n < len(s) && !isSurrogate(s[n:]) {
		if r, size := utf8.DecodeRuneInString(s[n:]); r != utf8.RuneError || size != 1 {
			break
		}
		n++
	}
	return n
}

func isSurrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF && s[2] >= 0x80 && s[2] <= 0xBF
}

// Control characters that begin a sequence, by ECMA-48. The eight-bit forms
// arrive as the runes U+0090 to U+009F.
const (
	esc   = 0x1b
	bel   = 0x07
	c1CSI = 0x9b
	c1ST  = 0x9c
)

// controlString reports the eight-bit introducers DCS, SOS, OSC, PM and APC.
func controlString(r rune) bool {
	return r == 0x90 || r == 0x98 || r == 0x9d || r == 0x9e || r == 0x9f
}

// escapeLen returns the length of the sequence at the start of s, which begins
// with ESC. A sequence that is not complete loses only what was recognised.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 1
	}
	switch c := s[1]; {
	case c == '[':
		return 2 + csiLen(s[2:])
	case c == ']', c == 'P', c == 'X', c == '^', c == '_':
		return 2 + stringLen(s[2:])
	case c >= 0x20 && c <= 0x2f:
		n := 2
		for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
			n++
		}
		if n < len(s) && s[n] >= 0x30 && s[n] <= 0x7e {
			return n + 1
		}
		return 1 // an ESC before a space and text
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

// csiLen returns the length of parameters, intermediates and final byte.
func csiLen(s string) int {
	n := 0
	for n < len(s) && s[n] >= 0x30 && s[n] <= 0x3f {
		n++
	}
	for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
		n++
	}
	if n < len(s) && s[n] >= 0x40 && s[n] <= 0x7e {
		n++
	}
	return n
}

// stringLen returns the length of a control string with its terminator: BEL,
// ESC \ or U+009C. One that does not end on its line is taken for a stray
// introducer, so that it never swallows text: then the length is 0.
func stringLen(s string) int {
	for n := 0; n < len(s); {
		switch c := s[n]; {
		case c == bel:
			return n + 1
		case c == esc:
			if n+1 < len(s) && s[n+1] == '\\' {
				return n + 2
			}
			return 0
		case c < 0x20 && c != '\t':
			return 0
		case c == 0xC2 && n+1 < len(s) && s[n+1] == c1ST:
			return n + 2
		}
		n++
	}
	return 0
}
