// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"errors"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// The functions below read text that servers sent. The text may be incomplete.

var errKind = errors.New("unexpected kind of JSON value")

// received returns the text of a server's answer. Bytes that are not UTF-8 are replaced.
func received(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }

// members calls f for each member of the JSON object at the beginning of v, and stops at the first
// error. It calls f twice for a duplicate name.
func members(v string, f func(name, value string)) error {
	start := jsonx.SkipSpace(v, 0)
	if start == len(v) || v[start] != '{' {
		return errKind
	}
	sc := jsonx.Scanner{Text: v}
	_, err := sc.Object(start, func(name, value string) { f(jsonx.Unquote(name), value) })
	return err
}

// elements returns the elements of the JSON array at the beginning of v, up to the first error.
func elements(v string) (list []string, err error) {
	start := jsonx.SkipSpace(v, 0)
	if start == len(v) || v[start] != '[' {
		return nil, errKind
	}
	sc := jsonx.Scanner{Text: v}
	_, err = sc.Array(start, func(value string) { list = append(list, value) })
	return list, err
}
