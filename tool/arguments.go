// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// ArgumentsError reports arguments that do not fit a tool's schema; the tool did not
// run. Its text is for the model: the problem and the schema.
type ArgumentsError struct {
	// Tool is the tool's name.
	Tool string
	// Problem describes the error.
	Problem string
	// Offset is the byte offset at which the arguments stop being JSON, or -1 if
	// they are JSON that does not match the schema.
	Offset int64
	// Schema is the schema that the arguments must match.
	Schema item.JSON
}

func (e *ArgumentsError) Error() string {
	return fmt.Sprintf("invalid arguments for %s: %s\nThe tool was not run. The arguments must be a JSON object that matches this schema:\n%s",
		e.Tool, e.Problem, e.Schema)
}

// jsonOptions are the options for decoding arguments and encoding results: a
// duration is text such as "90s".
var jsonOptions = json.JoinOptions(
	json.WithMarshalers(json.MarshalToFunc(func(enc *jsontext.Encoder, d time.Duration) error {
		return enc.WriteToken(jsontext.String(d.String()))
	})),
	json.WithUnmarshalers(json.UnmarshalFunc(func(b []byte, d *time.Duration) error {
		s, ok := item.JSON(b).Unquote()
		if string(b) == "null" {
			return nil
		} else if !ok {
			return fmt.Errorf("want a text such as 90s")
		}
		v, err := time.ParseDuration(s)
		*d = v
		return err
	})),
	json.Deterministic(true),
)

// unmarshal decodes JSON into a value. Options cost a look-up for each value, so types
// without a duration are decoded without.
func (s *schema) unmarshal(b []byte, in any) error {
	if s.plain {
		return json.Unmarshal(b, in)
	}
	return json.Unmarshal(b, in, jsonOptions)
}

// check parses and validates args. An empty text counts as an empty object.
func (s *schema) check(tool, args string) error {
	if jsontext.Value(args).IsValid() && isObject(item.JSON(args)) {
		if _, fits := s.form.skim(args, 0); fits {
			return nil
		}
	}
	_, err := s.parse(tool, args)
	return err
}

// decode checks args and stores them in the value that in points to.
func (s *schema) decode(tool, args string, in any) error {
	args, err := s.parse(tool, args)
	if err != nil {
		return err
	}
	return s.store(tool, args, in)
}

// quick is a fast path of decode for arguments that clearly fit. If it returns
// false, the arguments may still be valid, and in may hold anything.
func (s *schema) quick(args string, in any) bool {
	if s.unmarshal([]byte(args), in) != nil {
		return false // it may not even be JSON
	}
	_, fits := s.form.skim(args, 0)
	return fits && isObject(item.JSON(args))
}

// store decodes valid arguments into the value that in points to.
func (s *schema) store(tool, args string, in any) error {
	err := s.unmarshal([]byte(args), in)
	if err == nil {
		return nil
	}
	// JSON Schema accepts 10.0 as an integer; the decoder does not.
	if s.unmarshal(plainIntegers(args), in) == nil {
		return nil
	}
	return &ArgumentsError{Tool: tool, Problem: decodeProblem(err), Offset: -1, Schema: s.text}
}

// parse returns the arguments as a JSON object that fits the schema.
func (s *schema) parse(tool, args string) (string, error) {
	if strings.TrimSpace(args) == "" {
		args = "{}"
	}
	v, err := parseValue(args)
	if err != nil {
		problem, offset := syntaxProblem(args, err)
		return "", &ArgumentsError{Tool: tool, Problem: problem, Offset: offset, Schema: s.text}
	}
	object, ok := v.(map[string]any)
	if !ok {
		problem := fmt.Sprintf("want a JSON object, got %s", kindName(v))
		return "", &ArgumentsError{Tool: tool, Problem: problem, Offset: -1, Schema: s.text}
	}
	if problem := s.form.explain(object); problem != "" {
		return "", &ArgumentsError{Tool: tool, Problem: problem, Offset: -1, Schema: s.text}
	}
	return args, nil
}

func syntaxProblem(args string, err error) (string, int64) {
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		return fmt.Sprintf("not valid JSON at byte %d: %v%s", syn.ByteOffset, syn.Err, near(args, syn.ByteOffset)), syn.ByteOffset
	}
	return decodeProblem(err), -1
}

// near quotes the text around an offset.
func near(s string, offset int64) string {
	const around = 20
	at := min(int(offset), len(s))
	from, to := max(0, at-around), min(len(s), at+around)
	if from == to {
		return ""
	}
	return fmt.Sprintf(", near %q", strings.ToValidUTF8(s[from:to], ""))
}

func decodeProblem(err error) string {
	var sem *json.SemanticError
	if !errors.As(err, &sem) {
		return err.Error()
	}
	what := "the value"
	if sem.JSONPointer != "" {
		what = "the value at " + string(sem.JSONPointer)
	}
	if t := sem.GoType; t != nil {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		var layout *time.ParseError
		if t == reflect.TypeFor[time.Time]() && (!errors.As(sem.Err, &layout) || strings.HasPrefix(layout.Layout, time.RFC3339)) {
			is := ""
			if layout != nil {
				is = fmt.Sprintf(" is %q", output.Clip(layout.Value, maxValueText))
			}
			return fmt.Sprintf("%s%s: want a date and time of %s", what, is, timeExample)
		}
		what = fmt.Sprintf("%s does not fit %v", what, t)
	}
	if sem.Err != nil {
		return fmt.Sprintf("%s: %v", what, sem.Err)
	}
	return what
}

func kindName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case float64, *big.Rat:
		return "a number"
	case []any:
		return "an array"
	}
	return "an object"
}
