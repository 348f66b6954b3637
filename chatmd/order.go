// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chatmd

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The attribute members records the order of the members of an item's JSON if it
// differs from the order in which this program writes them. Servers use different
// orders, and an item that was received is sent again as the same bytes. The
// attribute lists the members of the object. The members of a nested object follow
// the name in parentheses, and the elements of an array are separated by bars: id
// content(text type|type) role.

// orderOf returns the order that turns one JSON text into another. It returns false
// unless both have the same meaning, contain no white space, and have names that are
// plain words.
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

// reorder applies an order of [orderOf] to a JSON text. It returns false if the
// order does not fit.
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

// splitOrder splits at separators outside parentheses.
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

// valuesOf returns the members of an object or the elements of an array.
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

// only returns the value of a name that occurs exactly once.
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
