// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
)

//go:embed patch.md
var applyPatchText string

// PatchForm says how a model hands a patch over.
type PatchForm int

const (
	// PatchFunction is a function tool: {"input": "*** Begin Patch…"}. Every
	// endpoint takes it.
	PatchFunction PatchForm = iota
	// PatchCustom is a custom tool whose input is the patch itself, bound to
	// [PatchGrammar]. It is what the models that know the format were trained
	// on; the endpoint must take custom tools with a Lark grammar.
	PatchCustom
)

// PatchGrammar is the form of a patch, in Lark. What [ApplyPatch] takes is a
// little wider.
const PatchGrammar = `start: begin section+ end
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

// ApplyPatch returns the tool that changes files by a patch: it adds, updates,
// moves and deletes, in any number of files, all of it or nothing. The tool is
// exclusive.
func ApplyPatch(name string, f *Files, form PatchForm) (tool.Tool, error) {
	if form == PatchFunction {
		return tool.New(name, f.describe(applyPatchText), func(ctx context.Context, in applyPatchInput) (string, error) {
			return f.ApplyPatch(ctx, in.Input)
		}, tool.Exclusive())
	}
	def := &item.CustomTool{
		Name:        name,
		Description: f.describe(applyPatchText),
		Format:      item.FormatGrammar(item.SyntaxLark, PatchGrammar),
	}
	return tool.Raw(def, func(ctx context.Context, call tool.Call) (tool.Result, error) {
		text, err := f.ApplyPatch(ctx, call.Arguments)
		return tool.Result{Text: text}, err
	}, tool.Exclusive())
}

// ApplyPatch applies a patch in its envelope and returns a line for each file:
// A added, M modified or moved, D deleted. On an error nothing was changed,
// unless the error says so; it joins a [*PatchError] for each part that does
// not fit.
//
// The lines of a hunk are found by their text: as they are, or else with other
// white space, or else with other quotes and dashes. A hunk that fits in two
// places fits in none. Line ends, a byte order mark, modes and what no hunk
// touches stay as they are.
func (f *Files) ApplyPatch(ctx context.Context, patch string) (string, error) {
	sections, err := parsePatch(patch)
	if err != nil {
		return "", fmt.Errorf("nothing was changed, in no file: %w", err)
	}
	return f.applyPatch(ctx, sections, patchDisk{})
}

// ApplyOperation does what the API's own patch tool asks for: it creates,
// updates or deletes one file.
func (f *Files) ApplyOperation(ctx context.Context, op *item.PatchOperation) (string, error) {
	if op == nil {
		return "", &PatchError{Problem: "the call has no operation; nothing was changed"}
	}
	ops := map[string]patchOp{item.PatchCreate: patchAdd, item.PatchUpdate: patchUpdate, item.PatchDelete: patchDelete}
	kind, known := ops[op.Type]
	if !known {
		return "", &PatchError{Path: op.Path, Problem: fmt.Sprintf("an operation of type %q is not known; there are %s, %s and %s. Nothing was changed", op.Type, item.PatchCreate, item.PatchUpdate, item.PatchDelete)}
	}
	section, err := parseDiff(kind, op.Path, op.Diff)
	if err != nil {
		return "", fmt.Errorf("nothing was changed, in no file: %w", err)
	}
	return f.applyPatch(ctx, []filePatch{section}, patchDisk{})
}

// AnswerPatchCall runs an apply_patch_call item and returns the item that
// answers it, with status completed or failed. The error is of the item: it is
// no such call, or it cannot be read.
func (f *Files) AnswerPatchCall(ctx context.Context, call item.Item) (item.Item, error) {
	if call.Type() != item.TypeApplyPatchCall {
		return item.Item{}, fmt.Errorf("toolkit: an item of type %q is not an apply_patch_call", call.Type())
	}
	c, err := item.As[item.ApplyPatchCall](call)
	if err != nil {
		return item.Item{}, err
	}
	out := &item.ApplyPatchCallOutput{CallID: call.CallID(), Status: item.StatusCompleted}
	text, err := f.ApplyOperation(ctx, c.Operation)
	if err != nil {
		out.Status = item.StatusFailed
		text = tool.Envelope(true, string(item.TypeApplyPatchCall), err.Error(), text)
	}
	out.Output, _ = tool.Sanitize(text)
	return item.New(out)
}
