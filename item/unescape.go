// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends the text of a string literal's inside, which the
// scanner has accepted. A surrogate without its partner becomes U+FFFD.
func appendUnescaped(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		if len(s) < i+2 || s[i+1] == 'u' && len(s) < i+6 {
			return append(dst, s[i:]...) // no valid literal: a caller's own text
		}
		if s[i+1] != 'u' {
			dst = append(dst, unescaped(s[i+1]))
			s = s[i+2:]
			continue
		}
		r := hexRune(s[i+2:])
		s = s[i+6:]
		if utf16.IsSurrogate(r) {
			low := utf8.RuneError
			if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
				low = utf16.DecodeRune(r, hexRune(s[2:]))
			}
			if r = low; r != utf8.RuneError {
				s = s[6:]
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
}

// unescaped returns what an escape of one character stands for.
func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// hexRune reads four hexadecimal digits.
func hexRune(s string) (r rune) {
	for i := range 4 {
		c := rune(s[i])
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | c
	}
	return r
}
