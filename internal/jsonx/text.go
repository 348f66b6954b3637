// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Unquote decodes a valid JSON string literal, including its quotes. If there are no
// escapes, the result shares the literal's memory.
func Unquote(lit string) string {
	body := lit[1 : len(lit)-1]
	if strings.IndexByte(body, '\\') < 0 {
		return body
	}
	return String(AppendUnescaped(make([]byte, 0, len(body)), body))
}

const hexDigits = "0123456789abcdef"

// AppendQuoted appends s as a JSON string with as few escapes as possible. It
// returns an error if s is not valid UTF-8.
func AppendQuoted(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return dst, fmt.Errorf("text is not valid UTF-8")
	}
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"'), nil
}

// AppendUnescaped appends the text of a string literal without its quotes, which a
// Scanner must have accepted. A surrogate without its partner becomes U+FFFD.
func AppendUnescaped(dst []byte, s string) []byte {
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		if len(s) < i+2 || s[i+1] == 'u' && len(s) < i+6 {
			return append(dst, s[i:]...) // not a valid literal: text made by a caller
		}
		if s[i+1] != 'u' {
			dst = append(dst, unescaped(s[i+1]))
			s = s[i+2:]
			continue
		}
		r := HexRune(s[i+2:])
		s = s[i+6:]
		if utf16.IsSurrogate(r) {
			// The rune becomes U+FFFD unless the partner of the surrogate follows.
			low := utf8.RuneError
			if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
				low = utf16.DecodeRune(r, HexRune(s[2:]))
			}
			if r = low; r != utf8.RuneError {
				s = s[6:]
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
}

// unescaped returns the character for a two-character escape.
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

// HexRune reads four hexadecimal digits.
func HexRune(s string) (r rune) {
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

// Means reports whether a string literal stands for name. A literal with escapes is
// longer than its text, so the lengths usually decide.
func Means(literal, name string) bool {
	body := literal[1 : len(literal)-1]
	switch {
	case len(body) < len(name):
		return false
	case len(body) == len(name):
		return body == name && strings.IndexByte(body, '\\') < 0
	}
	return strings.IndexByte(body, '\\') >= 0 && Unquote(literal) == name
}

// String returns b as a string without copying it. The caller must ensure that b
// does not change while the string is in use. Nearly all callers have just made b
// and do not share it.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes returns s as bytes without copying it. They must not be modified.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
