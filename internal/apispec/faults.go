// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package apispec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// unknown lists the members of v that the closed schema refuses, and removes
// them from v. It works from the deepest up: a branch that fails over a member
// inside it vouches for none of its own, so they would all be reported.
func unknown(closed *jsonschema.Schema, v any) []string {
	var out []string
	for {
		fault := validate(closed, v)
		if fault == nil {
			slices.Sort(out)
			return out
		}
		removed := false
		places, _ := refused(fault)
		for _, at := range places {
			if remove(v, at) {
				removed = true
				out = append(out, pointer(at)+": unknown member")
			}
		}
		if !removed {
			return append(out, lines(fault)...)
		}
	}
}

// refused returns the deepest places where a closed object refused a member,
// and whether such refusals are all that is wrong with e.
func refused(e *jsonschema.ValidationError) (places [][]string, only bool) {
	if _, ok := e.ErrorKind.(*kind.FalseSchema); ok {
		return [][]string{e.InstanceLocation}, true
	}
	only = len(e.Causes) > 0 && !isUnion(e)
	for _, c := range e.Causes {
		found, ok := refused(c)
		switch {
		case !isUnion(e):
			places = deepest(append(places, found...))
			only = only && ok
		case ok && (!only || closer(found, places)):
			places, only = found, true // of a union, the branch that fits best
		}
	}
	return places, only
}

// closer reports whether the branch that refused a is more likely meant than
// the one that refused b: it knows more of what is inside, or refuses less.
func closer(a, b [][]string) bool {
	if len(a[0]) != len(b[0]) {
		return len(a[0]) > len(b[0])
	}
	return len(a) < len(b)
}

func deepest(places [][]string) [][]string {
	depth := 0
	for _, p := range places {
		depth = max(depth, len(p))
	}
	return slices.DeleteFunc(places, func(p []string) bool { return len(p) < depth })
}

// remove deletes the member at the place, and reports whether it was there.
func remove(v any, at []string) bool {
	if len(at) == 0 {
		return false
	}
	last := len(at) - 1
	for _, step := range at[:last] {
		if l, ok := v.([]any); ok {
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(l) {
				return false
			}
			v = l[i]
			continue
		}
		v = object(v)[step]
	}
	m := object(v)
	_, ok := m[at[last]]
	delete(m, at[last])
	return ok
}

// meant returns the causes of a fault. Of a union's failed branches it leaves
// out those of another type, unless all are.
func meant(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if !isUnion(e) {
		return e.Causes
	}
	var keep []*jsonschema.ValidationError
	for _, c := range e.Causes {
		if !otherType(c, len(e.InstanceLocation)) {
			keep = append(keep, c)
		}
	}
	if len(keep) == 0 {
		return e.Causes
	}
	return keep
}

func isUnion(e *jsonschema.ValidationError) bool {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return true
	}
	return false
}

// otherType reports whether a branch of the union at the given depth was never
// meant: the JSON type differs, or the member that tells the branches apart.
func otherType(e *jsonschema.ValidationError, depth int) bool {
	at := e.InstanceLocation
	here := len(at) == depth
	onType := len(at) == depth+1 && slices.Contains([]string{"type", "object", "role"}, at[depth])
	if len(e.Causes) > 0 {
		if isUnion(e) {
			return (here || onType) && !slices.ContainsFunc(e.Causes, func(c *jsonschema.ValidationError) bool {
				return !otherType(c, depth)
			})
		}
		return slices.ContainsFunc(e.Causes, func(c *jsonschema.ValidationError) bool { return otherType(c, depth) })
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Enum, *kind.Const:
		return onType
	case *kind.Type:
		return here || onType
	case *kind.Required:
		return here && slices.Contains(k.Missing, "type")
	}
	return false
}

// lines flattens a fault to one line for each of its causes.
func lines(e *jsonschema.ValidationError) []string {
	var out []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		line := ""
		causes := meant(e)
		switch {
		case len(e.Causes) == 0:
			line = e.Error()
		case isUnion(e) && len(causes) > 3 && otherType(causes[0], len(e.InstanceLocation)):
			line = fmt.Sprintf("at '%s': none of %d variants has its type", pointer(e.InstanceLocation), len(causes))
		default:
			for _, c := range causes {
				walk(c)
			}
			return
		}
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	walk(e)
	return out
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer writes a place as a JSON pointer, RFC 6901.
func pointer(at []string) string {
	var b strings.Builder
	for _, step := range at {
		b.WriteByte('/')
		_, _ = pointerEscapes.WriteString(&b, step)
	}
	return b.String()
}
