// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
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

// answers answers the question of a chat, and waits as does does.
func (term *terminalOf) answers(t *testing.T, line, want string) (screen string) {
	t.Helper()
	term.asked(t)
	return term.does(t, line, want)
}

// TestChatModel proves that /model and /effort are about the requests from then on, and that a
// model that cannot be asked leaves the conversation as it is. U1
func TestChatModel(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, repeating, "--session work")
	write(t, filepath.Join(dir, "other.script"), "again\nturn\n  say Another model.\n")
	term.does(t, "hello", "You said: \"hello\".")
	term.does(t, "/effort huge", "!! huge is not a level; they are none, minimal")
	term.does(t, "/take", "!! there is no command /take; it goes on here already")
	term.does(t, "/effort low", "effort: low\n")
	term.until(t, "rehearsal · low ·")
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
	term.does(t, "/export talk.md", "side-2 is in talk.md: ")
	term.does(t, "/export talk.md", "!! talk.md exists already; name a new file")
	term.does(t, "/export talk.xyz", "!! name a file: /export FILE, where FILE ends with .md, .html or .jsonl")
	term.does(t, "exit", "!! Ctrl-D or /quit leaves; to send the word to the model, put a blank before it")
	term.does(t, "see @nosuch.txt, @team", "   @nosuch.txt, names no file, and is sent as text")
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

// TestChatTools proves that /tools, /allow, /why and /context tell what holds, and that what they
// change holds from then on, in this conversation alone. A1
func TestChatTools(t *testing.T) {
	t.Parallel()
	const call = "turn\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\n"
	dir, term := chatter(t, "again\n"+call+"turn\n  say It was: {{if failed -1}}{{error -1}}{{else}}done{{end}}\n", "--session work")
	screen := term.does(t, "/tools", "append_to_file")
	if !strings.Contains(screen, "append_to_file  built in  asks") {
		t.Errorf("the tools:\n%s", screen)
	}
	term.does(t, "/allow nosuch", "!! there is no tool nosuch; /tools lists them")
	term.does(t, "/allow append_to_file", "append_to_file  built in  runs (/allow: ")
	term.does(t, strings.Repeat("word ", 80), "It was: done")
	term.does(t, "/allow deny append_to_file", "append_to_file  built in  is refused (/allow: ")
	term.does(t, "/allow", "  deny append_to_file (/allow)")
	term.does(t, "two", "It was: The call was refused")
	term.does(t, "/allow reset", "continues work")
	term.does(t, "/why", "nothing broke the prompt cache: each of 4 requests begins with all of the one before")
	screen = term.does(t, "/context", "what you said")
	if !strings.Contains(screen, "outputs of append_to_file") || !strings.Contains(screen, "definitions of tools") {
		t.Errorf("the context:\n%s", screen)
	}
	term.does(t, "/context drop 2000", "!! entry 2000 is not an item that is sent")
	entry := regexp.MustCompile(`entry (\d+), what you said: word`).FindStringSubmatch(term.tmux(t, "capture-pane", "-p"))
	if entry == nil {
		t.Fatalf("the largest items:\n%s", screen)
	}
	term.does(t, "/context drop "+entry[1], "is not sent any more; the log keeps it")
	term.does(t, "three", "run it?")
	term.answers(t, "y", "It was: done")
	term.does(t, "/why", ": it was withdrawn")
	term.does(t, "/save kept", "the session is called kept now")
	term.does(t, "/theme green", "!! \"green\" is not a theme; themes are dark, light, contrast, none")
	term.keys(t, "/theme contrast", "Enter")
	term.does(t, "/collapse maybe", "!! /collapse takes on or off")
	term.does(t, "/collapse", "from now on a marker stands for")
	term.does(t, "/keys", "Ctrl-X Ctrl-E          opens the draft in $EDITOR")
	term.does(t, "/redraw", "› /redraw\n\n\n› word")
	term.keys(t, "C-d")
	term.until(t, "--session kept --store s.db continues it")
	raw := term.written(t)
	if _, after, _ := strings.Cut(raw, "!! /collapse takes on or off"); strings.Contains(after, "\x1b[2m") || !strings.Contains(raw, "\x1b[2m") {
		t.Errorf("what is dim: %q", raw)
	}
	if got := read(t, filepath.Join(dir, "new.txt")); got != "one\none\n" {
		t.Errorf("the file holds %q", got)
	}
	if o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "kept", "--as-sent"); !strings.Contains(o.out, "withdrawn") {
		t.Errorf("what is sent:\n%s", o.out)
	}
}

// TestChatUndo proves that /undo takes back the conversation, the files or both, that it names what it
// cannot take back, that a file that was changed since stays, that /redo does it again, and that an
// earlier message can be chosen.
func TestChatUndo(t *testing.T) {
	t.Parallel()
	const script = `again
turn
  call append_to_file {"path": "notes.txt", "content": "more\n"}
  call append_to_file {"path": "new.txt", "content": "new\n"}
  call build {"arguments": []}
turn
  say Done.
`
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\"/>\n<tool name=\"build\" command=\"true\" description=\"Builds.\"/>\n<system>Help.</system>\n")
	write(t, filepath.Join(dir, "agent.script"), script)
	notes, made := write(t, filepath.Join(dir, "notes.txt"), "first\n"), filepath.Join(dir, "new.txt")
	if err := os.Chmod(notes, 0o640); err != nil {
		t.Fatal(err)
	}
	term := reopened(t, dir, "--session work --allow=* --trust")
	holds := func(when, inNotes, inMade string) {
		t.Helper()
		if got := read(t, notes) + "|" + read(t, made); got != inNotes+"|"+inMade {
			t.Errorf("%s: the files hold %q, not %q", when, got, inNotes+"|"+inMade)
		}
	}
	term.does(t, "one", "Done.")
	term.does(t, "two", "Done.")
	holds("after two", "first\nmore\nmore\n", "new\nnew\n")
	screen := term.does(t, "/undo", "or [n]othing:")
	for _, want := range []string{"notes.txt: changed", "new.txt: changed", "which cannot be taken back:", "build {"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not shown:\n%s", want, screen)
		}
	}
	term.answers(t, "f", "notes.txt is as it was")
	term.until(t, "new.txt is as it was")
	holds("files taken back", "first\nmore\n", "new\n")
	term.does(t, "/redo", "notes.txt is as it was")
	holds("files again", "first\nmore\nmore\n", "new\nnew\n")
	write(t, made, "mine\n")
	term.keys(t, "Escape")
	term.until(t, "Esc again goes back")
	term.keys(t, "Escape")
	if screen := term.until(t, "go back before which one?"); !strings.Contains(screen, "   1. two\n") || !strings.Contains(screen, "   2. one\n") {
		t.Errorf("the messages:\n%s", screen)
	}
	screen = term.answers(t, "2", "or [n]othing:")
	if !strings.Contains(screen, "files that stay, because something else changed them since:\n     new.txt") {
		t.Errorf("the changes:\n%s", screen)
	}
	term.answers(t, "b", "work stays as it is; this goes on in a fork")
	term.until(t, "› one\n")
	holds("both taken back", "first\n", "mine\n")
	if info, err := os.Stat(notes); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode: %v, %v", info, err)
	}
	term.keys(t, "C-c")
	term.does(t, "/redo", "continues work,")
	holds("both again", "first\nmore\nmore\n", "mine\n")
	term.does(t, "/redo", "!! there is nothing to do again")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
}
