// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/patch"
	"github.com/antiphon-go/antiphon/toolkit/shell"
	"github.com/antiphon-go/antiphon/toolkit/web"
)

// makeTools makes the declared tools, and the policy from their approval attributes.
// Servers are only recorded here; see [File.Connect].
func (f *File) makeTools(ctx context.Context, p places, o Options) (problems chatmd.ErrorList) {
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
		if decl.Value("mcp_server") != "" {
			problems = add(problems, f.addServer(decl, p, o))
			continue
		}
		if decl.Hosted != nil {
			problems = add(problems, f.addHosted(decl, o))
			continue
		}
		if decl.Name == "" || decl.Flag("type") {
			continue // chatmd reported it
		}
		if seen[decl.Name] {
			problems = append(problems, problemAt(f.Doc.Name, decl.Element, fmt.Sprintf("a second tool %q", decl.Name), "declare each tool once", nil))
			continue
		}
		seen[decl.Name] = true
		problems = add(problems, f.addTool(ctx, decl, p, o))
	}
	return problems
}

// addHosted adds a tool that the endpoint runs. The endpoint asks about calls on an MCP
// server, so the approval of its declaration is a rule.
func (f *File) addHosted(decl *chatmd.Tool, o Options) *chatmd.Error {
	name := hostedName(decl.Hosted)
	for _, other := range f.Hosted {
		if hostedName(other) == name {
			return problemAt(f.Doc.Name, decl.Element, fmt.Sprintf("a second tool %q", name), "declare each tool once", nil)
		}
	}
	f.Hosted = append(f.Hosted, decl.Hosted)
	if _, ok := decl.Hosted.(*item.MCPTool); !ok {
		return nil
	}
	named := *decl
	named.Name = name
	return f.approve(&named, o)
}

// hostedName is the name of a tool that the endpoint runs in rules and messages: its
// type, or for an MCP server the pattern of its tools.
func hostedName(def item.Tool) string {
	if m, ok := def.(*item.MCPTool); ok {
		return m.ServerLabel + ".*"
	}
	return def.ToolType()
}

func add(list chatmd.ErrorList, p *chatmd.Error) chatmd.ErrorList {
	if p == nil {
		return list
	}
	return append(list, p)
}

// addTool makes one tool: an agent, a command, or a built-in tool.
func (f *File) addTool(ctx context.Context, decl *chatmd.Tool, p places, o Options) *chatmd.Error {
	if problem := f.approve(decl, o); problem != nil {
		return problem
	}
	if decl.Value("agent") != "" {
		return f.addAgent(ctx, decl, p, o)
	}
	t, err := f.tool(decl, o)
	if err != nil {
		return problemAt(f.Doc.Name, decl.Element, err.Error(), "", nil)
	}
	if t == nil {
		return f.unknownTool(decl)
	}
	f.Tools = append(f.Tools, declaredAs(t, decl))
	return nil
}

// tool makes a command or a built-in tool. It returns nil for an unknown name.
func (f *File) tool(decl *chatmd.Tool, o Options) (tool.Tool, error) {
	if command := decl.Value("command"); command != "" {
		return fixedCommand(decl, command, f.files, o)
	}
	if _, known := toolkit.Lookup(decl.Name); !known {
		return nil, nil
	}
	asker := o.Asker
	if asker == nil {
		asker = toolkit.Nobody
	}
	return toolkit.New(decl.Name, toolkit.Deps{
		Files:     f.files,
		Shell:     &shell.Options{Timeout: decl.Timeout, Live: o.Live, Shell: decl.Flag("shell")},
		Web:       &web.Options{Timeout: decl.Timeout},
		Asker:     asker,
		PatchForm: patch.Form(decl.Value("form")),
	})
}

// unbuilt are the built-in tools of the original system that this version does
// not have.
var unbuilt = []string{
	"add_line_numbers", "get_url_content", "index_ocaml_code", "make_dir", "meta_refine", "odoc_search", "query_vector_db",
}

// unknownTool returns the problem of a name that is not a built-in tool.
func (f *File) unknownTool(decl *chatmd.Tool) *chatmd.Error {
	hint := "there are: " + strings.Join(toolkit.Names(), ", ")
	if slices.Contains(unbuilt, decl.Name) {
		return problemAt(f.Doc.Name, decl.Element, fmt.Sprintf("the tool %q of the original system is not built yet", decl.Name), hint, chatmd.ErrNotBuilt)
	}
	known := toolkit.Names()
	for _, b := range toolkit.Builtins() {
		known = append(known, b.Aliases...)
	}
	if name := chatmd.Suggest(decl.Name, strings.Join(known, " ")); name != "" {
		hint = "did you mean " + name + "? " + hint
	}
	return problemAt(f.Doc.Name, decl.Element, fmt.Sprintf("unknown tool %q", decl.Name), hint, nil)
}

// approve adds the approval attribute of a declaration to the policy.
func (f *File) approve(decl *chatmd.Tool, o Options) *chatmd.Error {
	verdict, problem := approval(f.Doc.Name, decl)
	if verdict == "" || verdict == session.Ask && matches(o.Allow, decl.Name) {
		return problem
	}
	from := fmt.Sprintf("%s:%d", filepath.Base(cmp.Or(decl.File, f.Doc.Name)), decl.Line)
	f.policy.Rules = append(f.policy.Rules, session.Rule{Verdict: verdict, Tool: decl.Name, From: from})
	return problem
}

// approval is the approval attribute of a declaration, checked.
func approval(file string, decl *chatmd.Tool) (session.Verdict, *chatmd.Error) {
	switch verdict := session.Verdict(decl.Approval); verdict {
	case "", session.Allow, session.Ask, session.Deny:
		return verdict, nil
	}
	return "", problemAt(file, decl.Element, fmt.Sprintf("<tool>: approval is %q", decl.Approval), `want "allow", "ask" or "deny"`, nil)
}

// matches reports whether a name matches one of the patterns.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// declaredAs gives a tool the description and the annotations of its declaration.
func declaredAs(t tool.Tool, decl *chatmd.Tool) tool.Tool {
	a := &adjusted{Tool: t, def: t.Definition(), annotations: tool.AnnotationsOf(t)}
	if decl.Description != "" {
		switch def := a.def.(type) {
		case *item.FunctionTool:
			def.Description = decl.Description
		case *item.CustomTool:
			def.Description = decl.Description
		}
	}
	a.annotations.Timeout = cmp.Or(decl.Timeout, a.annotations.Timeout)
	if decl.Parallel != nil && !*decl.Parallel {
		a.annotations.Exclusive = true
	}
	if decl.MaxOutput != nil {
		a.annotations.MaxOutput = outputLimit(decl)
	}
	if advisor, ok := t.(advisor); ok {
		if decl.Timeout > 0 { // a command ends itself at its timeout, and reports more
			a.annotations.Timeout = decl.Timeout + commandGrace
		}
		return &advised{a, advisor}
	}
	return a
}

// commandGrace is the extra time for a command to end and return its output after
// its timeout.
const commandGrace = 5 * time.Second

// outputLimit returns the value of the attribute max_output, which must be present.
func outputLimit(decl *chatmd.Tool) *output.Limit {
	return &output.Limit{Tokens: int(min(*decl.MaxOutput, 1<<30))}
}

// adjusted is a tool as a file declares it.
type adjusted struct {
	tool.Tool
	def         item.Tool
	annotations tool.Annotations
}

// Definition implements [tool.Tool].
func (a *adjusted) Definition() item.Tool { return a.def }

// Annotations implements [tool.Annotated].
func (a *adjusted) Annotations() tool.Annotations { return a.annotations }

// advisor is a tool with its own approval rules, such as run_command.
type advisor interface {
	Approval(call tool.Call, rules []session.Rule) (verdict session.Verdict, reason string)
	Suggest(call tool.Call) []session.Rule
}

// advised is an adjusted tool that keeps its approval rules.
type advised struct {
	*adjusted
	advisor
}

// Command implements [agent.Commander], for a command that the file declares.
func (a *advised) Command(call tool.Call) []string {
	if c, ok := a.Tool.(agent.Commander); ok {
		return c.Command(call)
	}
	return nil
}

// roots returns the folders that the file tools may read: the declared ones, or the
// workspace.
func (f *File) roots(p places) (roots []toolkit.Root, problems chatmd.ErrorList) {
	for _, decl := range f.Doc.Tools {
		for _, r := range decl.Roots {
			path, err := p.of(r.Base).expand(r.Path)
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
