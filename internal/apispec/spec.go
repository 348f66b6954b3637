// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package apispec

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Reading says how literally the document is taken. The zero Reading is the
// document as published.
type Reading struct {
	// AnyOf reads oneOf as anyOf: many of the document's unions overlap.
	AnyOf bool
	// Relax drops demands that OpenAI's own clients or examples do not meet.
	Relax bool
	// Closed reports members that no branch of the schema names.
	Closed bool
}

// Lenient is the reading for what this project writes: it accepts what
// the document means and reports what it does not know.
var Lenient = Reading{AnyOf: true, Relax: true, Closed: true}

// Spec is the API document, ready to check against. It is safe for concurrent
// use.
type Spec struct {
	names  []string
	closed bool

	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

// location is the name under which the compiler knows the document.
const location = "mem:api.json"

// New reads an OpenAPI document. Its schemas are compiled when first used.
func New(document []byte, r Reading) (*Spec, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	return newSpec(object(object(object(doc)["components"])["schemas"]), r)
}

func newSpec(schemas map[string]any, r Reading) (*Spec, error) {
	if len(schemas) == 0 {
		return nil, errors.New("no components.schemas")
	}
	if r.Relax {
		relax(schemas)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(location, rewriteAll(schemas, r)); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(schemas))
	return &Spec{names: names, closed: r.Closed, compiler: c}, nil
}

// Names returns the names of the document's schemas, sorted.
func (s *Spec) Names() []string { return slices.Clone(s.names) }

// Check fails the test where body does not fit the named schema, such as
// "CreateResponse", with one line for each fault.
func (s *Spec) Check(t testing.TB, schema string, body []byte) {
	t.Helper()
	faults, err := s.Faults(schema, body)
	if err != nil {
		t.Errorf("%s: %v", schema, err)
	}
	if len(faults) > 0 {
		t.Errorf("not a valid %s:\n\t%s\nin %s", schema, strings.Join(faults, "\n\t"), excerpt(body))
	}
}

// Faults lists what does not fit the named schema, each with its JSON pointer;
// none when body is valid. The error is of a schema that does not exist or of
// a body that is not JSON.
func (s *Spec) Faults(schema string, body []byte) ([]string, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	plain, err := s.compile(plain, schema)
	if err != nil {
		return nil, err
	}
	if faults := validate(plain, v); faults != nil {
		return lines(faults), nil
	}
	if !s.closed {
		return nil, nil
	}
	whole, err := s.compile(whole, schema)
	if err != nil {
		return nil, err
	}
	return unknown(whole, v), nil
}

func (s *Spec) compile(e edition, name string) (*jsonschema.Schema, error) {
	if _, ok := slices.BinarySearch(s.names, name); !ok {
		return nil, fmt.Errorf("no schema of that name")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compiler.Compile(location + "#/" + string(e) + "/" + name)
}

// validate returns nil for a valid value.
func validate(s *jsonschema.Schema, v any) *jsonschema.ValidationError {
	err := s.Validate(v)
	if err == nil {
		return nil
	}
	var fault *jsonschema.ValidationError
	if errors.As(err, &fault) {
		return fault
	}
	panic(err) // Validate returns no other error for decoded JSON
}

func excerpt(body []byte) string {
	const limit = 2000
	if len(body) <= limit {
		return string(body)
	}
	return strings.ToValidUTF8(string(body[:limit]), "") + "…"
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
