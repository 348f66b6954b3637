// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
)

// declared is an MCP server and the lines of a file that declare it: lines that
// differ only in the tools that they select and their approval.
type declared struct {
	lines  []*line
	server mcpbridge.Server
}

// line is one declaration and the tools that it selects, or all tools if it names
// none.
type line struct {
	decl    *chatmd.Tool
	include []string
}

func (l *line) takes(name string) bool {
	return len(l.include) == 0 || matches(l.include, name)
}

// addServer adds the declaration of an MCP server. The server is not started yet.
func (f *File) addServer(decl *chatmd.Tool, p places, o Options) *chatmd.Error {
	bad := func(message, hint string) *chatmd.Error {
		return problemAt(f.Doc.Name, decl.Element, "<tool mcp_server>: "+message, hint, nil)
	}
	server, err := mcpbridge.Parse(decl.Value("mcp_server"))
	if err != nil {
		return bad(err.Error(), `such as mcp_server="stdio:npx some-server" or an http URL`)
	}
	if _, problem := approval(f.Doc.Name, decl); problem != nil {
		return problem
	}
	server.Name = decl.Value("server")
	server.Dir = p.workspace
	server.Strict = decl.Flag("strict")
	server.Optional = decl.Flag("optional")
	server.Timeout, server.StartTimeout = decl.Timeout, decl.StartTimeout
	if decl.MaxOutput != nil {
		server.MaxOutput = outputLimit(decl)
	}
	l := &line{decl: decl}
	for _, list := range []string{decl.Value("include"), decl.Value("includes")} {
		names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
		l.include = append(l.include, names...)
	}
	if len(l.include) == 0 && decl.Name != "" {
		l.include = []string{decl.Name} // the meaning in older files
	} else if server.Name == "" {
		server.Name = decl.Name
	}
	server.Include = l.include
	for _, d := range f.servers {
		if d.sameAs(decl, server.Name) {
			d.join(l)
			return nil
		}
	}
	d := &declared{[]*line{l}, server}
	d.server.Approval = func(tool, name string) string { return string(d.approval(tool, name, o.Allow)) }
	list := []mcpbridge.Server{server}
	for _, other := range f.servers {
		list = append(list, other.server)
	}
	if _, err := mcpbridge.ServerNames(list...); err != nil {
		return bad(err.Error(), "lines for the same server may differ only in include and approval")
	}
	f.servers = append(f.servers, d)
	return nil
}

// sameAs reports whether a line declares the same server.
func (d *declared) sameAs(decl *chatmd.Tool, name string) bool {
	first := d.lines[0].decl
	for _, name := range []string{"mcp_server", "client_id_env", "client_secret_env"} {
		if first.Value(name) != decl.Value(name) {
			return false
		}
	}
	return d.server.Name == name && first.Timeout == decl.Timeout && first.StartTimeout == decl.StartTimeout && first.Flag("strict") == decl.Flag("strict") &&
		first.Flag("optional") == decl.Flag("optional") &&
		(first.MaxOutput == nil) == (decl.MaxOutput == nil) && (decl.MaxOutput == nil || *first.MaxOutput == *decl.MaxOutput)
}

// join adds a line. The server then has the tools that any of the lines selects.
func (d *declared) join(l *line) {
	d.lines = append(d.lines, l)
	d.server.Include = nil
	for _, l := range d.lines {
		if len(l.include) == 0 {
			d.server.Include = nil
			return
		}
		d.server.Include = append(d.server.Include, l.include...)
	}
}

// approval is what the lines that take a tool say of it together: deny wins over
// ask, ask over allow.
func (d *declared) approval(tool, name string, allowed []string) (verdict session.Verdict) {
	for _, l := range d.lines {
		says := session.Verdict(l.decl.Approval)
		if says == session.Ask && matches(allowed, name) {
			continue
		}
		if l.takes(tool) && says.Stricter(verdict) {
			verdict = says
		}
	}
	return verdict
}

// Connect starts the MCP servers that the file and its agents declare, concurrently.
// From then on the agents have the servers' tools, and tools that a server adds or
// removes during a run are updated. Connect is not part of [Load], so that a file
// can be checked without running anything. lookup returns the environment variables
// that the declarations name. Close ends the servers.
func (f *File) Connect(ctx context.Context, lookup func(string) (string, bool), notify func(mcpbridge.Event)) error {
	for _, n := range f.nested {
		if err := n.file.Connect(ctx, lookup, notify); err != nil {
			return err
		}
	}
	if f.bridge != nil || len(f.servers) == 0 {
		return nil
	}
	opts := mcpbridge.Options{Notify: notify, LookupEnv: lookup, Reserved: append(f.names(), tool.ReadOutputName)}
	var servers []mcpbridge.Server
	for _, d := range f.servers {
		if err := d.authorize(lookup); err != nil {
			return f.serverProblem(d, err)
		}
		servers = append(servers, d.server)
	}
	bridge, err := mcpbridge.Connect(ctx, opts, servers...)
	if err != nil {
		return f.connectProblems(err, servers)
	}
	f.bridge = bridge
	return f.checkIncluded(servers)
}

// connectProblems assigns the errors of [mcpbridge.Connect] to the lines of the
// servers that they are about.
func (f *File) connectProblems(err error, servers []mcpbridge.Server) error {
	all, ok := err.(interface{ Unwrap() []error })
	names, _ := mcpbridge.ServerNames(servers...)
	if !ok {
		return f.serverProblem(f.servers[0], err)
	}
	var problems chatmd.ErrorList
	for _, err := range all.Unwrap() {
		at := 0
		var e *mcpbridge.ServerError
		if errors.As(err, &e) {
			at = max(slices.Index(names, e.Server), 0)
		}
		problems = append(problems, f.serverProblem(f.servers[at], err))
	}
	return problems
}

func (f *File) serverProblem(d *declared, err error) *chatmd.Error {
	hint := ""
	if errors.Is(err, context.DeadlineExceeded) {
		hint = `a program that had to be downloaded or built first may be ready now: run it again; start_timeout="5m" gives it more time`
	}
	return problemAt(f.Doc.Name, d.lines[0].decl.Element, "<tool mcp_server>: "+err.Error(), hint, nil)
}

// checkIncluded reports tools that a line names but its server does not have, if
// another line selects all tools: then the bridge cannot know about the missing
// tool.
func (f *File) checkIncluded(servers []mcpbridge.Server) error {
	names, err := mcpbridge.ServerNames(servers...)
	if err != nil {
		return err
	}
	has := map[string][]string{}
	for _, t := range f.bridge.Tools() {
		if server, name, ok := f.bridge.Origin(nameOf(t)); ok {
			has[server] = append(has[server], name)
		}
	}
	up := map[string]bool{}
	for _, info := range f.bridge.Servers() {
		up[info.Name] = info.Up
	}
	for i, d := range f.servers {
		if d.server.Optional && !up[names[i]] {
			continue // already reported
		}
		for _, l := range d.lines {
			for _, name := range l.include {
				if !strings.ContainsAny(name, `*?[\`) && !slices.Contains(has[names[i]], name) {
					return problemAt(f.Doc.Name, l.decl.Element, fmt.Sprintf("<tool mcp_server>: MCP server %s has no tool %s", names[i], name), hintOf(l, name), nil)
				}
			}
		}
	}
	return nil
}

// hintOf returns a hint about a missing tool.
func hintOf(l *line, name string) string {
	if l.decl.Name == name {
		return fmt.Sprintf("name chooses one tool of the server; server=%q gives the server a name", name)
	}
	return ""
}

// serverTools returns the current tools of the servers: it is an
// [agent.Agent.ToolSource].
func (f *File) serverTools(ctx context.Context) ([]tool.Tool, error) {
	if f.bridge == nil {
		return nil, nil
	}
	_ = f.bridge.Refresh(ctx) // a server that does not answer keeps its previous tools
	return f.bridge.Tools(), nil
}

// names returns the names of the file's tools without those of its servers.
func (f *File) names() (names []string) {
	for _, t := range f.Tools {
		names = append(names, nameOf(t))
	}
	for _, n := range f.nested {
		names = append(names, n.decl.Name)
	}
	return names
}

func nameOf(t tool.Tool) string {
	switch def := t.Definition().(type) {
	case *item.FunctionTool:
		return def.Name
	case *item.CustomTool:
		return def.Name
	default:
		kind, _ := item.CallKindOf(def)
		return kind.Tool
	}
}

// authorize reads the client's id and secret from the variables that the declaration
// names.
func (d *declared) authorize(lookup func(string) (string, bool)) error {
	decl := d.lines[0].decl
	idName, secretName := decl.Value("client_id_env"), decl.Value("client_secret_env")
	if idName == "" && secretName == "" {
		return nil
	}
	if idName == "" || secretName == "" {
		return errors.New("client_id_env and client_secret_env must be given together")
	}
	id, okID := lookup(idName)
	secret, okSecret := lookup(secretName)
	if !okID || !okSecret {
		return fmt.Errorf("set both variables %q and %q", idName, secretName)
	}
	handler, err := mcpbridge.ClientCredentials(id, endpoint.NewKey(secret), "", nil)
	d.server.OAuth = handler
	return err
}
