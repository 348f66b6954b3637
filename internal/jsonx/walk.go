// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package jsonx

import "strings"

// The functions below walk text that a [Scanner] has accepted. They check nothing,
// and skip strings as fast as a quote can be found.

// EachMember calls visit for each member of the object at the start of s, with the
// literal of the name and the value as slices of s. It returns the index after the
// object.
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

// EachElement calls visit for each element of the array s, with slices of s.
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

// MemberOf returns the value of the named member of the object s. If the name occurs
// more than once, the last one wins. ok is false if s is not an object.
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

// SkipSpace returns the first index at or after i that is not white space, or
// len(s). It accepts any text.
func SkipSpace(s string, i int) int {
	if i < len(s) && s[i] > ' ' {
		return i // the usual case: endpoints rarely write white space
	}
	return spaces(s, i)
}

// spaces is the slow part of SkipSpace.
func spaces(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// SkipString returns the index after the string literal that starts at i.
func SkipString(s string, i int) int {
	for i++; ; {
		i += strings.IndexByte(s[i:], '"')
		// A quote after an odd number of backslashes is escaped.
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

// skipNested returns the index after the object or array at i. It only counts
// brackets, which is enough for valid text.
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
