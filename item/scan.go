// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest in what this package reads.
const MaxDepth = 10_000

// A SyntaxError reports text that is not JSON, or not JSON that this package
// accepts: RFC 8259 in UTF-8, nested at most [MaxDepth] deep.
type SyntaxError struct {
	// Offset is the byte at which reading stopped, counted from 0.
	Offset int
	// Problem says what is wrong there.
	Problem string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Problem)
}

// scanner validates JSON text and finds where values end. It builds nothing:
// the views are slices of the text it walked over.
type scanner struct {
	s     string
	depth int
}

func (sc *scanner) fail(at int, problem string) (int, error) {
	if at >= len(sc.s) {
		at, problem = len(sc.s), "unexpected end"
	}
	return at, &SyntaxError{Offset: at, Problem: problem}
}

// checkJSON accepts exactly one value with white space around it.
func checkJSON(s string) error {
	_, err := trimValue(s)
	return err
}

// trimValue validates s as one value and returns it without the white space
// around it.
func trimValue(s string) (string, error) {
	sc := scanner{s: s}
	start := sc.space(0)
	end, err := sc.value(start)
	if err != nil {
		return "", err
	}
	if rest := sc.space(end); rest != len(s) {
		_, err := sc.fail(rest, "text after the value")
		return "", err
	}
	return s[start:end], nil
}

// space returns the first index at or after i that is no white space.
func (sc *scanner) space(i int) int {
	if i < len(sc.s) && sc.s[i] > ' ' {
		return i // endpoints mostly write none
	}
	return spaces(sc.s, i)
}

func spaces(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// value returns the index behind the value that starts at i.
func (sc *scanner) value(i int) (int, error) {
	if i >= len(sc.s) {
		return sc.fail(i, "")
	}
	switch c := sc.s[i]; {
	case c == '"':
		return sc.str(i)
	case c == '{':
		return sc.object(i, nil)
	case c == '[':
		return sc.array(i, nil)
	case c == '-' || c >= '0' && c <= '9':
		return sc.number(i)
	case c == 't':
		return sc.literal(i, "true")
	case c == 'f':
		return sc.literal(i, "false")
	case c == 'n':
		return sc.literal(i, "null")
	default:
		return sc.fail(i, fmt.Sprintf("unexpected character %q", rune(c)))
	}
}

func (sc *scanner) literal(i int, want string) (int, error) {
	if strings.HasPrefix(sc.s[i:], want) {
		return i + len(want), nil
	}
	for k := 0; k < len(want); k++ {
		if i+k >= len(sc.s) || sc.s[i+k] != want[k] {
			return sc.fail(i+k, "expected "+want)
		}
	}
	return i + len(want), nil
}

// number follows the grammar of RFC 8259, section 6.
func (sc *scanner) number(i int) (int, error) {
	s := sc.s
	if s[i] == '-' {
		i++
	}
	switch {
	case i < len(s) && s[i] == '0':
		i++
	case i < len(s) && s[i] >= '1' && s[i] <= '9':
		if i = digits(s, i+1); i < len(s) && (s[i] == ',' || s[i] == ']' || s[i] == '}') {
			return i, nil // a whole number, as most are
		}
	default:
		return sc.fail(i, "expected a digit")
	}
	if i < len(s) && s[i] == '.' {
		if j := digits(s, i+1); j > i+1 {
			i = j
		} else {
			return sc.fail(j, "expected a digit after the decimal point")
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if j := digits(s, i); j > i {
			i = j
		} else {
			return sc.fail(j, "expected a digit in the exponent")
		}
	}
	return i, nil
}

func digits(s string, i int) int {
	for i < len(s) && s[i]-'0' < 10 {
		i++
	}
	return i
}

// str returns the index behind the string literal that starts at i. Escaped
// lone surrogates are accepted, as in RFC 8259; bytes that are no UTF-8 are not.
func (sc *scanner) str(i int) (int, error) {
	s := sc.s
	if i+9 <= len(s) { // a short one, as most names are
		m := special(binary.LittleEndian.Uint64(bytesOf(s)[i+1:]))
		if end := i + 1 + bits.TrailingZeros64(m)/8; m != 0 && s[end] == '"' {
			return end + 1, nil
		}
	}
	for i = plain(s, i+1); i < len(s); i = plain(s, i) {
		switch c := s[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == '"'):
			i += 2 // most escapes of text are these
		case c == '\\':
			n, err := sc.escape(i)
			if err != nil {
				return i, err
			}
			i = n
		case c < 0x20:
			return sc.fail(i, fmt.Sprintf("control character %q in a string", rune(c)))
		default:
			n := beyondASCII(s, i)
			if n == i {
				return i, &SyntaxError{Offset: i, Problem: "invalid UTF-8"}
			}
			i = n
		}
	}
	return sc.fail(i, "")
}

// beyondASCII returns the index behind the run of UTF-8 characters beyond ASCII
// that starts at i, which is i where there is none.
func beyondASCII(s string, i int) int {
	for i < len(s) && s[i] >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return i
}

func (sc *scanner) escape(i int) (int, error) {
	s := sc.s
	if i+1 >= len(s) {
		return sc.fail(i+1, "")
	}
	switch s[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if k >= len(s) || !isHex(s[k]) {
				return sc.fail(k, "expected four hexadecimal digits")
			}
		}
		return i + 6, nil
	default:
		return sc.fail(i+1, fmt.Sprintf("invalid escape \\%c", s[i+1]))
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// object walks the object that starts at i. A visit that is not nil sees every
// member: the name's literal and the value, both as slices of the text.
func (sc *scanner) object(i int, visit func(name, value string)) (int, error) {
	if err := sc.enter(i); err != nil {
		return i, err
	}
	s := sc.s
	i = sc.space(i + 1)
	if i < len(s) && s[i] == '}' {
		sc.depth--
		return i + 1, nil
	}
	for {
		if i >= len(s) || s[i] != '"' {
			return sc.fail(i, "expected a member name")
		}
		nameEnd, err := sc.str(i)
		if err != nil {
			return nameEnd, err
		}
		name := s[i:nameEnd]
		i = sc.space(nameEnd)
		if i >= len(s) || s[i] != ':' {
			return sc.fail(i, "expected ':' after the member name")
		}
		i = sc.space(i + 1)
		end, err := sc.value(i)
		if err != nil {
			return end, err
		}
		if visit != nil {
			visit(name, s[i:end])
		}
		i = sc.space(end)
		if i < len(s) && s[i] == '}' {
			sc.depth--
			return i + 1, nil
		}
		if i >= len(s) || s[i] != ',' {
			return sc.fail(i, "expected ',' or '}'")
		}
		i = sc.space(i + 1)
	}
}

// array walks the array that starts at i. A visit that is not nil sees every
// element.
func (sc *scanner) array(i int, visit func(value string)) (int, error) {
	if err := sc.enter(i); err != nil {
		return i, err
	}
	s := sc.s
	i = sc.space(i + 1)
	if i < len(s) && s[i] == ']' {
		sc.depth--
		return i + 1, nil
	}
	for {
		end, err := sc.value(i)
		if err != nil {
			return end, err
		}
		if visit != nil {
			visit(s[i:end])
		}
		i = sc.space(end)
		if i < len(s) && s[i] == ']' {
			sc.depth--
			return i + 1, nil
		}
		if i >= len(s) || s[i] != ',' {
			return sc.fail(i, "expected ',' or ']'")
		}
		i = sc.space(i + 1)
	}
}

func (sc *scanner) enter(i int) error {
	if sc.depth++; sc.depth > MaxDepth {
		return &SyntaxError{Offset: i, Problem: fmt.Sprintf("nested more than %d deep", MaxDepth)}
	}
	return nil
}
