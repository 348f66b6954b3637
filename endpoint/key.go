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

// Key is a secret that is sent and never shown: printed, logged or marshalled
// in any way, it is "[redacted]". Also inside other structs, where fmt sees
// only a pointer. The zero Key holds no key. Keys are immutable; == compares
// identity, not secrets.
type Key struct {
	secret *string
}

// NewKey returns the key with the given secret, without the white space around
// it that copying adds. An empty secret gives the zero Key.
func NewKey(secret string) Key {
	secret = strings.TrimSpace(secret)
	if secret == "" {
		return Key{}
	}
	return Key{&secret}
}

// Reveal returns the secret, for the request's header alone.
func (k Key) Reveal() string {
	if k.secret == nil {
		return ""
	}
	return *k.secret
}

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.secret == nil }

// String returns "[redacted]", or "" for the zero Key.
func (k Key) String() string {
	if k.IsZero() {
		return ""
	}
	return redacted
}

// GoString is [Key.String].
func (k Key) GoString() string { return k.String() }

// Format writes [Key.String] for every verb.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, k.String()) }

// MarshalText is [Key.String]: encodings of a struct that holds a key lose it.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// minHidden is the length from which a secret is searched for in text. Shorter
// ones, as local servers take them, are words that stand in any message.
const minHidden = 8

// Hide returns text with every occurrence of the secret replaced, for what a
// server says may repeat the key it was sent. A secret is also found where its
// characters are escaped, as JSON, URLs and HTML do, once or several times. Hide a
// text before you cut it: what is left of a key is not found.
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

// spells returns how much of the text's beginning spells the secret, 0 if it does
// not begin so.
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

// spelling returns the length of the text's beginning if that stands for c: c
// itself, \c, \u0063, \x63, %63, &#99; or &#x63;, with any number of backslashes.
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

// escapedAs returns the length of the text up to the end of a number of so many
// digits that is at a place in it, if that is c.
func escapedAs(text string, at, digits, base int, c byte) int {
	if len(text) < at+digits {
		return 0
	}
	if v, err := strconv.ParseUint(text[at:at+digits], base, 32); err != nil || v != uint64(c) {
		return 0
	}
	return at + digits
}

// entity is escapedAs for one that a semicolon ends.
func entity(text string, at, base int, c byte) int {
	digits := strings.IndexByte(text[:min(len(text), at+8)], ';') - at
	if digits < 1 || escapedAs(text, at, digits, base, c) == 0 {
		return 0
	}
	return at + digits + 1
}

// SecretName reports whether a header or a parameter of that name holds a secret,
// as far as names tell. An idempotency key is not one.
func SecretName(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "token", "secret", "cookie", "session", "password", "credential", "signature", "apikey"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return name == "sig" || strings.HasSuffix(name, "key") && !strings.Contains(name, "idempotency")
}
