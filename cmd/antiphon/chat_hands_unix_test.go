// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestChatDumb proves that a chat at a terminal that can do nothing writes lines only: no sequence is
// sent, nothing is drawn twice, and a question is answered by a line. U4
func TestChatDumb(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\"/>\n")
	write(t, filepath.Join(dir, "agent.script"), "turn\n  say I write.\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\nturn\n  say **Done**.\n")
	term := openTerminal(t, dir, "TERM=dumb XDG_DATA_HOME="+dir+"/data antiphon chat agent.md --store s.db --session work")
	term.until(t, "\n>")
	term.keys(t, "go", "Enter")
	term.until(t, "run it?")
	term.keys(t, "y", "Enter")
	term.until(t, "**Done**.")
	term.until(t, "-- 2 turns")
	term.keys(t, "/keys", "Enter")
	term.until(t, "Ctrl-D")
	term.keys(t, "/quit", "Enter")
	term.until(t, "[exit code 0]")
	if got := read(t, filepath.Join(dir, "new.txt")); got != "one\n" {
		t.Errorf("the file holds %q", got)
	}
	raw := term.written(t)
	if strings.Contains(raw, "\x1b") || strings.Count(raw, "I write.") != 1 || strings.Count(raw, "**Done**.") != 1 {
		t.Errorf("it wrote %q", raw)
	}
}
