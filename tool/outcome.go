// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/item"
)

// The sentences that stand where there is nothing else to say, always the same
// so that a model learns them and a history stays equal.
const (
	// NoOutput is the output of a success that put nothing out.
	NoOutput = "The tool ran successfully and returned no output."
	// NoErrorText is the error of a failure that named no reason.
	NoErrorText = "The tool failed and gave no reason."
	// Interrupted is the error of a call that was stopped while it ran.
	Interrupted = "The call was interrupted before the tool finished. What it did until then is not known."
	// NotStarted is the error of a call that was stopped before it ran.
	NotStarted = "The call was cancelled before the tool started. Nothing was done."
)

// Failure says how a call failed.
type Failure string

// The ways to fail. Of these, only UnknownTool, BadArguments and NotRun are
// certain to have done nothing.
const (
	NoFailure    Failure = ""
	UnknownTool  Failure = "unknown_tool"  // no tool of that name
	BadArguments Failure = "bad_arguments" // malformed, or not as the schema says
	NotRun       Failure = "not_run"       // cancelled before it started
	ToolError    Failure = "tool_error"    // the tool said so, or its result cannot be sent
	Panicked     Failure = "panic"         // the tool panicked
	TimedOut     Failure = "timeout"       // its own time limit passed
	Cancelled    Failure = "cancelled"     // the caller's context ended
)

// Outcome is what came of one call: the output to send, and what happened.
type Outcome struct {
	// Content is the output as the model sees it, never empty.
	Content item.Content
	// Failed reports a failure; Failure says which.
	Failed  bool
	Failure Failure
	// Error is the text of a failure without the envelope.
	Error string
	// Panic holds the value and the stack of a panic, for the caller's log. The
	// model is told the value only.
	Panic *PanicError
	// Abandoned reports that the tool did not return when its context ended.
	// Its goroutine may still be running; what it returns is dropped.
	Abandoned bool
	// Repairs counts what had to be changed to make the output valid text. See
	// [Sanitize].
	Repairs int
}

// PanicError is a panic in a tool.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("the tool panicked: %v", e.Value) }

// Shape says how outputs are written.
type Shape struct {
	// Envelope wraps successes too. Failures always are.
	Envelope bool
}

// outcome shapes a result: T1 to T5 and T9.
func (sh Shape) outcome(name string, res Result, why Failure) Outcome {
	res.settle()
	if res.Error != "" && why == NoFailure {
		why = ToolError
	}
	o := Outcome{Failed: why != NoFailure, Failure: why, Repairs: res.repairs}
	text := res.Text
	switch {
	case o.Failed:
		var n int
		o.Error, n = Sanitize(res.Error)
		o.Repairs += n
		if strings.TrimSpace(o.Error) == "" {
			o.Error = NoErrorText
		}
		text = Envelope(true, name, o.Error, text)
	case sh.Envelope:
		text = Envelope(false, name, "", text)
	case text == "" && len(res.Parts) == 0:
		o.Content = item.Text(NoOutput)
		return o
	}
	if !res.list {
		o.Content = item.Text(text)
		return o
	}
	parts := res.Parts
	if text != "" {
		parts = append([]item.Part{&item.InputText{Text: text}}, parts...)
	}
	o.Content = item.Parts(parts...)
	return o
}
