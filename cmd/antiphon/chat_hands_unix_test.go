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

// TestChatHands proves in a real terminal, with the keys of vi and the colours of high contrast: a draft
// is edited and sent from the normal mode, Ctrl-V attaches a picture of the clipboard, e in a question
// opens the arguments in the editor, whose interrupts do not end the chat, and Ctrl-O and Ctrl-G look into the last call and the last subagent.
func TestChatHands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\"/>\n<tool name=\"helper\" agent=\"inner.md\" local description=\"Helps.\"/>\n")
	write(t, filepath.Join(dir, "inner.md"), "<config model=\"rehearsal:inner.script\"/>\n<tool name=\"read_directory\"/>\n")
	write(t, filepath.Join(dir, "inner.script"), "turn\n  call read_directory {}\nturn\n  say I looked.\n")
	write(t, filepath.Join(dir, "agent.script"), "turn\n  call helper {\"task\": \"look around\"}\nturn\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\nturn\n  say You said: \"{{question}}\".\n")
	png := read(t, filepath.Join("..", "..", "examples", "tour", "waves.png"))
	write(t, filepath.Join(dir, "picture.png"), png)
	write(t, filepath.Join(dir, "wl-paste"), "#!/bin/sh\nexec cat "+dir+"/picture.png\n")
	write(t, filepath.Join(dir, "editor"), "#!/bin/sh\ntrap : INT; kill -INT $PPID\nsed 's/one/two/' \"$1\" >\"$1.new\" && mv \"$1.new\" \"$1\"\n")
	for _, name := range []string{"wl-paste", "editor"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	term := openTerminal(t, dir, "export PATH="+dir+":$PATH XDG_DATA_HOME="+dir+"/data EDITOR="+dir+"/editor ANTIPHON_KEYS=vi ANTIPHON_THEME=contrast; env -u NO_COLOR -u VISUAL antiphon chat agent.md --store s.db --session work")
	term.until(t, "›")
	term.keys(t, "gone here ")
	term.until(t, "gone here")
	term.keys(t, "C-v")
	term.until(t, ".png")
	term.keys(t, "Escape")
	term.until(t, "NORMAL")
	term.keys(t, "0rG")
	term.until(t, "› Gone here @")
	term.keys(t, "Enter")
	term.until(t, "a or e:")
	term.asked(t)
	term.keys(t, "e", "Enter")
	term.until(t, "3 turns")
	if got := read(t, filepath.Join(dir, "new.txt")); got != "two\n" {
		t.Errorf("the file holds %q", got)
	}
	term.keys(t, "C-o")
	wantAll(t, "Ctrl-O", term.until(t, "Enter: into"), "append_to_file", "with other arguments than the model's", "helper look around, done")
	term.keys(t, "C-o")
	term.until(t, "3 turns")
	term.keys(t, "C-g")
	term.until(t, "the subagent ")
	wantAll(t, "Ctrl-G", term.until(t, "I looked."), "read_directory, done")
	term.keys(t, "Escape")
	term.until(t, "3 turns")
	term.keys(t, "Escape")
	term.until(t, "NORMAL")
	term.keys(t, ":q", "Enter")
	term.until(t, "[exit code 0]")
	raw := term.written(t)
	if strings.Contains(raw, "\x1b[2m") || !strings.Contains(raw, "\x1b[1;33m") {
		t.Error("the colours are not those of high contrast")
	}
	if o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "work", "--json"); !strings.Contains(o.out, "data:image/png") || !strings.Contains(o.out, "Gone here") {
		t.Errorf("what was sent:\n%.3000s", o.out)
	}
}
