// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"math"
	"testing"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// T13 W11: a whole number reaches a typed tool digit by digit, however it is written,
// or the call is refused.
func TestWholeNumbers(t *testing.T) {
	type input struct {
		N    int64   `json:"n"`
		F    float64 `json:"f,omitzero"`
		Text string  `json:"text,omitzero"`
	}
	var got *input
	set, err := tool.NewSet(tool.Must("x", "Takes a number.", func(_ context.Context, in input) (string, error) { got = &in; return "", nil }))
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]*input{
		`{"n":10.0}`:                                   {N: 10},
		`{"n":-1.50e1}`:                                {N: -15},
		`{"n":1E3}`:                                    {N: 1000},
		`{"n":9007199254740993}`:                       {N: 1<<53 + 1},
		`{"n":9007199254740993.0}`:                     {N: 1<<53 + 1},
		`{"n":9.007199254740993e15}`:                   {N: 1<<53 + 1},
		`{"n":9223372036854775807.0}`:                  {N: math.MaxInt64},
		`{"n":-9223372036854775808.0}`:                 {N: math.MinInt64},
		`{"n":9223372036854775808.0}`:                  nil,
		`{"n":1e300}`:                                  nil,
		`{"n":10.5}`:                                   nil,
		`{"n":1.0,"f":0.1,"text":"n is \"1.0\", 2.0"}`: {N: 1, F: 0.1, Text: `n is "1.0", 2.0`},
		`{"n":2.0,"f":1e300}`:                          {N: 2, F: 1e300},
	} {
		got = nil
		set.Invoke(t.Context(), tool.Call{Name: "x", Arguments: arguments}, output.Policy{})
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: the tool got %+v, want %+v", arguments, got, want)
		}
	}
}
