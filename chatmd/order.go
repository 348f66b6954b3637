// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The attribute members says in which order an item's JSON has its members, where
// that is not the one in which this program writes them: servers differ in it, and
// what was received is sent again as the same bytes. It names the members of the
// object; after a name stand in parentheses those of the objects in it, an array's
// apart by a bar: id content(text type|type) role.

// orderOf returns the order that turns the text of a JSON value into that of
// another one. It reports whether there is one: both say the same without white
// space, and names are plain words.
func orderOf(from, to string) (order string, ok bool) {
	if from == to {
		return "", true
	}
	a, kind, ok := valuesOf(from)
	b, kindTo, okTo := valuesOf(to)
	if !ok || !okTo || kind != kindTo || len(a) != len(b) {
		return "", false
	}
	list := make([]string, len(b))
	for i, v := range b {
		was := a[i].text
		if kind == '{' {
			if was, ok = only(a, v.name); !ok || !isWord(v.name) {
				return "", false
			}
		}
		inner, ok := orderOf(was, v.text)
		if !ok {
			return "", false
		}
		if list[i] = v.name + inner; kind == '{' && inner != "" {
			list[i] = v.name + "(" + inner + ")"
		}
	}
	if kind == '{' {
		return strings.Join(list, " "), true
	}
	return strings.Join(list, "|"), true
}

// reorder returns the text of a JSON value in an order of [orderOf]. It reports
// false where that does not fit.
func reorder(from, order string) (to string, ok bool) {
	if order == "" {
		return from, true
	}
	list, kind, ok := valuesOf(from)
	sep, open, end := "|", "[", "]"
	if kind == '{' {
		sep, open, end = " ", "{", "}"
	}
	parts := splitOrder(order, sep[0])
	if !ok || len(parts) != len(list) {
		return "", false
	}
	for i, part := range parts {
		name, inner, value := "", part, list[i].text
		if kind == '{' {
			name, inner, _ = strings.Cut(part, "(")
			if value, ok = only(list, name); !ok {
				return "", false
			}
			inner, name = strings.TrimSuffix(inner, ")"), `"`+name+`":`
		}
		if value, ok = reorder(value, inner); !ok {
			return "", false
		}
		parts[i] = name + value
	}
	return open + strings.Join(parts, ",") + end, true
}

// splitOrder splits at a separator that stands in no parentheses.
func splitOrder(order string, sep byte) (parts []string) {
	depth, start := 0, 0
	for i := range len(order) {
		switch c := order[i]; {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == sep && depth == 0:
			parts = append(parts, order[start:i])
			start = i + 1
		}
	}
	return append(parts, order[start:])
}

// namedValue is a member of an object, or an element of an array.
type namedValue struct{ name, text string }

// valuesOf returns what is in an object or an array.
func valuesOf(text string) (list []namedValue, kind jsontext.Kind, ok bool) {
	d := jsontext.NewDecoder(bytes.NewReader([]byte(text)), jsontext.AllowDuplicateNames(true))
	open, err := d.ReadToken()
	if kind = open.Kind(); err != nil || kind != '{' && kind != '[' {
		return nil, kind, false
	}
	for d.PeekKind() != '}' && d.PeekKind() != ']' {
		var v namedValue
		if kind == '{' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, kind, false
			}
			v.name = name.String()
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, kind, false
		}
		v.text = string(value)
		list = append(list, v)
	}
	return list, kind, true
}

// only returns the value of a name that is there once.
func only(list []namedValue, name string) (text string, ok bool) {
	for _, v := range list {
		if v.name == name {
			if ok {
				return "", false
			}
			text, ok = v.text, true
		}
	}
	return text, ok
}

func isWord(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
