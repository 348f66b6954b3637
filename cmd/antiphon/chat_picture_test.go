// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestChatPicture proves that an image that a prompt names is shown by half blocks in tmux, once, below
// a line with its name, type and size, and in a plain conversation by that line alone.
func TestChatPicture(t *testing.T) {
	t.Parallel()
	data := read(t, filepath.Join(examplesDir, "tour", "waves.png"))
	for _, flags := range []string{"", "--plain"} {
		dir, term := t.TempDir(), (*terminalOf)(nil)
		write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n")
		write(t, filepath.Join(dir, "agent.script"), repeating)
		write(t, filepath.Join(dir, "waves.png"), data)
		term = openTerminal(t, dir, "export XDG_DATA_HOME="+dir+"/data; antiphon chat agent.md --store s.db --session work "+flags)
		term.until(t, "new session work")
		term.keys(t, "see @waves.png", "Enter")
		term.until(t, "-- 1 turn")
		term.keys(t, "C-d")
		term.until(t, "[exit code 0]")
		all := term.all(t)
		if strings.Count(all, "image waves.png, image/png, ") != 1 {
			t.Errorf("%s: the line about the image:\n%s", flags, all)
		}
		rows := 0
		for line := range strings.Lines(all) {
			if strings.ContainsAny(line, "▀▄") {
				rows++
			}
		}
		if (rows > 0) == (flags == "--plain") || rows > 20 {
			t.Errorf("%s: %d rows of the picture:\n%s", flags, rows, all)
		}
		if raw := term.written(t); strings.Contains(raw, "\x1b_G") || strings.Contains(raw, "\x1bP") {
			t.Errorf("%s: tmux was asked or sent a picture", flags)
		}
	}
}

// TestRunPicture proves that antiphon run shows the image of a tool once, below its row, if the answer goes to the terminal,
// and not to a file, to a screen reader or with -q.
func TestRunPicture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"import_image\"/>\n<user>Look.</user>\n")
	write(t, filepath.Join(dir, "agent.script"), "turn\n  call import_image {\"path\": \"waves.png\"}\nturn\n  say Seen.\n")
	write(t, filepath.Join(dir, "waves.png"), read(t, filepath.Join(examplesDir, "tour", "waves.png")))
	for flags, told := range map[string]int{"": 1, "--plain": 0, "-q": 0, "> answer": 0} {
		term := openTerminal(t, dir, "antiphon run agent.md "+flags)
		term.until(t, "[exit code 0]")
		all, rows := term.all(t), 0
		for line := range strings.Lines(all) {
			if strings.ContainsAny(line, "▀▄") {
				rows++
			}
		}
		if strings.Count(all, "image of import_image, image/png, ") != told || (rows > 0) != (told > 0) || rows > 20 {
			t.Errorf("%q: %d rows of the picture:\n%s", flags, rows, all)
		}
	}
}
