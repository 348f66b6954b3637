// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
)

// schema holds the parts of a tool's JSON Schema that are needed to make up
// arguments. It is not sufficient for validation.
type schema struct {
	Type        jsontext.Value     `json:"type"`
	Description string             `json:"description"`
	Properties  map[string]*schema `json:"properties"`
	Required    []string           `json:"required"`
	Enum        []jsontext.Value   `json:"enum"`
	Const       jsontext.Value     `json:"const"`
	Default     jsontext.Value     `json:"default"`
	Examples    []jsontext.Value   `json:"examples"`
	Format      string             `json:"format"`
	Minimum     *float64           `json:"minimum"`
	Items       *schema            `json:"items"`
	MinItems    int                `json:"minItems"`
	AnyOf       []*schema          `json:"anyOf"`
	OneOf       []*schema          `json:"oneOf"`
	AllOf       []*schema          `json:"allOf"`
	Ref         string             `json:"$ref"`
	Defs        map[string]*schema `json:"$defs"`
	Definitions map[string]*schema `json:"definitions"`
}

// UnmarshalJSONFrom reads a schema leniently: true and false are schemas too, and a
// member of an unexpected kind is ignored.
func (s *schema) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil || v.Kind() != '{' {
		return err
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(v, &members, lenient); err != nil {
		return err
	}
	for name, field := range map[string]any{
		"description": &s.Description, "properties": &s.Properties, "required": &s.Required,
		"enum": &s.Enum, "examples": &s.Examples, "format": &s.Format, "minimum": &s.Minimum,
		"items": &s.Items, "minItems": &s.MinItems, "anyOf": &s.AnyOf, "oneOf": &s.OneOf, "allOf": &s.AllOf,
		"$ref": &s.Ref, "$defs": &s.Defs, "definitions": &s.Definitions,
	} {
		if m, ok := members[name]; ok {
			_ = json.Unmarshal(m, field, lenient) // lenient: see above
		}
	}
	s.Type, s.Const, s.Default = members["type"], members["const"], members["default"]
	return nil
}

var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// parseSchema returns nil for a text that is not a schema.
func parseSchema(text item.JSON) *schema {
	s := new(schema)
	if json.Unmarshal([]byte(text), s, lenient) != nil {
		return nil
	}
	return s
}

// is reports whether the schema allows typ.
func (s *schema) is(typ string) bool { return slices.Contains(s.types(), typ) }

func (s *schema) types() []string {
	var one string
	if json.Unmarshal(s.Type, &one) == nil {
		return []string{one}
	}
	var list []string
	_ = json.Unmarshal(s.Type, &list) // missing or unusual: no type
	return list
}

// resolve follows references inside the document and picks the first branch of a
// choice.
func (s *schema) resolve(root *schema) *schema {
	for range 8 { // enough for reasonable schemas, and a limit for circular ones
		switch {
		case s == nil:
			return new(schema)
		case s.Ref != "":
			name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
			s = cmp.Or(root.Defs[name], root.Definitions[name])
		case len(s.AnyOf) > 0:
			s = choice(s.AnyOf)
		case len(s.OneOf) > 0:
			s = choice(s.OneOf)
		case len(s.AllOf) == 1 && len(s.Properties) == 0:
			s = s.AllOf[0]
		default:
			return s
		}
	}
	return new(schema)
}

// choice prefers a branch that is not null.
func choice(list []*schema) *schema {
	for _, s := range list {
		if s != nil && !slices.Equal(s.types(), []string{"null"}) {
			return s
		}
	}
	return list[0]
}

// argument makes up the arguments of one call.
type argument struct {
	root  *schema
	tool  string // its name, in lower case
	hints *hints
	// guessed means that a path was needed and none is known.
	guessed bool
}

// arguments makes up the arguments of a call: the required members and, if the
// schema has one and the conversation names one, a path. known is false if they are
// only a guess.
func arguments(t *item.FunctionTool, h *hints) (text string, known bool) {
	root := parseSchema(t.Parameters)
	if root == nil {
		return "{}", true
	}
	a := argument{root: root, tool: strings.ToLower(t.Name), hints: h}
	v := a.object(root.resolve(root), 0)
	b, err := json.Marshal(v, json.Deterministic(true), lenient)
	if err != nil {
		return "{}", true
	}
	return string(b), !a.guessed
}

// maxNesting limits the values for recursive schemas.
const maxNesting = 6

func (a *argument) object(s *schema, depth int) map[string]any {
	v := map[string]any{}
	for _, name := range s.Required {
		v[name] = a.value(name, s.Properties[name], depth+1)
	}
	return v
}

// value makes up one value for a property.
func (a *argument) value(name string, s *schema, depth int) any {
	s = s.resolve(a.root)
	for _, given := range [][]jsontext.Value{{s.Const}, s.Enum, {s.Default}, s.Examples} {
		if len(given) > 0 && len(given[0]) > 0 && given[0].Kind() != 'n' {
			return given[0]
		}
	}
	switch {
	case depth > maxNesting:
		return nil
	case s.is("string") || len(s.types()) == 0 && len(s.Properties) == 0:
		return a.text(name, s)
	case s.is("null"):
		return nil
	case s.is("integer"), s.is("number"):
		if s.Minimum != nil {
			return math.Ceil(*s.Minimum)
		}
		return 1
	case s.is("boolean"):
		return false
	case s.is("array"):
		list := []any{}
		for range min(s.MinItems, 16) {
			list = append(list, a.value(name, s.Items, depth+1))
		}
		return list
	}
	return a.object(s, depth)
}

// formats are values for the formats of JSON Schema that a tool may require.
var formats = map[string]string{
	"date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "time": "00:00:00Z", "duration": "PT1H",
	"email": "someone@example.com", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uuid": "00000000-0000-4000-8000-000000000000",
}

// text makes up a text: a path or an address from the conversation if the property's
// name suggests one, otherwise the user's question.
func (a *argument) text(name string, s *schema) any {
	name = strings.ToLower(name)
	if v := formats[s.Format]; v != "" {
		return v
	}
	switch {
	case s.Format == "uri" || hasAny(name, "url", "uri", "link"):
		return cmp.Or(a.hints.url, "https://example.com/")
	case hasAny(name, "dir", "folder") || hasAny(name, "path") && hasAny(a.tool, "dir", "folder"):
		if !s.is("null") {
			return "."
		}
		return nil
	case hasAny(name, "path", "file", "document", "image"):
		path := a.hints.path(hasAny(a.tool+" "+name, "image", "picture", "photo"))
		a.guessed = a.guessed || path == ""
		return cmp.Or(path, "README.md")
	case s.is("null"):
		return nil
	}
	return cmp.Or(shorten(80, a.hints.question), "rehearsal")
}

func hasAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}
