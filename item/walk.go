// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package item

import "strings"

// The walkers below go over text that the scanner has accepted before. They
// check nothing, and pass over strings as fast as a quote can be found.

// eachMember visits the members of the object at the start of s, the name's
// literal and the value as slices of s, and returns the index after it.
func eachMember(s string, visit func(name, value string)) int {
	i := skipSpace(s, 1)
	for s[i] == '"' {
		end := skipString(s, i)
		name := s[i:end]
		i = skipSpace(s, skipSpace(s, end)+1)
		end = skipValue(s, i)
		visit(name, s[i:end])
		if i = skipSpace(s, end); s[i] == ',' {
			i = skipSpace(s, i+1)
		}
	}
	return i + 1
}

// eachElement visits the elements of an array, as slices of s.
func eachElement(s string, visit func(value string)) {
	i := skipSpace(s, 1)
	if s[i] == ']' {
		return
	}
	for {
		end := skipValue(s, i)
		visit(s[i:end])
		if i = skipSpace(s, end); s[i] != ',' {
			return
		}
		i = skipSpace(s, i+1)
	}
}

func skipSpace(s string, i int) int {
	for s[i] <= ' ' {
		i++
	}
	return i
}

// skipString returns the index after the literal that starts at i.
func skipString(s string, i int) int {
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

// skipValue returns the index after the value that starts at i.
func skipValue(s string, i int) int {
	switch s[i] {
	case '"':
		return skipString(s, i)
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
			i = skipString(s, i)
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
