// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

type searchInput struct {
	Query  string        `json:"query" jsonschema:"what to <find> & why"`
	Limit  int           `json:"limit,omitzero" jsonschema:"most results"`
	Tags   []string      `json:"tags,omitzero"`
	Within *time.Time    `json:"within,omitzero"`
	Wait   time.Duration `json:"wait,omitzero"`
	Data   []byte        `json:"data,omitzero"`
	Where  struct {
		Lang string `json:"lang"`
	} `json:"where,omitzero"`
}

// I9: the definition is flat, with an explicit strict, in the order of fields.
func TestInferredDefinition(t *testing.T) {
	tl := Must("search", "Search.", func(context.Context, searchInput) (string, error) { return "", nil })
	got := tl.Definition().(*item.FunctionTool)
	want := `{"type":"object","properties":{` +
		`"query":{"type":"string","description":"what to <find> & why"},` +
		`"limit":{"type":"integer","description":"most results"},` +
		`"tags":{"type":"array","items":{"type":"string"}},` +
		`"within":{"type":["null","string"],"description":"a date and time of RFC 3339, such as 2026-01-02T15:04:05Z","format":"date-time"},` +
		`"wait":{"type":"string","description":"a duration such as 90s or 1h30m"},` +
		`"data":{"type":"string","contentEncoding":"base64"},` +
		`"where":{"type":"object","properties":{"lang":{"type":"string"}},"required":["lang"],"additionalProperties":false}},` +
		`"required":["query"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(got.Parameters)); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	if got.Strict == nil || *got.Strict {
		t.Errorf("strict = %v, want an explicit false", got.Strict)
	}
	*got.Strict = true
	if *tl.Definition().(*item.FunctionTool).Strict {
		t.Error("changing a definition changed the tool")
	}
}

func TestSchemaAlwaysHasProperties(t *testing.T) {
	none := Must("none", "", func(context.Context, struct{}) (string, error) { return "", nil })
	anything := Must("any", "", func(context.Context, map[string]any) (string, error) { return "", nil })
	for tl, want := range map[Tool]item.JSON{
		none:     `{"properties":{},"type":"object","additionalProperties":false}`,
		anything: `{"properties":{},"type":"object","additionalProperties":true}`,
	} {
		got := tl.Definition().(*item.FunctionTool).Parameters
		if got != want {
			t.Errorf("schema %s, want %s", got, want)
		}
		if err := got.Valid(); err != nil {
			t.Error(err)
		}
	}
}

// I10 and the checks at registration.
func TestRegistrationErrors(t *testing.T) {
	ok := func(context.Context, struct{}) (string, error) { return "", nil }
	type optional struct {
		A string `json:"a,omitzero"`
	}
	type address struct {
		A unlike `json:"a"`
	}
	for name, mk := range map[string]func() (Tool, error){
		"empty name": func() (Tool, error) { return New("", "", ok) },
		"dot":        func() (Tool, error) { return New("a.b", "", ok) },
		"newline":    func() (Tool, error) { return New("a\n", "", ok) },
		"long":       func() (Tool, error) { return New(strings.Repeat("a", 65), "", ok) },
		"nil": func() (Tool, error) {
			return New[struct{}, string]("a", "", nil)
		},
		"scalar input": func() (Tool, error) {
			return New("a", "", func(context.Context, string) (string, error) { return "", nil })
		},
		"channel": func() (Tool, error) {
			return New("a", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
		},
		"JSON unlike its schema": func() (Tool, error) {
			return New("a", "", func(context.Context, address) (string, error) { return "", nil })
		},
		"strict with an optional property": func() (Tool, error) {
			return New("a", "", func(context.Context, optional) (string, error) { return "", nil }, Strict(true))
		},
		"strict with other members": func() (Tool, error) {
			return New("a", "", func(context.Context, map[string]string) (string, error) { return "", nil }, Strict(true))
		},
		"negative timeout":     func() (Tool, error) { return New("a", "", ok, Timeout(-1)) },
		"bad Parameters":       func() (Tool, error) { return New("a", "", ok, Parameters(`{"type":`)) },
		"Parameters of a list": func() (Tool, error) { return New("a", "", ok, Parameters(`{"type":"array"}`)) },
		"wrong Parameters":     func() (Tool, error) { return New("a", "", ok, Parameters(`{"type":"object","minLength":"x"}`)) },
	} {
		if tl, err := mk(); err == nil {
			t.Errorf("%s: got %v, want an error", name, tl.Definition())
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

func TestDecoding(t *testing.T) {
	var got searchInput
	tl := Must("search", "", func(_ context.Context, in searchInput) (string, error) { got = in; return "ok", nil })
	for args, want := range map[string]searchInput{
		`{"query":"a","limit":10.0}`:                         {Query: "a", Limit: 10},
		`{"query":"a","limit":1e2}`:                          {Query: "a", Limit: 100},
		`{"query":"a","limit":null,"tags":null,"wait":null}`: {Query: "a"},
		`{"query":"a","wait":"1m30s","data":"aGk="}`:         {Query: "a", Wait: 90 * time.Second, Data: []byte("hi")},
		` {"query":"é","tags":["x"]} `:                       {Query: "é", Tags: []string{"x"}},
	} {
		got = searchInput{}
		if _, err := tl.Run(t.Context(), Call{Name: "search", Arguments: args}); err != nil {
			t.Errorf("%s: %v", args, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

// T13: the tool does not run, and the text tells the problem and the schema.
func TestMalformedArguments(t *testing.T) {
	ran := false
	tl := Must("search", "", func(context.Context, searchInput) (string, error) { ran = true; return "", nil })
	set := mustSet(t, tl)
	schema := string(tl.Definition().(*item.FunctionTool).Parameters)
	for args, want := range map[string]string{
		"":                                `missing member "query"`,
		`{"query":"a"`:                    `not valid JSON at byte 12: unexpected EOF, near "{\"query\":\"a\""`,
		`{"query":"a",}`:                  `not valid JSON at byte 12`,
		`{"query":"a","query":"b"}`:       `duplicate object member name`,
		`{"query":"\ud800"}`:              `not valid JSON at byte`,
		`"{\"query\":\"a\"}"`:             `want a JSON object, got a string`,
		`null`:                            `want a JSON object, got null`,
		`[]`:                              `want a JSON object, got an array`,
		`{"query":5}`:                     `query: type: 5 has type "integer", want "string"`,
		`{"query":"a","pth":1,"zzz":2}`:   `unknown member "pth"; unknown member "zzz"`,
		`{"query":"a","tags":["x",3]}`:    `tags[1]: type: 3 has type "integer", want "string"`,
		`{"query":"a","where":{}}`:        `where: missing member "lang"`,
		`{"query":"a","where":{"x":1}}`:   `where: missing member "lang"; where: unknown member "x"`,
		`{"query":"a","limit":"1"}`:       `limit: type: 1 has type "string"`,
		`{"query":"a","within":"monday"}`: `the value at /within is "monday": want a date and time of RFC 3339, such as 2026-01-02T15:04:05Z`,
		`{"query":"a","wait":"soon"}`:     `the value at /wait does not fit time.Duration`,
		`{"query":"a","limit":1e999}`:     `value out of range`,
	} {
		o := set.Invoke(t.Context(), Call{Name: "search", Arguments: args}, output.Policy{})
		if ran {
			t.Fatalf("%s: the tool ran", args)
		}
		if !o.Failed || o.Failure != BadArguments {
			t.Errorf("%s: outcome %+v", args, o)
		}
		if !strings.Contains(o.Error, want) || !strings.HasSuffix(o.Error, schema) {
			t.Errorf("%s:\n got %s\nwant %s … and the schema", args, o.Error, want)
		}
		if again := set.Invoke(t.Context(), Call{Name: "search", Arguments: args}, output.Policy{}); again.Content.Text != o.Content.Text {
			t.Errorf("%s: another text the second time", args)
		}
	}
}

// T13: many problems are bounded, and so is each of them.
func TestManyProblems(t *testing.T) {
	tl := Must("search", "", func(context.Context, searchInput) (string, error) { return "", nil })
	args := `{"query":[` + strings.Repeat(`"é",`, 500) + `0]`
	for _, name := range strings.Split("abcdefghijk", "") {
		args += `,"` + name + `":1`
	}
	_, err := tl.Run(t.Context(), Call{Arguments: args + "}"})
	var ae *ArgumentsError
	if !errors.As(err, &ae) || len(ae.Problem) > 1000 || !strings.HasSuffix(ae.Problem, "; and 4 more") {
		t.Errorf("%v", err)
	}
	if _, err := tl.Run(t.Context(), Call{Arguments: `{"query":[` + strings.Repeat(`"é",`, 500) + `0]}`}); err == nil ||
		!strings.Contains(err.Error(), "more bytes)") || !utf8.ValidString(err.Error()) {
		t.Errorf("%v", err)
	}
}

// T13: what the validator finds in a combination is told, if not by member.
func TestCombinedSchema(t *testing.T) {
	tl, err := Raw(&item.FunctionTool{Name: "a", Parameters: `{"type":"object","properties":{"a":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`},
		func(context.Context, Call) (Result, error) { return Result{}, nil }, ReadOnly())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tl.Run(t.Context(), Call{Arguments: `{}`}); err == nil || !strings.Contains(err.Error(), "anyOf") {
		t.Errorf("%v", err)
	}
	if !AnnotationsOf(tl).ReadOnly {
		t.Error("the annotations are lost")
	}
}

// T13: the offset is there for programs too.
func TestArgumentsErrorOffset(t *testing.T) {
	tl := Must("a", "", func(context.Context, struct{}) (string, error) { return "", nil })
	_, err := tl.Run(t.Context(), Call{Arguments: `{"a":tru}`})
	var ae *ArgumentsError
	if !errors.As(err, &ae) || ae.Offset != 8 || ae.Tool != "a" {
		t.Errorf("got %#v", err)
	}
}

func TestParametersOption(t *testing.T) {
	const schema = item.JSON(`{ "type":"object", "properties":{"d":{"enum":["up","down"]}}, "required":["d"] }`)
	tl := Must("go", "", func(_ context.Context, in struct {
		D string `json:"d"`
	}) (string, error) {
		return in.D, nil
	}, Parameters(schema))
	if got := tl.Definition().(*item.FunctionTool).Parameters; got != schema {
		t.Errorf("schema %s", got)
	}
	if res, err := tl.Run(t.Context(), Call{Arguments: `{"d":"up"}`}); err != nil || res.Text != "up" {
		t.Errorf("%v %v", res, err)
	}
	if _, err := tl.Run(t.Context(), Call{Arguments: `{"d":"left"}`}); err == nil {
		t.Error("a value outside of the enumeration was accepted")
	}
}

func TestStrict(t *testing.T) {
	type in struct {
		A string `json:"a"`
		B *int   `json:"b"`
	}
	tl, err := New("a", "", func(context.Context, in) (string, error) { return "", nil }, Strict(true))
	if err != nil || !*tl.Definition().(*item.FunctionTool).Strict {
		t.Fatalf("%v %v", tl, err)
	}
	if _, err := tl.Run(t.Context(), Call{Arguments: `{"a":"x","b":null}`}); err != nil {
		t.Error(err)
	}
}

func TestFromContext(t *testing.T) {
	tl := Must("a", "", func(ctx context.Context, _ struct{}) (string, error) {
		c, ok := FromContext(ctx)
		if !ok {
			return "", errors.New("no call")
		}
		return c.ID, nil
	})
	o := mustSet(t, tl).Invoke(t.Context(), Call{ID: "call_1", Name: "a"}, output.Policy{})
	if o.Content.Text != "call_1" {
		t.Errorf("%+v", o)
	}
	if _, ok := FromContext(t.Context()); ok {
		t.Error("a call outside of a run")
	}
}

// I9: a raw schema passes byte for byte, also one that cannot be compiled here.
func TestRaw(t *testing.T) {
	echo := func(_ context.Context, c Call) (Result, error) { return Result{Text: c.Arguments}, nil }
	for _, schema := range []item.JSON{
		`{ "type" : "object", "properties":{"a":{"anyOf":[{"type":["string","null"]},{"$ref":"#/$defs/x"}]}},"$defs":{"x":{"type":"integer"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)a\\p{L}"}}}`,
		`{"$ref":"https://example.com/other.json"}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`,
	} {
		tl, err := Raw(&item.FunctionTool{Name: "a", Parameters: schema}, echo)
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		def := tl.Definition().(*item.FunctionTool)
		if def.Parameters != schema || def.Strict == nil || *def.Strict {
			t.Errorf("definition %+v", def)
		}
		if _, err := tl.Run(t.Context(), Call{Arguments: `{"a":`}); err == nil {
			t.Errorf("%s: invalid JSON was accepted", schema)
		}
	}
	refs, _ := Raw(&item.FunctionTool{Name: "a", Parameters: `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"integer"}}}`}, echo)
	if res, err := refs.Run(t.Context(), Call{Arguments: `{ "a": 1 }`}); err != nil || res.Text != `{ "a": 1 }` {
		t.Errorf("%v %v: want the arguments as sent", res, err)
	}
	if _, err := refs.Run(t.Context(), Call{Arguments: `{"a":"x"}`}); err == nil || !strings.Contains(err.Error(), `a: type: x has type "string", want "integer"`) {
		t.Errorf("%v", err)
	}
	custom, err := Raw(&item.CustomTool{Name: "c"}, echo)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := custom.Run(t.Context(), Call{Arguments: "{any text", Custom: true}); err != nil || res.Text != "{any text" {
		t.Errorf("%v %v", res, err)
	}
	for name, def := range map[string]item.Tool{
		"name":    &item.FunctionTool{Name: "a b"},
		"schema":  &item.FunctionTool{Name: "a", Parameters: `{`},
		"array":   &item.FunctionTool{Name: "a", Parameters: `[]`},
		"unknown": &item.UnknownTool{Raw: `{"type":"web_search"}`},
		"nil":     (*item.FunctionTool)(nil),
	} {
		if _, err := Raw(def, echo); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Raw(&item.CustomTool{Name: "c"}, echo, Strict(true)); err == nil {
		t.Error("a strict custom tool was accepted")
	}
}

// Types that encode themselves are anything to the schema.
func TestRawMembers(t *testing.T) {
	tl := Must("a", "", func(_ context.Context, in struct {
		V jsontext.Value `json:"v"`
	}) (string, error) {
		return string(in.V), nil
	})
	res, err := tl.Run(t.Context(), Call{Arguments: `{"v":[1,{"a":2}]}`})
	if err != nil || res.Text != `[1,{"a":2}]` {
		t.Errorf("%v %v", res, err)
	}
}

func mustSet(t *testing.T, tools ...Tool) *Set {
	t.Helper()
	s, err := NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An option whose limit makes no sense fails the tool.
func TestBadLimit(t *testing.T) {
	for _, l := range []output.Limit{{Bytes: -1}, {Tokens: -1}, {Bytes: 1}, {Mode: "middle"}} {
		if _, err := New("f", "", func(context.Context, none) (string, error) { return "", nil }, MaxOutput(l)); err == nil {
			t.Errorf("%+v: no error", l)
		}
	}
}
