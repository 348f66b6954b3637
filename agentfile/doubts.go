// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/internal/nils"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
)

// Lint returns probable problems of running the file on this machine, each with
// its place: a file without content, programs of commands and MCP servers that are
// not found, and commands without a description for the model. It looks for programs
// but does not run any. The doubts are not part of the Warnings, because a run need
// not call every tool.
func (f *File) Lint() (list []error) {
	doubtAt := func(at chatmd.Element, message, hint string) {
		list = append(list, fmt.Errorf("%w [warning]", problemAt(f.doc().Name, at, message, hint, nil)))
	}
	doubt := func(decl *chatmd.Tool, message, hint string) { doubtAt(decl.Element, message, hint) }
	if f.empty {
		start := chatmd.Element{Position: chatmd.Position{Line: 1, Column: 1}}
		doubtAt(start, "the file is empty: it has no message, no tool and no <config/>", "write your question between <user> and </user>")
	}
	if f.files == nil { // the file has no tools, or was not loaded
		return list
	}
	for _, decl := range f.doc().Tools {
		words := strings.Fields(decl.Value("command"))
		if len(words) == 0 {
			continue
		}
		if !found(words[0], f.files.Roots()[0].Path) {
			doubt(decl, fmt.Sprintf("<tool command>: program %s not found", words[0]), "install it, or check PATH")
		}
		if decl.Description == "" {
			doubt(decl, fmt.Sprintf("<tool command>: %s has no description, so the model knows only the command line", decl.Name), `description="…" says what it does and when to call it`)
		}
	}
	for _, d := range f.servers {
		if c := d.server.Command; len(c) > 0 && !found(c[0], d.server.Dir) {
			doubt(d.lines[0].decl, fmt.Sprintf("<tool mcp_server>: program %s not found", c[0]), "install it, or check PATH")
		}
	}
	for _, n := range f.nested {
		list = append(list, n.file.Lint()...)
	}
	return list
}

// found reports whether a program can be found: in PATH or, if its name contains a
// slash, relative to the folder where it is started.
func found(name, dir string) bool {
	if strings.ContainsRune(filepath.ToSlash(name), '/') && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	_, err := exec.LookPath(name)
	return err == nil
}

// Notes describes the tools that the endpoint runs, one line each: what they are, and
// what they may send where. They are not problems.
func (f *File) Notes() (list []error) {
	for _, decl := range f.doc().Tools {
		if decl == nil || nils.Is(decl.Hosted) {
			continue
		}
		text := "runs at the endpoint, which does not ask before it uses it"
		switch d := decl.Hosted.(type) {
		case *item.WebSearchTool, *item.WebSearchPreviewTool:
			text += "; queries go to the web"
		case *item.FileSearchTool:
			text += "; it reads the vector stores " + strings.Join(d.VectorStoreIDs, ", ")
		case *item.CodeInterpreterTool:
			text += "; it runs code in the container " + string(d.Container)
		case *item.MCPTool:
			text = "runs at the endpoint, which asks before each call, as " + hostedName(d) + "; calls go to " + cmp.Or(hostOf(d.ServerURL), d.ConnectorID, d.TunnelID)
			if session.Verdict(decl.Approval) == session.Allow {
				text += ", and the file allows them all"
			}
		case *item.UnknownTool:
			text += "; this program does not know the type, and sends its JSON as it is"
		}
		at := problemAt(f.doc().Name, decl.Element, fmt.Sprintf("<tool type=%q> %s", decl.Hosted.ToolType(), text), "", nil)
		list = append(list, fmt.Errorf("%w [note]", at))
	}
	for _, n := range f.nested {
		list = append(list, n.file.Notes()...)
	}
	return list
}

// hostOf returns the host of an address. The rest may hold a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
