// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	_ "embed"
	"strings"

	"github.com/antiphon-go/antiphon/tool/output"
)

// ReadOutputName is the name of the tool that [ReadOutput] returns. The marks in
// shortened outputs mention it.
const ReadOutputName = output.ReadToolName

// The size of a page of [ReadOutput]: the default and the maximum.
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

// ReadOutput returns the tool that reads the parts left out of an output. If it is
// in a [Set], the set's other tools store their outputs in s when they are
// shortened, and the marks say how to read them. Its own outputs are pages: they end
// where a limit requires it and are never stored again.
func ReadOutput(s output.Store) Tool {
	r := &readOutput{store: s}
	r.Tool = Must(ReadOutputName, strings.TrimSpace(readOutputText), r.run)
	return r
}

type readOutput struct {
	Tool
	store output.Store
}

func (r *readOutput) Annotations() Annotations { return Annotations{ReadOnly: true, Idempotent: true} }
func (r *readOutput) keeps() output.Store      { return r.store }

func (r *readOutput) checksArguments(args string) error {
	return selfChecked(r.Tool).checksArguments(args)
}

func (r *readOutput) run(ctx context.Context, in readOutputInput) (Result, error) {
	limit := min(cmp.Or(in.Limit, PageBytes), MaxPageBytes)
	return output.Read(ctx, r.store, in.ID, in.Offset, limit)
}
