// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/server/agents"
)

// The clients of this file are not changed for this server: V1. .ci/sdk installs them.

// installed returns the folder with a package of npm and Node.js, or skips the test.
func installed(t *testing.T, name string) (modules, node string) {
	t.Helper()
	dir := os.Getenv("ANTIPHON_SDK")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		dir = filepath.Join(cache, "antiphon", "sdk")
	}
	modules = filepath.Join(dir, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, name)); err != nil {
		t.Skipf("%s is not installed: run .ci/sdk", name)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js")
	}
	return modules, node
}

// several serves the agents of the scripts: doors has tools of its own, one of which asks,
// and calls one of the client; plain has no script; json answers in JSON, and slow does not
// end.
func several(t *testing.T) *world {
	t.Helper()
	w := serving(t, reader+asking, doors+"again\nturn\n  say Then {{question}}: {{output \"look\" 1}}\n", func(b *agents.Backend) {
		b.Agents[0].Name = "doors"
		dir := filepath.Dir(b.Agents[0].Config.File)
		write(t, dir, "json.script", "again\nturn\n  say {\"n\": 4}\n")
		write(t, dir, "slow.script", "again\nturn\n  say Wait.\n  pause 10m\n")
		for name, model := range map[string]string{"plain": "rehearsal", "json": "rehearsal:json.script", "slow": "rehearsal:slow.script"} {
			one := b.Agents[0]
			one.Name, one.Config.File = name, filepath.Join(dir, name+".md")
			write(t, dir, name+".md", `<config model="`+model+`"/>`+"\n")
			b.Agents = append(b.Agents, one)
		}
	})
	write(t, w.dir, "note.txt", "Rain.")
	return w
}

// script runs a script of testdata with the base URL of the agents. A folder of its own has
// the packages, which modules of JavaScript are found by.
func script(t *testing.T, name, wants string) {
	t.Helper()
	modules, node := installed(t, wants)
	w := several(t)
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Skip(err)
	}
	for _, file := range []string{name, "play.mjs"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, file, string(text))
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, name), w.base)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func TestOfficialClientOfAgents(t *testing.T) { script(t, "openai.cjs", "openai") }

func TestAgentsSDK(t *testing.T) { script(t, "agents.mjs", "@openai/agents") }

func TestAISDK(t *testing.T) { script(t, "ai.mjs", "@ai-sdk/openai") }

// The coding agent of OpenAI has an agent as its model: it streams, sends back all of the
// history, stores nothing, and answers a call of one of its own tools, get_goal.
func TestCodex(t *testing.T) {
	modules, node := installed(t, "@openai/codex")
	w := several(t)
	home, dir := t.TempDir(), t.TempDir()
	for _, sockets := range []string{"false", "true"} {
		write(t, home, "config.toml", `model = "plain"
model_provider = "antiphon"
web_search = "disabled"
check_for_update_on_startup = false
[model_providers.antiphon]
name = "antiphon"
base_url = "`+w.base+`"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = `+sockets+`
[agents]
enabled = false
[analytics]
enabled = false
`)
		cmd := exec.CommandContext(t.Context(), node, filepath.Join(modules, "@openai", "codex", "bin", "codex.js"),
			"exec", "--skip-git-repo-check", "--json", "--sandbox", "read-only", "Say hello.")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CODEX_HOME="+home)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		said := codexSaid(t, out)
		if !strings.Contains(said, `You said: "Say hello."`) || !strings.Contains(said, "`get_goal` with `{}` returned") {
			t.Errorf("WebSockets %s: it said %q in\n%s", sockets, said, out)
		}
	}
}

// codexSaid returns the messages in the output of codex exec --json.
func codexSaid(t *testing.T, out []byte) (said string) {
	t.Helper()
	lines := bufio.NewReader(bytes.NewReader(out))
	for {
		line, err := lines.ReadBytes('\n')
		var ev struct{ Item struct{ Type, Text string } }
		if json.Unmarshal(line, &ev) == nil && ev.Item.Type == "agent_message" {
			said += ev.Item.Text
		}
		if err == io.EOF {
			return said
		}
	}
}
