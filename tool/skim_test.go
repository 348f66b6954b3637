// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// T13: what is taken at first sight fits, whatever the schema and the value, and
// however the value is written.
func TestSkimProperty(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		f, err := formOf(anySchema(3).Draw(t, "schema"), goExpressions)
		if f == nil {
			t.Skip(err)
		}
		for range 10 {
			v := jsonValue(3).Draw(t, "value")
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "spaced") {
				_ = (*jsontext.Value)(&text).Indent()
				text = append([]byte(" \t\r\n"), text...)
			}
			end, takes := f.skim(string(text), 0)
			if takes && (!f.fits(v) || strings.TrimSpace(string(text[:end])) != strings.TrimSpace(string(text))) {
				t.Fatalf("%s is taken up to byte %d, and fits: %v", text, end, f.fits(v))
			}
			if takes {
				taken++
			}
		}
	})
	if taken == 0 {
		t.Error("nothing was taken at first sight")
	}
}

// T13: arguments that most calls have are taken at first sight, and give the
// same value as at the second.
func TestQuick(t *testing.T) {
	s, err := infer(reflect.TypeFor[searchInput]())
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]bool{
		`{"query":"a"}`: true,
		` { "query" : "a" , "limit" : 3 , "tags" : [ "x" , "y\"]" ] } `: true,
		`{"query":"a","limit":10.0}`:                                    false, // an integer, but not to the decoder
		`{"limit":3}`:                                                   false,
		`{"query":"a","qurey":"b"}`:                                     false,
		`{"query":null}`:                                                false,
		`{"qu\u0065ry":"a"}`:                                            false,
		`{"query":"a","query":"b"}`:                                     false,
		`[]`:                                                            false,
		`null`:                                                          false,
		``:                                                              false,
		`{"query":"a"`:                                                  false,
	} {
		var fast, slow searchInput
		if got := s.quick(args, &fast); got != want {
			t.Errorf("%s: taken %v, want %v", args, got, want)
		}
		if err := s.decode("a", args, &slow); want && (err != nil || !reflect.DeepEqual(fast, slow)) {
			t.Errorf("%s: %+v at first sight, then %+v, %v", args, fast, slow, err)
		}
	}
}
