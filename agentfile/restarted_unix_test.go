// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agentfile_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/tool/output"
)

// mortal is a server over standard input and output. It marks each start, and ends when its tool
// die is called.
const mortal = `echo start >>starts
while read -r line; do
	id=${line#*\"id\":} id=${id%%[,\}]*}
	case $line in
	*'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"mortal","version":"1"}}' ;;
	*'"tools/list"'*) result='{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}}]}' ;;
	*'"die"'*) exit 3 ;;
	*'"tools/call"'*) result='{"content":[{"type":"text","text":"here"}]}' ;;
	*'"ping"'*) result='{}' ;;
	*'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id"; continue ;;
	*) continue ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
`

func attempt(t *testing.T, a *agent.Agent, name string) (text string, failed bool) {
	t.Helper()
	set, err := a.ToolSet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := set.Invoke(context.Background(), tool.Call{ID: "call_1", Name: name, Arguments: "{}"}, output.Policy{})
	return o.Content.Display() + o.Error, o.Failed
}

// K2, K6: the program of an MCP server that has ended is started again only if its script is still
// what was agreed to.
func TestChangedServerIsNotRestarted(t *testing.T) {
	dir := t.TempDir()
	script := write(t, mortal, dir, "server.sh")
	f := load(t, write(t, `<tool mcp_server="stdio:sh server.sh"/><user>x</user>`, dir, "agent.md"), agentfile.Options{Workspace: dir})
	env := agentfile.Environment{Lookup: os.LookupEnv}
	if err := f.Connect(t.Context(), env, nil); err != nil {
		t.Fatal(err)
	}
	starts := func() int { return strings.Count(read(t, filepath.Join(dir, "starts")), "start") }
	a := f.Agent(new(witness))
	attempt(t, a, "die")
	before := starts()
	if text, failed := attempt(t, a, "echo"); failed || text != "here" || starts() == before {
		t.Fatalf("a server with the same script is not started again: %q, %d starts", text, starts())
	}
	write(t, "touch PWNED\n"+mortal, dir, filepath.Base(script))
	if text, failed := attempt(t, a, "echo"); failed {
		t.Errorf("a server that runs is disturbed: %q", text)
	}
	attempt(t, a, "die")
	before = starts()
	text, failed := attempt(t, a, "echo")
	if !failed || !strings.Contains(text, "server.sh has changed since the agent's file was read") {
		t.Errorf("failed %v: %q", failed, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "PWNED")); err == nil || starts() != before {
		t.Errorf("the changed script was started: %v, %d starts after %d", err, starts(), before)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, mortal, dir, filepath.Base(script))
	if text, failed := attempt(t, a, "echo"); !failed {
		t.Errorf("a closed file has a server: %q", text)
	}
}

// K6: a script that is there now and was not when the server was agreed to is not run by a start of it. Files that the server made
// itself are no scripts.
func TestNewScriptOfServerIsNotStarted(t *testing.T) {
	for words, files := range map[string]map[string]bool{ // and whether the server starts again after they were made
		"sh server":                 {"server.sh": false, "other.sh": true},
		"sh server data.db":         {"data.db": true},
		"env sh server data.db":     {"data.db": true},
		"env sh server hook.py run": {"hook.py": false, "run.js": false, "server.mjs": false},
	} {
		for name, restarts := range files {
			dir := t.TempDir()
			write(t, mortal, dir, "server")
			f := load(t, write(t, `<tool mcp_server="stdio:`+words+`"/><user>x</user>`, dir, "agent.md"), agentfile.Options{Workspace: dir})
			if err := f.Connect(t.Context(), agentfile.Environment{Lookup: os.LookupEnv}, nil); err != nil {
				t.Fatal(err)
			}
			write(t, "new", dir, name)
			a := f.Agent(new(witness))
			attempt(t, a, "die")
			if text, failed := attempt(t, a, "echo"); failed == restarts || failed && !strings.Contains(text, name+" is new since") {
				t.Errorf("%s, then %s: failed %v: %s", words, name, failed, text)
			}
		}
	}
}
