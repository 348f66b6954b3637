// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"math"
	"slices"
)

// form is a JSON Schema as arguments are checked against it. The zero form
// takes every value. A form is not changed once it is in use.
type form struct {
	never      bool     // it takes no value
	types      []string // none: any
	properties map[string]*form
	required   []string
	patterns   []pattern   // of members by their names
	others     *form       // members that neither names; nil: anything
	first      []*form     // the first elements, one by one
	items      *form       // the elements after them; nil: anything
	all        []*form     // what the value must fit as well
	assertions []assertion // whatever else is asked of it
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
	case []any:
		return "array"
	}
	return "object"
}
