// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/item"
)

// schema is what a function tool's arguments must look like: the text that the
// model is given, and the form that arguments are checked against. A nil form
// takes everything.
type schema struct {
	zero *bool // of an inferred one: see deriver
	text item.JSON
	form *form
}

// compile reads a schema. With an error there still is one, if perhaps without
// a form.
func compile(text item.JSON, expressions expressions) (*schema, error) {
	s := &schema{text: text}
	if err := text.Valid(); err != nil {
		return s, fmt.Errorf("schema: %w", err)
	}
	if !isObject(text) {
		return s, fmt.Errorf("schema: want a JSON object")
	}
	var root any
	err := json.Unmarshal([]byte(text), &root)
	if err == nil {
		s.form, err = formOf(root, expressions)
	}
	if err != nil {
		return s, fmt.Errorf("schema: %w", err)
	}
	return s, nil
}

// compileGiven reads a schema that is ours, so that it must be checkable.
func compileGiven(text item.JSON) (*schema, error) { return compile(text, goExpressions) }

// anyObject is the schema of a tool that does not say what its arguments are.
const anyObject item.JSON = `{"type":"object","properties":{}}`

// schemaOf prepares the schema of a definition that came from outside. Only a
// schema that is not a JSON object is an error.
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

// checkStrict reports what the strict mode of the API would refuse.
func (f *form) checkStrict() error {
	if f == nil || f.never {
		return nil
	}
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
		if err := f.properties[name].checkStrict(); err != nil {
			return err
		}
	}
	if err := f.items.checkStrict(); err != nil {
		return err
	}
	return f.others.checkStrict()
}
