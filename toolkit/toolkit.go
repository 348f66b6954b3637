// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"slices"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/search"
)

// builtin is one tool and the names it can be declared by, its own first.
type builtin struct {
	names []string
	make  func(name string, f *files.Files) (tool.Tool, error)
}

// fileTools are the tools over the roots of a Files, as methods.
type fileTools struct{ *files.Files }

func builtins() []builtin {
	return []builtin{
		{[]string{"append_to_file"}, newAppendToFile},
		{[]string{"find_and_replace"}, newFindAndReplace},
		{[]string{"import_image"}, newImportImage},
		{[]string{"index_markdown_docs"}, search.IndexTool},
		{[]string{"markdown_search"}, search.Tool},
		{[]string{"read_directory", "read_dir"}, newReadDirectory},
		{[]string{"read_file", "get_contents"}, newReadFile},
	}
}

// Names returns the names of the built-in tools, sorted, without aliases.
func Names() []string {
	var names []string
	for _, b := range builtins() {
		names = append(names, b.names[0])
	}
	return names
}

// Canonical returns the name of the built-in tool that name or alias stands
// for, and whether there is one. Rules about tools should use this name.
func Canonical(name string) (string, bool) {
	for _, b := range builtins() {
		if slices.Contains(b.names, name) {
			return b.names[0], true
		}
	}
	return "", false
}

// ByName returns the built-in tool of that name over the roots of f, and
// whether there is one. Asked for by an alias (get_contents for read_file,
// read_dir for read_directory), the tool goes by the alias, so that older
// transcripts fit. The tools are safe for concurrent use and work until f is
// closed.
func ByName(name string, f *files.Files) (tool.Tool, bool) {
	for _, b := range builtins() {
		if !slices.Contains(b.names, name) {
			continue
		}
		t, err := b.make(name, f)
		if err != nil {
			// Names, types and descriptions are constants of this package.
			panic("toolkit: " + err.Error())
		}
		return t, true
	}
	return nil, false
}
