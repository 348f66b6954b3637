// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/antiphon-go/antiphon/internal/jsonx"
	"github.com/antiphon-go/antiphon/item"
)

// JSON can have half a character: an escaped surrogate such as \ud83d without its partner. No text has one, so where
// text is read it would become another character. Items of models and outputs of calls are kept as they
// came; from a person's side it is a mistake of the client, which is refused.

// hasHalf reports whether JSON has half a character. The JSON must be valid.
func hasHalf(v string) bool {
	for {
		i := strings.IndexByte(v, '\\')
		if i < 0 {
			return false
		}
		if v = v[i+1:]; v[0] != 'u' {
			v = v[1:]
			continue
		}
		r := jsonx.HexRune(v[1:])
		v = v[5:]
		if !utf16.IsSurrogate(r) {
			continue
		}
		if !strings.HasPrefix(v, `\u`) || utf16.DecodeRune(r, jsonx.HexRune(v[2:])) == '\uFFFD' {
			return true
		}
		v = v[6:]
	}
}

func half(at string) *Error {
	return Invalid("invalid_value", at, `Invalid '%s': it has half a character, a surrogate such as \ud83d without its partner.`, at)
}

// checkHalves refuses half a character in the members of a request. Those of a list of items are checked with the items.
func checkHalves(object item.Item) (wrong *Error) {
	if !strings.Contains(object.JSON(), `\u`) {
		return nil // nearly all requests
	}
	jsonx.EachMember(object.JSON(), func(literal, value string) {
		name := jsonx.Unquote(literal)
		if items := name == "input" && value[0] == '['; wrong == nil && !items && hasHalf(value) {
			wrong = half(name)
		}
	})
	return wrong
}

// checkHalfOf refuses half a character in a message that no model has written.
func checkHalfOf(at string, it item.Item) *Error {
	if it.Type() == item.TypeMessage && it.Role() != item.RoleAssistant && hasHalf(it.JSON()) {
		return half(fmt.Sprintf("%s.content", at))
	}
	return nil
}
