// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const redacted = "[redacted]"

// Key is a secret that is sent but never shown: however it is printed, logged or marshaled, the
// result is "[redacted]". This also holds inside other structs, where fmt sees only a pointer. The
// zero Key holds no secret. Keys are immutable; == compares identity, not secrets.
type Key struct {
	secret *string
	// codes are how the secret looks inside base64, one a line. Both fields point to texts, because
	// fmt would show what is in a struct or a slice.
	codes *string
}

// NewKey returns a Key for the secret in text. It trims white space, which copying often adds. An
// empty secret gives the zero Key.
func NewKey(text string) Key {
	text = strings.TrimSpace(text)
	if text == "" {
		return Key{}
	}
	codes := strings.Join(codesOf(text), "\n")
	return Key{&text, &codes}
}

// Reveal returns the secret. Use it only for the request's header.
func (k Key) Reveal() string {
	if k.secret == nil {
		return ""
	}
	return *k.secret
}

// IsZero reports whether k holds no secret.
func (k Key) IsZero() bool { return k.secret == nil }

// String returns "[redacted]", or "" for the zero Key.
func (k Key) String() string {
	if k.IsZero() {
		return ""
	}
	return redacted
}

// GoString is like [Key.String].
func (k Key) GoString() string { return k.String() }

// Format writes the result of [Key.String] for every verb.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.String()) }

// MarshalText returns the result of [Key.String], so that the encoding of a struct does not hold
// its key.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// minHidden is the length of the shortest secret that [Key.Hide] searches for. Shorter secrets,
// which local servers accept, are words that can appear in any message.
const minHidden = 8

// Hide returns text with every occurrence of the secret replaced, since a server's message may
// repeat the key it received. Hide also finds a secret whose characters are escaped, as in JSON,
// URLs and HTML, once or several times, and a secret anywhere in base64 without line breaks. Call
// Hide before truncating a text: it does not find part of a key.
func (k Key) Hide(text string) string {
	if len(k.Reveal()) < minHidden {
		return text
	}
	text = strings.ReplaceAll(text, k.Reveal(), redacted)
	for code := range strings.SplitSeq(*k.codes, "\n") {
		text = strings.ReplaceAll(text, code, redacted)
	}
	if strings.ContainsAny(text, escapes) {
		text = hideEscaped(text, k.Reveal())
	}
	return text
}

// codesOf returns how a secret looks inside base64. Its first byte may be the first, second or third
// of a group of three; the characters that depend on the secret alone are the same each time.
func codesOf(text string) (codes []string) {
	if len(text) < minHidden {
		return nil
	}
	urls := strings.NewReplacer("+", "-", "/", "_")
	for before := range 3 {
		code := base64.RawStdEncoding.EncodeToString([]byte("\x00\x00\x00"[:before] + text))
		code = code[(before*8+5)/6 : (before+len(text))*8/6]
		codes = append(codes, code)
		if other := urls.Replace(code); other != code {
			codes = append(codes, other)
		}
	}
	return codes
}

// escapes are the characters that begin an escape.
const escapes = `\%&`

// hideEscaped replaces the secret where some of its characters are escaped. It looks around the
// escapes of a text, which are few, and not at each place.
func hideEscaped(text, secret string) string {
	var b strings.Builder
	done := 0
	for at := 0; ; {
		next := strings.IndexAny(text[at:], escapes)
		if next < 0 {
			break
		}
		at += next
		begin, end := spelledAt(text, done, at, secret)
		if end == 0 {
			at++
			continue
		}
		b.WriteString(text[done:begin])
		b.WriteString(redacted)
		at, done = end, end
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// spelledAt returns where text spells the secret with its first escape at offset at, and not before
// offset from; end is 0 if it does not.
func spelledAt(text string, from, at int, secret string) (begin, end int) {
	for plain := range min(len(secret), at-from+1) { // characters before the escape
		if text[at-plain:at] != secret[:plain] {
			continue
		}
		if n := spells(text[at-plain:], secret); n > 0 {
			return at - plain, at - plain + n
		}
	}
	return 0, 0
}

// spells returns the length of the prefix of text that spells the secret, or 0 if there is no such
// prefix.
func spells(text, secret string) int {
	n := 0
	for i := range len(secret) {
		length := spelling(text[n:], secret[i])
		if length == 0 {
			return 0
		}
		n += length
	}
	return n
}

// spelling returns the length of the prefix of text that stands for c, or 0: c itself, \c, \u0063,
// \x63, %63, &#99; or &#x63;, with any number of backslashes, and \n, \r or \t for white space.
func spelling(text string, c byte) int {
	switch {
	case text == "":
		return 0
	case text[0] == c:
		return 1
	case text[0] == '%':
		return escapedAs(text, 1, 2, 16, c)
	case strings.HasPrefix(text, "&#x"), strings.HasPrefix(text, "&#X"):
		return entity(text, 3, 16, c)
	case strings.HasPrefix(text, "&#"):
		return entity(text, 2, 10, c)
	case text[0] != '\\':
		return 0
	}
	n := len(text) - len(strings.TrimLeft(text, `\`))
	if n == len(text) {
		return 0
	}
	if end := coded(text, n, c); end > 0 { // before the letter itself, which may be u or x
		return end
	}
	switch {
	case text[n] == c:
		return n + 1
	case text[n] == 'n' && c == '\n', text[n] == 'r' && c == '\r', text[n] == 't' && c == '\t':
		return n + 1
	}
	return 0
}

// coded returns the offset after a number that stands for c and begins with a letter at offset at.
func coded(text string, at int, c byte) int {
	switch text[at] {
	case 'u':
		return escapedAs(text, at+1, 4, 16, c)
	case 'x':
		return escapedAs(text, at+1, 2, 16, c)
	}
	return 0
}

// escapedAs returns the offset after the number at offset at, which has the given digits and base,
// or 0 if its value is not c.
func escapedAs(text string, at, digits, base int, c byte) int {
	if len(text) < at+digits {
		return 0
	}
	if v, err := strconv.ParseUint(text[at:at+digits], base, 32); err != nil || v != uint64(c) {
		return 0
	}
	return at + digits
}

// entity is like escapedAs for a number that ends with a semicolon.
func entity(text string, at, base int, c byte) int {
	digits := strings.IndexByte(text[:min(len(text), at+8)], ';') - at
	if digits < 1 || escapedAs(text, at, digits, base, c) == 0 {
		return 0
	}
	return at + digits + 1
}

// SecretName reports whether a header or a parameter with this name probably holds a secret. An
// idempotency key is not a secret.
func SecretName(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "token", "secret", "cookie", "session", "password", "credential", "signature", "apikey"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return name == "sig" || strings.HasSuffix(name, "key") && !strings.Contains(name, "idempotency")
}
