// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import (
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// MaxDepth is the maximum depth of nested arrays and objects.
const MaxDepth = 10_000

// SyntaxError reports text that is not JSON, too large, or nested too deep.
type SyntaxError struct {
	Offset  int    // byte offset at which reading stopped
	Problem string // what is wrong there
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Problem)
}

// Scanner validates JSON text and finds where values end. It does not build values:
// it returns indexes into the text and slices of it. Its methods take the index at
// which to read, which may be the end of the text. Every error is a [*SyntaxError].
type Scanner struct {
	Text string
	// Depth is the nesting depth of the value being read. Set it before the first
	// call if the value is part of a larger text.
	Depth   int
	Memory  *Memory // text that was read before; may be nil
	deepest int     // the largest depth so far
}

// Fail returns at, and an error that reading stopped there.
func (sc *Scanner) Fail(at int, problem string) (int, error) {
	if at >= len(sc.Text) {
		at, problem = len(sc.Text), "unexpected end"
	}
	return at, &SyntaxError{Offset: at, Problem: problem}
}

// Whole validates that s is exactly one value, which may be surrounded by white
// space, and returns the value without the space.
func Whole(s string) (value string, err error) {
	sc := Scanner{Text: s}
	start := SkipSpace(s, 0)
	end, err := sc.Value(start)
	if err == nil {
		err = sc.End(end)
	}
	if err != nil {
		return "", err
	}
	return s[start:end], nil
}

// End checks that only white space follows at i.
func (sc *Scanner) End(i int) error {
	if i = SkipSpace(sc.Text, i); i == len(sc.Text) {
		return nil
	}
	_, err := sc.Fail(i, "text after the value")
	return err
}

// Value validates the value that starts at i and returns the index after it.
func (sc *Scanner) Value(i int) (int, error) {
	if i >= len(sc.Text) {
		return sc.Fail(i, "")
	}
	c := sc.Text[i]
	switch c {
	case '"', '{', '[':
		if sc.Memory != nil {
			return sc.again(i)
		}
		if c == '"' {
			return sc.Quoted(i)
		}
		if c == '{' {
			return sc.Object(i, nil)
		}
		return sc.Array(i, nil)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return sc.number(i)
	case 't':
		return sc.literal(i, "true")
	case 'f':
		return sc.literal(i, "false")
	case 'n':
		return sc.literal(i, "null")
	}
	return sc.Fail(i, fmt.Sprintf("unexpected character %q", rune(c)))
}

// literal validates true, false or null. The error points at the first wrong byte.
func (sc *Scanner) literal(i int, want string) (int, error) {
	if strings.HasPrefix(sc.Text[i:], want) {
		return i + len(want), nil
	}
	for k := 0; k < len(want); k++ {
		if i+k >= len(sc.Text) || sc.Text[i+k] != want[k] {
			return sc.Fail(i+k, "expected "+want)
		}
	}
	return i + len(want), nil
}

// number validates a number by the grammar of RFC 8259, section 6.
func (sc *Scanner) number(i int) (int, error) {
	s := sc.Text
	if s[i] == '-' {
		i++
	}
	switch {
	case i < len(s) && s[i] == '0':
		i++
	case i < len(s) && s[i]-'1' < 9:
		i = digits(s, i+1)
	default:
		return sc.Fail(i, "expected a digit")
	}
	if i < len(s) && s[i] == '.' {
		j := i + 1
		for j+8 <= len(s) && eightDigits(load(s, j)) {
			j += 8
		}
		if j = digits(s, j); j == i+1 {
			return sc.Fail(j, "expected a digit after the decimal point")
		}
		i = j
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		return sc.exponent(i + 1)
	}
	return i, nil
}

// exponent reads what follows the e of a number.
func (sc *Scanner) exponent(i int) (int, error) {
	if i < len(sc.Text) && (sc.Text[i] == '+' || sc.Text[i] == '-') {
		i++
	}
	end := digits(sc.Text, i)
	if end == i {
		return sc.Fail(i, "expected a digit in the exponent")
	}
	return end, nil
}

// wholeNumber returns the index after a positive integer at i, if it is followed by
// another element or the end of the list, as in lists of bytes. Otherwise it returns
// i.
func wholeNumber(s string, i int) int {
	if i >= len(s) || s[i]-'1' > 8 {
		return i
	}
	if end := digits(s, i+1); end < len(s) && (s[end] == ',' || s[end] == ']') {
		return end
	}
	return i
}

// eightDigits reports whether all bytes of w are digits.
func eightDigits(w uint64) bool {
	return w&(0xF0*ones) == 0x30*ones && (w+0x06*ones)&(0xF0*ones) == 0x30*ones
}

// digits returns the index after the digits at i.
func digits(s string, i int) int {
	for i < len(s) && s[i]-'0' < 10 {
		i++
	}
	return i
}

// Quoted validates the string literal that starts at i and returns the index after
// it. It accepts escaped lone surrogates, as RFC 8259 does, but not invalid UTF-8.
// It examines eight bytes at a time.
func (sc *Scanner) Quoted(i int) (int, error) {
	s := sc.Text
	i++
	for n := 0; i+8 <= len(s); {
		m := special(load(s, i))
		if m == 0 {
			i += 8
			if n++; n == shortRun {
				i = plainBlocks(Bytes(s), i)
			}
			continue
		}
		if i += bits.TrailingZeros64(m) / 8; s[i] == '"' {
			return i + 1, nil
		}
		next, err := sc.odd(i)
		if err != nil {
			return next, err
		}
		i, n = next, 0
	}
	for i < len(s) {
		if s[i] == '"' {
			return i + 1, nil
		}
		next, err := sc.odd(i)
		if err != nil {
			return next, err
		}
		i = next
	}
	return sc.Fail(i, "")
}

// odd returns the index after the text at i in a string: an ordinary character, an
// escape, or a run of non-ASCII characters.
func (sc *Scanner) odd(i int) (int, error) {
	s := sc.Text
	switch c := s[i]; {
	case c == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == '"'):
		return i + 2, nil // the most common escapes in text
	case c == '\\':
		n, err := sc.escape(i)
		if err != nil {
			return i, err
		}
		return n, nil
	case c < 0x20:
		return sc.Fail(i, fmt.Sprintf("control character %q in a string", rune(c)))
	case c < utf8.RuneSelf:
		return i + 1, nil
	}
	n := beyondASCII(s, i)
	if n == i {
		return i, &SyntaxError{Offset: i, Problem: "invalid UTF-8"}
	}
	return n, nil
}

// beyondASCII returns the index after the run of valid non-ASCII characters at i. It
// returns i if there is none, or if the run contains invalid UTF-8.
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

// escape validates the escape at i and returns the index after it.
func (sc *Scanner) escape(i int) (int, error) {
	s := sc.Text
	if i+1 >= len(s) {
		return sc.Fail(i+1, "")
	}
	switch s[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if k >= len(s) || !isHex(s[k]) {
				return sc.Fail(k, "expected four hexadecimal digits")
			}
		}
		return i + 6, nil
	default:
		return sc.Fail(i+1, fmt.Sprintf("invalid escape \\%c", s[i+1]))
	}
}

// isHex reports whether c is a hexadecimal digit.
func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// Object validates the object that starts at i and returns the index after it. If
// visit is not nil, it is called for every member after the member has been
// validated, with the literal of the name and the value, both slices of the text.
func (sc *Scanner) Object(i int, visit func(name, value string)) (int, error) {
	return sc.ObjectWith(i, visit, nil)
}

// ObjectWith is like Object for a caller that validates some members' values itself,
// so that they are not scanned twice. pass may be nil. It is called with the literal
// of each member's name and the index at which the value begins. It returns the index
// after a value that it has validated, and 0 for other values.
func (sc *Scanner) ObjectWith(i int, visit func(name, value string), pass func(name string, i int) int) (int, error) {
	if err := sc.enter(i); err != nil {
		return i, err
	}
	s := sc.Text
	i = SkipSpace(s, i+1)
	if i < len(s) && s[i] == '}' {
		sc.Depth--
		return i + 1, nil
	}
	for {
		if i >= len(s) || s[i] != '"' {
			return sc.Fail(i, "expected a member name")
		}
		if sc.Memory != nil && sc.Depth == 2 && sc.Memory.inside {
			i = sc.Memory.pass(s, i)
		}
		end, err := sc.Quoted(i)
		if err != nil {
			return end, err
		}
		name := s[i:end]
		if i = SkipSpace(s, end); i >= len(s) || s[i] != ':' {
			return sc.Fail(i, "expected ':' after the member name")
		}
		i = SkipSpace(s, i+1)
		if sc.Memory != nil && sc.Depth == 1 {
			sc.Memory.inside = name == sc.Memory.within
		}
		end = 0
		if pass != nil {
			end = pass(name, i)
		}
		if end == 0 {
			if end, err = sc.Value(i); err != nil {
				return end, err
			}
		}
		if visit != nil {
			visit(name, s[i:end])
		}
		if i = SkipSpace(s, end); i < len(s) && s[i] == ',' {
			i = SkipSpace(s, i+1)
			continue
		}
		if i >= len(s) || s[i] != '}' {
			return sc.Fail(i, "expected ',' or '}'")
		}
		sc.Depth--
		return i + 1, nil
	}
}

// Array validates the array that starts at i and returns the index after it. If
// visit is not nil, it is called for every element after the element has been
// validated.
func (sc *Scanner) Array(i int, visit func(value string)) (int, error) {
	if err := sc.enter(i); err != nil {
		return i, err
	}
	s := sc.Text
	i = SkipSpace(sc.Text, i+1)
	if i < len(s) && s[i] == ']' {
		sc.Depth--
		return i + 1, nil
	}
	known := sc.Memory
	for n := 0; ; n++ {
		if n == knownList {
			sc.Memory = nil // a long list of similar elements, such as log probabilities
		}
		var err error
		end := wholeNumber(s, i)
		if end == i {
			if end, err = sc.Value(i); err != nil {
				return end, err
			}
		}
		if visit != nil {
			visit(s[i:end])
		}
		if i = SkipSpace(sc.Text, end); i < len(s) && s[i] == ',' {
			i = SkipSpace(sc.Text, i+1)
			continue
		}
		if i >= len(s) || s[i] != ']' {
			return sc.Fail(i, "expected ',' or ']'")
		}
		sc.Memory = known
		sc.Depth--
		return i + 1, nil
	}
}

// enter increases the depth for an object or array at i. The limit bounds the
// recursion of the scanner.
func (sc *Scanner) enter(i int) error {
	sc.Depth++
	sc.deepest = max(sc.deepest, sc.Depth)
	if sc.Depth > MaxDepth {
		return &SyntaxError{Offset: i, Problem: fmt.Sprintf("nested more than %d deep", MaxDepth)}
	}
	return nil
}
