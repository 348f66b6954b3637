// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ReadOutputName is the name of [ReadOutput]'s tool, which the marks of
// shortened outputs give.
const ReadOutputName = "read_output"

// How much [ReadOutput] gives at once, unless it is told otherwise, and at
// most.
const (
	PageBytes    = 16 << 10
	MaxPageBytes = 64 << 10
)

//go:embed read_output.md
var readOutputText string

type readOutputInput struct {
	ID     string `json:"id" jsonschema:"the id in the mark"`
	Offset int    `json:"offset,omitempty" minimum:"0" jsonschema:"the byte to begin at; 0 unless given"`
	Limit  int    `json:"limit,omitempty" minimum:"1" jsonschema:"how many bytes to give, at most 65536; 16384 unless given"`
}

// ReadOutput returns the tool that reads what was left out of an output. Its
// presence in a [Set] is what makes the set's other tools keep their outputs in
// s when they are shortened, and the marks say how to read them. Its own outputs
// are pages: they end where a limit says so and are never stored again.
func ReadOutput(s Spill) Tool {
	r := &readOutput{spill: s}
	r.Tool = Must(ReadOutputName, strings.TrimSpace(readOutputText), r.run)
	return r
}

type readOutput struct {
	Tool
	spill Spill
}

func (r *readOutput) Annotations() Annotations { return Annotations{ReadOnly: true, Idempotent: true} }
func (r *readOutput) checksArguments()         {}
func (r *readOutput) keeps() Spill             { return r.spill }

func (r *readOutput) run(ctx context.Context, in readOutputInput) (Result, error) {
	limit := min(cmp.Or(in.Limit, PageBytes), MaxPageBytes)
	// A few bytes more on both sides show where characters begin and end.
	const around = utf8.UTFMax
	from := max(in.Offset-around, 0)
	data, size, err := r.spill.Get(ctx, in.ID, from, limit+3*around)
	switch {
	case errors.Is(err, ErrNotStored):
		return Result{}, fmt.Errorf("there is no stored output with the id %s; the id is in the mark of a shortened output", plainName(in.ID))
	case err != nil:
		return Result{}, err
	case in.Offset >= size:
		return Result{}, fmt.Errorf("offset %d is beyond the end: the output has %d bytes", in.Offset, size)
	}
	text := string(data)
	start := in.Offset - from
	for start > 0 && !utf8.RuneStart(text[start]) {
		start--
	}
	text = text[start:]
	if !isStoredText(text) {
		return Result{}, fmt.Errorf("what is kept with the id %s is not text but an image or a file of %d bytes: it cannot be read here, and the session keeps it", in.ID, size)
	}
	p := piece{text: stringBody(text)}
	end := p.lineEnd(0, min(len(text), max(limit, around)))
	return Result{Text: text[:end], page: &page{id: in.ID, offset: from + start, size: size}}, nil
}

// isStoredText reports whether a part of what was kept is of a text, which is valid
// and has no NUL, and not of an image or a file. Its last character may be incomplete.
func isStoredText(part string) bool {
	for range utf8.UTFMax - 1 {
		if r, n := utf8.DecodeLastRuneInString(part); r != utf8.RuneError || n != 1 {
			break
		}
		part = part[:len(part)-1]
	}
	return isText([]byte(part))
}
