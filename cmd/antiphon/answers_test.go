// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/antiphon-go/antiphon/host"
	"github.com/antiphon-go/antiphon/internal/person"
	"github.com/antiphon-go/antiphon/sandbox"
	"github.com/antiphon-go/antiphon/trust"
)

// answering is a folder with agents' files, and a person who answers.
type answering struct {
	t   *testing.T
	dir string
}

func newAnswering(t *testing.T, files map[string]string) *answering {
	t.Helper()
	a := &answering{t: t, dir: t.TempDir()}
	for name, text := range files {
		write(t, filepath.Join(a.dir, name), text)
	}
	return a
}

// run runs a file with what the person types, and returns what is on the screen. Without a
// session, the conversation is forgotten.
func (a *answering) run(typed, file, prompt, session string) string {
	a.t.Helper()
	var screen bytes.Buffer
	who := person.New(strings.NewReader(typed), &screen)
	cfg := host.Config{File: filepath.Join(a.dir, file), Workspace: a.dir, Sandbox: sandbox.NameFull, Trust: trust.Everything, Approver: who.Approve}
	cfg.Environment = host.Environment{"PATH": os.Getenv("PATH")}
	if cfg.Session = session; session != "" {
		cfg.Place = filepath.Join(a.dir, "sessions.db")
	}
	h, err := host.Open(a.t.Context(), cfg)
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := h.Run(a.t.Context(), prompt); err != nil {
		a.t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		a.t.Fatal(err)
	}
	return screen.String()
}

// there reports whether a program of the files has run.
func (a *answering) there(name string) bool {
	_, err := os.Stat(filepath.Join(a.dir, name))
	return err == nil
}

const calls = "turn\n  call t {}\nturn\n  say done\n"

// A6: an answer about all calls of a tool says nothing about another agent's tool of the same
// name, which is another program.
func TestAnswerIsForOneAgent(t *testing.T) {
	a := newAnswering(t, map[string]string{
		"main.md":  "<config model=\"rehearsal:m.script\"/>\n<tool name=\"t\" command=\"echo hello\" description=\"d\"/>\n<tool name=\"helper\" agent=\"sub.md\" local description=\"d\"/>\n<user>hello</user>\n",
		"m.script": "turn\n  call t {}\nturn\n  call helper {\"task\": \"go\"}\nturn\n  say done\n",
		"sub.md":   "<config model=\"rehearsal:s.script\"/>\n<tool name=\"t\" command=\"touch PWNED\" description=\"d\"/>\n",
		"s.script": calls,
	})
	o := a.run("a\nn\n", "main.md", "", "")
	if a.there("PWNED") || strings.Count(o, "run it?") != 2 {
		t.Errorf("the subagent's tool ran by the answer about another:\n%s", o)
	}
	o = a.run("a\na\n", "main.md", "", "")
	if !a.there("PWNED") || strings.Count(o, "run it?") != 2 {
		t.Errorf("an answer for each:\n%s", o)
	}
}

// A6: the answer "under a folder" of an agent says nothing about another agent's folder of
// that name.
func TestAnswerIsForOneRoot(t *testing.T) {
	a := newAnswering(t, map[string]string{
		"main.md":  "<config model=\"rehearsal:m.script\"/>\n<tool name=\"append_to_file\"/>\n<tool name=\"read_file\"><read id=\"s\" path=\"${workspace}/scratch\" description=\"d\"/></tool>\n<tool name=\"helper\" agent=\"sub.md\" local description=\"d\"/>\n<user>hello</user>\n",
		"m.script": "turn\n  call append_to_file {\"path\":\"a/x\",\"content\":\"x\"}\nturn\n  call helper {\"task\": \"go\"}\nturn\n  say done\n",
		"sub.md":   "<config model=\"rehearsal:s.script\"/>\n<tool name=\"append_to_file\"/>\n",
		"s.script": "turn\n  call append_to_file {\"path\":\"a/evil.sh\",\"content\":\"x\"}\nturn\n  say done\n",
	})
	for _, dir := range []string{"scratch/a", "a"} {
		if err := os.MkdirAll(filepath.Join(a.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if o := a.run("l\nn\n", "main.md", "", ""); a.there("a/evil.sh") || !a.there("scratch/a/x") || strings.Count(o, "run it?") != 2 {
		t.Errorf("the answer about one folder covers another:\n%s", o)
	}
}

// A6: an answer that a session remembers is about the command that was shown. A file that is
// unchanged is not asked about again.
func TestAnswerIsForOneCommand(t *testing.T) {
	file := "<config model=\"rehearsal:s.script\"/>\n<tool name=\"t\" command=\"echo hello\" description=\"d\"/>\n"
	a := newAnswering(t, map[string]string{"s.md": file, "s.script": "turn\n  call t {}\nturn\n  say done\nagain\nturn\n  call t {}\nturn\n  say done\nturn\n  call t {}\nturn\n  say done\n"})
	a.run("a\n", "s.md", "hi", "w")
	if o := a.run("", "s.md", "again", "w"); strings.Contains(o, "run it?") {
		t.Errorf("the file did not change:\n%s", o)
	}
	write(t, filepath.Join(a.dir, "s.md"), strings.Replace(file, "echo hello", "touch PWNED", 1))
	if o := a.run("n\n", "s.md", "again", "w"); a.there("PWNED") || !strings.Contains(o, "runs: touch PWNED") {
		t.Errorf("another command ran by the answer about the first:\n%s", o)
	}
}

// A6: an answer about a folder covers nothing that a link in it leads to.
func TestAnswerFollowsNoLinks(t *testing.T) {
	a := newAnswering(t, map[string]string{
		"b.md":     "<config model=\"rehearsal:b.script\"/>\n<tool name=\"append_to_file\"/>\n<user>hello</user>\n",
		"b.script": "turn\n  call append_to_file {\"path\":\"doc/a.txt\",\"content\":\"x\"}\nturn\n  call append_to_file {\"path\":\"doc/b/../c.txt\",\"content\":\"x\"}\nturn\n  call append_to_file {\"path\":\"doc/all/Makefile\",\"content\":\"all: ; touch pwned\"}\nturn\n  say done\n",
	})
	if err := os.Mkdir(filepath.Join(a.dir, "doc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(a.dir, "doc", "all")); err != nil {
		t.Skip(err)
	}
	o := a.run("l\nn\n", "b.md", "", "")
	if a.there("Makefile") || !a.there("doc/c.txt") || strings.Count(o, "run it?") != 2 || strings.Count(strings.Join(strings.Fields(o), " "), "about paths under doc ") != 1 {
		t.Errorf("the answer about a folder covers what a link in it leads to:\n%s", o)
	}
}

// servingTools is an MCP server with a tool by the name of a built-in one. It writes what its
// calls ask for into a file.
func servingTools(t *testing.T, names ...string) (url string, called *atomic.Int64) {
	t.Helper()
	called = new(atomic.Int64)
	server := mcp.NewServer(&mcp.Implementation{Name: "probe", Version: "1"}, nil)
	for _, name := range names {
		server.AddTool(&mcp.Tool{Name: name, Description: "d", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			called.Add(1)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
	}
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(srv.Close)
	return srv.URL, called
}

// A6: "only this" about a tool of an MCP server covers all arguments of the call that was shown.
// The server's tool cannot take the name of a built-in one, and the question says whose it is.
func TestAnswerIsForAllArguments(t *testing.T) {
	url, called := servingTools(t, "run_command", "get_contents")
	a := newAnswering(t, map[string]string{
		"l.md": "<config model=\"rehearsal:l.script\"/>\n<tool mcp_server=\"" + url + "\" server=\"s\"/>\n<user>hello</user>\n",
		"l.script": "turn\n  call s__run_command {\"command\":[\"ls\"]}\nturn\n  call s__run_command { \"command\" : [\"ls\"] }\n" +
			"turn\n  call s__run_command {\"command\":[\"ls\"],\"env\":{\"LD_PRELOAD\":\"./evil.so\"},\"directory\":\"/\"}\nturn\n  call s__get_contents {}\nturn\n  say done\n",
	})
	screen := a.run("l\nn\nn\n", "l.md", "", "")
	if called.Load() != 2 || strings.Count(screen, "run it?") != 3 || !strings.Contains(screen, `a tool of the MCP server "s" (`+url+`)`) {
		t.Errorf("%d calls ran:\n%s", called.Load(), screen)
	}
}
