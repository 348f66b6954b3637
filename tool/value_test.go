// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
)

type bounded struct {
	A int8     `json:"a" minimum:"1" maximum:"5"`
	B float64  `json:"b" exclusiveMinimum:"0" exclusiveMaximum:"1"`
	C int      `json:"c" multipleOf:"5"`
	D []string `json:"d" minItems:"1" maxItems:"2"`
	E string   `json:"e" format:"date" jsonschema:"a day, month=first, never \"tomorrow\""`
	F string   `json:"f" pattern:"^[a-z]+$"`
	G float64  `json:"g" enum:"0.5,1"`
	H bool     `json:"h" enum:"true"`
}

// G3: every keyword has a tag of its name, and values are held to it. A bound takes
// the place of the one of the type.
func TestSchemaOfTags(t *testing.T) {
	got, err := SchemaOf[bounded]()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":5},"b":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},` +
		`"c":{"type":"integer","multipleOf":5},"d":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2},` +
		`"e":{"type":"string","description":"a day, month=first, never \"tomorrow\"","format":"date"},"f":{"type":"string","pattern":"^[a-z]+$"},` +
		`"g":{"type":"number","enum":[0.5,1]},"h":{"type":"boolean","enum":[true]}},"required":["a","b","c","d","e","f","g","h"],"additionalProperties":false}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	s, err := NewSchema[bounded]()
	if err != nil {
		t.Fatal(err)
	}
	fit := map[string]string{"a": "1", "b": "0.5", "c": "10", "d": `["x"]`, "e": `"2026-12-01"`, "f": `"abc"`, "g": "0.5", "h": "true"}
	text := func(name, value string) string {
		var list []string
		for _, k := range sortedKeys(fit) {
			v := fit[k]
			if k == name {
				v = value
			}
			list = append(list, quote(k)+":"+v)
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	if err := s.Check(text("", "")); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ name, value, problem string }{
		{"a", "0", "a: 0 is less than the minimum 1"}, {"a", "6", "more than the maximum 5"}, {"b", "0", "not more than 0"}, {"b", "1", "not less than 1"},
		{"c", "7", "not a multiple of 5"}, {"d", "[]", "at least 1"}, {"d", `["a","b","c"]`, "at most 2"}, {"e", `"2026-02-30"`, "not a text of the format date"},
		{"f", `"a1"`, "does not match"}, {"g", "0.75", "want one of 0.5, 1"}, {"h", "false", "want true"}, {"e", "null", "type"},
	} {
		if err := s.Check(text(c.name, c.value)); err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s = %s: %v, want %q", c.name, c.value, err, c.problem)
		}
	}
}

// G3: a tag that cannot mean what it says, or that is written for another package, is
// an error that says what to write, and never a panic but from Must.
func TestSchemaOfRefused(t *testing.T) {
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	of := func(typ reflect.Type, tag string) error {
		_, err := inferType(reflect.StructOf([]reflect.StructField{{Name: "F", Type: typ, Tag: reflect.StructTag(tag)}}))
		return err
	}
	text, whole, number, list := reflect.TypeFor[string](), reflect.TypeFor[int8](), reflect.TypeFor[float64](), reflect.TypeFor[[]string]()
	for _, c := range []struct {
		typ       reflect.Type
		tag, want string
	}{
		{text, `validate:"required,email"`, `tags such as enum:"a,b"`},
		{text, `binding:"required"`, "omitempty"},
		{text, `jsonschema:"required,enum=a,enum=b"`, `enum:"a,b"`},
		{text, `jsonschema:"enum=a,enum=b"`, `enum:"a,b"`},
		{text, `jsonschema:"title=x,description=y"`, "must be a description"},
		{text, `jsonschema_description:"x"`, "write it as jsonschema"},
		{text, `jsonschema_extras:"a=b"`, "not read here"},
		{text, `description:"x"`, `jsonschema:"…"`},
		{text, `required:"true"`, "omitempty"},
		{text, `nullable:"true"`, "pointer"},
		{text, `json:"f" minlength:"1"`, "did you mean minLength?"},
		{text, `MaxLength:"1"`, "did you mean maxLength?"},
		{text, `enums:"a"`, ""},
		{text, `jsonschema:" "`, "empty"},
		{text, `minimum:"1"`, "not for a field of type string"},
		{text, `maxItems:"1"`, "not for a field of type string"},
		{text, `minLength:"-1"`, "want a whole number"},
		{text, `minLength:"two"`, "want a whole number"},
		{text, `minLength:"3" maxLength:"2"`, "no value can meet both"},
		{text, `pattern:"(["`, "pattern"},
		{text, `pattern:""`, "empty"},
		{text, `format:"datetime"`, "there is no such format"},
		{text, `enum:"a, b"`, "space"},
		{text, `enum:"a,,b"`, "empty"},
		{text, `enum:""`, "empty"},
		{text, `enum:"a,b,a"`, "twice"},
		{text, `enum:"a,bcd" maxLength:"2"`, "at most 2"},
		{text, `examples:"A" pattern:"^[a-z]$"`, "does not match"},
		{text, `format:"date" default:"soon"`, "format"},
		{whole, `enum:"1,x"`, "not a value of type integer"},
		{whole, `enum:"1,1.5"`, "not a value of type integer"},
		{whole, `enum:"1,300"`, "more than the maximum 127"},
		{whole, `minimum:"0.5"`, "integer"},
		{whole, `maximum:"1000"`, "more than the maximum 127"},
		{whole, `minimum:"one"`, "not a value of type number"},
		{whole, `minLength:"1"`, "not for a field of type integer"},
		{whole, `minimum:"3" maximum:"2"`, "no value can meet both"},
		{number, `exclusiveMinimum:"1" maximum:"1"`, "no value can meet both"},
		{number, `multipleOf:"0"`, "more than 0"},
		{number, `minimum:"NaN"`, "not a value of type number"},
		{number, `pattern:"1"`, "not for a field of type number"},
		{list, `enum:"a,b"`, "JSONSchema"},
		{list, `minItems:"2" maxItems:"1"`, "no value can meet both"},
		{reflect.TypeFor[[2]int](), `minItems:"3"`, ""},
		{reflect.TypeFor[any](), `enum:"a"`, "not for a field of type any"},
		{reflect.TypeFor[struct{}](), `minItems:"1"`, "not for a field of type object"},
		{reflect.TypeFor[colour](), `enum:"red"`, "what JSONSchema returns"},
	} {
		if c.want != "" {
			refused(of(c.typ, c.tag), c.want)
		}
	}
	type wrong struct {
		A string `validate:"email"`
	}
	_, err := SchemaOf[wrong]()
	refused(err, "field A")
	_, err = New("n", "", func(context.Context, wrong) (string, error) { return "", nil })
	refused(err, "field A")
	defer func() {
		if recover() == nil {
			t.Error("Must did not panic")
		}
	}()
	Must("n", "", func(context.Context, wrong) (string, error) { return "", nil })
}

type loop struct {
	Next *loop `json:"next,omitempty"`
}

type embeds struct{ *embeds }

type through struct {
	M map[string][]through `json:"m"`
}

// selfish is a type that is its own pointer.
type selfish *selfish

// G8: types that have no schema, however odd, are errors.
func TestSchemaOfNonsense(t *testing.T) {
	for name, of := range map[string]func() (item.JSON, error){
		"chan":         SchemaOf[chan int],
		"func":         SchemaOf[func()],
		"complex":      SchemaOf[complex64],
		"unsafe":       SchemaOf[struct{ P *chan int }],
		"float keys":   SchemaOf[map[float64]string],
		"struct keys":  SchemaOf[map[struct{ A int }]string],
		"bool keys":    SchemaOf[struct{ M map[bool]int }],
		"own pointer":  SchemaOf[selfish],
		"list of chan": SchemaOf[[]chan int],
		"alien":        SchemaOf[alien],
		"error":        SchemaOf[error],
	} {
		if s, err := of(); err == nil {
			t.Errorf("%s: %s", name, s)
		}
	}
	for name, of := range map[string]func() (item.JSON, error){
		"any": SchemaOf[any], "text": SchemaOf[string], "list": SchemaOf[[]int], "pointer": SchemaOf[*Parent],
		"nothing": SchemaOf[struct{}], "time": SchemaOf[time.Time], "embeds itself": SchemaOf[embeds], "pointers": SchemaOf[***int], "own": SchemaOf[colour], "bytes": SchemaOf[[]byte],
		"raw": SchemaOf[item.JSON], "loop": SchemaOf[loop], "pointer to loop": SchemaOf[*loop], "loop through map": SchemaOf[through], "int keys": SchemaOf[map[int]string],
	} {
		if s, err := of(); err != nil || s.Valid() != nil {
			t.Errorf("%s: %s, %v", name, s, err)
		}
	}
}

// owned says itself what its members are.
type owned struct{ A int }

func (owned) JSONSchema() item.JSON {
	return `{"type":"object","properties":{"A":{"type":"integer","minimum":0}},"required":["A"],"additionalProperties":false}`
}

// G3: a type's own schema is used as it is, also for the whole.
func TestSchemaOfOwner(t *testing.T) {
	got, err := SchemaOf[owned]()
	if want := (owned{}).JSONSchema(); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	in := Must("n", "", func(context.Context, owned) (string, error) { return "", nil })
	if got := in.Definition().(*item.FunctionTool).Parameters; got != (owned{}).JSONSchema() {
		t.Errorf("a tool has %s", got)
	}
}

// G3: a format is checked only if there is one answer.
func TestFormats(t *testing.T) {
	for format, texts := range map[string][2]string{
		"date-time": {"2026-12-01T10:00:00Z 2026-12-01t10:00:00.25+02:00 1998-12-31T23:59:60Z", "2026-12-01 2026-12-01T10:00:00 2026-13-01T10:00:00Z 2026-12-01T25:00:00Z 2026-12-01T10:00:00,5Z 2026-12-01T1:00:00Z"},
		"date":      {"2026-12-01 2024-02-29", "2026-02-29 2026-2-1 26-02-01 tomorrow 2026-12-01T10:00:00Z"},
		"time":      {"10:00:00Z 10:00:00.5-07:00", "10:00 10:00:00 25:00:00Z"},
		"email":     {"a@b.example jörg@b.example a.b+c@d-e.example a@localhost a@[127.0.0.1]", "a @b a@ a@b..example a@-b.example .a@b a@b@c <a@b> a,b@c a@[x]"},
		"uri":       {"https://a.example/b?c#d mailto:a@b urn:isbn:1", "/a a.example https://a.example/{b} http://a%zz é:b"},
		"uuid":      {"123e4567-e89b-12d3-a456-426614174000 123E4567-E89B-12D3-A456-426614174000", "123e4567e89b12d3a456426614174000 123e4567-e89b-12d3-a456-42661417400 x23e4567-e89b-12d3-a456-426614174000"},
		"ipv4":      {"127.0.0.1", "127.0.0 127.0.0.256 ::1 127.0.0.01"},
		"ipv6":      {"::1 2001:db8::1", "127.0.0.1 fe80::1%eth0 ::g"},
		"hostname":  {"a any/thing", ""},
	} {
		s, err := ParseSchema(item.JSON(`{"format":"` + format + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		for i, list := range texts {
			for text := range strings.FieldsSeq(list) {
				if err := s.Check(quote(text)); (err == nil) != (i == 0) {
					t.Errorf("%s %s: %v", format, text, err)
				}
			}
		}
		if err := s.Check("5"); err != nil {
			t.Errorf("%s: a number: %v", format, err)
		}
	}
	// In the schema of somebody else a format is a remark.
	if s, err := compile(`{"format":"date"}`, goExpressions); err != nil || !s.form.fits("tomorrow") {
		t.Error(err)
	}
}

// G3: for random types with tags and random values, Schema accepts what jsonschema-go
// accepts by the schema's text.
func TestSchemaOfProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := taggedType().Draw(t, "type")
		ours, err := inferType(typ)
		if err != nil {
			t.Fatal(err)
		}
		var theirs jsonschema.Schema
		if err := json.Unmarshal([]byte(ours.text), &theirs); err != nil {
			t.Fatalf("%s: %v", ours.text, err)
		}
		validator, err := theirs.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			v := argumentFor(typ, 4).Draw(t, "value")
			b, err := json.Marshal(v, json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &v); err != nil {
				t.Fatal(err)
			}
			problem, want := newSchema(ours).Check(string(b)), validator.Validate(v)
			if strings.Contains(string(b), "null") || want == nil && problem != nil && strings.Contains(problem.Error(), "format") {
				continue // a list may be null here, and there a format is a remark
			}
			if (problem == nil) != (want == nil) {
				t.Fatalf("%s\n%s: %v, jsonschema-go: %v", ours.text, b, problem, want)
			}
		}
	})
}

// taggedType draws structs whose fields have tags that fit.
func taggedType() *rapid.Generator[reflect.Type] {
	tags := []struct {
		typ  reflect.Type
		tags []string
	}{
		{reflect.TypeFor[string](), []string{`enum:"x,y"`, `minLength:"1"`, `maxLength:"0"`, `pattern:"^x$"`, `pattern:"y"`, `format:"date"`, `default:"x"`, ``}},
		{reflect.TypeFor[int](), []string{`minimum:"1"`, `maximum:"100"`, `exclusiveMinimum:"-1" exclusiveMaximum:"128"`, `multipleOf:"64"`, `enum:"1,255"`, ``}},
		{reflect.TypeFor[uint8](), []string{`minimum:"1"`, `maximum:"127"`, `minimum:"2" exclusiveMaximum:"255"`, ``}},
		{reflect.TypeFor[float64](), []string{`minimum:"0.5"`, `multipleOf:"0.5"`, `exclusiveMaximum:"1e9"`, `examples:"1,2.5"`}},
		{reflect.TypeFor[[]string](), []string{`minItems:"1"`, `maxItems:"1"`, `minItems:"2" maxItems:"2"`}},
		{reflect.TypeFor[bool](), []string{`enum:"true"`, `enum:"false"`, `default:"true"`}},
		{reflect.TypeFor[[]colour](), []string{``}},
	}
	return rapid.Custom(func(t *rapid.T) reflect.Type {
		var fields []reflect.StructField
		for i := range rapid.IntRange(1, 4).Draw(t, "fields") {
			of := rapid.SampledFrom(tags).Draw(t, "of")
			tag := fmt.Sprintf(`json:"%c%s" `, 'a'+i, rapid.SampledFrom([]string{"", ",omitzero"}).Draw(t, "option")) + rapid.SampledFrom(of.tags).Draw(t, "tag")
			fields = append(fields, reflect.StructField{Name: string(rune('A' + i)), Type: of.typ, Tag: reflect.StructTag(tag)})
		}
		return reflect.StructOf(fields)
	})
}

// G3: a file with a bad schema gets one error, with the place.
func TestParseSchemaErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "line 1, column 1: not valid JSON",
		"{\n  \"type\": \"object\",\n}": "line 2, column 19: not valid JSON",
		"[]":                            "line 1, column 1: want a JSON Schema, which is an object, got an array",
		"true":                          "got a boolean",
		"{\n \"properties\": {\n  \"a/b\": {\"minimum\": \"1\"}}}": "line 3, column 3: /properties/a~1b: minimum: want a number",
		`{"type":"text"}`: `line 1, column 1: /: type: there is no type "text"`,
		"{\"items\":\n  {\"anyOf\":[{},{\"pattern\":\"(\"}]}}":                     "line 2, column 16: /items/anyOf/1: pattern: it cannot be checked here: error parsing regexp",
		`{"properties":{"a":{"$ref":"http://a.example/s"}}}`:                       "/properties/a: $ref",
		`{"unevaluatedProperties":false}`:                                          "unevaluatedProperties",
		`{"$ref":"#"}`:                                                             "leads back to itself",
		`{"$defs":{"a":{"required":"x"}},"properties":{"b":{"$ref":"#/$defs/a"}}}`: "/$defs/a: required: want an array",
		`{"properties":{"a":5}}`:                                                   "/properties/a: a schema is a number",
		`{"a":1,"a":2}`:                                                            "duplicate",
	} {
		if s, err := ParseSchema(item.JSON(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v, want %q", text, s, err, want)
		}
	}
	s, err := ParseSchema(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"const":1}}}`)
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{`{"a":1}`: true, `{}`: true, `{"a":2}`: false, `[]`: false, ``: false, `{"a":1} x`: false, "```json\n{}\n```": false} {
		if err := s.Check(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// G3: values are decoded exactly.
func TestSchemaDecode(t *testing.T) {
	type exact struct {
		N uint64        `json:"n"`
		D time.Duration `json:"d"`
		L []int         `json:"l"`
		T time.Time     `json:"t,omitzero"`
	}
	s, err := NewSchema[exact]()
	if err != nil {
		t.Fatal(err)
	}
	var v exact
	if err := s.Decode(`{"n":9007199254740993.0,"d":"90s","l":[10.0,1e2]}`, &v); err != nil || v.N != 1<<53+1 || v.D != 90*time.Second || v.L[1] != 100 {
		t.Errorf("%+v, %v", v, err)
	}
	for text, want := range map[string]string{
		`{"n":1.5,"d":"1s","l":[]}`:                  "n: type",
		`{"n":18446744073709551616,"d":"1s","l":[]}`: "/n",
		`{"n":1,"d":"soon","l":[]}`:                  "/d",
		`{"n":1,"d":"1s","l":[],"t":"yesterday"}`:    "/t",
		`{"n":1,"d":"1s","l":[],"m":1}`:              `unknown member "m"`,
		`{"n":1,"d":"1s","l":[]`:                     "not valid JSON",
		"Here it is: {}":                             "not valid JSON",
		"":                                           "empty",
	} {
		if err := s.Decode(text, new(exact)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// G3: strict mode is asked for only where it is possible.
func TestSchemaStrict(t *testing.T) {
	type fits struct {
		A string   `json:"a" enum:"x,y"`
		B *int     `json:"b" minimum:"1"`
		C []string `json:"c" minItems:"1"`
		D struct{} `json:"d"`
		E string   `json:"e" format:"date"`
	}
	if s, err := NewSchema[fits](); err != nil || s.Strict() != nil {
		t.Error(err, s.Strict())
	}
	for want, of := range map[string]func() (*Schema, error){
		`"a" must be required`: NewSchema[struct {
			A int `json:"a,omitempty"`
		}],
		"/properties/A must have a type":   NewSchema[struct{ A any }],
		"/properties/A must have addition": NewSchema[struct{ A map[string]int }],
		"minLength": NewSchema[struct {
			A string `minLength:"1"`
		}],
		"/properties/A/items has the keyword format uri": NewSchema[struct{ A []link }],
		"of an object": NewSchema[[]int],
	} {
		s, err := of()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Strict(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

type link string

func (link) JSONSchema() item.JSON { return `{"type":"string","format":"uri"}` }
