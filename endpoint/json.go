// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"errors"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// The readers below take what servers sent, of which the beginning may be all.

var errKind = errors.New("another kind of value was wanted")

// received is a text that a server sent. What is not UTF-8 in it is replaced.
func received(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }

// members calls f with each member of the JSON object that v begins with, up to
// the first error. Of a name that is there twice f sees both.
func members(v string, f func(name, value string)) error {
	start := jsonx.SkipSpace(v, 0)
	if start == len(v) || v[start] != '{' {
		return errKind
	}
	sc := jsonx.Scanner{Text: v}
	_, err := sc.Object(start, func(name, value string) { f(jsonx.Unquote(name), value) })
	return err
}

// elements are the elements of the JSON array that v begins with, up to the
// first error.
func elements(v string) (list []string, err error) {
	start := jsonx.SkipSpace(v, 0)
	if start == len(v) || v[start] != '[' {
		return nil, errKind
	}
	sc := jsonx.Scanner{Text: v}
	_, err = sc.Array(start, func(value string) { list = append(list, value) })
	return list, err
}
