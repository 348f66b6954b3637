// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/agenttest"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/rehearsal"
	"github.com/antiphon-go/antiphon/server"
	"github.com/antiphon-go/antiphon/server/gateway"
	"github.com/antiphon-go/antiphon/session/store"
)

// OpenAI's client for JavaScript, its Agents SDK and Vercel's AI SDK, as they are, have upstreams
// of both APIs behind a gateway that stores. .ci/sdk installs them. V1
func TestClients(t *testing.T) {
	modules := os.Getenv("ANTIPHON_SDK")
	if modules == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		modules = filepath.Join(cache, "antiphon", "sdk")
	}
	modules = filepath.Join(modules, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "@ai-sdk", "openai")); err != nil {
		t.Skip("the clients are not installed: run .ci/sdk")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js")
	}
	text, err := os.ReadFile(filepath.Join("testdata", "clients.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for name, chat := range map[string]bool{"responses": false, "chat": true} {
		t.Run(name, func(t *testing.T) {
			model := &rehearsal.Server{Pace: 2 * time.Millisecond, ReadOnly: func(string) bool { return true }}
			base, stop, err := model.Start()
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
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
