// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/internal/reach"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/patch"
	"github.com/antiphon-go/antiphon/toolkit/shell"
	"github.com/antiphon-go/antiphon/toolkit/web"
	"github.com/antiphon-go/antiphon/trust"
)

// makeTools makes the declared tools, and the policy from their approval attributes.
// Servers are only recorded here; see [File.Connect].
func (f *File) makeTools(ctx context.Context, p places, o Options) (problems chatmd.ErrorList) {
	if len(f.doc().Tools) == 0 {
		return nil
	}
	roots, problems := f.roots(p, o.gate)
	files, err := toolkit.Open(roots...)
	if err != nil {
		return append(problems, problemAt(f.doc().Name, f.doc().Tools[0].Element, err.Error(), "", nil))
	}
	f.files = files
	files.Home(p.guardedHome())
	seen := map[string]bool{}
	for _, decl := range f.doc().Tools {
		if decl.Value("mcp_server") != "" {
			o.gate.reads = true
			problems = add(problems, f.addServer(decl, p, o))
			continue
		}
		if decl.Hosted != nil {
			problems = add(problems, f.addHosted(decl, o))
			continue
		}
		o.gate.reads = o.gate.reads || decl.Name != "ask_user" && decl.Name != "fork"
		if decl.Name == "" || decl.Flag("type") {
			continue // chatmd reported it
		}
		if seen[decl.Name] {
			problems = append(problems, problemAt(f.doc().Name, decl.Element, fmt.Sprintf("a second tool %q", decl.Name), "declare each tool once", nil))
			continue
		}
		seen[decl.Name] = true
		problems = add(problems, f.addTool(ctx, decl, p, o))
	}
	return problems
}

// protect makes the tools of the file and of the agents that are its tools ask before
// they write to any of these files or to what they import, which decide what the agents
// may do, and to further paths.
func (f *File) protect(further []string) {
	paths := f.deciding()
	for _, p := range further {
		if abs, err := filepath.Abs(p); err == nil && p != "" {
			paths = append(paths, abs)
		}
	}
	f.each(func(f *File) {
		if f.files != nil {
			f.files.Protect(paths...)
		}
	})
}

// each calls do for the file and all agents that are tools, at any depth.
func (f *File) each(do func(*File)) {
	do(f)
	for _, n := range f.nested {
		n.file.each(do)
	}
}

// deciding returns the absolute paths of the file, of the agents that are its tools, and
// of everything that these import.
func (f *File) deciding() (paths []string) {
	f.each(func(f *File) {
		names := []string{f.Path}
		for _, src := range f.Doc.Imports {
			names = append(names, src.Base)
		}
		for _, name := range names {
			abs, err := filepath.Abs(name)
			if info, statErr := os.Stat(abs); err == nil && statErr == nil && info.Mode().IsRegular() {
				paths = append(paths, abs)
			}
		}
	})
	return paths
}

// addHosted adds a tool that the endpoint runs. The endpoint asks about calls on an MCP
// server, so the approval of its declaration is a rule.
func (f *File) addHosted(decl *chatmd.Tool, o Options) *chatmd.Error {
	if problem := f.noCredentials(decl); problem != nil {
		return problem
	}
	if reach.Unasked(reach.Of(decl.Hosted)) {
		return problemAt(f.doc().Name, decl.Element, unasked, unaskedHint, nil)
	}
	name := hostedName(decl.Hosted)
	for _, other := range f.Hosted {
		if hostedName(other) == name {
			return problemAt(f.doc().Name, decl.Element, fmt.Sprintf("a second tool %q", name), "declare each tool once", nil)
		}
	}
	f.Hosted = append(f.Hosted, decl.Hosted)
	o.gate.hosted(decl.Hosted, f.at(decl.Element))
	server, ok := decl.Hosted.(*item.MCPTool)
	if !ok {
		return nil
	}
	if namesUser(server.ServerURL) {
		return problemAt(f.doc().Name, decl.Element, "server_url names a user, which hides the host", "the host alone", nil)
	}
	named := *decl
	named.Name = name
	return f.approve(&named, o, asName(name))
}

// The problem with a file that decides that the endpoint asks for no approval.
const (
	unasked     = "require_approval is not for files, because the endpoint would then call the server without asking you"
	unaskedHint = "approval=\"allow\" in a <tool type=\"mcp\"> answers its questions with yes"
)

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
	if problem := f.disguised(decl); problem != nil {
		return problem
	}
	if problem := f.noCredentials(decl); problem != nil {
		return problem
	}
	if decl.Value("agent") != "" {
		if problem := f.noPrograms(decl); problem != nil {
			return problem
		}
		if problem := f.approve(decl, o, ""); problem != nil {
			return problem
		}
		return f.addAgent(ctx, decl, p, o)
	}
	if _, problem := approval(f.doc().Name, decl); problem != nil {
		return problem
	}
	confined, problem := f.confinedTool(decl, o)
	if problem != nil {
		return problem
	}
	t, err := f.tool(decl, confined, o)
	if err != nil {
		return problemAt(f.doc().Name, decl.Element, err.Error(), "", nil)
	}
	if t == nil {
		return f.unknownTool(decl)
	}
	f.Tools = append(f.Tools, declaredAs(t, decl, o.agentPath()))
	acts := ""
	if !tool.AnnotationsOf(t).ReadOnly {
		acts = program(decl) + " (" + chosen(decl) + ")"
	}
	return f.approve(decl, o, acts)
}

// chosen says for a power what of a tool's calls the model chooses. No name that a file chose has
// parentheses there, so none says the opposite.
func chosen(decl *chatmd.Tool) string {
	if decl.Value("command") != "" {
		return "and arguments that the model adds"
	}
	builtin, _ := toolkit.Lookup(decl.Name)
	switch {
	case slices.Contains(builtin.Needs, toolkit.NeedPrograms):
		return "any command that the model chooses"
	case slices.Contains(builtin.Needs, toolkit.NeedNetwork):
		return "any page that the model chooses"
	}
	return "any change of files that the model chooses"
}

// disguised refuses a command or an agent with the name of a built-in tool: people who
// allow that name, or agree to a call of it, mean the tool that they know.
func (f *File) disguised(decl *chatmd.Tool) *chatmd.Error {
	what := "a command"
	if decl.Value("agent") != "" {
		what = "an agent"
	} else if decl.Value("command") == "" {
		return nil
	}
	if _, known := toolkit.Lookup(decl.Name); !known {
		return nil
	}
	return problemAt(f.doc().Name, decl.Element, fmt.Sprintf("%q is the name of a built-in tool, and %s cannot have it", decl.Name, what), "choose another name", nil)
}

// tool makes a command or a built-in tool. It returns nil for an unknown name.
func (f *File) tool(decl *chatmd.Tool, confined profile, o Options) (tool.Tool, error) {
	if command := decl.Value("command"); command != "" {
		fixed, err := fixedCommand(decl, command, f.files, confined, o)
		if err != nil {
			return nil, err
		}
		if dir := f.files.Roots()[0].Path; decl.Approval == string(session.Allow) {
			fixed.scripts = o.gate.command(dir, fixed.first, f.at(decl.Element))
		} else { // a person may allow the calls, with the scripts as they are now
			fixed.scripts = o.gate.scripts(dir, fixed.first, func(string, string) {})
		}
		fixed.made.earlier, fixed.made.command = o.Made, keyOf(f.files.Roots()[0].Path, fixed.first)
		return fixed, nil
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
		Shell:     &shell.Options{Timeout: decl.Timeout, Live: o.Live, Shell: decl.Flag("shell"), Sandbox: confined},
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
		return problemAt(f.doc().Name, decl.Element, fmt.Sprintf("the tool %q of the original system is not built yet", decl.Name), hint, chatmd.ErrNotBuilt)
	}
	known := toolkit.Names()
	for _, b := range toolkit.Builtins() {
		known = append(known, b.Aliases...)
	}
	if name := chatmd.Suggest(decl.Name, strings.Join(known, " ")); name != "" {
		hint = "did you mean " + name + "? " + hint
	}
	return problemAt(f.doc().Name, decl.Element, fmt.Sprintf("unknown tool %q", decl.Name), hint, nil)
}

// approve adds the approval attribute of a declaration to the policy. acts describes
// the tool if its calls need an approval otherwise: then it takes a person's agreement
// to allow them, and without it they are asked about.
func (f *File) approve(decl *chatmd.Tool, o Options, acts string) *chatmd.Error {
	verdict, problem := approval(f.doc().Name, decl)
	if verdict == "" || verdict == session.Ask && matches(o.Allow, decl.Name) {
		return problem
	}
	if verdict == session.Allow && acts != "" {
		dir := f.files.Roots()[0].Path
		if !o.gate.wants(trust.Power{Kind: trust.Allows, What: acts, Where: dir}, f.at(decl.Element)) {
			return problem
		}
	}
	from := fmt.Sprintf("%s:%d", filepath.Base(cmp.Or(decl.File, f.doc().Name)), decl.Line)
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

// agentPath returns the path of the file that is being loaded, or "" for the one that the
// caller loads. Agents that a file uses have tools of the same names, which are other tools.
func (o *Options) agentPath() string {
	if len(o.loading) < 2 {
		return ""
	}
	return o.loading[len(o.loading)-1]
}

// declaredAs gives a tool of an agent the description and the annotations of its declaration.
func declaredAs(t tool.Tool, decl *chatmd.Tool, agentPath string) tool.Tool {
	a := &adjusted{Tool: t, def: t.Definition(), annotations: tool.AnnotationsOf(t)}
	origin := &a.annotations.Origin
	origin.Agent, origin.Identity = agentPath, strings.Join([]string{decl.Value("agent"), origin.Identity}, "\x00")
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
	a.annotations.Polling = a.annotations.Polling || decl.Polling
	if decl.MaxOutput != nil {
		a.annotations.MaxOutput = outputLimit(decl)
	}
	if advisor, ok := t.(advisor); ok {
		if decl.Timeout > 0 && runsPrograms(decl) { // a command ends itself at its timeout, and reports more
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

// Unwrap returns the tool that is declared, which checks its arguments.
func (a *adjusted) Unwrap() tool.Tool { return a.Tool }

// Writes returns the absolute paths of the files that a call writes to, as far as the tool knows
// them.
func (a *adjusted) Writes(call tool.Call) []string {
	if w, ok := a.Tool.(interface{ Writes(call tool.Call) []string }); ok {
		return w.Writes(call)
	}
	return nil
}

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

// Sandbox implements [agent.Confined].
func (a *advised) Sandbox(call tool.Call) string {
	if c, ok := a.Tool.(agent.Confined); ok {
		return c.Sandbox(call)
	}
	return ""
}

// harmless are the built-in tools that change nothing in the roots.
var harmless = []string{"ask_user", "fork", "import_image", "markdown_search", "read_directory", "read_file", "webpage_to_markdown"}

// mayWrite reports whether a declared tool may write in the roots, or runs programs there.
func mayWrite(decl *chatmd.Tool) bool {
	if decl.Hosted != nil || decl.Value("mcp_server") != "" || decl.Value("agent") != "" {
		return false // they have roots of their own, or none
	}
	builtin, _ := toolkit.Lookup(decl.Name)
	return decl.Value("command") != "" || !slices.Contains(harmless, builtin.Name)
}

// roots returns the folders that the file tools may read: the declared ones, or the
// workspace.
func (f *File) roots(p places, g *gate) (roots []toolkit.Root, problems chatmd.ErrorList) {
	writes := slices.ContainsFunc(f.doc().Tools, mayWrite)
	for _, decl := range f.doc().Tools {
		for _, r := range decl.Roots {
			path, err := p.of(r.Base).expand(r.Path)
			if err == nil {
				err = checkFolder(path)
			}
			if err != nil {
				problems = append(problems, problemAt(f.doc().Name, r.Element, fmt.Sprintf("<read path=%q>", r.Path), "", err))
				continue
			}
			if !g.mayList(path, writes, f.at(r.Element)) {
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
