// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
)

// TestExactNumbers holds T13 for numbers that a float64 does not hold: what a schema
// says about them is checked exactly, because the tool gets the text as it was sent.
func TestExactNumbers(t *testing.T) {
	for _, c := range []struct{ schema, takes, not string }{
		{`{"const":9007199254740993}`, `9007199254740993`, `9007199254740992`},
		{`{"enum":[1,9007199254740993]}`, `9007199254740993.0`, `9007199254740992`},
		{`{"minimum":9007199254740993}`, `9007199254740993`, `9007199254740992`},
		{`{"maximum":9007199254740992}`, `9007199254740992`, `9007199254740993`},
		{`{"maximum":9223372036854775807}`, `9223372036854775807`, `9223372036854775808`},
		{`{"exclusiveMaximum":1}`, `0.99999999999999999999`, `1.00000000000000000001`},
		{`{"exclusiveMinimum":0}`, `1e-400`, `-1e-400`},
		{`{"exclusiveMaximum":0}`, `-1e-400`, `1e-400`},
		{`{"maximum":10}`, `-1e300`, `1e400`},
		{`{"multipleOf":2}`, `9007199254740994`, `9007199254740993`},
		{`{"multipleOf":9007199254740993}`, `18014398509481986`, `18014398509481984`},
		{`{"multipleOf":0.01}`, `0.07`, `0.075`},
		{`{"multipleOf":0.1}`, `1.1`, `1.15`},
		{`{"multipleOf":3}`, `9007199254740990`, `9007199254740991`},
		{`{"multipleOf":7}`, `7e300`, `1e300`},
		{`{"multipleOf":1.5}`, `3e300`, `1e300`},
		{`{"multipleOf":1e300}`, `3e300`, `1.5e300`},
		{`{"type":"integer"}`, `9007199254740993`, `9007199254740992.5`},
		{`{"type":"integer"}`, `1.0000000000000000000`, `1.0000000000000000001`},
		{`{"type":"integer"}`, `1e300`, `1e-400`},
		{`{"const":1e300}`, `1` + strings.Repeat("0", 300), `1` + strings.Repeat("0", 299) + `1`},
		{`{"const":0.1}`, `0.10000000000000000000`, `0.1000000000000000055511151231257827`},
		{`{"uniqueItems":true}`, `[9007199254740992,9007199254740993]`, `[9007199254740993,9007199254740993.0]`},
		{`{"maxLength":1.0000000000000000}`, `"a"`, `"ab"`},
		{`{"type":"integer"}`, `-0e5`, `1e999999999`},
		{`{"type":"integer"}`, `0`, `1e99999999999999999999`},
		{`{"maximum":1}`, `0`, `1e-999999999`},
		{`{"maximum":1}`, `0`, `0.` + strings.Repeat("1", 10_000_000)},
	} {
		s, err := compile(item.JSON(`{"properties":{"n":`+c.schema+`}}`), goExpressions)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if err := s.check("f", `{"n":`+c.takes+`}`); err != nil {
			t.Errorf("%s refuses %s: %v", c.schema, c.takes, err)
		}
		if err := s.check("f", `{"n":`+c.not+`}`); err == nil {
			t.Errorf("%s takes %.40s", c.schema, c.not)
		} else if len(err.Error()) > 1000 {
			t.Errorf("%s: the problem of %.40s has %d bytes", c.schema, c.not, len(err.Error()))
		}
	}
}

// TestNumberBeyondChecks holds T13: a number that would take too long to check is
// refused with its reason, and passes where nothing is said about it.
func TestNumberBeyondChecks(t *testing.T) {
	const args = `{"n":1e-999999999}`
	for schema, want := range map[item.JSON]string{
		`{"properties":{"n":{"maximum":1}}}`:     "an exponent beyond 1000",
		`{"properties":{"n":{"type":"number"}}}`: "",
	} {
		s, err := compile(schema, goExpressions)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.check("f", args); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
}
