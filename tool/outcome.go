// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
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

// Outcome is the outcome of one call: the output to send, and what happened.
type Outcome struct {
	// Content is the output as the model sees it, never empty.
	Content item.Content
	// Failed reports a failure; Failure says which.
	Failed  bool
	Failure Failure
	// Error is the text of a failure without the envelope.
	Error string
	// Panic holds the value and the stack of a panic, for the caller's log. The
	// model sees the value only.
	Panic *PanicError
	// Abandoned reports that the tool did not return when its context ended.
	// Its goroutine may still be running; what it returns is dropped.
	Abandoned bool
	// Repairs counts what had to be changed to make the output valid text. See
	// [Sanitize].
	Repairs int
	// LeftOut counts the bytes of text that the Content does not have: marks in
	// it tell where.
	LeftOut int
	// Stored are the ids under which texts that were shortened are kept whole.
	Stored []string
	// Originals are the ids under which images and files are kept that were refused,
	// or in whose place others are sent.
	Originals []string
	// Commands are those of the [Result], for the answer to a shell_call. There
	// are none where the Content is shorter than what the tool returned.
	Commands []item.ShellOutput
	// SpillError is why what was left out could not be stored. The marks say
	// that it is gone.
	SpillError error

	whole *whole // for Fit
}

// PanicError is a panic in a tool.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("the tool panicked: %v", e.Value) }

// Shape says how outputs are written. The zero value writes them as they are.
type Shape struct {
	// Envelope wraps successes too. Failures always are.
	Envelope bool
	// Limit bounds the text of each output, unless its tool has a limit of its
	// own: see [MaxOutput]. A tool made by [ReadOutput] in the same set keeps
	// what is left out.
	Limit Limiter
	// Turn bounds the texts of all outputs of one turn together, but for the
	// floor that each has: see [Share]. Whoever invokes the calls of a turn
	// applies it, by [Shape.Fit]. Its mode is not used.
	Turn Limiter
	// Usual bounds the text of each output where neither its tool nor Limit says
	// anything. Package agent sets it; Limit{} as the Limit asks for no bound.
	Usual Limiter
	// Tokens counts tokens; nil means [EstimateTokens].
	Tokens Counter
	// Secrets are texts that no model is to see, such as the key of the endpoint:
	// where one stands in an output, there is [Redacted] in its place. Those of
	// fewer than 8 bytes are passed over.
	Secrets []string
	// Images makes images fit; nil means that they are sent as they are if they
	// look whole and have no more than [MaxImageBytes]. See package picture.
	Images Imager
}

// target is what an outcome is made for.
type target struct {
	shape Shape
	name  string
	own   Limiter // of the tool; nil if it has none
	usual Limiter // where there is neither own nor one of the shape
	spill Spill
}

// outcome shapes a result: T1 to T7 and T9 to T11.
func (t *target) outcome(ctx context.Context, res Result, why Failure) Outcome {
	res.settleLong(t.shape.Secrets)
	var originals []string
	res.settle(t.shape.Images, func(data []byte) string {
		id, said := t.keepOriginal(ctx, data)
		if id != "" {
			originals = append(originals, id)
		}
		return said
	})
	if len(res.Commands) > 0 {
		res.settleCommands()
	}
	res.redact(t.shape.Secrets)
	begin := res.Text
	if res.long != nil {
		begin = res.long.Slice(0, pieceSize)
	}
	if posesAsEnvelope(begin) {
		t.shape.Envelope = true
	}
	if res.page == nil {
		res.Text = disown(res.Text)
	}
	if res.Error != "" && why == NoFailure {
		why = ToolError
	}
	o := Outcome{Failed: why != NoFailure, Failure: why, Repairs: res.repairs, Commands: res.Commands, Originals: originals}
	if o.Failed {
		var n int
		o.Error, n = Sanitize(res.Error)
		o.Error = redacted(o.Error, t.shape.Secrets)
		o.Repairs += n
		if strings.TrimSpace(o.Error) == "" {
			o.Error = NoErrorText
		}
	}
	bounded := res.page != nil || res.Limit != nil || t.own != nil || t.usual != nil || t.shape.Limit != nil || t.shape.Turn != nil || t.shape.Usual != nil
	if res.long != nil && !bounded {
		res.Text, res.long = res.long.whole(), nil
	}
	if res.long == nil {
		o.Content = t.content(o.Failed, res.list, o.Error, res.Text, res.Parts)
	}
	if !bounded {
		return o
	}
	return t.limited(ctx, o, res)
}

// keepOriginal keeps what the model does not get, and returns the id and the words
// that say so, for the end of a sentence. Without a spill there are none.
func (t *target) keepOriginal(ctx context.Context, data []byte) (id, said string) {
	if t.spill == nil || len(data) == 0 {
		return "", ""
	}
	id, err := putChecked(ctx, t.spill, data)
	if err != nil {
		return "", "; the original is lost, for it could not be kept: " + shorten(err.Error(), maxProblemText)
	}
	return id, "; the original is " + storedOriginal + id
}

// What stands before the id of something that is kept.
const (
	storedWhole    = ReadOutputName + " with id "
	storedOriginal = "kept with the id "
)

// StoredIDs returns the ids that an output's text names, in the words in which this
// package names what it kept: the whole of what was shortened, and originals that
// were refused or replaced. A text that only looks like that names ids under which
// nothing is kept. The text may be the output item's JSON.
func StoredIDs(text string) (ids []string) {
	for {
		at, length := strings.Index(text, storedWhole), len(storedWhole)
		if i := strings.Index(text, storedOriginal); i >= 0 && (at < 0 || i < at) {
			at, length = i, len(storedOriginal)
		}
		if at < 0 {
			return ids
		}
		text = text[at+length:]
		id := text[:len(text)-len(strings.TrimLeft(text, nameLetters))]
		if checkStoredID(id, nil) == nil {
			ids = append(ids, id)
		}
	}
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// putChecked keeps data in a spill, also when the call is cancelled.
func putChecked(ctx context.Context, s Spill, data []byte) (id string, err error) {
	id, err = s.Put(context.WithoutCancel(ctx), data)
	return id, checkStoredID(id, err)
}

// checkStoredID reports an id that no mark can name.
func checkStoredID(id string, err error) error {
	if err == nil && (id == "" || len(id) > maxID || CheckName(id) != nil) {
		return fmt.Errorf("the id %q of a stored output is not 1 to %d letters, digits, '_' and '-'", id, maxID)
	}
	return err
}

// limited shapes an outcome that a limit may be for. It is apart from outcome,
// which then keeps nothing.
func (t *target) limited(ctx context.Context, o Outcome, res Result) Outcome {
	w := &whole{target: *t, failed: o.Failed, err: o.Error, text: res.Text, long: res.long, parts: res.Parts, list: res.list, asked: res.Limit}
	o.whole = w
	for _, s := range []shortener{res.page, t.own, t.shape.Limit, t.usual, t.shape.Usual, res.Limit} {
		if s != nil {
			s.shorten(ctx, &o, w)
			return o
		}
	}
	if w.long != nil { // the limit of the turn cuts from the whole
		w.text, w.long = w.long.whole(), nil
		o.Content = w.content(w.failed, w.list, w.err, w.text, w.parts)
	}
	return o
}

// whole is an output before anything of it is left out.
type whole struct {
	target
	failed bool
	err    string
	text   string
	long   *long       // in place of the text, if it is too long for the memory
	parts  []item.Part // after the text
	asked  Limiter     // by the tool, of this output
	list   bool        // the content is a list, even if it has one text alone
	page   paged       // of the text, or nil
	limit  Limiter     // of this output by itself, or nil
}

// content puts texts and parts together: T3 to T5. A list stays one, even if it
// has one text alone.
func (t *target) content(failed, list bool, errText, text string, parts []item.Part) item.Content {
	switch {
	case failed || t.shape.Envelope:
		text = Envelope(failed, t.name, errText, text)
	case text == "" && len(parts) == 0:
		return item.Text(NoOutput)
	}
	if !list {
		return item.Text(text)
	}
	if text != "" {
		parts = append([]item.Part{&item.InputText{Text: text}}, parts...)
	}
	return item.Parts(parts...)
}
