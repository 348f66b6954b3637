// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// V1: OpenAI's own client for JavaScript finds in the rehearsal what it finds in
// the real endpoint. It checks little of what it reads, and trips over what is
// missing.
func TestOfficialClient(t *testing.T) {
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
	plain := serve(t, openScript, nil)
	calling := serve(t, `
turn
  reason Hm.
  call look {"at": "it"}
turn
  say You: {{question}}; it: {{output "look" 1}}
again
turn
  say Then {{question}}
`, nil)
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "openai.cjs"), plain, calling)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
