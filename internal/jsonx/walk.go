// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import "strings"

// The walkers below go over text that a [Scanner] has accepted before. They
// check nothing, and pass over strings as fast as a quote can be found.

// EachMember visits the members of the object at the start of s, the name's
// literal and the value as slices of s, and returns the index after it.
func EachMember(s string, visit func(name, value string)) int {
	i := SkipSpace(s, 1)
	for s[i] == '"' {
		end := SkipString(s, i)
		name := s[i:end]
		i = SkipSpace(s, SkipSpace(s, end)+1)
		end = SkipValue(s, i)
		visit(name, s[i:end])
		if i = SkipSpace(s, end); s[i] == ',' {
			i = SkipSpace(s, i+1)
		}
	}
	return i + 1
}

// EachElement visits the elements of an array, as slices of s.
func EachElement(s string, visit func(value string)) {
	i := SkipSpace(s, 1)
	if s[i] == ']' {
		return
	}
	for {
		end := SkipValue(s, i)
		visit(s[i:end])
		if i = SkipSpace(s, end); s[i] != ',' {
			return
		}
		i = SkipSpace(s, i+1)
	}
}

// MemberOf returns the value of the named member of the object s; of equal names
// the last counts. It reports false for what is not an object.
func MemberOf(s, name string) (found string, ok bool) {
	if s == "" || s[0] != '{' {
		return "", false
	}
	EachMember(s, func(literal, value string) {
		if Means(literal, name) {
			found, ok = value, true
		}
	})
	return found, ok
}

// SkipSpace returns the first index at or after i that is not white space. It
// may be the end of any text.
func SkipSpace(s string, i int) int {
	if i < len(s) && s[i] > ' ' {
		return i // endpoints mostly write none
	}
	return spaces(s, i)
}

func spaces(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// SkipString returns the index after the literal that starts at i.
func SkipString(s string, i int) int {
	for i++; ; {
		i += strings.IndexByte(s[i:], '"')
		slants := 0
		for s[i-1-slants] == '\\' {
			slants++
		}
		i++
		if slants%2 == 0 {
			return i
		}
	}
}

// SkipValue returns the index after the value that starts at i.
func SkipValue(s string, i int) int {
	switch s[i] {
	case '"':
		return SkipString(s, i)
	case '{', '[':
		return skipNested(s, i)
	}
	for i < len(s) && s[i] > ' ' && s[i] != ',' && s[i] != '}' && s[i] != ']' {
		i++
	}
	return i
}

func skipNested(s string, i int) int {
	for depth := 0; ; {
		switch s[i] {
		case '"':
			i = SkipString(s, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		i++
		if depth == 0 {
			return i
		}
	}
}
