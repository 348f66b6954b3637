// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A call of an agent in a message that nobody could approve makes the exit code 5, too, and the
// answer without it is not kept for later runs.
func TestUnapprovedInMessages(t *testing.T) {
	env := home(t, t.TempDir())
	write(t, "asked.md", "<config model=\"rehearsal:asked.script\"/>\n<tool name=\"append_to_file\"/>\n<user>Do it.</user>\n")
	write(t, "asked.script", "again\nturn\n  call append_to_file {\"path\":\"x.txt\",\"content\":\"x\"}\nturn\n  say I tried.\n")
	write(t, "agent.md", "<config model=\"rehearsal\"/>\n<user>It says: <agent src=\"asked.md\" local/></user>\n")
	for range 2 {
		got := programEnv(t, env, "run", "agent.md")
		if got.code != exitNeedsAllow || !strings.Contains(got.err, "nobody could approve calls of append_to_file") || !strings.Contains(got.err, "by the agent ") {
			t.Errorf("%+v", got)
		}
	}
	if got := programEnv(t, env, "run", "agent.md", "--allow", "append_to_file"); got.code != exitOK || read(t, "x.txt") != "x" {
		t.Errorf("with --allow: %+v", got)
	}
}

// A time for an answer is refused where nobody is asked, and where nothing counts it.
func TestApprovalTimeIsRefused(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(t.TempDir(), "agent.md"), "<config model=\"rehearsal\"/>\n")
	for want, args := range map[string][]string{
		"needs a terminal":  {"--approval-time", "1h"},
		"with --pause":      {"--approval-time", "1h", "--pause", "--out", "talk.md"},
		"need --approval-t": {"--approvers", "anna"},
	} {
		if o := program(t, append([]string{"run", file, "Hello"}, args...)...); o.code != exitUsage || !strings.Contains(o.err, want) {
			t.Errorf("%q: exit code %d: %s", args, o.code, o.err)
		}
	}
}
