// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

type (
	ownWrong struct{ V int }
	ownPanic struct{ V int }
	ownLoose struct{ V int }
)

func (ownWrong) JSONSchema() item.JSON {
	return `{"type":"object","properties":{"V":{"type":"strin"}}}`
}
func (ownPanic) JSONSchema() item.JSON { panic("boom") }
func (ownLoose) JSONSchema() item.JSON {
	return `{"type":"object","properties":{"V":{"type":"integer"}}}`
}

// outFunc is a result with a part that has no JSON.
type outFunc struct {
	Text string
	Next *outFunc
	Hook func()
}

// outFine are results whose JSON is known at the call, or left out.
type outFine struct {
	Any   any
	Err   error
	Hook  func() `json:"-"`
	inner chan int
	Time  time.Time
	Addr  netip.Addr
	ByNum map[int]string
	Next  *outFine
}

// A tool that the endpoint runs does not belong to a program's tools: the error says where
// it is declared.
func TestHostedToolIsNoTool(t *testing.T) {
	run := func(context.Context, Call) (Result, error) { return Result{}, nil }
	for _, def := range []item.Tool{&item.WebSearchTool{}, &item.MCPTool{ServerLabel: "maps"}, &item.CodeInterpreterTool{}} {
		if _, err := Raw(def, run); err == nil || !strings.Contains(err.Error(), "put it into the Request.Tools of the agent") {
			t.Errorf("%T: %v", def, err)
		}
	}
	if _, err := Raw(nil, run); err == nil || strings.Contains(err.Error(), "Request.Tools") {
		t.Error(err)
	}
	if _, err := Raw((*item.WebSearchTool)(nil), run); err == nil {
		t.Error("no error")
	}
}

func resultError[Out any]() error {
	_, err := New("t", "", func(context.Context, struct{}) (out Out, err error) { return out, nil })
	return err
}

func givenError[In any]() error {
	_, err := New("t", "", func(context.Context, In) (string, error) { return "", nil }, Parameters(`{"type":"object"}`))
	return err
}

// Results that can be written are made into tools.
func TestResultsAccepted(t *testing.T) {
	for i, err := range []error{
		resultError[outFine](), resultError[any](), resultError[Result](), resultError[*Result](), resultError[item.Content](), resultError[[]item.Part](),
		resultError[[]byte](), resultError[item.JSON](), resultError[time.Duration](), resultError[map[netip.Addr]int](), givenError[outFine](),
	} {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	_ = outFine{}.inner
}

// unlike is a number whose JSON is a text.
type unlike int

func (unlike) MarshalJSON() ([]byte, error) { return []byte(`"high"`), nil }

// What cannot work is an error where the tool or the schema is made, once, and says
// what to do.
func TestTypesRefused(t *testing.T) {
	schemaError := func(_ item.JSON, err error) error { return err }
	rawError := func(def item.Tool) error {
		_, err := Raw(def, func(context.Context, Call) (Result, error) { return Result{}, nil })
		return err
	}
	for i, c := range []struct {
		err  error
		want string
	}{
		{schemaError(SchemaOf[ownWrong]()), `type tool.ownWrong: its JSONSchema: line 1, column 32: /properties/V: type: there is no type "strin"`},
		{inferError[struct{ A ownWrong }](), `: type: there is no type "strin"`},
		{inferError[ownPanic](), "input type tool.ownPanic: its method JSONSchema panicked on the zero value: boom"},
		{inferError[struct {
			A int `min:"1"`
		}](), `its tag min is not read here: write minimum:"1"`},
		{inferError[struct {
			A int `max:"1"`
		}](), `write maximum:"1"`},
		{inferError[struct {
			A string `enums:"a,b"`
		}](), `write enum:"a,b"`},
		{inferError[struct {
			A string `Desc:"x"`
		}](), `write it as jsonschema:"…"`},
		{inferError[struct {
			A string `title:"x"`
		}](), `write it as jsonschema:"…"`},
		{inferError[struct {
			A string `example:"x"`
		}](), `examples:"…"`},
		{inferError[struct {
			A string `jsonschema_description:"x"`
		}](), `write it as jsonschema:"…"`},
		{inferError[struct {
			A time.Time `format:"date"`
		}](), `field A: its tag format:"date": the JSON of a time.Time is a date-time`},
		{inferError[struct {
			A *time.Time `format:"time"`
		}](), `a string`},
		{inferError[struct {
			A string `pattern:"("`
		}](), "its tags: pattern: error parsing regexp"},
		{inferError[struct{ A unlike }](), "use the option Parameters"},
		{schemaError(SchemaOf[unlike]()), "give it a method JSONSchema() item.JSON, or use another type"},
		{inferError[struct {
			A map[string]any `json:",inline"`
		}](), "field A: its json tag has the option inline, which is not read here: embed the struct"},
		{rawError(&item.ComputerPreviewTool{Environment: "linux", DisplayWidth: 1}), "tool computer: the *item.ComputerPreviewTool has no DisplayHeight: set the field"},
		{schemaError(SchemaOf[chan int]()), "type chan int has no JSON"},
		{resultError[outFunc](), `tool t: result type tool.outFunc: field Hook: type func() has no JSON: write json:"-" for a field, or use another type`},
		{resultError[[]map[string]*outFunc](), `field Hook: type func() has no JSON`},
		{resultError[func()](), `tool t: result type func() has no JSON: `},
		{resultError[map[[2]int]string](), `map key [2]int is not text`},
		{resultError[struct{ a int }](), `tool t: result type struct { a int } has no exported fields, so nothing of it is JSON`},
		{inferError[struct{ a int }](), `input type struct { a int } has no exported fields`},
		{givenError[struct{ a int }](), `tool t: input type struct { a int } has no exported fields`},
		{schemaError(SchemaOf[*struct{ a int }]()), `no exported fields`},
		{resultError[struct{ C complex128 }](), `field C: type complex128 has no JSON`},
		{givenError[struct{ C chan int }](), `tool t: input type struct { C chan int }: field C: type chan int has no JSON`},
		{inferError[struct{ A fmt.Stringer }](), "field A: no JSON can be decoded into the interface fmt.Stringer"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || strings.Contains(c.err.Error(), "unsupported operation") || strings.Contains(c.err.Error(), "type chan int: type") {
			t.Errorf("%d: got %v, want %s", i, c.err, c.want)
		}
	}
}

// A time says its form to the model, and a value of another form says it again.
func TestTimes(t *testing.T) {
	type meeting struct {
		At   time.Time  `json:"at"`
		Ends *time.Time `json:"ends,omitzero" jsonschema:"when it ends" format:"date-time"`
	}
	s, err := NewSchema[meeting]()
	if err != nil {
		t.Fatal(err)
	}
	const example = "RFC 3339, such as 2026-01-02T15:04:05Z"
	for _, want := range []string{
		`"at":{"type":"string","description":"a date and time of ` + example + `","format":"date-time"}`,
		`"ends":{"type":["null","string"],"description":"when it ends","format":"date-time"}`,
	} {
		if !strings.Contains(string(s.JSON()), want) {
			t.Errorf("%s is not in %s", want, s.JSON())
		}
	}
	var m meeting
	for text, ok := range map[string]bool{
		`{"at":"2026-01-02T15:04:05Z"}`: true, `{"at":"2026-01-02T15:04:05.25+02:00","ends":null}`: true,
		`{"at":"tomorrow"}`: false, `{"at":"2026-01-02"}`: false, `{"at":"2026-12-31T23:59:60Z"}`: false,
	} {
		if err := s.Decode(text, &m); (err == nil) != ok || err != nil && (!strings.Contains(err.Error(), example) || strings.Contains(err.Error(), "Z07:00")) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The reasons of strict mode are those of the schema, also for a type's own.
func TestStrictReasons(t *testing.T) {
	s, err := NewSchema[ownLoose]()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Strict(); err == nil || err.Error() != "/ must have additionalProperties false" {
		t.Error(err)
	}
	s, err = NewSchema[struct {
		A string `json:"a" minLength:"1"`
	}]()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Strict(); err == nil || err.Error() != "/properties/a has the keyword minLength, which strict mode does not have" {
		t.Error(err)
	}
	s, err = NewSchema[struct {
		A int `json:"a"`
	}]()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(`{"a":""}`); err == nil || err.Error() != `a: type: "" has type "string", want "integer"` {
		t.Error(err)
	}
}

// The problem of a computer call's arguments is the model's, not one that reading
// them has made.
func TestComputerWithoutActions(t *testing.T) {
	made, err := Computer(&item.ComputerTool{}, func(context.Context, []item.ComputerAction) ([]byte, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	set, err := NewSet(made)
	if err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{"{}", " { } ", `{"actions":[]}`} {
		out := set.Invoke(t.Context(), Call{ID: "c", Name: item.ToolComputer, Kind: item.TypeComputerCall, Arguments: arguments}, output.Policy{})
		if !strings.Contains(out.Error, "actions is empty") {
			t.Errorf("%s: %s", arguments, out.Error)
		}
	}
}
