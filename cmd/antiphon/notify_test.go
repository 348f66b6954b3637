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

// blur tells a program in a terminal that its window has lost the focus.
func (term *terminalOf) blur(t *testing.T) {
	t.Helper()
	term.tmux(t, "send-keys", "-H", "1b", "5b", "4f")
}

const asksOnce = `turn
  call append_to_file {"path": "new.txt", "content": "one\n"}
turn
  say Done.
`

// noticed makes a folder whose name steers terminals, with a chat in it that is told in a way.
func noticed(t *testing.T, how string) (dir string, term *terminalOf) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "work;\x1b]0;evil\a")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\"/>\n<system>Help.</system>\n")
	write(t, filepath.Join(dir, "agent.script"), asksOnce)
	return dir, openTerminal(t, dir, "export XDG_DATA_HOME=$PWD/data ANTIPHON_NOTIFY='"+how+"'; antiphon chat agent.md --store s.db")
}

// TestNoticeAtTerminal: a call that waits for an approval is told to somebody who looks at another
// window, in the way of the settings, and the name of the folder steers nothing.
func TestNoticeAtTerminal(t *testing.T) {
	t.Parallel()
	_, term := noticed(t, "osc777")
	term.until(t, "›")
	term.blur(t)
	term.keys(t, "write", "Enter")
	term.until(t, "run it?")
	term.asked(t)
	term.keys(t, "y", "Enter")
	term.until(t, "Done.")
	term.keys(t, "C-d")
	raw := term.written(t)
	if !strings.Contains(raw, "]777;notify;antiphon;a question waits for you: work,<U+001B>]0,evil<U+0007>\x1b") {
		t.Errorf("%q", raw)
	}
	if strings.Contains(raw, "\x1b]0;evil") {
		t.Errorf("the folder steers the terminal: %q", raw)
	}
}

// TestNoticeCommand: a command of the person's gets the text as its last argument, and no key.
func TestNoticeCommand(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	program := filepath.Join(folder, "told")
	text := "#!/bin/sh\nprintf '%s|' \"$@\" >" + folder + "/part; env >>" + folder + "/part; mv " + folder + "/part " + folder + "/done\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	_, term := noticed(t, "command:"+program+" first")
	term.until(t, "›")
	term.blur(t)
	term.keys(t, "write", "Enter")
	term.until(t, "run it?")
	got := ""
	term.untilThat(t, "notice", func(string) bool {
		got = read(t, filepath.Join(folder, "done"))
		return got != ""
	})
	if !strings.HasPrefix(got, "first|antiphon: a question waits for you: work;<U+001B>]0;evil<U+0007>|") || strings.Contains(got, "XDG_DATA_HOME") {
		t.Errorf("%q", got)
	}
}

// TestBadNotice: a mistake in the setting is named, and nothing starts.
func TestBadNotice(t *testing.T) {
	env, _ := withSettings(t, `<config notify="osc8"/>`)
	if got := programEnv(t, env, "config"); got.code != exitUsage || !strings.Contains(got.err, `notify is "osc8"`) || !strings.Contains(got.err, "osc777") {
		t.Errorf("%+v", got)
	}
	env, _ = withSettings(t, `<config notify="command:notify-send -a antiphon"/>`)
	if got := programEnv(t, env, "config"); got.code != exitOK || !strings.Contains(got.out, "notify    command:notify-send -a antiphon") {
		t.Errorf("%+v", got)
	}
}
