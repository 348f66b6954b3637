// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package patch holds the tool that changes files by a patch, in many files at
// once or in none: the text that a model writes (parse.go), its lines found in a
// file (text.go), what does not fit explained (explain.go), all of it planned in
// memory (plan.go) and then brought to the disk (commit.go). toolkit.Open opens
// the roots that a patch can reach.
package patch

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

//go:embed patch.md
var applyPatchText string

// Form says how a model hands a patch over. The zero value is [Custom].
type Form string

// The forms.
const (
	// Custom is a custom tool whose input is the patch itself, bound to [Grammar].
	// It is what the models that know the format were trained on; the endpoint
	// must take custom tools with a Lark grammar.
	Custom Form = "custom"
	// Function is a function tool: {"input": "*** Begin Patch…"}. Every endpoint
	// takes it.
	Function Form = "function"
	// API is the API's own tool apply_patch, always of that name: each call
	// creates, updates or deletes one file.
	API Form = "api"
)

// Grammar is the form of a patch, in Lark. What [Apply] takes is a little wider.
const Grammar = `start: begin section+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?

section: add | delete | update
add: "*** Add File: " path LF added+
delete: "*** Delete File: " path LF
update: "*** Update File: " path LF move? change?

path: /(.+)/
move: "*** Move to: " path LF
change: (anchor | line)+ last?
anchor: ("@@" | "@@ " /(.+)/) LF
added: "+" /(.*)/ LF
line: ("+" | "-" | " ") /(.*)/ LF
last: "*** End of File" LF

%import common.LF
`

type applyPatchInput struct {
	Input string `json:"input" jsonschema:"the whole patch, from *** Begin Patch to *** End Patch"`
}

// Tool returns the tool that changes files by a patch: it adds, updates,
// moves and deletes, in any number of files, all of it or nothing. It works in the
// roots of f and is exclusive.
func Tool(name string, f *files.Files, form Form) (tool.Tool, error) {
	switch form {
	case "", Custom:
		return customTool(name, f)
	case Function:
		return tool.New(name, f.Describe(applyPatchText), func(ctx context.Context, in applyPatchInput) (string, error) {
			return Apply(ctx, f, in.Input)
		}, tool.Exclusive())
	case API:
		return apiTool(f)
	}
	return nil, fmt.Errorf("patch: form is %q, want %q, %q or %q", form, Custom, Function, API)
}

func customTool(name string, f *files.Files) (tool.Tool, error) {
	def := &item.CustomTool{
		Name:        name,
		Description: f.Describe(applyPatchText),
		Format:      item.FormatGrammar(item.SyntaxLark, Grammar),
	}
	return tool.Raw(def, func(ctx context.Context, call tool.Call) (tool.Result, error) {
		text, err := Apply(ctx, f, call.Arguments)
		return tool.Result{Text: text}, err
	}, tool.Exclusive())
}

func apiTool(f *files.Files) (tool.Tool, error) {
	return tool.Raw(new(item.ApplyPatchTool), func(ctx context.Context, call tool.Call) (tool.Result, error) {
		var op struct {
			Type string `json:"type"`
			Path string `json:"path"`
			Diff string `json:"diff"`
		}
		if err := json.Unmarshal([]byte(call.Arguments), &op, json.MatchCaseInsensitiveNames(true)); err != nil {
			return tool.Result{}, fmt.Errorf("the operation cannot be read: %w. Nothing was changed", err)
		}
		text, err := ApplyOperation(ctx, f, &item.PatchOperation{Type: op.Type, Path: op.Path, Diff: op.Diff})
		return tool.Result{Text: text}, err
	}, tool.Exclusive())
}

// Apply applies a patch in its envelope and returns a line for each file:
// A added, M modified or moved, D deleted. On an error nothing was changed,
// unless the error says so; it joins a [*Error] for each part that does not fit.
//
// The lines of a hunk are found by their text: as they are, or else with other
// white space, or else with other quotes and dashes. A hunk that fits in two
// places fits in none. Line ends, a byte order mark, modes and what no hunk
// touches stay as they are.
func Apply(ctx context.Context, f *files.Files, patch string) (string, error) {
	sections, err := parsePatch(patch)
	if err != nil {
		return "", fmt.Errorf("nothing was changed, in no file: %w", err)
	}
	return applySections(ctx, f, sections, patchDisk{})
}

// ApplyOperation does what the API's own patch tool asks for: it creates,
// updates or deletes one file.
func ApplyOperation(ctx context.Context, f *files.Files, op *item.PatchOperation) (string, error) {
	if op == nil {
		return "", &Error{Problem: "the call has no operation; nothing was changed"}
	}
	ops := map[string]patchOp{item.PatchCreate: patchAdd, item.PatchUpdate: patchUpdate, item.PatchDelete: patchDelete}
	kind, known := ops[op.Type]
	if !known {
		return "", &Error{Path: op.Path, Problem: fmt.Sprintf("an operation of type %q is not known; there are %s, %s and %s. Nothing was changed", op.Type, item.PatchCreate, item.PatchUpdate, item.PatchDelete)}
	}
	section, err := parseDiff(kind, op.Path, op.Diff)
	if err != nil {
		return "", fmt.Errorf("nothing was changed, in no file: %w", err)
	}
	return applySections(ctx, f, []filePatch{section}, patchDisk{})
}

// AnswerCall runs an apply_patch_call item and returns the item that
// answers it, with status completed or failed. The error is of the item: it is
// no such call, or it cannot be read.
func AnswerCall(ctx context.Context, f *files.Files, call item.Item) (item.Item, error) {
	if call.Type() != item.TypeApplyPatchCall {
		return item.Item{}, fmt.Errorf("patch: an item of type %q is not an apply_patch_call", call.Type())
	}
	c, err := item.As[item.ApplyPatchCall](call)
	if err != nil {
		return item.Item{}, err
	}
	out := &item.ApplyPatchCallOutput{CallID: call.CallID(), Status: item.StatusCompleted}
	text, err := ApplyOperation(ctx, f, c.Operation)
	if err != nil {
		out.Status = item.StatusFailed
		text = tool.Envelope(true, string(item.TypeApplyPatchCall), err.Error(), text)
	}
	out.Output, _ = tool.Sanitize(text)
	return item.New(out)
}
