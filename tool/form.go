// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// form is a JSON Schema, compiled for checking arguments. The zero form accepts
// every value. A form does not change once it is in use.
type form struct {
	never      bool     // no value is accepted
	entire     bool     // a part of a value means nothing: see [Schema.Partial]
	types      []string // empty: any type
	properties map[string]*form
	required   []string
	patterns   []pattern   // for members whose names match
	others     *form       // for all other members; nil accepts anything
	first      []*form     // for the first elements, in order
	items      *form       // for the elements after first; nil accepts anything
	all        []*form     // forms that must also accept the value
	assertions []assertion // all other keywords
}

// pattern is the form of the members whose names match.
type pattern struct {
	matches func(string) bool
	form    *form
}

// nothing is the schema false.
var nothing = &form{never: true}

// fits reports whether v matches. It allocates nothing for a form without
// assertions.
func (f *form) fits(v any) bool {
	switch {
	case f == nil:
		return true
	case f.never || len(f.types) > 0 && !f.takes(v):
		return false
	}
	for _, a := range f.assertions {
		if !a.ok(v) {
			return false
		}
	}
	for _, also := range f.all {
		if !also.fits(v) {
			return false
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return f.fitsObject(v)
	case []any:
		for i, e := range v {
			if !f.element(i).fits(e) {
				return false
			}
		}
	}
	return true
}

func (f *form) fitsObject(v map[string]any) bool {
	for _, name := range f.required {
		if _, ok := v[name]; !ok {
			return false
		}
	}
	for name, value := range v {
		member, known := f.properties[name]
		if known && !member.fits(value) {
			return false
		}
		for _, p := range f.patterns {
			if p.matches(name) {
				known = true
				if !p.form.fits(value) {
					return false
				}
			}
		}
		if !known && !f.others.fits(value) {
			return false
		}
	}
	return true
}

// element returns the form of the element at an index.
func (f *form) element(i int) *form {
	if i < len(f.first) {
		return f.first[i]
	}
	return f.items
}

func (f *form) takes(v any) bool {
	t := typeName(v)
	return slices.Contains(f.types, t) || t == "integer" && slices.Contains(f.types, "number")
}

// typeName returns the name that JSON Schema has for the type of a value.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case *big.Rat:
		if v.IsInt() {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// skim skips the value that begins at i in s, a valid JSON text. It reports whether
// the form accepts the value. It judges by types, members, lengths and single values,
// which suffices for most forms. It also returns false if the form has other keywords,
// or the value is written in an unusual way: then [form.fits] decides. It allocates
// only for the values of forms with assertions.
func (f *form) skim(s string, i int) (end int, takes bool) {
	i = jsonx.SkipSpace(s, i)
	if !f.skims() {
		return i, false
	}
	switch s[i] {
	case '{':
		if f != nil && len(f.assertions) > 0 {
			return i, false
		}
		return f.skimObject(s, i)
	case '[':
		return f.skimArray(s, i)
	}
	end = jsonx.SkipValue(s, i)
	return end, f.takesType(scalarType(s[i:end])) && f.takesScalar(s[i:end])
}

// skims reports whether a form restricts only types, members, elements and single
// values.
func (f *form) skims() bool {
	return f == nil || !f.never && len(f.patterns)+len(f.first)+len(f.all) == 0
}

// takesScalar reports whether the assertions accept a value that is neither an object
// nor an array.
func (f *form) takesScalar(text string) bool {
	if f == nil || len(f.assertions) == 0 {
		return true
	}
	var v any
	switch text[0] {
	case '"':
		plain := text[1 : len(text)-1]
		if strings.IndexByte(plain, '\\') >= 0 {
			return false
		}
		v = plain
	case 't', 'f':
		v = text[0] == 't'
	case 'n':
	default:
		if len(text) <= floatDigits && !strings.ContainsAny(text, "eE") && f.readsNumbers() {
			n, err := strconv.ParseFloat(text, 64)
			return err == nil && f.takesNumber(n)
		}
		n, err := numberOf(text)
		if err != nil {
			return false
		}
		v = n
	}
	for _, a := range f.assertions {
		if !a.ok(v) {
			return false
		}
	}
	return true
}

// readsNumbers reports whether takesNumber can decide.
func (f *form) readsNumbers() bool {
	return !slices.ContainsFunc(f.assertions, func(a assertion) bool { return a.number == nil })
}

// takesNumber reports whether the assertions accept a number that a float64 holds
// exactly.
func (f *form) takesNumber(n float64) bool {
	for _, a := range f.assertions {
		if !a.number(n) {
			return false
		}
	}
	return true
}

// hasLength reports whether the assertions accept an array with so many elements. It
// returns false if they do not know.
func (f *form) hasLength(n int) bool {
	if f == nil {
		return true
	}
	for _, a := range f.assertions {
		if a.length == nil || !a.length(n) {
			return false
		}
	}
	return true
}

// takesType reports whether the form accepts values of a type; "" is an undetermined
// type.
func (f *form) takesType(t string) bool {
	if f == nil || len(f.types) == 0 {
		return true
	}
	return slices.Contains(f.types, t) || (t == "integer" || t == "") && slices.Contains(f.types, "number")
}

// scalarType returns the type of a value that is neither an object nor an array, or
// "" for a number that is written with a decimal point or an exponent.
func scalarType(text string) string {
	switch text[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if strings.ContainsAny(text, ".eE") {
		return ""
	}
	return "integer"
}

// skimmed is the maximum number of required members for an object to be skimmed.
const skimmed = 64

func (f *form) skimObject(s string, i int) (end int, takes bool) {
	var required []string
	if f != nil {
		required = f.required
	}
	if !f.takesType("object") || len(required) > skimmed {
		return i, false
	}
	missing := uint64(1)<<len(required) - 1
	for i = jsonx.SkipSpace(s, i+1); s[i] != '}'; {
		name := s[i+1 : jsonx.SkipString(s, i)-1]
		if strings.IndexByte(name, '\\') >= 0 {
			return i, false
		}
		if k := slices.Index(required, name); k >= 0 {
			missing &^= 1 << k
		}
		i = jsonx.SkipSpace(s, i+len(name)+2) + 1 // after the colon
		if i, takes = f.member(name).skim(s, i); !takes {
			return i, false
		}
		if i = jsonx.SkipSpace(s, i); s[i] == ',' {
			i = jsonx.SkipSpace(s, i+1)
		}
	}
	return i + 1, missing == 0
}

// member returns the form of the member with a name.
func (f *form) member(name string) *form {
	if f == nil {
		return nil
	}
	if member, known := f.properties[name]; known {
		return member
	}
	return f.others
}

func (f *form) skimArray(s string, i int) (end int, takes bool) {
	if !f.takesType("array") {
		return i, false
	}
	var items *form
	if f != nil {
		items = f.items
	}
	n := 0
	for i = jsonx.SkipSpace(s, i+1); s[i] != ']'; n++ {
		if i, takes = items.skim(s, i); !takes {
			return i, false
		}
		if i = jsonx.SkipSpace(s, i); s[i] == ',' {
			i = jsonx.SkipSpace(s, i+1)
		}
	}
	return i + 1, f.hasLength(n)
}
