// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import "github.com/antiphon-go/antiphon/item"

// NameOfKind returns the name by which policies and people know the API's own
// tool that calls of this type are for, if such calls can be run here, or "". An
// [*item.ApplyPatchTool] is apply_patch, an [*item.ShellTool] shell, an
// [*item.LocalShellTool] local_shell.
func NameOfKind(call item.Type) string {
	switch call {
	case item.TypeApplyPatchCall:
		return "apply_patch"
	case item.TypeShellCall:
		return "shell"
	case item.TypeLocalShellCall:
		return "local_shell"
	}
	return ""
}

// callKindOf returns the type of the calls of one of the API's own tools, or "".
func callKindOf(def item.Tool) item.Type {
	switch d := def.(type) {
	case *item.ApplyPatchTool:
		if d != nil {
			return item.TypeApplyPatchCall
		}
	case *item.ShellTool:
		if d != nil {
			return item.TypeShellCall
		}
	case *item.LocalShellTool:
		if d != nil {
			return item.TypeLocalShellCall
		}
	}
	return ""
}

func nameOfHosted(def item.Tool) string { return NameOfKind(callKindOf(def)) }

// Kinds returns the types of the calls of the API's own tools that are in the
// set.
func (s *Set) Kinds() (kinds []item.Type) {
	for _, e := range s.list() {
		if e.kind != "" {
			kinds = append(kinds, e.kind)
		}
	}
	return kinds
}
