// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// Schema is a JSON Schema that JSON texts can be checked against, such as the answer
// of a model. [NewSchema] infers one from a Go type, and [ParseSchema] reads one. A
// Schema does not change and may be used concurrently. The zero Schema has no text and
// accepts all JSON.
type Schema struct {
	of     *schema
	object bool   // it accepts objects alone
	kind   string // the one type that its text names
	strict error  // why strict mode refuses it
}

func newSchema(of *schema) *Schema {
	s := &Schema{of: of, object: of.form != nil && slices.Equal(of.form.types, []string{"object"})}
	s.strict = s.findStrict()
	return s
}

// inner returns the schema, also of the zero Schema and of a nil pointer.
func (s *Schema) inner() *schema {
	if s == nil || s.of == nil {
		return new(schema)
	}
	return s.of
}

// SchemaOf returns the JSON Schema of a Go type, as [New] infers it for the input of
// a tool: with the same tags, and an error for the same types. The type may also be a
// list, a text, a number or a boolean.
func SchemaOf[T any]() (item.JSON, error) {
	s, err := NewSchema[T]()
	if err != nil {
		return "", err
	}
	return s.JSON(), nil
}

// NewSchema returns the schema of a Go type for checking values; see [SchemaOf] for
// its text. Its [Schema.Decode] reads values of the type.
func NewSchema[T any]() (*Schema, error) {
	t := reflect.TypeFor[T]()
	s, err := inferType(t)
	err = cmp.Or(err, membersOf(t))
	if err == nil && t.Kind() != reflect.Interface {
		err = s.checkZero(*new(T))
	}
	if errors.Is(err, errOwnJSON) {
		err = fmt.Errorf("%w: give it a method JSONSchema() item.JSON, or use another type, such as string", err)
	}
	if err != nil {
		return nil, ofType(t, err)
	}
	return newSchema(s), nil
}

// ParseSchema reads a JSON Schema of draft 2020-12, or of draft 7 if it says so. A
// keyword that cannot be checked here is an error, with its place in the text:
// references to other documents, unevaluated members, and patterns that Go's package
// regexp cannot read. Of the formats, date-time, date, time, email, uri, uuid, ipv4
// and ipv6 are checked; others are accepted and not checked.
func ParseSchema(text item.JSON) (*Schema, error) {
	root, err := parseValue(string(text))
	if err != nil {
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("%s: not valid JSON: %w", lineOf(text, syntax.ByteOffset), syntax.Err)
		}
		return nil, err
	}
	if _, ok := root.(map[string]any); !ok {
		return nil, fmt.Errorf("%s: want a JSON Schema, which is an object, got %s", lineOf(text, 0), kindName(root))
	}
	f, err := ownForm(root)
	if err != nil {
		return nil, faultOf(text, root, err)
	}
	return newSchema(&schema{text: text, form: f}), nil
}

// faultOf adds the place to the error of a schema.
func faultOf(text item.JSON, root any, err error) error {
	if pointer, cause := fault(root, root, ""); cause != nil {
		why := strings.Replace(cause.Error(), errors.ErrUnsupported.Error(), "it cannot be checked here", 1)
		return fmt.Errorf("%s: %s: %s", lineOf(text, offsetOf(text, pointer)), cmp.Or(pointer, "/"), why)
	}
	return err
}

// fault returns the place of the innermost schema that is invalid, and why.
func fault(root, v any, pointer string) (string, error) {
	m, ok := v.(map[string]any)
	if !ok {
		if _, isBool := v.(bool); !isBool {
			return pointer, fmt.Errorf("a schema is %s: want an object or a boolean", kindName(v))
		}
		return "", nil
	}
	for _, name := range sortedKeys(m) {
		at := pointer + "/" + escapePointer(name)
		switch name {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			inner, _ := m[name].(map[string]any)
			for _, key := range sortedKeys(inner) {
				if at, err := fault(root, inner[key], at+"/"+escapePointer(key)); err != nil {
					return at, err
				}
			}
		case "items", "prefixItems", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "contains", "additionalProperties", "additionalItems", "propertyNames":
			list, isList := m[name].([]any)
			if !isList && m[name] != nil {
				if at, err := fault(root, m[name], at); err != nil {
					return at, err
				}
			}
			for i, e := range list {
				if at, err := fault(root, e, fmt.Sprintf("%s/%d", at, i)); err != nil {
					return at, err
				}
			}
		}
	}
	// The parts are valid, so an error is about this schema.
	c := compiler{root: root, expressions: goExpressions, formats: true, refs: make(map[string]*form), beside: make(map[*form][]*form)}
	_, err := c.compile(v)
	if err == nil {
		err = c.checkBeside()
	}
	if err == nil {
		err = c.passed
	}
	return pointer, err
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// offsetOf returns the offset of the value that a JSON pointer names.
func offsetOf(text item.JSON, pointer string) int64 {
	dec := jsontext.NewDecoder(strings.NewReader(string(text)))
	for {
		before := dec.InputOffset()
		if _, err := dec.ReadToken(); err != nil {
			return 0
		}
		if string(dec.StackPointer()) == pointer { // the pointer of a member is that of its name too
			rest := string(text[before:])
			return before + int64(len(rest)-len(strings.TrimLeft(rest, " \t\r\n,:")))
		}
	}
}

// lineOf returns an offset as a line and a column, both from 1.
func lineOf(text item.JSON, offset int64) string {
	before := string(text[:min(max(offset, 0), int64(len(text)))])
	return fmt.Sprintf("line %d, column %d", strings.Count(before, "\n")+1, len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))+1)
}

// JSON returns the text of the schema.
func (s *Schema) JSON() item.JSON { return s.inner().text }

// Object reports whether the schema accepts objects alone.
func (s *Schema) Object() bool { return s != nil && s.object }

// Kind returns the type of JSON that the schema names for the whole, such as "object" or
// "array", or "" if it names none or several.
func (s *Schema) Kind() string {
	if s == nil {
		return ""
	}
	return s.kind
}

// Check returns an error if a text is not JSON that fits the schema. The error
// describes all problems in words that a model can act on. Numbers are compared
// exactly, whatever their number of digits.
func (s *Schema) Check(text string) error {
	if jsontext.Value(text).IsValid() {
		if _, fits := s.inner().form.skim(text, 0); fits {
			return nil
		}
	}
	v, err := parseValue(text)
	if err != nil {
		problem, _ := syntaxProblem(text, err)
		if strings.TrimSpace(text) == "" {
			problem = "it is empty; want JSON"
		}
		return errors.New(problem)
	}
	if problem := s.inner().form.explain(v); problem != "" {
		return errors.New(problem)
	}
	return nil
}

// Decode checks a text, and stores its value in place of what into points to, which
// holds anything after an error. Whole numbers
// are stored exactly, also if they are written as 10.0, and a [time.Duration] is a
// text such as 90s. A value that does not fit into the Go type is an error.
func (s *Schema) Decode(text string, into any) error {
	if s.inner().unmarshal([]byte(text), into) == nil {
		if _, fits := s.inner().form.skim(text, 0); fits {
			return nil
		}
	}
	if v := reflect.ValueOf(into); v.Kind() == reflect.Pointer && !v.IsNil() {
		v.Elem().SetZero()
	}
	if err := s.Check(text); err != nil {
		return err
	}
	return s.DecodePartial(text, into)
}

// DecodePartial stores the value of a text of [Schema.Partial] in what into points to.
// It does not check the text against the schema.
func (s *Schema) DecodePartial(text string, into any) error {
	err := s.inner().unmarshal([]byte(text), into)
	if err == nil || s.inner().unmarshal(plainIntegers(text), into) == nil {
		return nil
	}
	return errors.New(decodeProblem(err))
}

// Strict returns why the strict mode of the API refuses the schema, or nil. In strict
// mode the endpoint forces the model to follow the schema. It accepts an object in
// which every property is required and no others are allowed, and a part of JSON
// Schema that does not include minLength, maxLength, default, examples and maps.
func (s *Schema) Strict() error {
	if !s.Object() {
		return errors.New("the schema must be of an object")
	}
	return s.strict
}

func (s *Schema) findStrict() error {
	root, err := parseValue(string(s.inner().text))
	if err != nil {
		return err
	}
	m, _ := root.(map[string]any)
	// The form of a type that implements SchemaOwner does not say its type.
	s.kind, _ = m["type"].(string)
	s.object = s.object || s.kind == "object"
	if m["anyOf"] != nil {
		return errors.New("the schema of the whole must not be an anyOf")
	}
	return strictProblem(root, "")
}

// strictKeywords are the keywords of strict mode, and strictFormats its formats.
var (
	strictKeywords = []string{
		"type", "properties", "required", "additionalProperties", "items", "enum", "const", "title", "description", "anyOf", "$ref", "$defs", "definitions",
		"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "$schema",
	}
	strictFormats = []string{"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)

// strictProblem returns why strict mode refuses a part of a schema, or nil.
func strictProblem(v any, at string) error {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 || m["type"] == nil && m["$ref"] == nil && m["anyOf"] == nil && m["enum"] == nil && m["const"] == nil {
		return fmt.Errorf("%s must have a type", cmp.Or(at, "/"))
	}
	for _, name := range sortedKeys(m) {
		format, _ := m[name].(string)
		if !slices.Contains(strictKeywords, name) || name == "format" && !slices.Contains(strictFormats, format) {
			return fmt.Errorf("%s has the keyword %s, which strict mode does not have", cmp.Or(at, "/"), strings.TrimSpace(name+" "+format))
		}
	}
	properties, _ := m["properties"].(map[string]any)
	if types, _ := m["type"].([]any); m["type"] == "object" || slices.Contains(types, any("object")) {
		if m["additionalProperties"] != false {
			return fmt.Errorf("%s must have additionalProperties false", cmp.Or(at, "/"))
		}
		required, _ := m["required"].([]any)
		for _, name := range sortedKeys(properties) {
			if !slices.Contains(required, any(name)) {
				return fmt.Errorf("%s: property %q must be required; a pointer without omitzero may be null instead", cmp.Or(at, "/"), name)
			}
		}
	}
	for _, inside := range []string{"properties", "$defs", "definitions"} {
		inner, _ := m[inside].(map[string]any)
		for _, name := range sortedKeys(inner) {
			if err := strictProblem(inner[name], at+"/"+inside+"/"+escapePointer(name)); err != nil {
				return err
			}
		}
	}
	if items, ok := m["items"]; ok {
		if err := strictProblem(items, at+"/items"); err != nil {
			return err
		}
	}
	list, _ := m["anyOf"].([]any)
	for i, e := range list {
		if err := strictProblem(e, fmt.Sprintf("%s/anyOf/%d", at, i)); err != nil {
			return err
		}
	}
	return nil
}
