// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// The walkers below find where the members of an entry begin and end. They stay
// within the text, whatever it is; whether a value is JSON is checked where it
// is read.

// open finds the members of the object s.
func (c *codec) open(s string) {
	s = strings.Trim(s, " \t\r\n")
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		c.failf("no JSON object")
		return
	}
	c.scan(s[1 : len(s)-1])
}

// scan finds the members in s, which stand between the braces of an object. An
// item is read here already: it mostly comes last, and then nobody needs to walk
// over it to see where it ends.
func (c *codec) scan(s string) {
	for i := spaces(s, 0); i < len(s); {
		end := skip(s, i)
		colon := spaces(s, end)
		name, ok := unquoted(s[i:end])
		if !ok || name == "" || colon == len(s) || s[colon] != ':' {
			c.failf("no JSON: a member without a name or a value, %d bytes before the end", len(s)-i+1)
			return
		}
		i = spaces(s, colon+1)
		if name == "item" && i < len(s) && s[i] == '{' {
			if it, err := item.ParseString(s[i:]); err == nil {
				c.members = append(c.members, member{name, s[i:], it})
				return
			}
		}
		begin := i
		end = skip(s, begin)
		c.members = append(c.members, member{name: name, value: s[begin:end]})
		i = spaces(s, end)
		if end == begin || i < len(s) && (s[i] != ',' || spaces(s, i+1) == len(s)) {
			c.failf("no JSON: something between members, %d bytes before the end", len(s)-i+1)
			return
		}
		i = spaces(s, i+1)
	}
}

// eachElement visits the elements of the array s and reports whether it is one.
func eachElement(s string, visit func(string)) bool {
	if len(s) < 2 || s[0] != '[' || s[len(s)-1] != ']' {
		return false
	}
	s = s[1 : len(s)-1]
	i := spaces(s, 0)
	for i < len(s) {
		end := skip(s, i)
		if end == i {
			return false
		}
		visit(s[i:end])
		if i = spaces(s, end); i < len(s) && (s[i] != ',' || spaces(s, i+1) == len(s)) {
			return false
		}
		i = spaces(s, i+1)
	}
	return true
}

func spaces(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return min(i, len(s))
}

// skip returns the index after the value that starts at i, at most len(s).
func skip(s string, i int) int {
	for depth := 0; i < len(s); {
		switch s[i] {
		case '"':
			i = skipString(s, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			for i < len(s) && strings.IndexByte("\"{}[],: \t\r\n", s[i]) < 0 {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return i
}

// skipString returns the index after the string literal that starts at i.
func skipString(s string, i int) int {
	for i++; i < len(s); i++ {
		k := strings.IndexByte(s[i:], '"')
		if k < 0 {
			return len(s)
		}
		i += k
		slants := 0
		for s[i-1-slants] == '\\' {
			slants++
		}
		if slants%2 == 0 {
			return i + 1
		}
	}
	return len(s)
}
