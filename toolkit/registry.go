// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package toolkit holds the built-in tools and their registry, which says what each
// of them needs. The tools for files, images and questions are here, the others in
// packages below: patch, search, shell and web. Each is a file of code and a .md
// that the model reads as the tool's description.
//
// Those that work on files do so inside declared directories, the roots of a
// [Files]; no path a model can write leads out of them. A command starts there
// and can do what it can do. Errors name what the model could do instead.
package toolkit

import (
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/patch"
	"github.com/antiphon-go/antiphon/toolkit/search"
	"github.com/antiphon-go/antiphon/toolkit/shell"
	"github.com/antiphon-go/antiphon/toolkit/web"
)

// registry is the one list of built-in tools, sorted by name. A new tool is a line
// here and a row in docs/tools.md, beside its own files; docs/chatmarkdown.md names
// it too.
var registry = []Builtin{
	{"append_to_file", nil, []Need{NeedRoots}, inRoots(newAppendToFile)},
	{"apply_patch", nil, []Need{NeedRoots}, newPatch},
	{"ask_user", nil, []Need{NeedPerson}, newAskUser},
	{"find_and_replace", nil, []Need{NeedRoots}, inRoots(newFindAndReplace)},
	{"fork", nil, []Need{NeedRun}, newFork},
	{"import_image", nil, []Need{NeedRoots}, inRoots(newImportImage)},
	{"index_markdown_docs", nil, []Need{NeedRoots}, inRoots(search.IndexTool)},
	{"local_shell", nil, []Need{NeedRoots, NeedPrograms}, newLocalShell},
	{"markdown_search", nil, []Need{NeedRoots}, inRoots(search.Tool)},
	{"read_directory", []string{"read_dir"}, []Need{NeedRoots}, inRoots(newReadDirectory)},
	{"read_file", []string{"get_contents"}, []Need{NeedRoots}, inRoots(newReadFile)},
	{"run_command", nil, []Need{NeedRoots, NeedPrograms}, newRunCommand},
	{"shell", nil, []Need{NeedRoots, NeedPrograms}, newShell},
	{"webpage_to_markdown", nil, []Need{NeedNetwork}, newWebPage},
}

// Builtin is a built-in tool as the registry has it.
type Builtin struct {
	// Name is what the tool is called. Rules about tools should use this name.
	Name string
	// Aliases are its names in older files and transcripts.
	Aliases []string
	// Needs is what the tool cannot work without.
	Needs []Need

	make func(name string, s Supplies) (tool.Tool, error)
}

// Need is what a tool cannot work without, in words that end "needs …".
type Need string

// What tools need. [Supplies] says where each comes from.
const (
	NeedRoots    Need = "roots"                      // Supplies.Files
	NeedPrograms Need = "permission to run programs" // Supplies.Shell
	NeedNetwork  Need = "a network"                  // Supplies.Web
	NeedPerson   Need = "a person to ask"            // Supplies.Asker
	// NeedRun is the run of an [agent.Agent], which gives itself to the tools that
	// it calls. There is nothing to supply; elsewhere each call is an error.
	NeedRun Need = "the run of an agent"
)

// Supplies are what a program has for its tools. What is nil it does not have, and
// the tools that need it are not made.
type Supplies struct {
	// Files are the directories that tools work in. Tools work until they are
	// closed.
	Files *Files
	// Shell says how programs are run.
	Shell *shell.Options
	// Web says how pages are fetched.
	Web *web.Options
	// Asker puts questions to a person. [Nobody] makes the tool all the same and
	// says at each call that no one is there.
	Asker Asker
	// PatchForm is how a model hands a patch over.
	PatchForm patch.Form
}

// MissingError says that a tool was not made because the program lacks what it
// needs.
type MissingError struct {
	Tool string
	Need Need
}

// Error names the tool and the need.
func (e *MissingError) Error() string {
	return fmt.Sprintf("toolkit: %s needs %s, which this program does not have", e.Tool, e.Need)
}

// Builtins returns all built-in tools, sorted by name. Their slices are shared and
// must not be changed.
func Builtins() []Builtin { return slices.Clone(registry) }

// Names returns the names of the built-in tools, sorted, without aliases.
func Names() []string {
	var names []string
	for _, b := range registry {
		names = append(names, b.Name)
	}
	return names
}

// Lookup returns the built-in tool of that name or alias, and whether there is one.
func Lookup(name string) (Builtin, bool) {
	i := slices.IndexFunc(registry, func(b Builtin) bool { return b.Name == name || slices.Contains(b.Aliases, name) })
	if i < 0 {
		return Builtin{}, false
	}
	return registry[i], true
}

// New makes the built-in tool of that name. Asked for by an alias (get_contents
// for read_file, read_dir for read_directory), the tool goes by the alias, so that
// older transcripts fit. It is safe for concurrent use. The error is a
// [*MissingError] if the supplies lack what the tool needs.
func New(name string, s Supplies) (tool.Tool, error) {
	b, known := Lookup(name)
	if !known {
		return nil, fmt.Errorf("toolkit: there is no built-in tool %q", name)
	}
	for _, n := range b.Needs {
		if !s.have(n) {
			return nil, &MissingError{b.Name, n}
		}
	}
	t, err := b.make(name, s)
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (s Supplies) have(n Need) bool {
	switch n {
	case NeedRoots:
		return s.Files != nil
	case NeedPrograms:
		return s.Shell != nil
	case NeedNetwork:
		return s.Web != nil
	case NeedPerson:
		return s.Asker != nil
	}
	return true
}

// inRoots makes a tool that needs roots and nothing else.
func inRoots(make func(string, *Files) (tool.Tool, error)) func(string, Supplies) (tool.Tool, error) {
	return func(name string, s Supplies) (tool.Tool, error) { return make(name, s.Files) }
}

func newPatch(name string, s Supplies) (tool.Tool, error) {
	return patch.Tool(name, s.Files, s.PatchForm)
}

func newAskUser(name string, s Supplies) (tool.Tool, error) { return AskUser(name, s.Asker) }

func newFork(string, Supplies) (tool.Tool, error) { return agent.ForkTool(), nil }

func newRunCommand(name string, s Supplies) (tool.Tool, error) {
	return shell.RunCommand(name, s.Files, *s.Shell)
}

func newShell(_ string, s Supplies) (tool.Tool, error) { return shell.APITool(s.Files, *s.Shell) }

func newLocalShell(_ string, s Supplies) (tool.Tool, error) {
	return shell.APILocalTool(s.Files, *s.Shell)
}

func newWebPage(name string, s Supplies) (tool.Tool, error) { return web.Tool(name, *s.Web) }
