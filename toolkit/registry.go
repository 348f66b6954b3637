// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package toolkit contains the built-in tools and their registry, which says what
// each of them needs. The tools for files, images and questions are here, the others
// in the packages patch, search, shell and web. Each is a file of code and a .md
// file that is the tool's description for the model.
//
// Tools that work on files do so inside declared directories, the roots of a
// [Files]; no path that a model can write leads out of them. A command starts in a
// root, and runs in a sandbox if the system has one: see package toolkit/shell.
// Errors tell the model what it could do instead.
package toolkit

import (
	"fmt"
	"slices"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/patch"
	"github.com/antiphon-go/antiphon/toolkit/search"
	"github.com/antiphon-go/antiphon/toolkit/shell"
	"github.com/antiphon-go/antiphon/toolkit/web"
)

// registry is the list of built-in tools, sorted by name. A new tool needs a line
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

// Builtin is a built-in tool in the registry.
type Builtin struct {
	// Name is the tool's name. Rules about tools should use this name.
	Name string
	// Aliases are its names in older files and transcripts.
	Aliases []string
	// Needs are the tool's requirements.
	Needs []Need

	make func(name string, d Deps) (tool.Tool, error)
}

// Need is a requirement of a tool, in words that complete "needs …".
type Need string

// Requirements of tools. [Deps] provides them.
const (
	NeedRoots    Need = "roots"                      // Deps.Files
	NeedPrograms Need = "permission to run programs" // Deps.Shell
	NeedNetwork  Need = "a network"                  // Deps.Web
	NeedPerson   Need = "a person to ask"            // Deps.Asker
	// NeedRun is the run of an [agent.Agent], which passes itself to the tools that it
	// calls. Nothing needs to be supplied; outside of a run each call is an error.
	NeedRun Need = "the run of an agent"
)

// Deps are what a program provides for its tools. Tools whose requirements are
// nil are not made.
type Deps struct {
	// Files are the directories of the tools. They must stay open while tools are
	// used.
	Files *Files
	// Shell configures how programs are run.
	Shell *shell.Options
	// Web configures how pages are fetched.
	Web *web.Options
	// Asker asks a person. With [Nobody] the tool is made, and each call returns that
	// nobody can answer.
	Asker Asker
	// PatchForm is the form in which a model writes a patch.
	PatchForm patch.Form
}

// MissingError means that a tool was not made because a requirement is missing.
type MissingError struct {
	Tool string
	Need Need
}

// Error names the tool and the requirement.
func (e *MissingError) Error() string {
	return fmt.Sprintf("toolkit: %s needs %s, which this program does not have", e.Tool, e.Need)
}

// Builtins returns all built-in tools, sorted by name. The slices in them are shared
// and must not be changed.
func Builtins() []Builtin { return slices.Clone(registry) }

// Names returns the names of the built-in tools, sorted, without aliases.
func Names() []string {
	var names []string
	for _, b := range registry {
		names = append(names, b.Name)
	}
	return names
}

// Lookup returns the built-in tool with the name or alias.
func Lookup(name string) (Builtin, bool) {
	i := slices.IndexFunc(registry, func(b Builtin) bool { return b.Name == name || slices.Contains(b.Aliases, name) })
	if i < 0 {
		return Builtin{}, false
	}
	return registry[i], true
}

// New makes the built-in tool with the name. If it is an alias (get_contents for
// read_file, read_dir for read_directory), the tool has the alias as its name, so
// that it matches older transcripts. The tool is safe for concurrent use. The error
// is a [*MissingError] if a requirement is missing.
func New(name string, d Deps) (tool.Tool, error) {
	b, known := Lookup(name)
	if !known {
		return nil, fmt.Errorf("toolkit: there is no built-in tool %q", name)
	}
	for _, n := range b.Needs {
		if !d.have(n) {
			return nil, &MissingError{b.Name, n}
		}
	}
	t, err := b.make(name, d)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// have reports whether a requirement is met.
func (d Deps) have(n Need) bool {
	switch n {
	case NeedRoots:
		return files.Check(d.Files) == nil
	case NeedPrograms:
		return d.Shell != nil
	case NeedNetwork:
		return d.Web != nil
	case NeedPerson:
		return !nils.Is(d.Asker)
	}
	return true
}

// inRoots makes a tool that needs only roots.
func inRoots(make func(string, *Files) (tool.Tool, error)) func(string, Deps) (tool.Tool, error) {
	return func(name string, d Deps) (tool.Tool, error) { return make(name, d.Files) }
}

func newPatch(name string, d Deps) (tool.Tool, error) {
	return patch.Tool(name, d.Files, d.PatchForm)
}

func newAskUser(name string, d Deps) (tool.Tool, error) { return AskUser(name, d.Asker) }

func newFork(string, Deps) (tool.Tool, error) { return agent.ForkTool(), nil }

func newRunCommand(name string, d Deps) (tool.Tool, error) {
	return shell.RunCommand(name, d.Files, *d.Shell)
}

func newShell(_ string, d Deps) (tool.Tool, error) { return shell.APITool(d.Files, *d.Shell) }

func newLocalShell(_ string, d Deps) (tool.Tool, error) {
	return shell.APILocalTool(d.Files, *d.Shell)
}

func newWebPage(name string, d Deps) (tool.Tool, error) { return web.Tool(name, *d.Web) }
