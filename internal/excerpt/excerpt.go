// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package excerpt shortens texts of conversations for traces and logs.
package excerpt

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/item"
)

// Limits of names and ids, and of texts, in bytes.
const (
	MaxName = 128
	MaxText = 8 << 10
)

// data matches probable base64: after its media type, or in runs that do not occur
// in words, on one or several lines.
var data = lazyregexp.New(`data:[^,"\s]{0,100};base64,[A-Za-z0-9+/_=-]*|(?:[A-Za-z0-9+/_-]{60,}={0,2}(?:\\[rn]|[\r\n])*){4,}`)

// Text returns a text without base64, shortened to limit. A note says how much is
// missing, and is not included in limit.
func Text(s string, limit int) string {
	s = item.ShowHeld(s)
	total := len(s)
	if len(s) > 8*limit { // enough to find data, without searching all of a large text
		s = s[:8*limit]
	}
	s = data.ReplaceAllStringFunc(s, func(d string) string {
		head, _, typed := strings.Cut(d, ",")
		if !typed {
			head = "base64"
		}
		return fmt.Sprintf("(%s, %d characters)", head, len(d))
	})
	longer := len(s) > limit || total > 8*limit
	s = Prefix(s, limit)
	if longer {
		s += fmt.Sprintf("… (of %d bytes)", total)
	}
	return s
}

// Prefix returns the beginning of a text, as valid UTF-8.
func Prefix(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}
		s = s[:limit]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Name returns a name or an id that others choose, which may be long.
func Name(s string) string { return Prefix(s, MaxName) }
