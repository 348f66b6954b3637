// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChatShellLine proves that a shell line of the person's is asked about like a command, is ended by
// Esc, is recorded, and goes to the model with the next message, not before. K1 A1
func TestChatShellLine(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, "again\nturn\n  say You said: \"{{question}}\".\n", "--session work")
	term.does(t, "!", "!! write a command line behind !")
	screen := term.does(t, "! printf 'out\\033put\\n'; touch made", "run it?")
	if !strings.Contains(screen, "touch made") || strings.Contains(screen, "[a]lways") {
		t.Errorf("the question:\n%s", screen)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("it ran before the answer")
	}
	term.answers(t, "y", "(this goes with your next message)")
	if screen := term.tmux(t, "capture-pane", "-p"); !strings.Contains(screen, "outut") || strings.Contains(screen, "You said") {
		t.Errorf("the output:\n%s", screen)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
	term.does(t, "! touch never", "run it?")
	term.answers(t, "n not now", "!! The call was refused")
	term.does(t, "/allow run_command", "there is no tool run_command") // the agent has none
	term.does(t, "what was it", "You said: \"what was it\".")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
	if _, err := os.Stat(filepath.Join(dir, "never")); err == nil {
		t.Error("it ran although it was refused")
	}
	o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "work", "--full")
	if strings.Count(o.out, "touch made") != 1 || strings.Contains(o.out, "touch never") || strings.Index(o.out, "touch made") > strings.Index(o.out, "what was it") {
		t.Errorf("the session:\n%s", o.out)
	}
	term = reopened(t, dir, "-c --allow run_command")
	term.until(t, "› ! printf")
	term.keys(t, "-l", "! echo begun; sleep 1000")
	term.keys(t, "Enter")
	term.until(t, ": begun")
	term.keys(t, "Escape")
	term.until(t, "(this goes with your next message)")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
}

// TestChatModes proves that Shift-Tab lets edits in the workspace run without a question, then refuses
// all that does more than read, whatever allows it, and then asks again. A1
func TestChatModes(t *testing.T) {
	t.Parallel()
	const turns = "again\nturn\n  call append_to_file {\"path\": \"%\", \"content\": \"one\\n\"}\nturn\n  say It was: {{if failed -1}}{{error -1}}{{else}}done{{end}}\n"
	dir, term := chatter(t, strings.ReplaceAll(turns, "%", "new.txt"), "--session work")
	term.does(t, "one", "run it?")
	term.answers(t, "y", "It was: done")
	term.keys(t, "BTab")
	term.until(t, "mode: edits")
	term.does(t, "two", "It was: done")
	term.keys(t, "BTab")
	term.until(t, "mode: plan")
	term.does(t, "three", "It was: the person wants a plan only")
	term.does(t, "! touch never", "!! ")
	term.does(t, "/allow append_to_file", "append_to_file  built in  runs (/allow: ")
	term.does(t, "four", "It was: The call was refused by a check")
	term.does(t, "/mode edits", "edits: edits of files in the workspace run")
	term.does(t, "/allow reset", "continues work")
	term.does(t, "/mode nonsense", "!! \"nonsense\" is not an approval mode")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
	if text := read(t, filepath.Join(dir, "new.txt")); text != "one\none\n" {
		t.Errorf("%q", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "never")); err == nil {
		t.Error("a shell line ran in the mode plan")
	}
	write(t, filepath.Join(dir, "agent.script"), strings.ReplaceAll(turns, "%", ".git/hooks/pre-commit"))
	if err := os.MkdirAll(filepath.Join(dir, ".git", "hooks"), 0o700); err != nil {
		t.Fatal(err)
	}
	term = reopened(t, dir, "--session other")
	term.does(t, "/mode edits", "edits: edits of files")
	term.does(t, "hook", "run it?") // what other programs obey is asked about
	term.answers(t, "n", "It was: The call was refused")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
}
