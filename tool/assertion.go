// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/antiphon-go/antiphon/tool/output"
)

// assertion is a keyword that restricts values. It accepts every value of a type
// that it does not apply to: the bounds of numbers accept any text.
type assertion struct {
	ok  func(v any) bool
	why func(v any) string // describes the problem of a value that is not ok
	// length decides about an array by the number of its elements. It is nil if that is
	// not enough to know.
	length func(n int) bool
	// number decides like ok about a number that a float64 holds exactly. It may be nil.
	number func(n float64) bool
}

// anyLength is the length of an assertion that accepts all arrays.
func anyLength(int) bool { return true }

// ofNumber makes an assertion about numbers.
func ofNumber(ok func(n any) bool, problem string, bound any, number func(n, bound float64) bool) assertion {
	a := assertion{
		ok:     func(v any) bool { return !isNumber(v) || ok(v) },
		why:    func(v any) string { return canonical(v) + " is " + problem + " " + canonical(bound) },
		length: anyLength,
	}
	if m, exact := bound.(float64); exact && number != nil {
		a.number = func(n float64) bool { return number(n, m) }
	}
	return a
}

func minimum(m any) assertion {
	return ofNumber(func(n any) bool { return compareNumbers(n, m) >= 0 }, "less than the minimum", m, func(n, m float64) bool { return n >= m })
}

func maximum(m any) assertion {
	return ofNumber(func(n any) bool { return compareNumbers(n, m) <= 0 }, "more than the maximum", m, func(n, m float64) bool { return n <= m })
}

func moreThan(m any) assertion {
	return ofNumber(func(n any) bool { return compareNumbers(n, m) > 0 }, "not more than", m, func(n, m float64) bool { return n > m })
}

func lessThan(m any) assertion {
	return ofNumber(func(n any) bool { return compareNumbers(n, m) < 0 }, "not less than", m, func(n, m float64) bool { return n < m })
}

func multipleOf(m any) assertion {
	return ofNumber(func(n any) bool { return divides(m, n) }, "not a multiple of", m, nil)
}

// counted describes something that a value has a number of.
type counted struct {
	what string
	of   func(v any) (n int, is bool)
	list bool // of arrays
}

var (
	characters = counted{"characters", func(v any) (int, bool) { s, is := v.(string); return utf8.RuneCountInString(s), is }, false}
	elements   = counted{"elements", func(v any) (int, bool) { a, is := v.([]any); return len(a), is }, true}
	members    = counted{"members", func(v any) (int, bool) { m, is := v.(map[string]any); return len(m), is }, false}
)

func (c counted) atLeast(m int) assertion {
	return assertion{
		ok:     func(v any) bool { n, is := c.of(v); return !is || n >= m },
		why:    func(v any) string { return c.problem(v, "least", m) },
		length: func(n int) bool { return !c.list || n >= m },
	}
}

func (c counted) atMost(m int) assertion {
	return assertion{
		ok:     func(v any) bool { n, is := c.of(v); return !is || n <= m },
		why:    func(v any) string { return c.problem(v, "most", m) },
		length: func(n int) bool { return !c.list || n <= m },
	}
}

func (c counted) problem(v any, bound string, m int) string {
	n, _ := c.of(v)
	return fmt.Sprintf("it has %d %s: want at %s %d", n, c.what, bound, m)
}

// amongst accepts the values of an enumeration.
func amongst(values []any) assertion {
	taken := make(map[string]bool, len(values))
	words := make(map[string]bool, len(values)) // the texts among them, as they are
	texts := make([]string, 0, len(values))
	for _, v := range values {
		text := canonical(v)
		taken[text] = true
		if word, is := v.(string); is {
			words[word] = true
		}
		texts = append(texts, text)
	}
	want := "want "
	if len(texts) > 1 {
		want = "want one of "
	}
	want += strings.Join(texts, ", ")
	return assertion{
		ok: func(v any) bool {
			if word, is := v.(string); is {
				return words[word]
			}
			return taken[canonical(v)]
		},
		why: func(v any) string { return "got " + output.Clip(canonical(v), maxValueText) + ", " + want },
	}
}

// unique accepts arrays without equal elements.
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
		length: anyLength,
		ok:     func(v any) bool { s, is := v.(string); return !is || matches(s) },
		why: func(v any) string {
			return fmt.Sprintf("pattern: %s does not match %s", output.Clip(canonical(v), maxValueText), expression)
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
			return fmt.Sprintf("the name of member %q: %s", output.Clip(name, maxValueText), f.explain(name))
		},
	}
}

// containing counts the elements that match a form.
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

// demanding requires other members if a certain member is present.
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

// when applies one form to values that match a condition, and another form to the
// rest.
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

// reasons explains why a value matches none of some forms.
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

// canonical encodes a value such that equal values give equal texts.
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
		return strconv.AppendFloat(b, v+0, 'f', -1, 64) // -0 becomes 0
	case *big.Rat:
		return appendRat(b, v)
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

// All problems are reported at once, so that a model needs one more call instead of
// three. They are collected in order, because the same arguments must give the same
// text each time.

const (
	maxProblems    = 8
	maxProblemText = 400
	maxValueText   = 100
)

// explain describes the problems of a value. It returns "" if there are none.
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
	problem = output.Clip(problem, maxProblemText)
	if path != "" {
		problem = path + ": " + problem
	}
	if !slices.Contains(e.problems, problem) {
		e.problems = append(e.problems, problem)
	}
}

// value collects the problems of v and of the values in it.
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
	if !isText || text == "" {
		text = canonical(v)
	}
	return fmt.Sprintf("type: %s has type %q, %s", output.Clip(text, maxValueText), typeName(v), want)
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

// unknownMember reports an unknown name. It suggests the missing member that was
// probably meant, if there is one.
func unknownMember(f *form, v map[string]any, name string) string {
	problem := fmt.Sprintf("unknown member %q", output.Clip(name, maxValueText))
	for _, meant := range sortedKeys(f.properties) {
		if _, there := v[meant]; !there && alike(name, meant) {
			return fmt.Sprintf("%s, did you mean %q?", problem, meant)
		}
	}
	return problem
}

// alike reports whether two names differ only in spelling style or by one typing
// error: an extra, missing, wrong or swapped letter.
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

// plainLetters removes the differences between spelling styles from a name.
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
