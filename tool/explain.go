// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A model that is told everything at once needs one more call instead of
// three, and the same arguments must give the same text each time, so the
// problems are collected in order.

const (
	maxProblems    = 8
	maxProblemText = 400
	maxValueText   = 100
)

// explain returns what is wrong with a value, or "".
func (f *form) explain(v any) string {
	if f.fits(v) {
		return ""
	}
	var e explainer
	e.value(f, v, "")
	if n := len(e.problems); n > maxProblems {
		e.problems = append(e.problems[:maxProblems], fmt.Sprintf("and %d more", n-maxProblems))
	}
	return strings.Join(e.problems, "; ")
}

type explainer struct{ problems []string }

func (e *explainer) add(path, problem string) {
	problem = shorten(problem, maxProblemText)
	if path != "" {
		problem = path + ": " + problem
	}
	if !slices.Contains(e.problems, problem) {
		e.problems = append(e.problems, problem)
	}
}

// value collects the problems of v and of what is in it.
func (e *explainer) value(f *form, v any, path string) {
	switch {
	case f == nil:
		return
	case f.never:
		e.add(path, "no value is allowed here")
		return
	case len(f.types) > 0 && !f.takes(v):
		e.add(path, typeProblem(f.types, v))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		e.object(f, v, path)
	case []any:
		for i, elem := range v {
			e.value(f.element(i), elem, fmt.Sprintf("%s[%d]", path, i))
		}
	}
	for _, also := range f.all {
		e.value(also, v, path)
	}
	for _, a := range f.assertions {
		if !a.ok(v) {
			e.add(path, a.why(v))
		}
	}
}

func typeProblem(types []string, v any) string {
	want := "want " + strconv.Quote(types[0])
	if len(types) > 1 {
		want = "want one of " + strconv.Quote(strings.Join(types, ", "))
	}
	text, isText := v.(string)
	if !isText {
		text = canonical(v)
	}
	return fmt.Sprintf("type: %s has type %q, %s", shorten(text, maxValueText), typeName(v), want)
}

func (e *explainer) object(f *form, v map[string]any, path string) {
	for _, name := range f.required {
		if _, ok := v[name]; !ok {
			e.add(path, fmt.Sprintf("missing member %q", name))
		}
	}
	for _, name := range sortedKeys(v) {
		member, known := f.properties[name]
		if known {
			e.value(member, v[name], joinPath(path, name))
		}
		for _, p := range f.patterns {
			if p.matches(name) {
				known = true
				e.value(p.form, v[name], joinPath(path, name))
			}
		}
		switch {
		case known:
		case f.others == nil || !f.others.never:
			e.value(f.others, v[name], joinPath(path, name))
		default:
			e.add(path, unknownMember(f, v, name))
		}
	}
}

// unknownMember names the member that was probably meant: one that is not
// there.
func unknownMember(f *form, v map[string]any, name string) string {
	problem := fmt.Sprintf("unknown member %q", shorten(name, maxValueText))
	for _, meant := range sortedKeys(f.properties) {
		if _, there := v[meant]; !there && alike(name, meant) {
			return fmt.Sprintf("%s, did you mean %q?", problem, meant)
		}
	}
	return problem
}

// alike reports whether a name is another one written differently, or with one
// slip: a letter too many, missing, wrong, or swapped with the next.
func alike(a, b string) bool {
	a, b = plainLetters(a), plainLetters(b)
	if a == b {
		return true
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < 3 {
		return false
	}
	for len(a) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 2 && len(b) == 2 {
		return a[0] == b[1] && a[1] == b[0]
	}
	return len(b) <= 1
}

// plainLetters drops what one spelling of a name has and another has not.
func plainLetters(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '_' || r == '-' || r == ' ':
			return -1
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// shorten ends a text at a rune's boundary and says so.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d more bytes)", s[:end], len(s)-end)
}
