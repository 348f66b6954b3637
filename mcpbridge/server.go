// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/tool/output"
)

// The default limits of a [Server].
const (
	DefaultTimeout      = time.Minute
	DefaultStartTimeout = time.Minute
	DefaultMaxMessage   = 64 << 20
)

// Server describes how to reach one MCP server, and which of its tools to use. Set
// either Command or URL.
type Server struct {
	// Name is the server's name in messages and, if names conflict, in names of tools.
	// By default it is derived from the command or the host.
	Name string

	// Command is the program and its arguments. No shell is involved.
	Command []string
	// Dir is the program's working directory. The default is the current directory.
	Dir string
	// Env are variables for the program in addition to [PassedEnv].
	Env map[string]string
	// PassEnv names further variables that it inherits from this process.
	PassEnv []string
	// SecretEnv are variables whose values are hidden in everything that the server
	// sends, including the outputs of its tools.
	SecretEnv map[string]endpoint.Key

	// URL is the endpoint of a server that speaks streamable HTTP.
	URL string
	// Header is sent with every request to the URL's own host.
	Header http.Header
	// Token is sent as bearer token, only to the URL's own host.
	Token endpoint.Key
	// OAuth gets tokens when the server requests authorization. See the SDK's packages
	// auth and auth/extauth.
	OAuth auth.OAuthHandler

	// Protocol is the protocol version to begin with, for a server that cannot
	// negotiate. The default is the newest.
	Protocol string

	// Sandbox returns the profile of the program of Command, given the folder that it
	// runs in, such as [sandbox.Workspace]. Nil means [sandbox.Network]. The program may also read
	// what its command line names, see [Server.Hold], and the folders that the programs of
	// PATH are in. On a system without a sandbox, nil means
	// [sandbox.Full]; a profile that the system cannot give is an error of the start.
	Sandbox func(folders ...string) sandbox.Profile

	// Unchanged is called before each start of the program of Command, also before it is started
	// again because it ended. An error prevents the start. Starts come one at a time. It may be nil.
	Unchanged func() error

	// Agent names the agent that has the server, so that an answer about a tool of one agent
	// is none about the same tool of another: see [tool.Origin]. It may be empty.
	Agent string

	// Include and Exclude select tools by the server's own names, with patterns of
	// path.Match. An empty Include selects all; Exclude has precedence. A plain name
	// in Include that the server does not have is an error of [Connect].
	Include, Exclude []string
	// ReadOnly are patterns for tools that the caller knows to be read-only. No other
	// tool is treated as read-only, whatever the server says, unless TrustHints is
	// set.
	ReadOnly []string
	// TrustHints trusts the server's annotations: that a tool is read-only, or may be
	// called twice.
	TrustHints bool
	// Approval returns the declared rule for a tool, given its name at the server and
	// its name for models: "allow", "ask", "deny", or "" for none. It is called once
	// per tool. Nil declares nothing.
	Approval func(tool, name string) string
	// Optional lets [Connect] continue without the server if it cannot be started: its
	// tools are then missing, and [Options.Notify] receives the reason. A call of one
	// of them is answered like a call of an unknown tool.
	Optional bool
	// Strict asks the endpoint to enforce the schemas.
	Strict bool

	// Timeout limits each call. Zero means [DefaultTimeout].
	Timeout time.Duration
	// MaxOutput limits the text of each output, instead of the limit for all tools.
	MaxOutput *output.Limit
	// Polling marks the tools as meant to be called again and again: see [tool.Polling].
	Polling bool
	// StartTimeout limits starting the server and listing its tools. Zero means
	// [DefaultStartTimeout].
	StartTimeout time.Duration
	// MaxMessage limits one message from the server, in bytes. Zero means
	// [DefaultMaxMessage].
	MaxMessage int

	held *held // see Hold
}

// Parse parses a server from one line: "stdio:" and a command, or an http or https
// URL. The command is split at white space, except inside single or double quotes or
// after a backslash. Nothing is expanded.
func Parse(spec string) (Server, error) {
	if line, ok := strings.CutPrefix(spec, "stdio:"); ok {
		argv, err := words(line)
		if err == nil && len(argv) == 0 {
			err = errors.New("no command")
		}
		if err != nil {
			return Server{}, fmt.Errorf("MCP server %q: %w", spec, err)
		}
		return Server{Command: argv}, nil
	}
	spec = strings.TrimPrefix(spec, "mcp+") // an older spelling
	s := Server{URL: spec}
	if _, err := s.endpoint(); err != nil {
		return Server{}, fmt.Errorf("MCP server %q: want stdio:COMMAND or an http or https URL", spec)
	}
	return s, nil
}

// words splits a command line.
func words(line string) (list []string, err error) {
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			inWord, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			inWord, quote = true, r
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if inWord {
				list = append(list, word.String())
			}
			word.Reset()
			inWord = false
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote is not closed")
	}
	if inWord {
		list = append(list, word.String())
	}
	return list, nil
}

// endpoint returns the parsed URL.
func (s *Server) endpoint() (*url.URL, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, errors.New("the URL cannot be read")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("want an http or https URL")
	}
	return u, nil
}

// complete checks the server and sets defaults.
func (s Server) complete() (Server, error) {
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	s.StartTimeout = cmp.Or(s.StartTimeout, DefaultStartTimeout)
	s.MaxMessage = cmp.Or(s.MaxMessage, DefaultMaxMessage)
	if s.Name == "" {
		s.Name = s.defaultName()
	}
	return s, s.check()
}

func (s *Server) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("MCP server %s: %w", s.Name, fmt.Errorf(format, args...))
	}
	switch {
	case len(s.Command) > 0 == (s.URL != ""):
		return bad("want either a command or a URL")
	case s.Timeout < 0 || s.StartTimeout < 0 || s.MaxMessage < 0:
		return bad("a limit is negative")
	case s.URL != "":
		if _, err := s.endpoint(); err != nil {
			return bad("%w", err)
		}
	case s.Command[0] == "":
		return bad("the command has no name")
	}
	for _, p := range slices.Concat(s.Include, s.Exclude, s.ReadOnly) {
		if _, err := path.Match(p, ""); err != nil {
			return bad("pattern %q: %w", p, err)
		}
	}
	return nil
}

// runners start other programs, which give the server its name.
var runners = []string{"npx", "uvx", "bunx", "node", "python", "python3", "deno", "bun", "uv"}

// defaultName returns the name of the program or the host.
func (s *Server) defaultName() string {
	if len(s.Command) == 0 {
		u, err := s.endpoint()
		if err != nil {
			return "server"
		}
		return u.Host
	}
	name := base(s.Command[0])
	if slices.Contains(runners, name) {
		for _, arg := range s.Command[1:] {
			if !strings.HasPrefix(arg, "-") {
				name = base(arg)
				break
			}
		}
	}
	return cmp.Or(name, "server")
}

// base returns the last part of a path or package name, without version and
// extension.
func base(s string) string {
	s = path.Base(filepath.ToSlash(s))
	if at := strings.LastIndexByte(s, '@'); at > 0 {
		s = s[:at]
	}
	switch ext := path.Ext(s); ext {
	case ".exe", ".js", ".mjs", ".cjs", ".ts", ".py", ".sh":
		s = strings.TrimSuffix(s, ext)
	}
	return s
}

// takes reports whether a tool is selected.
func (s *Server) takes(name string) bool {
	return (len(s.Include) == 0 || matches(s.Include, name)) && !matches(s.Exclude, name)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// missing returns the plain names of Include that are not in names.
func (s *Server) missing(names []string) (list []string) {
	for _, p := range s.Include {
		if !strings.ContainsAny(p, `*?[\`) && !slices.Contains(names, p) {
			list = append(list, p)
		}
	}
	return list
}
