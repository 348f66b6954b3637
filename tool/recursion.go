// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// definitions are the types of a schema that contain themselves, directly or through others. Their
// texts are in $defs, and each place refers to them.
type definitions struct {
	inside map[reflect.Type]*[]*form // types that are being derived, with the forms of the places that refer to them
	done   map[reflect.Type]derived  // types whose texts are in $defs
	names  map[reflect.Type]string   // their names
	texts  []string                  // the members of $defs
	refs   int                       // number of references so far
}

func newDefinitions() *definitions {
	return &definitions{inside: map[reflect.Type]*[]*form{}, done: map[reflect.Type]derived{}, names: map[reflect.Type]string{}}
}

// once returns the schema of a type. Within the type itself it is a reference. A type that has
// such a reference inside is derived once: types that contain each other would otherwise be
// written out in every order.
func (r deriver) once(t reflect.Type) (*derived, error) {
	if t.Name() == "" {
		return r.direct(t)
	}
	if open := r.inside[t]; open != nil {
		d := &derived{form: new(form), kind: "object", ref: r.place(t)}
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			d.kind = "array"
		}
		d.form.types = []string{d.kind}
		*open = append(*open, d.form)
		r.refs++
		return d, nil
	}
	if done, ok := r.done[t]; ok {
		own := *done.form // the place may allow null, and the others not
		done.form = &own
		r.refs++
		return &done, nil
	}
	open, before := new([]*form), r.refs
	r.inside[t] = open
	d, err := r.direct(t)
	delete(r.inside, t)
	if err != nil || r.refs == before {
		return d, err
	}
	r.texts = append(r.texts, quote(strings.TrimPrefix(r.place(t), inDefs))+":"+d.text())
	d.ref = r.place(t)
	own := *d.form
	r.done[t] = *d
	d.form = &own
	for _, f := range *open {
		own := *r.done[t].form
		own.types = f.types
		*f = own
	}
	return d, nil
}

const inDefs = "#/$defs/"

// place returns the reference to a type in $defs. Names of generic types have characters that
// endpoints may refuse.
func (r deriver) place(t reflect.Type) string {
	name, ok := r.names[t]
	if !ok {
		plain := strings.Trim(strings.Map(func(c rune) rune {
			if c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
				return c
			}
			return '_'
		}, t.Name()), "_")
		taken := slices.Collect(maps.Values(r.names))
		name = plain
		for n := 2; slices.Contains(taken, name) || name == ""; n++ {
			name = plain + strconv.Itoa(n)
		}
		r.names[t] = name
	}
	return inDefs + name
}

// reference returns the text of a place that refers to a type. Strict mode of the API refuses a
// $ref with other keywords beside it.
func (d *derived) reference() string {
	text := fmt.Sprintf(`{"$ref":%s}`, quote(d.ref))
	if !d.null && d.description == "" {
		return text
	}
	if d.null {
		text += `,{"type":"null"}`
	}
	text = `{"anyOf":[` + text + "]"
	if d.description != "" {
		text += `,"description":` + quote(d.description)
	}
	return text + "}"
}
