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
	"github.com/antiphon-go/antiphon/tool"
)

// The limits of a [Server] that names none.
const (
	DefaultTimeout      = time.Minute
	DefaultStartTimeout = time.Minute
	DefaultMaxMessage   = 64 << 20
)

// Server says how one MCP server is reached and what is taken from it. Either
// Command or URL is set.
type Server struct {
	// Name is what the server is called in messages and, where names clash, in
	// names of tools. By default it is made from the command or the host.
	Name string

	// Command is the program and its arguments, as they are: no shell reads
	// them.
	Command []string
	// Dir is the program's working directory, by default the current one.
	Dir string
	// Env are variables that the program gets besides those of [PassedEnv].
	Env map[string]string
	// PassEnv names further variables that it gets from this process.
	PassEnv []string
	// SecretEnv are variables whose values are hidden in all that the server
	// says, the outputs of its tools included.
	SecretEnv map[string]endpoint.Key

	// URL is the endpoint of a server that speaks streamable HTTP.
	URL string
	// Header is sent with every request to the URL's own host.
	Header http.Header
	// Token is sent as bearer token, to the URL's own host alone.
	Token endpoint.Key
	// OAuth gets tokens when the server asks for authorization. See the SDK's
	// packages auth and auth/extauth for what there is.
	OAuth auth.OAuthHandler

	// Protocol is the version of the protocol to begin with, for a server that
	// cannot negotiate. By default it is the newest.
	Protocol string

	// Include and Exclude choose tools by the names that the server gives them,
	// with patterns as path.Match reads them. No Include takes all; Exclude
	// wins. A plain name in Include that the server does not have is an error
	// of [Connect].
	Include, Exclude []string
	// ReadOnly are patterns for tools that the caller knows to change nothing.
	// No other tool is taken for one that only reads, whatever the server says,
	// unless TrustHints is set.
	ReadOnly []string
	// TrustHints believes what the server says of its tools: that one only
	// reads, or may be called twice.
	TrustHints bool
	// Approval says what was declared about the tool that the server gives the
	// first name and a model calls by the second: "allow", "ask", "deny", or "" for
	// nothing. It is asked once for each tool. nil says nothing of any.
	Approval func(tool, name string) string
	// Optional lets [Connect] go on without the server if it cannot be started: its
	// tools are missing then, and [Options.Notify] gets the reason. A call of one
	// of them is answered as a call of any unknown tool.
	Optional bool
	// Strict asks the endpoint to bind the model to the schemas.
	Strict bool

	// Timeout bounds each call. Zero is [DefaultTimeout].
	Timeout time.Duration
	// MaxOutput bounds the text of each output, in place of the limit for all
	// tools.
	MaxOutput tool.Limiter
	// StartTimeout bounds starting the server and listing its tools. Zero is
	// [DefaultStartTimeout].
	StartTimeout time.Duration
	// MaxMessage bounds one message from the server, in bytes. Zero is
	// [DefaultMaxMessage].
	MaxMessage int
}

// Parse reads a server from one line: "stdio:" and a command, or an http or
// https URL. The command is split at white space; single and double quotes and
// a backslash keep it together. Nothing is expanded.
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

// complete checks the server and fills in what it leaves open.
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

// runners start other programs, by whose names people know a server.
var runners = []string{"npx", "uvx", "bunx", "node", "python", "python3", "deno", "bun", "uv"}

// defaultName is the program's name, or the host's.
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

// base is the last part of a path or a package's name, without its version and
// ending.
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

// takes reports whether a tool is wanted.
func (s *Server) takes(name string) bool {
	return (len(s.Include) == 0 || matches(s.Include, name)) && !matches(s.Exclude, name)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// missing returns the plain names of Include that are not among the names.
func (s *Server) missing(names []string) (list []string) {
	for _, p := range s.Include {
		if !strings.ContainsAny(p, `*?[\`) && !slices.Contains(names, p) {
			list = append(list, p)
		}
	}
	return list
}
