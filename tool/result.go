// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool/output"
)

// Result is what a tool returns. The zero value is a success without output.
type Result = output.Result

// Unsent is a part of an output that cannot be sent. See [Result].
type Unsent = output.Unsent

// The errors of calls that were stopped. The words never change, so that a model
// learns them and equal histories stay equal.
const (
	// Interrupted is the error of a call that was stopped while it ran.
	Interrupted = "The call was interrupted before the tool finished. What it did until then is not known."
	// NotStarted is the error of a call that was stopped before it ran.
	NotStarted = "The call was cancelled before the tool started. Nothing was done."
)

// Failure says how a call failed.
type Failure string

// The ways to fail. Only after UnknownTool, BadArguments and NotRun is it certain
// that nothing was done.
const (
	NoFailure    Failure = ""
	UnknownTool  Failure = "unknown_tool"  // no tool has this name
	BadArguments Failure = "bad_arguments" // malformed, or invalid by the schema
	NotRun       Failure = "not_run"       // cancelled before it started
	Unfinished   Failure = "unfinished"    // what a polling tool asks about is not there yet
	ToolError    Failure = "tool_error"    // the tool reported an error, or its result cannot be sent
	Panicked     Failure = "panic"         // the tool panicked
	TimedOut     Failure = "timeout"       // the tool's own time limit passed
	Cancelled    Failure = "cancelled"     // the caller's context ended
)

// Outcome is the outcome of one call: the output to send, and what happened.
type Outcome struct {
	output.Output
	// Failure says how the call failed, if it did.
	Failure Failure
	// Panic holds the value and the stack of a panic, for the caller's log. The
	// model sees the value only.
	Panic *PanicError
	// NotYet is what a polling tool said if the Failure is Unfinished.
	NotYet *NotYet
	// Abandoned reports that the tool did not return when its context ended. Its
	// goroutine may still be running; its result is dropped.
	Abandoned bool
}

// target is the destination of an outcome.
type target struct {
	policy output.Policy
	from   output.Source
}

// outcome writes a result: T1 to T7 and T9 to T11. What the program brings for that, such as a
// counter, may panic: the call then fails, with its text as far as that needs nothing of it.
func (t *target) outcome(ctx context.Context, res Result, why Failure) (o Outcome) {
	defer func() {
		if v := recover(); v != nil {
			plain := output.Policy{Secrets: t.policy.Secrets, Limit: &output.Limit{Bytes: output.DefaultBytes}}
			lost := Result{Text: res.Text, Error: output.Clip(fmt.Sprintf("the tool has ended, and writing its output panicked: %v", v), maxProblemText)}
			o = Outcome{Output: plain.Write(ctx, output.Source{Name: t.from.Name}, lost, true), Failure: Panicked, Panic: &PanicError{Value: v, Stack: debug.Stack()}}
		}
	}()
	o = Outcome{Output: t.policy.Write(ctx, t.from, res, why != NoFailure), Failure: why}
	if o.Failed && why == NoFailure { // the result is an error, or cannot be sent
		o.Failure = ToolError
	}
	return o
}

// PanicError is a panic in a tool.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("the tool panicked: %v", e.Value) }

// resultOf turns the value of a typed function into a result: T1, T2 and T5.
func resultOf(out any) (Result, error) {
	switch v := out.(type) {
	case nil:
		return Result{}, nil
	case string:
		return Result{Text: v}, nil
	case Result:
		return v, nil
	case *Result:
		if v == nil {
			return Result{}, nil
		}
		return *v, nil
	case item.Content:
		if v.IsText() {
			return Result{Text: v.Text}, nil
		}
		return Result{Parts: v.Parts}, nil
	case []item.Part:
		return Result{Parts: v}, nil
	case []byte:
		return bytesResult(v)
	case item.JSON:
		return jsonResult([]byte(v))
	}
	if p, ok := out.(item.Part); ok {
		return Result{Parts: []item.Part{p}}, nil
	}
	return valueResult(out)
}

// bytesResult detects whether bytes are an image, a PDF or text.
func bytesResult(b []byte) (Result, error) {
	switch {
	case output.SniffPicture(b) != "":
		return Result{Parts: []item.Part{output.DataImage(b)}}, nil
	case output.SniffFile("", b) == "application/pdf":
		return Result{Parts: []item.Part{output.DataFile("output.pdf", b)}}, nil
	case !output.IsText(b):
		return Result{}, fmt.Errorf("the tool returned %d bytes that are neither text, a PDF nor a PNG, JPEG, GIF or WebP image", len(b))
	}
	return Result{Text: string(b)}, nil
}

func valueResult(out any) (Result, error) {
	b, err := json.Marshal(out, jsonOptions)
	repairs := 0
	if err != nil {
		// Invalid UTF-8 somewhere in a value must not lose the whole output.
		var again error
		if b, again = json.Marshal(out, jsonOptions, jsontext.AllowInvalidUTF8(true)); again != nil {
			return Result{}, fmt.Errorf("the tool's result cannot be written as JSON: %w", err)
		}
		repairs = 1
	}
	res, err := jsonResult(b)
	res.Repairs += repairs
	return res, err
}

// jsonResult reads a JSON value as output. Null and the empty object are no output;
// a string is its text; an object with a string "output" is that text; every other
// value is compact JSON.
func jsonResult(b []byte) (Result, error) {
	v := jsontext.Value(b)
	if len(bytes.TrimSpace(b)) == 0 {
		return Result{}, nil
	}
	if err := v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return Result{}, fmt.Errorf("the tool's result is not valid JSON: %w", err)
	}
	switch v.Kind() {
	case 'n':
		return Result{}, nil
	case '"':
		return textResult(item.JSON(v)), nil
	case '{':
		if string(v) == "{}" {
			return Result{}, nil
		}
		if s := outputMember(v); s != "" {
			return textResult(s), nil
		}
	}
	return Result{Text: string(v)}, nil
}

// textResult returns the text of a JSON string as a result.
func textResult(lit item.JSON) Result {
	s, _ := lit.Unquote()
	return Result{Text: s, Repairs: loneSurrogates(string(lit))}
}

// outputMember returns the member "output" if it is a string.
func outputMember(v jsontext.Value) item.JSON {
	var members struct {
		Output jsontext.Value `json:"output"`
	}
	err := json.Unmarshal(v, &members, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || members.Output.Kind() != '"' {
		return ""
	}
	return item.JSON(members.Output)
}

// loneSurrogates counts the escapes of unpaired surrogates in a JSON string.
// Decoding replaces them.
func loneSurrogates(lit string) int {
	n := 0
	high := -1 // the end of the last high surrogate that has no low surrogate yet
	for i := 0; i+1 < len(lit); i++ {
		if lit[i] != '\\' {
			continue
		}
		i++
		if lit[i] != 'u' || i+4 >= len(lit) {
			continue
		}
		switch lit[i+1 : i+3] {
		case "d8", "d9", "da", "db", "D8", "D9", "Da", "Db", "DA", "DB", "dA", "dB":
			n++
			high = i + 5
		case "dc", "dd", "de", "df", "Dc", "Dd", "De", "Df", "DC", "DD", "DE", "DF", "dC", "dD", "dE", "dF":
			if n++; high == i-1 {
				n -= 2
			}
			high = -1
		}
	}
	return n
}
