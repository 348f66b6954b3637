// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tool

import "github.com/antiphon-go/antiphon/item"

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

func nameOfHosted(def item.Tool) string { return callKindOf(def).Tool() }

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
