// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// reader reads the keywords of one schema.
type reader struct {
	*compiler
	f  *form
	of map[string]any
}

func (r reader) read(keyword string, v any) error {
	for _, known := range []func(string, any) error{r.value, r.bound, r.applicator, r.collection, r.structure} {
		if err := known(keyword, v); err != nil {
			return err
		}
	}
	return nil
}

func (r reader) add(a assertion, err error) error {
	if err == nil {
		r.f.assertions = append(r.f.assertions, a)
	}
	return err
}

// value reads keywords about the value itself.
func (r reader) value(keyword string, v any) (err error) {
	switch keyword {
	case "type":
		r.f.types, err = typeNames(v)
	case "enum":
		r.f.entire = true
		values, err := arrayOf(v)
		return r.add(amongst(values), err)
	case "const":
		r.f.entire = true
		return r.add(amongst([]any{v}), nil)
	case "format":
		s, _ := v.(string)
		r.f.entire = true
		if ok := formats[s]; ok != nil && r.formats {
			return r.add(inFormat(s, ok), nil)
		}
	case "pattern":
		r.f.entire = true
		s, err := textOf(v)
		if err != nil {
			return err
		}
		matches, err := r.expression(s)
		return r.add(matching(s, matches), err)
	case "uniqueItems":
		if on, ok := v.(bool); !ok {
			return errors.New("want a boolean")
		} else if on {
			return r.add(unique(), nil)
		}
	case "$dynamicRef", "unevaluatedItems", "unevaluatedProperties":
		return errors.ErrUnsupported
	case "$id":
		if id, ok := v.(string); !ok || id != r.id {
			return errors.New("want one for the whole schema")
		}
	}
	return err
}

func (r reader) expression(s string) (func(string) bool, error) {
	if r.expressions == nil {
		return nil, errors.ErrUnsupported
	}
	matches, err := r.expressions(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return matches, nil
}

// bound reads keywords whose value is a number.
func (r reader) bound(keyword string, v any) error {
	switch keyword {
	case "minimum":
		return r.number(minimum, v)
	case "maximum":
		return r.number(maximum, v)
	case "exclusiveMinimum":
		return r.number(moreThan, v)
	case "exclusiveMaximum":
		return r.number(lessThan, v)
	case "multipleOf":
		if v == 0.0 {
			return errors.New("want more than 0")
		}
		return r.number(multipleOf, v)
	case "minLength":
		return r.count(characters.atLeast, v)
	case "maxLength":
		return r.count(characters.atMost, v)
	case "minItems":
		return r.count(elements.atLeast, v)
	case "maxItems":
		return r.count(elements.atMost, v)
	case "minProperties":
		return r.count(members.atLeast, v)
	case "maxProperties":
		return r.count(members.atMost, v)
	}
	return nil
}

func (r reader) number(bound func(any) assertion, v any) error {
	if !isNumber(v) {
		return errors.New("want a number")
	}
	return r.add(bound(v), nil)
}

func (r reader) count(bound func(int) assertion, v any) error {
	n, err := wholeOf(v)
	return r.add(bound(n), err)
}

// applicator reads keywords that apply other schemas to the same value.
func (r reader) applicator(keyword string, v any) error {
	switch keyword {
	case "$ref", "allOf", "anyOf", "oneOf", "not", "if":
		r.f.entire = true // what a part of the value may mean depends on these schemas
	}
	switch keyword {
	case "$ref":
		s, err := textOf(v)
		if err != nil {
			return err
		}
		f, err := r.reference(s)
		if err == nil {
			r.f.all = append(r.f.all, f)
			r.beside[r.f] = append(r.beside[r.f], f)
		}
		return err
	case "allOf":
		forms, err := r.list(v)
		r.f.all = append(r.f.all, forms...)
		return err
	case "anyOf":
		forms, err := r.list(v)
		return r.add(anyOf(forms), err)
	case "oneOf":
		r.inverts = true
		forms, err := r.list(v)
		return r.add(oneOf(forms), err)
	case "not":
		r.inverts = true
		f, err := r.same(v)
		return r.add(not(f), err)
	case "if":
		return r.conditional(v)
	case "dependentSchemas", "dependentRequired", "dependencies":
		if (keyword == "dependencies") == r.draft7 {
			return r.dependencies(v)
		}
	}
	return nil
}

// same reads a schema for the same value.
func (r reader) same(v any) (*form, error) {
	f, err := r.compile(v)
	r.beside[r.f] = append(r.beside[r.f], f)
	return f, err
}

func (r reader) list(v any) ([]*form, error) {
	list, err := arrayOf(v)
	if err != nil {
		return nil, err
	}
	forms := make([]*form, len(list))
	for i, e := range list {
		if forms[i], err = r.same(e); err != nil {
			return nil, err
		}
	}
	return forms, nil
}

func (r reader) conditional(v any) error {
	r.inverts = true
	cond, err := r.same(v)
	if err != nil {
		return err
	}
	var branches [2]*form
	for i, k := range []string{"then", "else"} {
		if b := r.of[k]; b != nil {
			if branches[i], err = r.same(b); err != nil {
				return err
			}
		}
	}
	return r.add(when(cond.fits, branches[0], branches[1]), nil)
}

// dependencies reads what the presence of a member requires: other members, or a
// schema.
func (r reader) dependencies(v any) error {
	m, err := objectOf(v)
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(m) {
		if _, isList := m[name].([]any); isList {
			others, err := textsOf(m[name])
			if err := r.add(demanding(name, others), err); err != nil {
				return err
			}
			continue
		}
		f, err := r.same(m[name])
		if err := r.add(when(has(name), f, nil), err); err != nil {
			return err
		}
	}
	return nil
}

// collection reads keywords about elements.
func (r reader) collection(keyword string, v any) (err error) {
	list, isList := v.([]any)
	switch keyword {
	case "items":
		if isList {
			return r.first(list, r.draft7)
		}
		r.f.items, err = r.compile(v)
	case "prefixItems":
		if !isList {
			return errors.New("want an array")
		}
		return r.first(list, !r.draft7)
	case "additionalItems":
		if _, isList := r.of["items"].([]any); isList && r.draft7 {
			r.f.items, err = r.compile(v)
		}
	case "contains":
		return r.contains(v)
	}
	return err
}

func (r reader) first(list []any, counts bool) error {
	if !counts {
		return nil
	}
	for _, e := range list {
		f, err := r.compile(e)
		if err != nil {
			return err
		}
		r.f.first = append(r.f.first, f)
	}
	return nil
}

func (r reader) contains(v any) (err error) {
	low, high := 1, math.MaxInt
	if m := r.of["minContains"]; m != nil {
		if low, err = wholeOf(m); err != nil {
			return err
		}
	}
	if m := r.of["maxContains"]; m != nil {
		r.inverts = true
		if high, err = wholeOf(m); err != nil {
			return err
		}
	}
	f, err := r.compile(v)
	return r.add(containing(f, low, high), err)
}

// structure reads keywords about members.
func (r reader) structure(keyword string, v any) (err error) {
	switch keyword {
	case "required":
		r.f.required, err = textsOf(v)
	case "properties":
		r.f.properties, err = r.forms(v)
	case "patternProperties":
		forms, err := r.forms(v)
		if err != nil {
			return err
		}
		for _, e := range sortedKeys(forms) {
			matches, err := r.expression(e)
			if err != nil {
				return fmt.Errorf("%q: %v", e, err) //nolint:errorlint // ErrUnsupported would leave out this keyword alone, and additionalProperties would refuse too much
			}
			r.f.patterns = append(r.f.patterns, pattern{matches, forms[e]})
		}
	case "additionalProperties":
		r.f.others, err = r.compile(v)
	case "propertyNames":
		f, err := r.compile(v)
		return r.add(named(f), err)
	}
	return err
}

func (r reader) forms(v any) (map[string]*form, error) {
	m, err := objectOf(v)
	if err != nil {
		return nil, err
	}
	forms := make(map[string]*form, len(m))
	for _, name := range sortedKeys(m) {
		if forms[name], err = r.compile(m[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return forms, nil
}

func typeNames(v any) (types []string, err error) {
	if s, ok := v.(string); ok {
		types = []string{s}
	} else if types, err = textsOf(v); err != nil {
		return nil, err
	}
	for _, t := range types {
		if !slices.Contains([]string{"null", "boolean", "string", "integer", "number", "array", "object"}, t) {
			return nil, fmt.Errorf("there is no type %q", t)
		}
	}
	if len(types) == 0 {
		return nil, errors.New("want a type")
	}
	return types, nil
}

func textOf(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	return "", errors.New("want a string")
}

func textsOf(v any) ([]string, error) {
	list, err := arrayOf(v)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(list))
	for i, e := range list {
		if texts[i], err = textOf(e); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func wholeOf(v any) (int, error) {
	if n, ok := v.(float64); ok && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return int(n), nil
	}
	return 0, errors.New("want a whole number")
}

func arrayOf(v any) ([]any, error) {
	if list, ok := v.([]any); ok {
		return list, nil
	}
	return nil, errors.New("want an array")
}

func objectOf(v any) (map[string]any, error) {
	if m, ok := v.(map[string]any); ok {
		return m, nil
	}
	return nil, errors.New("want an object")
}
