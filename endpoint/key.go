// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
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
}

// NewKey returns a Key for the given secret. It trims white space, which copying often adds. An
// empty secret gives the zero Key.
func NewKey(secret string) Key {
	secret = strings.TrimSpace(secret)
	if secret == "" {
		return Key{}
	}
	return Key{&secret}
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
// URLs and HTML, once or several times. Call Hide before truncating a text: it does not find part
// of a key.
func (k Key) Hide(text string) string {
	if len(k.Reveal()) < minHidden {
		return text
	}
	text = strings.ReplaceAll(text, k.Reveal(), redacted)
	if strings.ContainsAny(text, `\%&`) {
		text = hideEscaped(text, k.Reveal())
	}
	return text
}

// hideEscaped replaces the secret where some of its characters are escaped.
func hideEscaped(text, secret string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); {
		n := spells(text[i:], secret)
		if n == 0 {
			i++
			continue
		}
		b.WriteString(text[done:i])
		b.WriteString(redacted)
		i += n
		done = i
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
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
// \x63, %63, &#99; or &#x63;, with any number of backslashes.
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
	switch {
	case n == len(text):
		return 0
	case text[n] == c:
		return n + 1
	case text[n] == 'u':
		return escapedAs(text, n+1, 4, 16, c)
	case text[n] == 'x':
		return escapedAs(text, n+1, 2, 16, c)
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
