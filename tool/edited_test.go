// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// T13: whether arguments fit is said without running anything.
func TestCheckArguments(t *testing.T) {
	set, err := NewSet(Must("write", "Writes.", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		t.Error("it runs")
		return in.Text, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for call, fits := range map[Call]bool{
		{Name: "write", Arguments: `{"text":"a"}`}: true, {Name: "write", Arguments: `{}`}: false, {Name: "write", Arguments: "no"}: false,
		{Name: "unknown", Arguments: "no"}: true, {Name: "write", Kind: item.TypeShellCall, Arguments: "no"}: true,
	} {
		misfit := new(ArgumentsError)
		if err := set.CheckArguments(call); (err == nil) != fits || err != nil && !errors.As(err, &misfit) {
			t.Errorf("%+v: %v", call, err)
		}
	}
}

// wild is a type that panics when it is decoded.
type wild struct{}

func (*wild) UnmarshalJSON([]byte) error { panic("wild") }

func TestCheckArgumentsOfPanic(t *testing.T) {
	set, err := NewSet(Must("write", "Writes.", func(_ context.Context, in struct {
		Text *wild `json:"text"`
	}) (string, error) {
		return "", nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.CheckArguments(Call{Name: "write", Arguments: `{"text":"a"}`}); err != nil {
		t.Error(err)
	}
}

// T13 L7: where arguments that somebody else put there do not fit, the model is not
// blamed for them: what it reads and the error both say whose they are, whether
// the check found it or the tool.
func TestEditedArgumentsDoNotFit(t *testing.T) {
	typed := Must("typed", "Takes a text.", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	})
	own := foreign{def: &item.FunctionTool{Name: "own", Parameters: `{"type":"object"}`}, run: func(context.Context, Call) (Result, error) {
		return Result{}, &ArgumentsError{Tool: "own", Problem: "no such colour"}
	}}
	s := mustSet(t, typed, own)
	for _, c := range []struct{ tool, arguments string }{
		{"typed", `{"txt":1}`}, {"typed", `{`}, {"typed", "rm\xff"}, {"own", `{"a":1}`},
	} {
		for _, edited := range []bool{false, true} {
			o := s.Invoke(t.Context(), Call{Name: c.tool, Arguments: c.arguments, Edited: edited}, output.Policy{})
			if o.Failure != BadArguments {
				t.Fatalf("%s: %+v", c.arguments, o)
			}
			told, _ := output.Sanitize(c.arguments)
			note := "The arguments of this call were changed before it could run, and what they were changed to does not fit: " + told + "\n\ninvalid arguments for " + c.tool
			for _, text := range []string{o.Error, o.Content.Text} {
				if strings.Contains(text, note) != edited || !strings.Contains(text, "invalid arguments") {
					t.Errorf("%s, edited is %v: %q", c.arguments, edited, text)
				}
			}
		}
	}
}
