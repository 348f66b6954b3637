// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
)

// hasNoJSON is the end of errors for types such as channels.
const hasNoJSON = ` has no JSON: write json:"-" for a field, or use another type`

// jsonCheck looks for parts of a type that no JSON can stand for, whatever they hold. What
// an interface holds is not known before the call.
type jsonCheck struct {
	own  func(reflect.Type) bool // the type has its own JSON
	seen map[reflect.Type]bool
}

// checkInput returns an error if no JSON can be decoded into a type.
func checkInput(t reflect.Type) error {
	if err := cmp.Or(membersOf(t), (jsonCheck{decodesItself, map[reflect.Type]bool{}}).of(t)); err != nil {
		return fmt.Errorf("input %w", ofType(t, err))
	}
	return nil
}

// checkResult returns an error if values of a type cannot be results.
func checkResult(t reflect.Type) error {
	if err := cmp.Or(membersOf(t), (jsonCheck{encodesItself, map[reflect.Type]bool{reflect.TypeFor[Result](): true}}).of(t)); err != nil {
		return fmt.Errorf("result %w", ofType(t, err))
	}
	return nil
}

// encodesItself reports whether a type has its own way to write JSON.
func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[json.MarshalerTo]()) || isText(t)
}

func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// of returns an error for a type.
func (c jsonCheck) of(t reflect.Type) error {
	if c.seen[t] || c.own(t) {
		return nil
	}
	c.seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("type %v%s", t, hasNoJSON)
	case reflect.Pointer:
		return c.of(t.Elem())
	case reflect.Slice, reflect.Array:
		if err := c.of(t.Elem()); err != nil {
			return fmt.Errorf("element: %w", err)
		}
	case reflect.Map:
		switch k := t.Key(); k.Kind() {
		case reflect.Struct, reflect.Array, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.Bool:
			if !isText(k) {
				return fmt.Errorf("map key %v is not text", k)
			}
		}
		if err := c.of(t.Elem()); err != nil {
			return fmt.Errorf("map value: %w", err)
		}
	case reflect.Struct:
		fields, _ := fieldsOf(t)
		for _, f := range fields {
			if err := c.of(f.Type); err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
	}
	return nil
}

// membersOf returns an error for a struct whose fields are all unexported: nothing of it is JSON.
// Inside of other types such a struct may be behind a pointer that is always nil.
func membersOf(t reflect.Type) error {
	for t.Kind() == reflect.Pointer && t.Elem() != t {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.NumField() == 0 || decodesItself(t) || encodesItself(t) {
		return nil
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			return nil
		}
	}
	return fmt.Errorf("type %v has no exported fields, so nothing of it is JSON: begin their names with capital letters, or use another type", t)
}
