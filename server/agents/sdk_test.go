// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/antiphon-go/antiphon/server/agents"
)

// V1: OpenAI's own client for JavaScript uses agents as it uses models of the real
// endpoint.
func TestOfficialClientOfAgents(t *testing.T) {
	dir := os.Getenv("ANTIPHON_SDK")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		dir = filepath.Join(cache, "antiphon", "sdk")
	}
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "openai")); err != nil {
		t.Skip("OpenAI's client is not installed: run .ci/sdk")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js")
	}
	w := serving(t, reader+asking, doors, func(b *agents.Backend) {
		b.Agents[0].Name = "doors"
		plain := b.Agents[0]
		plain.Name, plain.Config.File = "plain", filepath.Join(filepath.Dir(plain.Config.File), "plain.md")
		write(t, filepath.Dir(plain.Config.File), "plain.md", "<config model=\"rehearsal\"/>\n")
		b.Agents = append(b.Agents, plain)
	})
	write(t, w.dir, "note.txt", "Rain.")
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "openai.cjs"), w.base)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
