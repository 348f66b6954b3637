// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// T13: random schemas and random arguments: a form accepts exactly what the
// validator of jsonschema-go accepts, and says why not.
func TestKeywordsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema := anySchema(3).Draw(t, "schema")
		defs := map[string]any{"x": anySchema(0).Draw(t, "x"), "y/z": map[string]any{"items": map[string]any{"$ref": "#/$defs/y~1z"}, "type": []any{"array", "null"}}}
		if m, ok := schema.(map[string]any); ok {
			m["$defs"] = defs
		}
		text, err := json.Marshal(schema, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		validator, err := resolve(text)
		if err != nil {
			t.Skip(err)
		}
		var root any
		if err := json.Unmarshal(text, &root); err != nil {
			t.Fatal(err)
		}
		f, err := formOf(root, goExpressions)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		// Without expressions it takes more, never less.
		wide, err := formOf(root, nil)
		if err != nil && !strings.Contains(string(text), `"pattern`) {
			t.Fatalf("%s: without expressions: %v", text, err)
		}
		for range 20 {
			v := jsonValue(3).Draw(t, "value")
			if strings.Contains(string(text), "multipleOf") && strings.Contains(fmt.Sprint(v), "1e+300") {
				continue // the validator divides floats, whose quotient is always whole here
			}
			compare(t, f, validator, v)
			if f.fits(v) && !wide.fits(v) {
				t.Fatalf("%s: without expressions %v does not fit", text, v)
			}
		}
	})
}

func resolve(text []byte) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

func anySchema(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 9).Draw(t, "plain") == 0 {
			return rapid.Bool().Draw(t, "boolean")
		}
		m := make(map[string]any)
		keywords := []string{"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
			"minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required",
			"dependentRequired", "description"}
		if depth > 0 {
			keywords = append(keywords, "properties", "properties", "patternProperties", "additionalProperties", "propertyNames", "items",
				"prefixItems", "contains", "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "$ref")
		}
		for _, k := range rapid.SliceOfN(rapid.SampledFrom(keywords), 0, 4).Draw(t, "keywords") {
			keyword(t, m, k, depth)
		}
		return m
	})
}

// keyword draws a keyword's value, and those of keywords that belong to it.
func keyword(t *rapid.T, m map[string]any, k string, depth int) {
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	sub := rapid.Deferred(func() *rapid.Generator[any] { return anySchema(depth - 1) })
	list := rapid.Map(rapid.SliceOfN(sub, 1, 3), func(v []any) any { return v })
	forms := rapid.Map(rapid.MapOfN(names, sub, 0, 2), func(v map[string]any) any { return v })
	texts := rapid.Map(rapid.SliceOfN(rapid.Map(names, func(s string) any { return s }), 0, 2), func(v []any) any { return v })
	types := rapid.Map(rapid.SampledFrom([]string{"null", "boolean", "string", "integer", "number", "array", "object"}), func(s string) any { return s })
	var g *rapid.Generator[any]
	switch k {
	case "type":
		g = rapid.OneOf(types, rapid.Map(rapid.SliceOfN(types, 1, 3), func(v []any) any { return v }))
	case "enum":
		g = rapid.Map(rapid.SliceOfN(jsonValue(1), 0, 4), func(v []any) any { return v })
	case "const":
		g = jsonValue(1)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		g = rapid.SampledFrom([]any{-3.0, 0.0, 1.0, 1.5, 300.0})
	case "multipleOf":
		g = rapid.SampledFrom([]any{1.0, 1.5, 0.01, 7.0})
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		g = rapid.SampledFrom([]any{0.0, 1.0, 2.0})
	case "pattern":
		g = rapid.SampledFrom([]any{"x", "^$", "^[a-z]+$"})
	case "uniqueItems":
		g = rapid.SampledFrom([]any{true, false})
	case "required":
		g = texts
	case "dependentRequired":
		g = rapid.Map(rapid.MapOfN(names, texts, 0, 2), func(v map[string]any) any { return v })
	case "properties", "dependentSchemas":
		g = forms
	case "patternProperties":
		m[k] = map[string]any{rapid.SampledFrom([]string{"a", "^[bc]$", "."}).Draw(t, "pattern"): sub.Draw(t, k)}
		return
	case "additionalProperties", "propertyNames", "items", "not":
		g = sub
	case "prefixItems", "allOf", "anyOf", "oneOf":
		g = list
	case "contains":
		for _, n := range []string{"minContains", "maxContains"} {
			if rapid.Bool().Draw(t, n) {
				m[n] = float64(rapid.IntRange(0, 2).Draw(t, "number"))
			}
		}
		g = sub
	case "if":
		for _, b := range []string{"then", "else"} {
			if rapid.Bool().Draw(t, b) {
				m[b] = sub.Draw(t, b)
			}
		}
		g = sub
	case "$ref":
		g = rapid.SampledFrom([]any{"#/$defs/x", "#/$defs/y~1z"})
	case "description":
		g = rapid.Just[any]("text")
	}
	m[k] = g.Draw(t, k)
}

// The tests of the JSON Schema organisation, as far as they are about what is
// checked here: what a schema forbids is refused unless something in it was
// passed over, and what it allows never is.
func TestSuite(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	dir := filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata")
	if _, serr := os.Stat(dir); err != nil || serr != nil {
		t.Skip("the sources of jsonschema-go are not here")
	}
	for draft, version := range map[string]string{
		"draft2020-12": "https://json-schema.org/draft/2020-12/schema", "draft7": "http://json-schema.org/draft-07/schema#",
	} {
		files, _ := filepath.Glob(filepath.Join(dir, draft, "*.json"))
		cases, passed := 0, 0
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var groups []struct {
				Description string
				Schema      any
				Tests       []struct {
					Description string
					Data        any
					Valid       bool
				}
			}
			if err := json.Unmarshal(b, &groups, json.MatchCaseInsensitiveNames(true)); err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				if m, ok := g.Schema.(map[string]any); ok && m["$schema"] == nil {
					m["$schema"] = version
				}
				f, err := formOf(g.Schema, goExpressions)
				for _, c := range g.Tests {
					cases++
					if err != nil {
						passed++
					}
					if fits := f.fits(c.Data); fits != c.Valid && (!fits || err == nil) {
						t.Errorf("%s: %s: %s: fits %v, %v", filepath.Base(file), g.Description, c.Description, fits, err)
					}
				}
			}
		}
		t.Logf("%s: %d cases, %d of them of schemas that are checked in part", draft, cases, passed)
		if cases < 500 || passed > cases/2 {
			t.Errorf("%s: %d cases, %d in part", draft, cases, passed)
		}
	}
}

// What cannot be checked is passed over, and the rest is not; a schema that
// would take less for it is passed over whole. A program cannot be made to
// recurse for ever.
func TestPassedOver(t *testing.T) {
	forks := `{"$ref":"#/$defs/0","$defs":{`
	for i := range 40 {
		forks += fmt.Sprintf(`"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%[2]d"}]},`, i, i+1)
	}
	forks += `"40":false}}`
	for _, c := range []struct {
		schema     string
		problem    string
		takes, not string
	}{
		{`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"}}}`, "pattern", `{"a":"x"}`, `{"a":1}`},
		{`{"type":"object","properties":{"a":{"$ref":"https://example.com/a"},"b":{"type":"integer"}}}`, "$ref", `{"a":1,"b":1}`, `{"b":"1"}`},
		{`{"type":"object","properties":{"a":{"type":"any"},"b":{"type":"integer"}}}`, "no type", `{"a":1,"b":1}`, `{"b":"1"}`},
		{`{"type":"object","unevaluatedProperties":false,"required":["a"]}`, "unevaluated", `{"a":1,"b":1}`, `{"b":"1"}`},
		{`{"type":"object","properties":{"a":{"properties":[],"required":["b"],"additionalProperties":false}},"required":["a"]}`, "properties", `{"a":{"c":1}}`, `{}`},
		{`{"patternProperties":{"(?!x)":{}},"additionalProperties":false}`, "patternProperties", `{"a":{"c":1}}`, ``},
		{`{"oneOf":[{"pattern":"(?!x)"},{"type":"string"}]}`, "pattern", `"x"`, ``},
		{`{"not":{"$ref":"#nowhere"}}`, "$ref", `1`, ``},
		{`{"$ref":"#"}`, "leads back", `1`, ``},
		{`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`, "leads back", `1`, ``},
		{forks, "more than 10000 schemas", `1`, ``},
		{`{"$ref":"#/$defs/none","type":"object"}`, "there is no", `1`, ``},
		{`{"type":"object","required":true}`, "required", `1`, ``},
		{`{"type":"object","minProperties":1.5}`, "minProperties", `1`, ``},
	} {
		s, err := compile(item.JSON(c.schema), goExpressions)
		if err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v, want %s", c.schema, err, c.problem)
		}
		var v any
		if err := json.Unmarshal([]byte(c.takes), &v); err != nil || !s.form.fits(v) {
			t.Errorf("%s: %s is refused, %v", c.schema, c.takes, err)
		}
		if c.not == "" {
			continue
		}
		v = nil
		if err := json.Unmarshal([]byte(c.not), &v); err != nil || s.form.fits(v) {
			t.Errorf("%s: %s is accepted, %v", c.schema, c.not, err)
		}
	}
}

// T13: a set checks the arguments of somebody else's tool but for patterns, and
// those of a raw one whole.
func TestPatternsOfForeignTools(t *testing.T) {
	def := &item.FunctionTool{Name: "f", Parameters: `{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}}`}
	run := func(context.Context, Call) (Result, error) { return Result{}, nil }
	raw, err := Raw(def, run)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool Tool
		args string
		want Failure
	}{
		{foreign{def, run}, `{"a":"y"}`, NoFailure},
		{foreign{def, run}, `{"a":1}`, BadArguments},
		{raw, `{"a":"y"}`, BadArguments},
		{raw, `{"a":"x"}`, NoFailure},
	} {
		if o := mustSet(t, c.tool).Invoke(t.Context(), Call{Name: "f", Arguments: c.args}, output.Policy{}); o.Failure != c.want {
			t.Errorf("%T %s: %+v", c.tool, c.args, o)
		}
	}
}

// T13: what a model reads of each keyword.
func TestExplained(t *testing.T) {
	for _, c := range []struct{ schema, args, want string }{
		{`{"properties":{"a":{"type":["null","integer"]}}}`, `{"a":[1,"x"]}`, `a: type: [1,"x"] has type "array", want one of "null, integer"`},
		{`{"properties":{"a":{"enum":["up","down"]}}}`, `{"a":"left"}`, `a: got "left", want one of "up", "down"`},
		{`{"properties":{"a":{"const":1}}}`, `{"a":2}`, `a: got 2, want 1`},
		{`{"properties":{"a":{"minimum":1,"multipleOf":2}}}`, `{"a":-1}`, `a: -1 is less than the minimum 1; a: -1 is not a multiple of 2`},
		{`{"properties":{"a":{"maxLength":3,"pattern":"^a"}}}`, `{"a":"long"}`, `a: it has 4 characters: want at most 3; a: pattern: "long" does not match ^a`},
		{`{"properties":{"a":{"minItems":1,"items":{"minProperties":1}}}}`, `{"a":[{}]}`, `a[0]: it has 0 members: want at least 1`},
		{`{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,2,1.0]}`, `a: elements 0 and 2 are equal`},
		{`{"anyOf":[{"required":["a"]},{"properties":{"b":{"type":"string"}}}]}`, `{"b":1}`, `anyOf: it fits none: (1) missing member "a" (2) b: type: 1 has type "integer", want "string"`},
		{`{"oneOf":[{},{"type":"object"}]}`, `{}`, `oneOf: it fits both (1) and (2)`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `missing member "b", which "a" asks for`},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, `the name of member "ab": it has 2 characters: want at most 1`},
		{`{"properties":{"a":false}}`, `{"a":1}`, `a: no value is allowed here`},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"required":["a"]}},"required":["a"]}`, `{}`, `missing member "a"`},
	} {
		s, err := compile(item.JSON(c.schema), goExpressions)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.parse("a", c.args)
		var ae *ArgumentsError
		if !errors.As(err, &ae) || ae.Problem != c.want {
			t.Errorf("%s: %s:\n got %v\nwant %s", c.schema, c.args, err, c.want)
		}
	}
}

// T13: a member that is nearly one of the schema's is taken for a slip.
func TestDidYouMean(t *testing.T) {
	for name, want := range map[string]string{
		"filepath": "file_path", "filePath": "file_path", "file-path": "file_path", "flie_path": "file_path", "file_paths": "file_path",
		"maxresult": "maxResults", "max_results": "maxResults", "path": "", "id": "", "x": "", "completely": "", "ID": "", "di": "",
	} {
		s, err := compile(`{"type":"object","properties":{"file_path":{},"maxResults":{},"i":{}},"additionalProperties":false}`, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := s.form.explain(map[string]any{name: 1.0})
		if hint := `, did you mean "` + want + `"?`; want != "" && !strings.HasSuffix(got, hint) || want == "" && strings.Contains(got, "did you mean") {
			t.Errorf("%s: %s, want %q", name, got, want)
		}
		// One that is there was not meant.
		if got := s.form.explain(map[string]any{name: 1.0, want: 1.0}); want != "" && strings.Contains(got, "did you mean") {
			t.Errorf("%s beside %s: %s", name, want, got)
		}
	}
}

// FuzzSchema: whatever schema and arguments come, nothing panics, a form says
// why it refuses, and a schema that jsonschema-go understands as we do is
// checked alike.
func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"anyOf":[{"type":"integer"},{"enum":["y"]}]}}}`, `{"a":1}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"null"}],"additionalItems":false}`, `{"a":[null,1]}`)
	f.Add(`{"patternProperties":{"^a":{"not":{"const":1}}},"unevaluatedProperties":false}`, `{"a":1,"b":-0.0}`)
	f.Add(`{"if":{"contains":{"minimum":3}},"then":false,"else":{"uniqueItems":true}}`, `{"a":[1,1e5,1.50]}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		s, err := compile(item.JSON(schema), goExpressions)
		if s.form == nil && err == nil {
			t.Fatal("neither form nor error")
		}
		parsed, perr := s.parse("a", args)
		if perr == nil && item.JSON(parsed).Valid() != nil {
			t.Fatalf("%q was accepted", parsed)
		}
		var v any
		if json.Unmarshal([]byte(args), &v) == nil && s.form.fits(v) != (s.form.explain(v) == "") {
			t.Fatalf("fits %v, explained %q", s.form.fits(v), s.form.explain(v))
		}
	})
}

// FuzzArguments: what the argument reader accepts, a Go struct holds.
func FuzzArguments(f *testing.F) {
	s, err := infer(reflect.TypeFor[searchInput]())
	if err != nil {
		f.Fatal(err)
	}
	_, validator, err := reference(inferable[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"query":"a","limit":10.0,"tags":["x"],"where":{"lang":"go"}}`)
	f.Add(`{"query":"a","within":"2026-01-02T03:04:05Z","wait":"1s","data":"aGk="}`)
	f.Add(`{"query":null,"limit":1e400,"qurey":1}`)
	f.Fuzz(func(t *testing.T, args string) {
		var in searchInput
		err := s.decode("a", args, &in)
		var ae *ArgumentsError
		if err != nil && (!errors.As(err, &ae) || ae.Problem == "") {
			t.Fatalf("%v", err)
		}
		var fast searchInput
		if s.quick(args, &fast) && (err != nil || !reflect.DeepEqual(fast, in)) {
			t.Fatalf("taken at first sight as %+v, then %+v, %v", fast, in, err)
		}
		var v any
		if json.Unmarshal([]byte(args), &v) != nil {
			return
		}
		if _, ok := v.(map[string]any); ok && s.form.fits(v) != (validator.Validate(v) == nil) {
			t.Fatalf("fits %v, the validator: %v", s.form.fits(v), validator.Validate(v))
		}
	})
}
