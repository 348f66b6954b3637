// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"
)

// does types a line, and waits for a text that the screen did not show as often before.
func (term *terminalOf) does(t *testing.T, line, want string) (screen string) {
	t.Helper()
	before := strings.Count(term.tmux(t, "capture-pane", "-p"), want)
	term.keys(t, "-l", line)
	term.keys(t, "Enter")
	return term.untilThat(t, want, func(screen string) bool { return strings.Count(screen, want) > before })
}

// TestChatModel proves that /model and /effort are about the requests from then on, and that a
// model that cannot be asked leaves the conversation as it is. U1
func TestChatModel(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, repeating, "--session work")
	write(t, filepath.Join(dir, "other.script"), "again\nturn\n  say Another model.\n")
	term.does(t, "hello", "You said: \"hello\".")
	term.does(t, "/effort huge", "!! huge is not a level; they are none, minimal")
	term.does(t, "/effort low", "rehearsal · low ·")
	term.does(t, "/model", "!! name a model, as in /model")
	term.does(t, "/model nosuch", "!! no endpoint")
	term.does(t, "still here", "You said: \"still here\".")
	term.does(t, "/model rehearsal:"+filepath.Join(dir, "other.script"), "continues work")
	term.does(t, "and now", "Another model.")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
	o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "work", "--full")
	if strings.Count(o.out, "low") == 0 {
		t.Errorf("the effort is not in the log:\n%s", o.out)
	}
}

// TestChatBranches proves that /fork, /retry and /branches leave each conversation as it was, and that
// what /export, /copy and /compact make is there.
func TestChatBranches(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, "again\nturn\n  say\n    You said: \"{{question}}\".\n\n    ```sh\n    make it\n    ```\n", "--session work --compact-by dropping")
	term.does(t, "/fork", "!! nothing was said yet")
	term.does(t, "one", "-- 1 turn")
	term.does(t, "two", "You said: \"two\".")
	term.does(t, "/fork side", "work stays as it is; this goes on in a fork")
	term.does(t, "/retry", "side stays as it is; this goes on in a fork")
	term.untilThat(t, "the answer again", func(screen string) bool { return strings.Count(screen, "You said: \"two\".") > 1 })
	screen := term.does(t, "/branches", "\n*     side-2 (from entry ")
	if !strings.Contains(screen, "\n  work, ") || !strings.Contains(screen, "\n    side (from entry ") {
		t.Errorf("the branches:\n%s", screen)
	}
	term.does(t, "/copy 7", "!! there is no such reply")
	term.does(t, "/copy code", "antiphon: 8 characters given to the terminal's clipboard")
	term.does(t, "/export talk.md", "talk.md")
	term.does(t, "/compact 1", "nothing is lost: the log keeps all")
	term.does(t, "three", "You said: \"three\".")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
	if raw := term.written(t); !strings.Contains(raw, "\x1b]52;c;"+base64.StdEncoding.EncodeToString([]byte("make it\n"))+"\a") {
		t.Errorf("nothing was given to the clipboard: %q", raw)
	}
	if talk := read(t, filepath.Join(dir, "talk.md")); !strings.Contains(talk, "You said: \"two\".") {
		t.Errorf("the transcript:\n%s", talk)
	}
}
