// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// schema describes the arguments of a function tool: the text for the model, and the
// form for checking arguments. A nil form accepts everything.
type schema struct {
	zero  *bool // for an inferred schema: see deriver
	plain bool
	given bool // a type provides it, or a part of it
	text  item.JSON
	form  *form
}

// compile reads a schema. It returns a schema even with an error, but perhaps
// without a form.
func compile(text item.JSON, expressions expressions) (*schema, error) {
	s := &schema{text: text}
	if err := text.Valid(); err != nil {
		return s, fmt.Errorf("schema: %w", err)
	}
	if !isObject(text) {
		return s, fmt.Errorf("schema: want a JSON object")
	}
	root, err := parseValue(string(text))
	if err == nil {
		s.form, err = formOf(root, expressions)
	}
	if err != nil {
		return s, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

// compileGiven reads the schema of [Parameters]; its patterns are checked too.
func compileGiven(text item.JSON) (*schema, error) {
	s, err := compile(text, goExpressions)
	if err == nil && (s.form.never || len(s.form.types) > 0 && !slices.Contains(s.form.types, "object")) {
		err = errors.New("schema: it allows no object, and the arguments of a call are one")
	}
	return s, err
}

// anyObject is the schema of a tool that does not describe its arguments.
const anyObject item.JSON = `{"type":"object","properties":{}}`

// schemaOf prepares the schema of an external definition. The only error is a schema
// that is not a JSON object.
func schemaOf(def *item.FunctionTool, expressions expressions) (*schema, error) {
	if def.Parameters == "null" {
		return &schema{text: anyObject}, nil
	}
	s, err := compile(def.Parameters, expressions)
	if err != nil && (def.Parameters.Valid() != nil || !isObject(def.Parameters)) {
		return nil, err
	}
	return s, nil
}

func isObject(j item.JSON) bool {
	return strings.HasPrefix(strings.TrimLeft(string(j), " \t\r\n"), "{")
}

// checkStrict returns an error for a form that the API's strict mode would refuse.
func (f *form) checkStrict() error { return f.strictBelow(map[*form]bool{}) }

// strictBelow checks the forms that were not seen yet: the form of a type that contains itself
// leads back to itself.
func (f *form) strictBelow(seen map[*form]bool) error {
	if f == nil || f.never || seen[f] {
		return nil
	}
	seen[f] = true
	if slices.Contains(f.types, "object") {
		if f.others == nil || !f.others.never {
			return fmt.Errorf("strict: every object of the schema must have additionalProperties false")
		}
		for _, name := range sortedKeys(f.properties) {
			if !slices.Contains(f.required, name) {
				return fmt.Errorf("strict: property %q must be required; a pointer without omitzero may be null instead", name)
			}
		}
	}
	for _, name := range sortedKeys(f.properties) {
		if err := f.properties[name].strictBelow(seen); err != nil {
			return err
		}
	}
	if err := f.items.strictBelow(seen); err != nil {
		return err
	}
	return f.others.strictBelow(seen)
}

// formOf reads a JSON Schema of draft 2020-12, or of draft 7 if it says so. It skips
// keywords that do not affect validity, and keywords that are null.
//
// It also skips keywords that it cannot check: references to other documents and to
// anchors, dynamic references, unevaluated members and elements, and patterns that
// expressions, which may be nil, cannot compile. The error names the first of them.
// The form then accepts more than the schema, never less; if skipping a keyword
// could make it accept less, there is no form.
func formOf(root any, expressions expressions) (*form, error) {
	return (&compiler{expressions: expressions}).form(root)
}

// ownForm reads a schema that the program itself wrote: in tags, in a method
// JSONSchema, or to hold an answer to it. In such a schema a format is a demand. By
// the standard it is only a remark, and so it is in the schemas of others.
func ownForm(root any) (*form, error) {
	return (&compiler{expressions: goExpressions, formats: true}).form(root)
}

func (c *compiler) form(root any) (*form, error) {
	c.root, c.refs, c.beside = root, make(map[string]*form), make(map[*form][]*form)
	if m, ok := root.(map[string]any); ok {
		version, _ := m["$schema"].(string)
		c.draft7 = strings.Contains(version, "://json-schema.org/draft-07/schema")
		c.id, _ = m["$id"].(string)
	}
	f, err := c.reference("#")
	if err == nil {
		err = c.checkBeside()
	}
	if err != nil || c.passed != nil && c.inverts {
		return nil, cmp.Or(err, c.passed)
	}
	return f, c.passed
}

// expressions compiles regular expressions. Callers pass nil to leave patterns
// unchecked.
type expressions func(string) (matches func(string) bool, err error)

// goExpressions compiles Go's expressions. Most patterns are valid in Go.
func goExpressions(s string) (func(string) bool, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	return re.MatchString, nil
}

type compiler struct {
	expressions expressions
	formats     bool // check formats
	root        any
	id          string
	draft7      bool
	refs        map[string]*form  // by location in the document
	beside      map[*form][]*form // the forms that are tried on the same value as a form
	passed      error             // the first keyword that could not be checked
	inverts     bool              // a form that accepts more can make another one accept less
}

// compile reads a schema.
func (c *compiler) compile(v any) (*form, error) {
	f := new(form)
	return f, c.fill(f, v)
}

// fill reads a schema into f, to which references may already point.
func (c *compiler) fill(f *form, v any) error {
	switch v := v.(type) {
	case bool:
		f.never = !v
		return nil
	case map[string]any:
		c.object(f, v)
		return nil
	}
	return fmt.Errorf("a schema is %s: want an object or a boolean", kindName(v))
}

// object reads a schema keyword by keyword. An unsupported keyword has no effect. An
// invalid schema has no effect at all, because its keywords depend on each other.
func (c *compiler) object(f *form, v map[string]any) {
	keywords := sortedKeys(v)
	if v["$ref"] != nil && c.draft7 {
		keywords = []string{"$ref"} // in draft 7, $ref overrides its siblings
	}
	r := reader{c, f, v}
	for _, k := range keywords {
		if v[k] == nil && k != "const" && k != "type" {
			continue
		}
		err := r.read(k, v[k])
		if err == nil {
			continue
		}
		if c.passed == nil {
			c.passed = fmt.Errorf("%s: %w", k, err)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			*f = form{}
			delete(c.beside, f)
			return
		}
	}
}

// reference returns the form for a location in the document.
func (c *compiler) reference(ref string) (*form, error) {
	place, ok := strings.CutPrefix(strings.TrimPrefix(ref, c.id), "#")
	if place, _ = url.PathUnescape(place); !ok || place != "" && place[0] != '/' {
		return nil, fmt.Errorf("%q: %w", ref, errors.ErrUnsupported)
	}
	if f := c.refs[place]; f != nil {
		return f, nil
	}
	v, err := find(c.root, place)
	if err != nil {
		return nil, err
	}
	f := new(form)
	c.refs[place] = f
	return f, c.fill(f, v)
}

// find follows a JSON pointer.
func find(v any, pointer string) (any, error) {
	names := strings.Split(pointer, "/")
	for _, name := range names[1:] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		found := false
		switch in := v.(type) {
		case map[string]any:
			v, found = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if found = err == nil && i >= 0 && i < len(in); found {
				v = in[i]
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no %s", pointer)
		}
	}
	return v, nil
}

// maxBeside is the maximum number of forms that are tried on one value.
const maxBeside = 10_000

// checkBeside returns an error if forms would be tried on one value forever or for
// too long: a few references that branch can make millions.
func (c *compiler) checkBeside() error {
	const counting = -1
	counts := make(map[*form]int)
	var count func(f *form) (int, error)
	count = func(f *form) (int, error) {
		if n := counts[f]; n == counting {
			return 0, errors.New("a $ref leads back to itself")
		} else if n > 0 {
			return n, nil
		}
		counts[f] = counting
		sum := 1
		for _, next := range c.beside[f] {
			n, err := count(next)
			if err != nil {
				return 0, err
			}
			if sum += n; sum > maxBeside {
				return 0, fmt.Errorf("more than %d schemas are for one value", maxBeside)
			}
		}
		counts[f] = sum
		return sum, nil
	}
	for f := range c.beside {
		if _, err := count(f); err != nil {
			return err
		}
	}
	return nil
}
