// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// colour says itself what it looks like.
type colour string

func (colour) JSONSchema() item.JSON { return `{"type":"string","enum":["red","green"]}` }

// alien has a method of another package.
type alien struct{ X int }

func (alien) JSONSchema() *int { return nil }

type ordered struct {
	Size    string   `json:"size" jsonschema:"how large" enum:"small,large" default:"small"`
	Count   int      `json:"count" minimum:"1" maximum:"10"`
	Share   float64  `json:"share,omitempty" minimum:"0.5" examples:"0.5,0.75"`
	Name    string   `json:"name,omitempty" minLength:"2" maxLength:"4" pattern:"^[a-z]+$"`
	Day     string   `json:"day,omitempty" format:"date"`
	Colour  colour   `json:"colour" jsonschema:"which colour"`
	Colours []colour `json:"colours,omitempty"`
	Maybe   *string  `json:"maybe,omitempty" enum:"yes,no"`
}

// Tags and types say in the schema what Go's types cannot, and arguments are held
// to it.
func TestSettings(t *testing.T) {
	s, err := infer(reflect.TypeFor[ordered]())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"size":{"type":"string","description":"how large","enum":["small","large"],"default":"small"}`,
		`"count":{"type":"integer","minimum":1,"maximum":10}`,
		`"share":{"type":"number","minimum":0.5,"examples":[0.5,0.75]}`,
		`"name":{"type":"string","minLength":2,"maxLength":4,"pattern":"^[a-z]+$"}`,
		`"day":{"type":"string","format":"date"}`,
		`"colour":{"type":"string","enum":["red","green"],"description":"which colour"}`,
		`"items":{"type":"string","enum":["red","green"]}`,
		`"maybe":{"type":["null","string"],"enum":["yes","no",null]}`,
	} {
		if !strings.Contains(string(s.text), want) {
			t.Errorf("the schema does not hold %s:\n%s", want, s.text)
		}
	}
	set, err := NewSet(Must("order", "Orders.", func(context.Context, ordered) (string, error) { return "ok", nil }))
	if err != nil {
		t.Fatal(err)
	}
	for arguments, ok := range map[string]bool{
		`{"size":"small","count":1,"colour":"red"}`:                                               true,
		`{"size":"small","count":1,"colour":"red","share":null,"name":null,"maybe":null}`:         true,
		`{"size":"small","count":10,"colour":"red","name":"abc","share":0.5,"colours":["green"]}`: true,
		`{"size":"","count":1,"colour":"red"}`:                                                    false,
		`{"size":"huge","count":1,"colour":"red"}`:                                                false,
		`{"size":null,"count":1,"colour":"red"}`:                                                  false,
		`{"size":"small","count":0,"colour":"red"}`:                                               false,
		`{"size":"small","count":11,"colour":"red"}`:                                              false,
		`{"size":"small","count":1,"colour":"blue"}`:                                              false,
		`{"size":"small","count":1,"colour":"red","colours":["blue"]}`:                            false,
		`{"size":"small","count":1,"colour":"red","name":"a"}`:                                    false,
		`{"size":"small","count":1,"colour":"red","name":"abcde"}`:                                false,
		`{"size":"small","count":1,"colour":"red","maybe":"perhaps"}`:                             false,
	} {
		if out := set.Invoke(t.Context(), Call{ID: "c", Name: "order", Arguments: arguments}, output.Policy{}); out.Failed == ok {
			t.Errorf("%s: %s", arguments, out.Content.Display())
		}
	}
}

// A tag that is for another package, or says nothing that can be held, is an
// error with a hint, and never a description.
func TestSettingsRefused(t *testing.T) {
	for want, err := range map[string]error{
		"must be a description, not a setting": inferError[struct {
			A string `jsonschema:"enum=a,enum=b"`
		}](),
		"is a setting of another package": inferError[struct {
			A string `jsonschema:"required"`
		}](),
		"jsonschema_description is not read": inferError[struct {
			A string `jsonschema_description:"x"`
		}](),
		"is not for a field of type string": inferError[struct {
			A string `minimum:"1"`
		}](),
		"not a value of type integer": inferError[struct {
			A int `enum:"1,two"`
		}](),
		`default:"3"`: inferError[struct {
			A int `enum:"1,2" default:"3"`
		}](),
		"is for another package": inferError[struct{ A alien }](),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func inferError[In any]() error {
	_, err := infer(reflect.TypeFor[In]())
	return err
}

// A model's null is a list without elements, unless the list must have some; that of an optional list is one that is left
// out. A json.Number, into which no number can be decoded, is refused.
func TestNullOfLists(t *testing.T) {
	type lists struct {
		Any   []string  `json:"any"`
		Some  []string  `json:"some" minItems:"1"`
		Least []string  `json:"least" minItems:"0" maxItems:"2"`
		Maybe *[]string `json:"maybe" minItems:"1"`
		Left  []string  `json:"left,omitempty" minItems:"1"`
	}
	set, err := NewSet(Must("list", "Lists.", func(context.Context, lists) (string, error) { return "ok", nil }))
	if err != nil {
		t.Fatal(err)
	}
	for arguments, ok := range map[string]bool{
		`{"any":null,"some":["a"],"least":null,"maybe":null}`:             true,
		`{"any":null,"some":["a"],"least":null,"maybe":null,"left":null}`: true,
		`{"any":[],"some":null,"least":[],"maybe":null}`:                  false,
		`{"any":[],"some":[],"least":[],"maybe":null}`:                    false,
		`{"any":[],"some":["a"],"least":[],"maybe":[]}`:                   false,
	} {
		if out := set.Invoke(t.Context(), Call{ID: "c", Name: "list", Arguments: arguments}, output.Policy{}); out.Failed == ok {
			t.Errorf("%s: %s", arguments, out.Content.Display())
		}
	}
	if _, err := New("pay", "", func(context.Context, struct{ Sum stdjson.Number }) (string, error) { return "", nil }); err == nil || !strings.Contains(err.Error(), "field Sum: a json.Number is a string in Go") {
		t.Error(err)
	}
}
