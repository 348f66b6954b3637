// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os/exec"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/mcpbridge"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/trust"
)

// declared is an MCP server and the lines of a file that declare it: lines that
// differ only in the tools that they select and their approval.
type declared struct {
	lines   []*line
	server  mcpbridge.Server
	scripts []trust.Source // that its command names
}

// line is one declaration and the tools that it selects, or all tools if it names
// none.
type line struct {
	decl    *chatmd.Tool
	include []string
	// allows is set if the person agreed that the line allows the tools.
	allows bool
}

// tools describes the tools of the line for a person.
func (l *line) tools(s *mcpbridge.Server) string {
	names := "all tools"
	if len(l.include) > 0 {
		var list []string
		for _, name := range l.include {
			list = append(list, asName(name))
		}
		names = strings.Join(list, ", ")
	}
	return names + " of the MCP server " + asName(cmp.Or(s.Name, l.decl.Value("mcp_server")))
}

func (l *line) takes(name string) bool {
	return len(l.include) == 0 || matches(l.include, name)
}

// addServer adds the declaration of an MCP server. The server is not started yet.
func (f *File) addServer(decl *chatmd.Tool, p places, o Options) *chatmd.Error {
	bad := func(message, hint string) *chatmd.Error {
		return problemAt(f.doc().Name, decl.Element, "<tool mcp_server>: "+message, hint, nil)
	}
	server, err := mcpbridge.Parse(decl.Value("mcp_server"))
	if err != nil {
		return bad(err.Error(), `such as mcp_server="stdio:npx some-server" or an http URL`)
	}
	if namesUser(server.URL) {
		return bad("the URL names a user, which hides the host", "the host alone")
	}
	if message, hint := credentials(decl, &server); message != "" {
		return bad(message, hint)
	}
	if _, problem := approval(f.doc().Name, decl); problem != nil {
		return problem
	}
	server.Name = decl.Value("server")
	server.Dir, server.Agent = p.workspace, o.agentPath()
	server.Strict = decl.Flag("strict")
	server.Optional = decl.Flag("optional")
	server.Timeout, server.StartTimeout, server.Polling = decl.Timeout, decl.StartTimeout, decl.Polling
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
	if problem := f.confinedServer(decl, &server, o); problem != nil {
		return problem
	}
	scripts := o.gate.server(decl, &server, f.at(decl.Element))
	l.allows = decl.Approval == string(session.Allow) && o.gate.wants(trust.Power{Kind: trust.Allows, What: l.tools(&server), Where: server.Dir}, f.at(decl.Element))
	for _, d := range f.servers {
		if d.sameAs(decl, server.Name) {
			d.join(l)
			return nil
		}
	}
	d := &declared{[]*line{l}, server, scripts}
	d.server.Unchanged = d.unchanged
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

// unchanged returns an error if a script of the server is not what was agreed to, or is new. The
// server itself may have made other new files. The bridge asks before each start, because a server
// that ended is started again.
func (d *declared) unchanged() error {
	if what := cmp.Or(changed(d.scripts), appeared(codeIn(d.scripts, d.server.Command))); what != "" {
		return notStarted(what)
	}
	return nil
}

func notStarted(what string) error {
	return errors.New(what + ", so nothing was started; run it again to be asked about what it is now")
}

// sameAs reports whether a line declares the same server.
func (d *declared) sameAs(decl *chatmd.Tool, name string) bool {
	first := d.lines[0].decl
	for _, name := range []string{"mcp_server", "client_id_env", "client_secret_env", "credentials", "sandbox", "hosts"} {
		if first.Value(name) != decl.Value(name) {
			return false
		}
	}
	return d.server.Name == name && first.Timeout == decl.Timeout && first.Polling == decl.Polling && first.StartTimeout == decl.StartTimeout && first.Flag("strict") == decl.Flag("strict") &&
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
		if says == session.Ask && matches(allowed, name) || says == session.Allow && !l.allows {
			continue
		}
		if l.takes(tool) && says.Stricter(verdict) {
			verdict = says
		}
	}
	return verdict
}

// Environment gives MCP servers variables of the environment. The zero value has none.
type Environment struct {
	// Lookup returns the basic variables that every program gets, such as PATH.
	Lookup func(name string) (value string, ok bool)
	// Named returns a variable that a file names, and the hosts that it may be sent to.
	// An error says why it is sent nowhere.
	Named func(name string) (value string, hosts []string, err error)
	// Caller returns the token of who asked, for a server that the file gives the caller's
	// credentials to. An error says why there is none, and ends [File.Connect]. Nil means that
	// nobody can give one.
	Caller func(ctx context.Context, server *mcpbridge.Server) (endpoint.Key, error)
	// Starting is called before servers are started or connected to. An error prevents
	// it. It may be nil.
	Starting func(ctx context.Context, servers []mcpbridge.Server) error
}

// Connect starts the MCP servers that the file and its agents declare, concurrently.
// From then on the agents have the servers' tools, and tools that a server adds or
// removes during a run are updated. Connect is not part of [Load], so that a file
// can be checked without running anything. Close ends the
// servers.
func (f *File) Connect(ctx context.Context, env Environment, notify func(mcpbridge.Event)) error {
	if err := f.gate.refused(); err != nil {
		return err
	}
	for _, n := range f.nested {
		if err := n.file.Connect(ctx, env, notify); err != nil {
			return err
		}
	}
	if f.bridge != nil || len(f.servers) == 0 {
		return nil
	}
	if env.Lookup == nil {
		env.Lookup = func(string) (string, bool) { return "", false }
	}
	// A server's tool by the name of a built-in one would look like it in questions, and
	// rules about the built-in tool would cover it.
	opts := mcpbridge.Options{Notify: notify, LookupEnv: env.Lookup, Reserved: append(append(f.names(), tool.ReadOutputName), builtinNames()...)}
	var servers []mcpbridge.Server
	for _, d := range f.servers {
		// Others would start before the bridge asks. What is new later, the server may have made itself.
		if what := cmp.Or(changed(d.scripts), appeared(d.scripts)); what != "" {
			return f.serverProblem(d, notStarted(what))
		}
		if err := d.authorize(ctx, env); err != nil {
			return f.serverProblem(d, err)
		}
		servers = append(servers, d.server)
	}
	if env.Starting != nil {
		if err := env.Starting(ctx, servers); err != nil {
			return err
		}
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
	return problemAt(f.doc().Name, d.lines[0].decl.Element, "<tool mcp_server>: "+err.Error(), serverHint(&d.server, err), nil)
}

// serverHint says what to do about a server that did not start, or returns "".
func serverHint(server *mcpbridge.Server, err error) string {
	var e *mcpbridge.ServerError
	var dial *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return `a program that had to be downloaded or built first may be ready now: run it again; start_timeout="5m" gives it more time`
	case errors.Is(err, exec.ErrNotFound):
		return "install it, or check PATH"
	case server.URL == "" || !errors.As(err, &e):
		return ""
	case e.Status == http.StatusUnauthorized && server.OAuth == nil:
		return "it wants credentials: client_id_env and client_secret_env name the variables that hold them"
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return "check the credentials, and what they may use"
	case e.Status >= 500:
		return "try again later, or ask those who run it"
	case e.Status != 0:
		return "check the address: many servers have theirs at a path such as /mcp"
	case errors.As(err, &dial):
		return "check the address, and that the server runs"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, new(tls.RecordHeaderError)):
		return "check the address: is it http://?"
	}
	return ""
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
					return problemAt(f.doc().Name, l.decl.Element, fmt.Sprintf("<tool mcp_server>: MCP server %s has no tool %s", names[i], name), hintOf(l, name), nil)
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

// builtinNames returns the names of the built-in tools, with their older ones.
func builtinNames() (names []string) {
	for _, b := range toolkit.Builtins() {
		names = append(append(names, b.Name), b.Aliases...)
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
// names. They are sent only to hosts that both may be sent to: the MCP server names
// the server that gives out tokens, and could name any.
func (d *declared) authorize(ctx context.Context, env Environment) (err error) {
	decl := d.lines[0].decl
	if decl.Value("credentials") == callers {
		if env.Caller == nil {
			return errors.New("it takes the credentials of the caller, and there is no caller who could give them: only antiphon serve has callers")
		}
		d.server.Token, err = env.Caller(ctx, &d.server)
		return err
	}
	idName, secretName := decl.Value("client_id_env"), decl.Value("client_secret_env")
	switch {
	case idName == "" && secretName == "":
		return nil
	case idName == "" || secretName == "":
		return errors.New("client_id_env and client_secret_env must be given together")
	case env.Named == nil:
		return errors.New("no variables are sent from here")
	}
	id, hosts, err := env.Named(idName)
	if err != nil {
		return err
	}
	secret, more, err := env.Named(secretName)
	if err != nil {
		return err
	}
	hosts = slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return !slices.Contains(more, host) })
	client := &http.Client{Transport: &limited{hosts, idName + " and " + secretName}}
	d.server.OAuth, err = mcpbridge.ClientCredentials(id, endpoint.NewKey(secret), "", client)
	return err
}

// The values of the attribute credentials: whose credentials the calls of a server's tools use.
const (
	operators = "operator"
	callers   = "caller"
)

// credentials returns what is wrong with the attribute of a declaration.
func credentials(decl *chatmd.Tool, server *mcpbridge.Server) (message, hint string) {
	whose, given := attribute(decl, "credentials")
	switch {
	case !given || whose == operators:
		return "", ""
	case whose != callers:
		return fmt.Sprintf("credentials is %q", whose), "want " + operators + " or " + callers
	case server.URL == "":
		return "credentials=\"caller\" is for a server with an address", "a program has the operator's"
	case decl.Value("client_id_env") != "" || decl.Value("client_secret_env") != "":
		return "credentials=\"caller\" and the operator's variables contradict each other", "leave one of them out"
	}
	if u, err := url.Parse(server.URL); err != nil || u.Scheme != "https" && !isLoopback(u.Hostname()) {
		return "a caller's token is sent over https only, or to this machine", ""
	}
	return "", ""
}

// noCredentials returns a problem if a declaration of another tool has the attribute.
func (f *File) noCredentials(decl *chatmd.Tool) *chatmd.Error {
	if _, given := attribute(decl, "credentials"); given {
		return problemAt(f.doc().Name, decl.Element, "<tool>: credentials is for mcp_server", "", nil)
	}
	return nil
}

// limited sends requests only to some hosts, over https or to this machine.
type limited struct {
	hosts []string
	what  string // for messages
}

// RoundTrip implements [http.RoundTripper].
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	host := strings.ToLower(r.URL.Host)
	if !slices.Contains(l.hosts, host) {
		return nil, fmt.Errorf("%s are not sent to %s: nobody named this host for them", l.what, trust.Visible(host))
	}
	if r.URL.Scheme != "https" && !isLoopback(r.URL.Hostname()) {
		return nil, fmt.Errorf("%s are not sent to %s without encryption", l.what, trust.Visible(host))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
