// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session/store"
)

// installed returns the folder with a package of npm and Node.js, or skips the test. .ci/sdk installs
// them.
func installed(t *testing.T, name ...string) (modules, node string) {
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
	if _, err := os.Stat(filepath.Join(append([]string{modules}, name...)...)); err != nil {
		t.Skip("the clients are not installed: run .ci/sdk")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js")
	}
	return modules, node
}

// rehearsed returns the URL of an endpoint that plays a model. It calls the tools that readOnly says.
func rehearsed(t *testing.T, readOnly func(string) bool) string {
	t.Helper()
	model := &rehearsal.Server{Pace: 2 * time.Millisecond, ReadOnly: readOnly}
	base, stop, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return base
}

// OpenAI's client for JavaScript, its Agents SDK and Vercel's AI SDK, as they are, have upstreams
// of both APIs behind a gateway that stores. .ci/sdk installs them. V1
func TestClients(t *testing.T) {
	modules, node := installed(t, "@ai-sdk", "openai")
	text, err := os.ReadFile(filepath.Join("testdata", "clients.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for name, chat := range map[string]bool{"responses": false, "chat": true} {
		t.Run(name, func(t *testing.T) {
			base := rehearsed(t, func(string) bool { return true })
			answers, fails := agenttest.StartLocal(t, &agenttest.Local{Text: `{"n":4}`}).URL, agenttest.NewServer(t)
			fails.Otherwise(func(int, agenttest.Request) agenttest.Reply {
				return agenttest.Failure(http.StatusBadRequest, "invalid_prompt", "No.")
			})
			if !chat {
				json := agenttest.NewServer(t)
				json.Otherwise(func(int, agenttest.Request) agenttest.Reply { return agenttest.Completed(item.Assistant(`{"n":4}`)) })
				answers = json.URL
			}
			ups := []gateway.Upstream{open(t, base, chat), open(t, answers, chat), open(t, fails.URL, chat)}
			ups[1].Models, ups[2].Models = "json", "broken"
			in, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), store.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			keep := &gateway.Store{In: in}
			defer keep.Close()
			at, end, err := (&server.Server{Backend: &gateway.Backend{Upstreams: ups}, Store: keep}).Start()
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			dir := t.TempDir()
			if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
				t.Skip(err)
			}
			file := filepath.Join(dir, "clients.mjs")
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), node, file, at).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// The coding agent of OpenAI has upstreams of both APIs as its model, over HTTP and over a WebSocket: it streams, stores nothing,
// sends back all of the history, and answers a call of one of its own tools, get_goal. V1
func TestCodex(t *testing.T) {
	modules, node := installed(t, "@openai", "codex")
	for name, chat := range map[string]bool{"responses": false, "chat": true} {
		for _, sockets := range []string{"false", "true"} {
			t.Run(name+" sockets "+sockets, func(t *testing.T) {
				w, end := onDiskAt(t, filepath.Join(t.TempDir(), "s.db"), open(t, rehearsed(t, func(name string) bool { return name == "get_goal" }), chat))
				defer end()
				home := t.TempDir()
				config := `model = "m"
model_provider = "antiphon"
web_search = "disabled"
check_for_update_on_startup = false
[model_providers.antiphon]
name = "antiphon"
base_url = "` + w.base + `"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = ` + sockets + `
[agents]
enabled = false
[analytics]
enabled = false
`
				if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), node, filepath.Join(modules, "@openai", "codex", "bin", "codex.js"),
					"exec", "--skip-git-repo-check", "--json", "--sandbox", "read-only", "Say hello.")
				cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "CODEX_HOME="+home)
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if said := string(out); !strings.Contains(said, `You said: \"Say hello.\"`) || !strings.Contains(said, "`get_goal` with `{}` returned") {
					t.Errorf("it said %s", said)
				}
			})
		}
	}
}
