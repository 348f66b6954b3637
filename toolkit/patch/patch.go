// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package patch holds the tool that changes files by a patch, either all of them or
// none. It parses the text that a model writes (parse.go), finds the lines in the
// file (text.go), explains what does not fit (explain.go), plans the whole change
// in memory (plan.go) and then writes it to disk (commit.go). A patch can reach
// the roots that toolkit.Open opens.
package patch

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

//go:embed patch.md
var applyPatchText string

// Form is how a model passes a patch. The zero value means [Custom].
type Form string

// The forms of the tool.
const (
	// Custom is a custom tool whose input is the patch itself, constrained by
	// [Grammar]. Models that know the format were trained on this form. The endpoint
	// must support custom tools with a Lark grammar.
	Custom Form = "custom"
	// Function is a function tool: {"input": "*** Begin Patch…"}. All endpoints
	// support it.
	Function Form = "function"
	// API is the API's own tool, whose name is always apply_patch. Each call creates,
	// updates or deletes one file.
	API Form = "api"
)

// Grammar is the grammar of a patch, in Lark. [Apply] accepts slightly more.
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

// Tool returns the tool that changes files by a patch. The patch adds, updates,
// moves and deletes any number of files, and is applied as a whole or not at all.
// The tool works in the roots of f and is exclusive.
func Tool(name string, f *files.Files, form Form) (tool.Tool, error) {
	if err := files.Check(f); err != nil {
		return nil, err
	}
	t, err := newTool(name, f, form)
	if err != nil {
		return nil, err
	}
	return f.Guard(t, func(call tool.Call) []string { return written(call, form) }, files.None), nil
}

// written returns the paths of a patch. One that cannot be read changes nothing.
func written(call tool.Call, form Form) (paths []string) {
	texts := []string{call.Arguments}
	switch form {
	case API:
		return files.PathOf(call)
	case Function:
		texts = files.Texts(call.Arguments, "input")
	}
	for _, text := range texts {
		sections, _ := parsePatch(text)
		for _, s := range sections {
			paths = append(paths, s.path, s.moveTo)
		}
	}
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" })
}

func newTool(name string, f *files.Files, form Form) (tool.Tool, error) {
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
		op, err := files.Decode[struct {
			Type string `json:"type"`
			Path string `json:"path"`
			Diff string `json:"diff"`
		}](call.Arguments)
		if err != nil {
			return tool.Result{}, fmt.Errorf("the operation cannot be read: %w. Nothing was changed", err)
		}
		text, err := ApplyOperation(ctx, f, &item.PatchOperation{Type: op.Type, Path: op.Path, Diff: op.Diff})
		return tool.Result{Text: text}, err
	}, tool.Exclusive())
}

// Apply applies a patch with its envelope. It returns one line for each file: A for
// added, M for modified or moved, D for deleted. If it returns an error, nothing
// was changed, unless the error says so. The error joins an [*Error] for each
// part that does not fit.
//
// Apply finds the lines of a hunk by their text: unchanged or, failing that, with
// different white space or, failing that, with different quotes and dashes. It
// rejects a hunk that fits in two places. Line ends, the byte order mark, modes,
// and everything that no hunk touches remain unchanged.
func Apply(ctx context.Context, f *files.Files, patch string) (string, error) {
	sections, err := parsePatch(patch)
	if err != nil {
		return "", fmt.Errorf("nothing was changed, in no file: %w", err)
	}
	return applySections(ctx, f, sections, patchDisk{})
}

// ApplyOperation executes a call of the API's own patch tool: it creates, updates
// or deletes one file.
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
		text = output.Envelope(true, string(item.TypeApplyPatchCall), err.Error(), text)
	}
	out.Output, _ = output.Sanitize(text)
	return item.New(out)
}
