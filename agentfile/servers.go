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

// declared is an MCP server and the lines of a file that declare it: those that
// say the same but for which tools they take and who approves them.
type declared struct {
	lines  []*line
	server mcpbridge.Server
}

// line is one declaration: the tools that it takes, all if it names none.
type line struct {
	decl    *chatmd.Tool
	include []string
}

func (l *line) takes(name string) bool {
	return len(l.include) == 0 || matches(l.include, name)
}

// addServer takes the declaration of an MCP server. It is not started yet.
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
		l.include = []string{decl.Name} // as older files mean it
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
	d.server.Approval = func(tool, name string) string { return d.approval(tool, name, o.Allow) }
	list := []mcpbridge.Server{server}
	for _, other := range f.servers {
		list = append(list, other.server)
	}
	if _, err := mcpbridge.ServerNames(list...); err != nil {
		return bad(err.Error(), "lines that are to share one server differ in nothing but include and approval")
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

// join adds a line, and takes the tools that any of the lines does.
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
func (d *declared) approval(tool, name string, allowed []string) (verdict string) {
	rank := []string{"", session.Allow, session.Ask, session.Deny}
	for _, l := range d.lines {
		says := l.decl.Approval
		if says == session.Ask && matches(allowed, name) {
			continue
		}
		if l.takes(tool) && slices.Index(rank, says) > slices.Index(rank, verdict) {
			verdict = says
		}
	}
	return verdict
}

// Connect starts the MCP servers that the file and its agents declare, all at
// once; without any it does nothing. Their tools are those of the agents from
// then on, and follow the servers while runs are under way. It is not part of
// [Load], so that a file can be checked without running anything. Lookup finds
// the environment variables that the declarations name. Close ends the servers.
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

// connectProblems puts what [mcpbridge.Connect] says at the lines of the servers
// that it is about.
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

// checkIncluded reports tools that a line names and its server does not have,
// where another line takes all: the server knows then of no tool that is
// missing.
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
			continue // that was told
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

// hintOf is what to do about a tool that is not there.
func hintOf(l *line, name string) string {
	if l.decl.Name == name {
		return fmt.Sprintf("name chooses one tool of the server; server=%q gives the server a name", name)
	}
	return ""
}

// serverTools are the tools of the servers as they are now: an
// [agent.Agent.ToolSource].
func (f *File) serverTools(ctx context.Context) ([]tool.Tool, error) {
	if f.bridge == nil {
		return nil, nil
	}
	_ = f.bridge.Refresh(ctx) // a server that does not answer has the tools that it had
	return f.bridge.Tools(), nil
}

// names are those of the tools that the file has without its servers.
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

// authorize reads the client's id and secret out of the variables that the
// declaration names.
func (d *declared) authorize(lookup func(string) (string, bool)) error {
	decl := d.lines[0].decl
	idName, secretName := decl.Value("client_id_env"), decl.Value("client_secret_env")
	if idName == "" && secretName == "" {
		return nil
	}
	if idName == "" || secretName == "" {
		return errors.New("client_id_env and client_secret_env go together")
	}
	id, okID := lookup(idName)
	secret, okSecret := lookup(secretName)
	if !okID || !okSecret {
		return fmt.Errorf("the variables %q and %q are not both set", idName, secretName)
	}
	handler, err := mcpbridge.ClientCredentials(id, endpoint.NewKey(secret), "", nil)
	d.server.OAuth = handler
	return err
}
