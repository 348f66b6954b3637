// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// assertion is a keyword that asks something of a value. What it does not speak of
// is ok: the bounds of numbers say nothing of a text.
type assertion struct {
	ok  func(v any) bool
	why func(v any) string // what is wrong with a value that is not ok
}

// ofNumber makes an assertion about numbers.
func ofNumber(ok func(n float64) bool, problem string, bound float64) assertion {
	return assertion{
		ok:  func(v any) bool { n, is := v.(float64); return !is || ok(n) },
		why: func(v any) string { return canonical(v) + " is " + problem + " " + canonical(bound) },
	}
}

func minimum(m float64) assertion {
	return ofNumber(func(n float64) bool { return n >= m }, "less than the minimum", m)
}

func maximum(m float64) assertion {
	return ofNumber(func(n float64) bool { return n <= m }, "more than the maximum", m)
}

func moreThan(m float64) assertion {
	return ofNumber(func(n float64) bool { return n > m }, "not more than", m)
}

func lessThan(m float64) assertion {
	return ofNumber(func(n float64) bool { return n < m }, "not less than", m)
}

func multipleOf(m float64) assertion {
	return ofNumber(func(n float64) bool { _, rest := math.Modf(n / m); return rest == 0 }, "not a multiple of", m)
}

// counted is what a value has a number of.
type counted struct {
	what string
	of   func(v any) (n int, is bool)
}

var (
	characters = counted{"characters", func(v any) (int, bool) { s, is := v.(string); return utf8.RuneCountInString(s), is }}
	elements   = counted{"elements", func(v any) (int, bool) { a, is := v.([]any); return len(a), is }}
	members    = counted{"members", func(v any) (int, bool) { m, is := v.(map[string]any); return len(m), is }}
)

func (c counted) atLeast(m int) assertion {
	return assertion{
		ok:  func(v any) bool { n, is := c.of(v); return !is || n >= m },
		why: func(v any) string { return c.problem(v, "least", m) },
	}
}

func (c counted) atMost(m int) assertion {
	return assertion{
		ok:  func(v any) bool { n, is := c.of(v); return !is || n <= m },
		why: func(v any) string { return c.problem(v, "most", m) },
	}
}

func (c counted) problem(v any, bound string, m int) string {
	n, _ := c.of(v)
	return fmt.Sprintf("it has %d %s: want at %s %d", n, c.what, bound, m)
}

// amongst takes the values of an enumeration.
func amongst(values []any) assertion {
	taken := make(map[string]bool, len(values))
	texts := make([]string, 0, len(values))
	for _, v := range values {
		text := canonical(v)
		taken[text] = true
		texts = append(texts, text)
	}
	want := "want "
	if len(texts) > 1 {
		want = "want one of "
	}
	want += strings.Join(texts, ", ")
	return assertion{
		ok:  func(v any) bool { return taken[canonical(v)] },
		why: func(v any) string { return "got " + shorten(canonical(v), maxValueText) + ", " + want },
	}
}

// unique takes arrays without equal elements.
func unique() assertion {
	twins := func(v any) (int, int) {
		a, _ := v.([]any)
		seen := make(map[string]int, len(a))
		for i, e := range a {
			text := canonical(e)
			if first, twice := seen[text]; twice {
				return first, i
			}
			seen[text] = i
		}
		return 0, 0
	}
	return assertion{
		ok:  func(v any) bool { _, second := twins(v); return second == 0 },
		why: func(v any) string { a, b := twins(v); return fmt.Sprintf("elements %d and %d are equal", a, b) },
	}
}

func matching(expression string, matches func(string) bool) assertion {
	return assertion{
		ok: func(v any) bool { s, is := v.(string); return !is || matches(s) },
		why: func(v any) string {
			return fmt.Sprintf("pattern: %s does not match %s", shorten(canonical(v), maxValueText), expression)
		},
	}
}

// named checks the names of members.
func named(f *form) assertion {
	wrong := func(v any) (string, bool) {
		m, _ := v.(map[string]any)
		for _, name := range sortedKeys(m) {
			if !f.fits(name) {
				return name, true
			}
		}
		return "", false
	}
	return assertion{
		ok: func(v any) bool { _, is := wrong(v); return !is },
		why: func(v any) string {
			name, _ := wrong(v)
			return fmt.Sprintf("the name of member %q: %s", shorten(name, maxValueText), f.explain(name))
		},
	}
}

// containing counts the elements that fit.
func containing(f *form, low, high int) assertion {
	count := func(v any) (n int, is bool) {
		a, is := v.([]any)
		for _, e := range a {
			if f.fits(e) {
				n++
			}
		}
		return n, is
	}
	return assertion{
		ok: func(v any) bool { n, is := count(v); return !is || n >= low && n <= high },
		why: func(v any) string {
			if n, _ := count(v); n > high {
				return fmt.Sprintf("contains: %d elements fit: want at most %d", n, high)
			}
			return fmt.Sprintf("contains: too few elements fit: want at least %d", low)
		},
	}
}

// demanding asks for other members when one is there.
func demanding(name string, others []string) assertion {
	missing := func(v any) (string, bool) {
		m, _ := v.(map[string]any)
		if _, ok := m[name]; !ok {
			return "", false
		}
		for _, o := range others {
			if _, ok := m[o]; !ok {
				return o, true
			}
		}
		return "", false
	}
	return assertion{
		ok: func(v any) bool { _, is := missing(v); return !is },
		why: func(v any) string {
			other, _ := missing(v)
			return fmt.Sprintf("missing member %q, which %q asks for", other, name)
		},
	}
}

// when applies one form to what fits a condition and another to the rest.
func when(cond func(v any) bool, then, otherwise *form) assertion {
	branch := func(v any) *form {
		if cond(v) {
			return then
		}
		return otherwise
	}
	return assertion{
		ok:  func(v any) bool { return branch(v).fits(v) },
		why: func(v any) string { return branch(v).explain(v) },
	}
}

func has(member string) func(v any) bool {
	return func(v any) bool {
		m, _ := v.(map[string]any)
		_, ok := m[member]
		return ok
	}
}

func anyOf(forms []*form) assertion {
	return assertion{
		ok:  func(v any) bool { return slices.ContainsFunc(forms, func(f *form) bool { return f.fits(v) }) },
		why: func(v any) string { return "anyOf: it fits none: " + reasons(forms, v) },
	}
}

func oneOf(forms []*form) assertion {
	fitting := func(v any) (list []int) {
		for i, f := range forms {
			if f.fits(v) {
				list = append(list, i+1)
			}
		}
		return list
	}
	return assertion{
		ok: func(v any) bool { return len(fitting(v)) == 1 },
		why: func(v any) string {
			if list := fitting(v); len(list) > 1 {
				return fmt.Sprintf("oneOf: it fits both (%d) and (%d)", list[0], list[1])
			}
			return "oneOf: it fits none: " + reasons(forms, v)
		},
	}
}

// reasons tells why a value fits none of some forms.
func reasons(forms []*form, v any) string {
	list := make([]string, len(forms))
	for i, f := range forms {
		list[i] = fmt.Sprintf("(%d) %s", i+1, f.explain(v))
	}
	return strings.Join(list, " ")
}

func not(f *form) assertion {
	return assertion{
		ok:  func(v any) bool { return !f.fits(v) },
		why: func(any) string { return "not: it fits what it must not fit" },
	}
}

// canonical writes a value so that equal ones are equal texts.
func canonical(v any) string { return string(appendCanonical(nil, v)) }

func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return append(b, quote(v)...)
	case float64:
		return strconv.AppendFloat(b, v+0, 'f', -1, 64) // and -0 is 0
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, e)
		}
		return append(b, ']')
	}
	m, _ := v.(map[string]any)
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, quote(name)...), ':')
		b = appendCanonical(b, m[name])
	}
	return append(b, '}')
}
