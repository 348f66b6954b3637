// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// JSON is the text of one JSON value, immutable because it is a string. The
// empty JSON stands for an absent value. A JSON that came out of this package
// is valid; one converted from a string is checked when it is encoded.
type JSON string

// MarshalJSON returns the text itself, so that other encoders embed the value
// as it is, with the payloads that it holds. An absent value is written as null.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		return []byte("null"), nil
	}
	if HasHeld(string(j)) {
		return appendWhole(nil, string(j))
	}
	return []byte(j), nil
}

// UnmarshalJSON keeps a copy of data.
func (j *JSON) UnmarshalJSON(data []byte) error {
	*j = JSON(data)
	return nil
}

// Valid reports with a [*SyntaxError] where j is not one JSON value.
func (j JSON) Valid() error {
	return checkJSON(string(j))
}

// Quote returns s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func Quote(s string) JSON {
	b, err := appendString(make([]byte, 0, len(s)+2), s)
	if err != nil {
		b, _ = appendString(nil, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return JSON(b)
}

// Unquote returns the text of a JSON string, and whether j is one. Escaped
// surrogates without a partner become U+FFFD.
func (j JSON) Unquote() (string, bool) {
	if len(j) < 2 || j[0] != '"' {
		return "", false
	}
	return unquote(string(j)), true
}

// unquote decodes a valid JSON string literal, quotes included. Without
// escapes the result shares the literal's memory.
func unquote(lit string) string {
	body := lit[1 : len(lit)-1]
	if strings.IndexByte(body, '\\') < 0 {
		return body
	}
	return text(appendUnescaped(make([]byte, 0, len(body)), body))
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string with the fewest escapes. It fails on
// bytes that are not UTF-8.
func appendString(dst []byte, s string) ([]byte, error) {
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

// text views b as a string without a copy. The caller promises that b does
// not change while the string is in use. Nearly all callers have just made b and
// give it to nobody else. The others: a [List] writes each byte of its memory
// once, and an [EventDecoder] reads memory that changes, whose strings stay in
// this package; see [EventView].
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
