// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/trust"
)

// This file holds the attributes sandbox and hosts of tool declarations. What a file adds to the
// default is a power, unless the person chose a profile for all programs of the run.

// profile makes the profile of a program, given its folders.
type profile = func(folders ...string) sandbox.Profile

// The profiles of programs that a file does not confine otherwise. An MCP server mostly
// exists to reach something, and a person agrees to start it.
const (
	usualCommand = sandbox.NameWorkspace
	usualServer  = sandbox.NameNetwork
)

// RunsPrograms reports whether the file, or an agent that it has as a tool, can start
// programs: commands or MCP servers.
func (f *File) RunsPrograms() bool {
	if f == nil {
		return false
	}
	return slices.ContainsFunc(f.servers, func(d *declared) bool { return len(d.server.Command) > 0 }) ||
		f.Doc != nil && slices.ContainsFunc(f.doc().Tools, runsPrograms) ||
		slices.ContainsFunc(f.nested, func(n nested) bool { return n.file.RunsPrograms() })
}

// runsPrograms reports whether the calls of a declared tool run programs.
func runsPrograms(decl *chatmd.Tool) bool {
	if decl == nil {
		return false
	}
	builtin, _ := toolkit.Lookup(decl.Name)
	return decl.Value("command") != "" || decl.Value("agent") == "" && slices.Contains(builtin.Needs, toolkit.NeedPrograms)
}

// noPrograms returns a problem if a declaration has one of the attributes and runs nothing.
func (f *File) noPrograms(decl *chatmd.Tool) *chatmd.Error {
	for _, name := range []string{"sandbox", "hosts"} {
		if _, given := attribute(decl, name); given {
			return problemAt(f.doc().Name, decl.Element, "<tool>: "+name+" is for tools that run programs", `they are run_command, shell, local_shell, command="…" and mcp_server="stdio:…"`, nil)
		}
	}
	return nil
}

// confinedTool returns the profile of the programs that a declared tool runs.
func (f *File) confinedTool(decl *chatmd.Tool, o Options) (profile, *chatmd.Error) {
	if !runsPrograms(decl) {
		return nil, f.noPrograms(decl)
	}
	return f.confined(decl, o, usualCommand, program(decl), f.files.Roots()[0].Path)
}

// program describes a tool that runs programs for a power.
func program(decl *chatmd.Tool) string {
	if command := decl.Value("command"); command != "" {
		return asName(decl.Name) + ", that is " + trust.CommandLine(words(command)...)
	}
	return asName(decl.Name)
}

// confinedServer sets the profile of a server's program.
func (f *File) confinedServer(decl *chatmd.Tool, server *mcpbridge.Server, o Options) (problem *chatmd.Error) {
	if len(server.Command) == 0 {
		return f.noPrograms(decl)
	}
	what := "the MCP server " + trust.CommandLine(server.Command...)
	server.Sandbox, problem = f.confined(decl, o, usualServer, what, server.Dir)
	return problem
}

// supports says whether this system can confine programs as a profile says.
var supports = sandbox.Profile.Supported

// confined returns the profile of a declaration: what the person chose for the run, or
// the attributes, or the usual profile. It returns nil if nobody chose one and this system has
// no sandbox; the tools then know what to do.
func (f *File) confined(decl *chatmd.Tool, o Options, usual, what, dir string) (profile, *chatmd.Error) {
	bad := func(err error, hint string) *chatmd.Error {
		return problemAt(f.doc().Name, decl.Element, "<tool>: "+strings.TrimPrefix(err.Error(), "sandbox: "), hint, nil)
	}
	name, chosen := attribute(decl, "sandbox")
	if chosen && !slices.Contains(sandbox.Names(), name) {
		return nil, bad(fmt.Errorf("sandbox is %q", name), "want "+strings.Join(sandbox.Names(), ", "))
	}
	var hosts []string
	if list, given := attribute(decl, "hosts"); given {
		hosts, chosen = []string{list}, true
	} else if !chosen {
		name = usual
	}
	made, err := sandbox.Maker(name, hosts...)
	if err != nil {
		return nil, bad(err, `such as hosts="proxy.golang.org, *.npmjs.org" without the attribute sandbox`)
	}
	if o.Sandbox != "" || len(o.Hosts) > 0 {
		if made, err = sandbox.Maker(o.Sandbox, o.Hosts...); err != nil {
			return nil, bad(err, "")
		}
	} else {
		o.gate.widens(made(dir), usual, what, dir, f.at(decl.Element))
	}
	err = supports(made(dir))
	switch {
	case err != nil && !chosen && o.Sandbox == "" && len(o.Hosts) == 0:
		return nil, nil
	case err != nil: // nothing runs then, and the file may be one to check
		f.Warnings = append(f.Warnings, fmt.Errorf("%w [warning]", bad(err, "so the programs of this tool do not run; with the sandbox "+sandbox.NameFull+" for the run, they do with all your permissions")))
	}
	own := o.gate.ownFolder()
	held := sandbox.Hold(append(own, dir)...) // the programs of another agent may replace them by links
	return func(folders ...string) sandbox.Profile {
		p := made(folders...)
		if !p.Unconfined {
			p.Read, p.Held = append(slices.Clip(p.Read), own...), held
		}
		return p
	}, nil
}

// widens records what a profile allows beyond the usual one.
func (g *gate) widens(p sandbox.Profile, usual, what, dir string, at place) {
	switch width := p.Width(); {
	case !sandbox.Wider(width, usual):
	case width == sandbox.NameFull:
		g.wants(trust.Power{Kind: trust.Unconfines, What: what, Where: dir}, at)
	case width == sandbox.NameNetwork:
		g.wants(trust.Power{Kind: trust.Networks, What: what, Where: dir}, at)
	case width == sandbox.NameHosts:
		for _, host := range p.Hosts {
			g.wants(trust.Power{Kind: trust.Reaches, What: host, Where: what + " in " + dir}, at)
		}
	}
}

// attribute returns an attribute of a declaration, and whether it is given.
func attribute(decl *chatmd.Tool, name string) (value string, given bool) {
	given = slices.ContainsFunc(decl.Attrs, func(a chatmd.Attr) bool { return a.Name == name })
	return decl.Value(name), given
}
