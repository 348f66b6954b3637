// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// makeTools makes the declared tools and the policy that their approval
// attributes ask for.
func (f *File) makeTools(p places) (problems chatmd.ErrorList) {
	if len(f.Doc.Tools) == 0 {
		return nil
	}
	roots, problems := f.roots(p)
	files, err := toolkit.Open(roots...)
	if err != nil {
		return append(problems, problemAt(f.Doc.Name, f.Doc.Tools[0].Element, err.Error(), "", nil))
	}
	f.files = files
	seen := map[string]bool{}
	for _, decl := range f.Doc.Tools {
		if decl.Name == "" || declaresMore(decl) {
			continue // chatmd has said it
		}
		if seen[decl.Name] {
			problems = append(problems, problemAt(f.Doc.Name, decl.Element, fmt.Sprintf("a second tool %q", decl.Name), "declare each tool once", nil))
			continue
		}
		seen[decl.Name] = true
		if p := f.addTool(decl); p != nil {
			problems = append(problems, p)
		}
	}
	return problems
}

// declaresMore reports whether the declaration is not of a built-in tool.
func declaresMore(decl *chatmd.Tool) bool {
	for _, a := range decl.Attrs {
		switch a.Name {
		case "command", "agent", "mcp_server", "type":
			return true
		}
	}
	return false
}

func (f *File) addTool(decl *chatmd.Tool) *chatmd.Error {
	t, known := toolkit.ByName(decl.Name, f.files)
	if !known {
		names := toolkit.Names()
		return problemAt(f.Doc.Name, decl.Element, fmt.Sprintf("unknown tool %q", decl.Name), "there are: "+strings.Join(names, ", "), nil)
	}
	if decl.MaxOutput != nil {
		return problemAt(f.Doc.Name, decl.Element, "<tool max_output> is not built yet", "", chatmd.ErrNotBuilt)
	}
	switch decl.Approval {
	case "":
	case "allow":
		f.policy.Allow = append(f.policy.Allow, decl.Name)
	case "ask":
		f.policy.Ask = append(f.policy.Ask, decl.Name)
	case "deny":
		f.policy.Deny = append(f.policy.Deny, decl.Name)
	default:
		return problemAt(f.Doc.Name, decl.Element, fmt.Sprintf("<tool>: approval is %q", decl.Approval), `want "allow", "ask" or "deny"`, nil)
	}
	f.Tools = append(f.Tools, adjust(t, decl))
	return nil
}

// adjust gives a tool the description and the traits of its declaration.
func adjust(t tool.Tool, decl *chatmd.Tool) tool.Tool {
	a := &adjusted{Tool: t, def: t.Definition(), traits: tool.TraitsOf(t)}
	if fn, ok := a.def.(*item.FunctionTool); ok && decl.Description != "" {
		fn.Description = decl.Description
	}
	a.traits.Timeout = cmp.Or(decl.Timeout, a.traits.Timeout)
	if decl.Parallel != nil && !*decl.Parallel {
		a.traits.Exclusive = true
	}
	return a
}

// adjusted is a tool as a file declares it.
type adjusted struct {
	tool.Tool
	def    item.Tool
	traits tool.Traits
}

// Definition implements [tool.Tool].
func (a *adjusted) Definition() item.Tool { return a.def }

// Traits implements [tool.Trait].
func (a *adjusted) Traits() tool.Traits { return a.traits }

// roots are the folders that the file tools may look into: those declared, or
// else the workspace.
func (f *File) roots(p places) (roots []toolkit.Root, problems chatmd.ErrorList) {
	for _, decl := range f.Doc.Tools {
		for _, r := range decl.Roots {
			path, err := p.expand(r.Path)
			if err == nil {
				err = checkFolder(path)
			}
			if err != nil {
				problems = append(problems, problemAt(f.Doc.Name, r.Element, fmt.Sprintf("<read path=%q>", r.Path), "", err))
				continue
			}
			roots = append(roots, toolkit.Root{Name: r.ID, Path: path, Description: r.Description})
		}
	}
	if len(roots) == 0 {
		roots = []toolkit.Root{{Path: p.workspace}}
	}
	return roots, problems
}
