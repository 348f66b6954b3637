// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"cmp"
	"fmt"
	"math/bits"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest in what this package reads.
const MaxDepth = 10_000

// DefaultMaxSize is how many bytes one JSON text may have, unless [SetMaxSize]
// says otherwise: a body, an event, an item.
const DefaultMaxSize = 256 << 20

var maxSize atomic.Int64 // 0 is the default

// SetMaxSize sets how many bytes one JSON text may have that this package reads
// or puts into another, for the whole program, and returns what it was. 0 means
// [DefaultMaxSize]. A text is in memory before this package sees it, so this is
// the last line: what bounds memory are the limits of whoever reads from a
// socket or a file.
func SetMaxSize(bytes int) (old int) {
	return cmp.Or(int(maxSize.Swap(int64(max(bytes, 0)))), DefaultMaxSize)
}

// checkSize reports a text that is too large.
func checkSize(s string) error {
	limit := cmp.Or(int(maxSize.Load()), DefaultMaxSize)
	if len(s) <= limit {
		return nil
	}
	return &SyntaxError{Offset: limit, Problem: fmt.Sprintf("larger than %d bytes", limit)}
}

// A SyntaxError reports text that is not JSON, or not JSON that this package
// accepts: RFC 8259 in UTF-8, nested at most [MaxDepth] deep, of at most
// [DefaultMaxSize] bytes.
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
	s       string
	depth   int
	deepest int    // the largest depth so far
	known   *known // may be nil
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
	if err := checkSize(s); err != nil {
		return "", err
	}
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

// space returns the first index at or after i that is not white space.
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

// value returns the index after the value that starts at i.
func (sc *scanner) value(i int) (int, error) {
	if i >= len(sc.s) {
		return sc.fail(i, "")
	}
	c := sc.s[i]
	switch c {
	case '"', '{', '[':
		if sc.known != nil {
			return sc.again(i)
		}
		if c == '"' {
			return sc.str(i)
		}
		if c == '{' {
			return sc.object(i, nil)
		}
		return sc.array(i, nil)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return sc.number(i)
	case 't':
		return sc.literal(i, "true")
	case 'f':
		return sc.literal(i, "false")
	case 'n':
		return sc.literal(i, "null")
	}
	return sc.fail(i, fmt.Sprintf("unexpected character %q", rune(c)))
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
	case i < len(s) && s[i]-'1' < 9:
		i = digits(s, i+1)
	default:
		return sc.fail(i, "expected a digit")
	}
	if i < len(s) && s[i] == '.' {
		j := i + 1
		for j+8 <= len(s) && eightDigits(load(s, j)) {
			j += 8
		}
		if j = digits(s, j); j == i+1 {
			return sc.fail(j, "expected a digit after the decimal point")
		}
		i = j
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		return sc.exponent(i + 1)
	}
	return i, nil
}

// exponent reads what stands after the e of a number.
func (sc *scanner) exponent(i int) (int, error) {
	if i < len(sc.s) && (sc.s[i] == '+' || sc.s[i] == '-') {
		i++
	}
	end := digits(sc.s, i)
	if end == i {
		return sc.fail(i, "expected a digit in the exponent")
	}
	return end, nil
}

// wholeNumber returns the index after a plain number at i that another element
// or the end of the list follows, as in lists of bytes; i for anything else.
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

func digits(s string, i int) int {
	for i < len(s) && s[i]-'0' < 10 {
		i++
	}
	return i
}

// str returns the index after the string literal that starts at i. Escaped
// lone surrogates are accepted, as in RFC 8259; bytes that are not UTF-8 are not.
// It looks at eight bytes at a time.
func (sc *scanner) str(i int) (int, error) {
	s := sc.s
	i++
	for n := 0; i+8 <= len(s); {
		m := special(load(s, i))
		if m == 0 {
			i += 8
			if n++; n == shortRun {
				i = plainBlocks(bytesOf(s), i)
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
	return sc.fail(i, "")
}

// odd returns the index after what stands at i in a string: a character that
// is written as it is, an escape, or a run of characters beyond ASCII.
func (sc *scanner) odd(i int) (int, error) {
	s := sc.s
	switch c := s[i]; {
	case c == '\\' && i+1 < len(s) && (s[i+1] == 'n' || s[i+1] == '"'):
		return i + 2, nil // most escapes of text are these
	case c == '\\':
		n, err := sc.escape(i)
		if err != nil {
			return i, err
		}
		return n, nil
	case c < 0x20:
		return sc.fail(i, fmt.Sprintf("control character %q in a string", rune(c)))
	case c < utf8.RuneSelf:
		return i + 1, nil
	}
	n := beyondASCII(s, i)
	if n == i {
		return i, &SyntaxError{Offset: i, Problem: "invalid UTF-8"}
	}
	return n, nil
}

// beyondASCII returns the index after the run of UTF-8 characters beyond ASCII
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
		if sc.known != nil && sc.depth == 2 && sc.known.inResponse {
			i = sc.known.pass(s, i)
		}
		end, err := sc.str(i)
		if err != nil {
			return end, err
		}
		name := s[i:end]
		if i = sc.space(end); i >= len(s) || s[i] != ':' {
			return sc.fail(i, "expected ':' after the member name")
		}
		i = sc.space(i + 1)
		if sc.known != nil && sc.depth == 1 {
			sc.known.inResponse = name == `"response"`
		}
		if end, err = sc.value(i); err != nil {
			return end, err
		}
		if visit != nil {
			visit(name, s[i:end])
		}
		if i = sc.space(end); i < len(s) && s[i] == ',' {
			i = sc.space(i + 1)
			continue
		}
		if i >= len(s) || s[i] != '}' {
			return sc.fail(i, "expected ',' or '}'")
		}
		sc.depth--
		return i + 1, nil
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
	known := sc.known
	for n := 0; ; n++ {
		if n == knownList {
			sc.known = nil // more of the kind, as log probabilities
		}
		var err error
		end := wholeNumber(s, i)
		if end == i {
			if end, err = sc.value(i); err != nil {
				return end, err
			}
		}
		if visit != nil {
			visit(s[i:end])
		}
		if i = sc.space(end); i < len(s) && s[i] == ',' {
			i = sc.space(i + 1)
			continue
		}
		if i >= len(s) || s[i] != ']' {
			return sc.fail(i, "expected ',' or ']'")
		}
		sc.known = known
		sc.depth--
		return i + 1, nil
	}
}

func (sc *scanner) enter(i int) error {
	sc.depth++
	sc.deepest = max(sc.deepest, sc.depth)
	if sc.depth > MaxDepth {
		return &SyntaxError{Offset: i, Problem: fmt.Sprintf("nested more than %d deep", MaxDepth)}
	}
	return nil
}
