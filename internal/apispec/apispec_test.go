// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package apispec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/apispec"
)

// small is a document with the traits that the real one has.
const small = `{"components":{"schemas":{
	"Thing":{"oneOf":[{"$ref":"#/components/schemas/Named"},{"$ref":"#/components/schemas/Sized"}]},
	"Base":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]},
	"Named":{"allOf":[{"$ref":"#/components/schemas/Base"},{"type":"object",
		"properties":{"type":{"enum":["named"]},"name":{"type":"string","nullable":true},"tags":{"type":"object","properties":{}}},
		"required":["type","name"]}]},
	"Sized":{"type":"object","properties":{"type":{"enum":["sized"]},"size":{"type":"integer"},
		"inner":{"$ref":"#/components/schemas/Thing"}},"required":["type","size"]},
	"Either":{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object","properties":{"a":{"type":"string"}}}]}
}}}`

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name, schema, body string
		reading            apispec.Reading
		want               []string
	}{
		{"valid in an allOf", "Thing", `{"type":"named","id":"1","name":"x"}`, apispec.Lenient, nil},
		{"nullable", "Thing", `{"type":"named","id":"1","name":null}`, apispec.Lenient, nil},
		{"free-form object", "Thing", `{"type":"named","id":"1","name":"x","tags":{"any":1}}`, apispec.Lenient, nil},
		{"only the meant branch speaks", "Thing", `{"type":"sized","size":"big"}`, apispec.Lenient,
			[]string{"at '/size': got string, want integer"}},
		{"unknown members, also deep ones", "Thing", `{"type":"sized","size":1,"x/y":2,"inner":{"type":"named","id":"1","name":"n","more":3}}`,
			apispec.Lenient, []string{"/inner/more: unknown member", "/x~1y: unknown member"}},
		{"unknown members allowed when open", "Thing", `{"type":"sized","size":1,"more":2}`, apispec.Reading{AnyOf: true}, nil},
		{"overlapping union read leniently", "Either", `{"a":"x"}`, apispec.Lenient, nil},
		{"overlapping union read literally", "Either", `{"a":"x"}`, apispec.Reading{},
			[]string{"at '': 'oneOf' failed, subschemas 0, 1 matched"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := apispec.New([]byte(small), test.reading)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Faults(test.schema, []byte(test.body))
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	s, err := apispec.New([]byte(small), apispec.Lenient)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Faults("Nothing", []byte(`{}`)); err == nil {
		t.Error("a schema that does not exist was taken")
	}
	if _, err := s.Faults("Thing", []byte(`{`)); err == nil {
		t.Error("a body that is not JSON was taken")
	}
	if _, err := apispec.New([]byte(`{}`), apispec.Lenient); err == nil {
		t.Error("a document without schemas was taken")
	}
	if got := strings.Join(s.Names(), " "); got != "Base Either Named Sized Thing" {
		t.Errorf("Names: %s", got)
	}
}

// Every schema of the real document compiles in every reading.
func TestDocument(t *testing.T) {
	for _, r := range []apispec.Reading{{}, apispec.Lenient} {
		s := apispec.LoadAs(t, r)
		for _, name := range s.Names() {
			if _, err := s.Faults(name, []byte(`null`)); err != nil {
				t.Errorf("%+v: %s: %v", r, name, err)
			}
		}
	}
	s := apispec.Load(t)
	s.Check(t, "CreateResponse", []byte(`{"model":"m","input":"hello"}`))
	faults, err := s.Faults("CreateResponse", []byte(`{"model":"m","input":[{"role":"user","content":"hi","colour":"red"}],"zebra":1}`))
	if err != nil || !slices.Equal(faults, []string{"/input/0/colour: unknown member", "/zebra: unknown member"}) {
		t.Errorf("got %q, %v", faults, err)
	}
}
