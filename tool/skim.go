// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/jsonx"
)

// skim passes over the value that begins at i in s, a valid JSON text, and
// reports whether the form takes it as far as types and members tell, which is
// all that most forms ask. Where more is asked, or the value is written in an
// odd way, it reports false: then [form.fits] decides. It allocates nothing.
func (f *form) skim(s string, i int) (end int, takes bool) {
	i = jsonx.SkipSpace(s, i)
	if !f.isPlain() {
		return i, false
	}
	switch s[i] {
	case '{':
		return f.skimObject(s, i)
	case '[':
		return f.skimArray(s, i)
	}
	end = jsonx.SkipValue(s, i)
	return end, f.takesType(scalarType(s[i:end]))
}

// isPlain reports a form that asks for nothing but types and members.
func (f *form) isPlain() bool {
	return f == nil || !f.never && len(f.patterns)+len(f.first)+len(f.all)+len(f.assertions) == 0
}

// takesType reports whether values of a type are taken; "" is a type that
// cannot be told.
func (f *form) takesType(t string) bool {
	if f == nil || len(f.types) == 0 {
		return true
	}
	return slices.Contains(f.types, t) || (t == "integer" || t == "") && slices.Contains(f.types, "number")
}

// scalarType returns the type of a value that is neither an object nor an array,
// "" for a number that is written with a point or an exponent.
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

// skimmed is how many members may be required for an object to be skimmed.
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

// member returns the form of the member of a name.
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
	for i = jsonx.SkipSpace(s, i+1); s[i] != ']'; {
		if i, takes = items.skim(s, i); !takes {
			return i, false
		}
		if i = jsonx.SkipSpace(s, i); s[i] == ',' {
			i = jsonx.SkipSpace(s, i+1)
		}
	}
	return i + 1, true
}
