// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestCountsBack proves that -1 names the last session where a session is named, and nothing elsewhere.
func TestCountsBack(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"sessions show -1":               "sessions show /-1",
		"sessions show -12 --full":       "sessions show /-12 --full",
		"sessions tag -2 +bug -1":        "sessions tag /-2 +bug -1",
		"sessions list --limit -1":       "sessions list --limit -1",
		"chat --session -1":              "chat --session /-1",
		"chat agent.md --attach -3":      "chat agent.md --attach /-3",
		"run agent.md -1":                "run agent.md -1",
		"sessions show -0":               "sessions show -0",
		"sessions show --1":              "sessions show --1",
		"sessions show work -c --follow": "sessions show work -c --follow",
	} {
		if got := strings.Join(countsBack(strings.Fields(in)), " "); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
