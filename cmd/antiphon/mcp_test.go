// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// A file with powers is not served before somebody agreed to them, nothing but loopback is
// served, and standard output has nothing but the protocol: mistakes are told elsewhere. K1 V6
func TestMCPRefuses(t *testing.T) {
	dir := t.TempDir()
	powerful := write(t, filepath.Join(dir, "powerful.md"), "<config model=\"rehearsal\"/>\n<tool name=\"wipe\" command=\"true\" approval=\"allow\" description=\"x\"/>\n")
	plain := write(t, filepath.Join(dir, "plain.md"), "<config model=\"rehearsal\"/>\n")
	spaced := write(t, filepath.Join(dir, "a b.md"), "<config model=\"rehearsal\"/>\n")
	other := write(t, filepath.Join(t.TempDir(), "plain.md"), "<config model=\"rehearsal\"/>\n")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{powerful}, []string{"wipe", "antiphon trust", "--trust"}},
		{[]string{plain, "--listen", "0.0.0.0:0"}, []string{"only loopback", "keys"}},
		{[]string{plain, "--listen", "8787"}, []string{"--listen", "127.0.0.1:8787"}},
		{[]string{plain, other}, []string{"both be the tool plain"}},
		{[]string{spaced}, []string{`"a b" cannot be the name of a tool`, "rename the file"}},
		{[]string{}, []string{"name at least one agent's file or folder"}},
		{[]string{plain, "--answer-time", "0s"}, []string{"--answer-time"}},
		{[]string{plain, "--max-turns=-1"}, []string{"cannot be negative"}},
		{[]string{filepath.Join(dir, "none.md")}, []string{"none.md"}},
	} {
		o := programEnv(t, []string{"XDG_DATA_HOME=" + dir}, append([]string{"mcp"}, test.args...)...)
		if o.code != exitUsage || o.out != "" {
			t.Errorf("%v: exit code %d, %q, %s", test.args, o.code, o.out, o.err)
		}
		for _, want := range test.want {
			if !strings.Contains(o.err, want) {
				t.Errorf("%v: %q does not say %q", test.args, o.err, want)
			}
		}
	}
	// The end of the input is the end of the server.
	if o := programEnv(t, []string{"XDG_DATA_HOME=" + dir}, "mcp", plain); o.code != exitOK || o.out != "" {
		t.Errorf("exit code %d, %q, %s", o.code, o.out, o.err)
	}
}

// mcpServed serves over HTTP in this process until the test ends, and returns the URL.
func mcpServed(t *testing.T, args ...string) string {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"mcp", "--listen", "127.0.0.1:0"}, args...), []string{"XDG_DATA_HOME=" + t.TempDir()}, stdio{strings.NewReader(""), io.Discard, w})
		w.Close()
	}()
	url, rest := "", bufio.NewReader(r)
	for url == "" {
		line, err := rest.ReadString('\n')
		if err != nil {
			end()
			t.Fatalf("%v, exit code %d", err, <-code)
		}
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(line)
	}
	go io.Copy(io.Discard, rest)
	t.Cleanup(func() {
		end()
		if got := <-code; got != exitOK {
			t.Errorf("exit code %d", got)
		}
	})
	return url
}

// mcpPackages is where .ci/mcp installs packages. TestMain sets another home folder later.
var mcpPackages = func() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = "."
	}
	return cmp.Or(os.Getenv("ANTIPHON_MCP_SERVERS"), filepath.Join(cache, "antiphon", "mcp-servers"))
}()

// mcpPackage returns a program of a package that .ci/mcp installs.
func mcpPackage(t *testing.T, script ...string) []string {
	t.Helper()
	file := filepath.Join(append([]string{mcpPackages, "node_modules", "@modelcontextprotocol"}, script...)...)
	if _, err := os.Stat(file); err != nil {
		t.Skipf("%s is not installed: run .ci/mcp", script[0])
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js")
	}
	return []string{node, file}
}

// conformant are agents that do what the tools and the prompt of the conformance package's
// own server do, as far as an agent can.
var conformant = map[string]string{
	"test_simple_text.md":        "<config model=\"rehearsal:simple.script\" description=\"Says a text.\"/>\n<user>Say it.</user>\n",
	"test_simple_prompt.md":      "<config model=\"rehearsal:simple.script\" description=\"Says a text.\"/>\n<user>This is a simple prompt for testing.</user>\n",
	"test_error_handling.md":     "<config model=\"rehearsal:fails.script\"/>\n<user>Fail.</user>\n",
	"test_tool_with_progress.md": "<config model=\"rehearsal:steps.script\"/>\n<tool name=\"read_directory\"/>\n<user>Go.</user>\n",
	"simple.script":              "turn\n  say This is a simple text response for testing.\n",
	"fails.script":               "turn\n  say {{output \"none\" 1}}\n",
	"steps.script":               "turn\n  call read_directory {\"path\":\".\"}\nturn\n  say Done.\n",
}

// mcpRelay serves over standard input and output in this process, and passes messages of HTTP
// clients as they are: the conformance client knows HTTP alone. It returns the URL.
func mcpRelay(t *testing.T, args ...string) string {
	t.Helper()
	in, input := io.Pipe()
	output, out := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(context.Background(), append([]string{"mcp"}, args...), []string{"XDG_DATA_HOME=" + t.TempDir()}, stdio{in, out, io.Discard})
		out.Close()
	}()
	var mu sync.Mutex
	lines := bufio.NewReader(output)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		mu.Lock() // one request after the other
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = input.Write(append(bytes.ReplaceAll(body, []byte("\n"), nil), '\n'))
		if !bytes.Contains(body, []byte(`"id":`)) { // a notification
			w.WriteHeader(http.StatusAccepted)
			return
		}
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Error(err)
				return
			}
			if bytes.Contains(line, []byte(`"method":`)) { // a notification of the server
				continue
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(line)
			return
		}
	}))
	t.Cleanup(func() {
		srv.Close()
		input.Close()
		if got := <-code; got != exitOK {
			t.Errorf("exit code %d", got)
		}
	})
	return srv.URL
}

// The protocol's own conformance client accepts the server in what agents have, also over
// standard input and output: agents are tools, and their prompts are prompts. It starts
// as a process each time, so this takes some seconds. X4
func TestMCPConformance(t *testing.T) {
	client := mcpPackage(t, "conformance", "dist", "index.js")
	dir := t.TempDir()
	for name, text := range conformant {
		write(t, filepath.Join(dir, name), text)
	}
	url := mcpServed(t, dir, "--store", filepath.Join(t.TempDir(), "s.db"))
	scenarios := "server-initialize ping logging-set-level tools-list tools-call-simple-text tools-call-error tools-call-with-progress " +
		"prompts-list prompts-get-simple server-sse-multiple-streams dns-rebinding-protection"
	if testing.Short() {
		scenarios = "server-initialize tools-call-simple-text"
	}
	passed := regexp.MustCompile(`Passed: ([1-9]\d*)/([1-9]\d*), 0 failed`)
	accepted := func(url, scenarios string) {
		for name := range strings.FieldsSeq(scenarios) {
			cmd := exec.CommandContext(t.Context(), client[0], client[1], "server", "--url", url, "--scenario", name)
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if m := passed.FindSubmatch(out); err != nil || m == nil || !bytes.Equal(m[1], m[2]) {
				t.Errorf("%s at %s: %v\n%s", name, url, err, out)
			}
		}
	}
	accepted(url, scenarios)
	if !testing.Short() {
		for _, name := range []string{"tools-call-simple-text", "prompts-get-simple"} { // each is a client of its own
			accepted(mcpRelay(t, dir, "--store", filepath.Join(t.TempDir(), "s.db")), name)
		}
	}
}

// A run of another file has the agent as a tool: the same program is client and server,
// over standard input and output. A call that needs approval is refused there, because
// that client has no elicitation, and its agent reads how to allow it.
func TestMCPFromAnAgent(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", dir)
	write(t, filepath.Join(dir, "helper.md"), "<config model=\"rehearsal:helper.script\" description=\"Helps.\"/>\n<tool name=\"append_to_file\"/>\n")
	write(t, filepath.Join(dir, "helper.script"), "turn\n  call append_to_file {\"path\":\"x.txt\",\"content\":\"y\"}\nturn\n  say Helped with {{question}}.\n")
	boss := write(t, filepath.Join(dir, "boss.md"), "<config model=\"rehearsal:boss.script\"/>\n<tool mcp_server=\"stdio:antiphon mcp "+filepath.Join(dir, "helper.md")+" --store "+filepath.Join(dir, "s.db")+"\" approval=\"allow\"/>\n<user>Go.</user>\n")
	write(t, filepath.Join(dir, "boss.script"), "turn\n  call helper {\"task\":\"a task\"}\nturn\n  say It says: {{output \"helper\" 1}}\n")
	p := startAs(t, nil, "sh", "-c", `exec antiphon "$@" 2>&1`, "sh", "run", boss, "--trust", "--sandbox", "full")
	code, out := p.wait(t)
	if code != exitOK || !strings.Contains(out, "It says: Helped with a task.") || !strings.Contains(out, "--allow append_to_file") || !strings.Contains(out, "[session mcp-") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
