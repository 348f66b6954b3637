// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import (
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
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
	b, err := jsonx.AppendQuoted(make([]byte, 0, len(s)+2), s)
	if err != nil {
		b, _ = jsonx.AppendQuoted(nil, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return JSON(b)
}

// Unquote returns the text of a JSON string, and whether j is one. Escaped
// surrogates without a partner become U+FFFD.
func (j JSON) Unquote() (string, bool) {
	if len(j) < 2 || j[0] != '"' {
		return "", false
	}
	return jsonx.Unquote(string(j)), true
}
