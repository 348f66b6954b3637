// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// chatter makes a folder with an agent whose model plays a script, and opens a conversation
// with it in a terminal. The process writes its number into the file pid.
func chatter(t *testing.T, script, flags string) (dir string, term *terminalOf) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\"/>\n<system>Help.</system>\n")
	write(t, filepath.Join(dir, "agent.script"), script)
	return dir, reopened(t, dir, flags)
}

// reopened opens a conversation in the folder.
func reopened(t *testing.T, dir, flags string) *terminalOf {
	t.Helper()
	term := openTerminal(t, dir, "export XDG_DATA_HOME="+dir+"/data; sh -c 'echo $$ >pid; exec antiphon chat agent.md --store s.db "+flags+"'; code=$?; stty -a >tty; (exit $code)")
	term.until(t, "›")
	return term
}

// cooked reports whether a terminal is as shells want it, from what stty says.
func cooked(mode string) bool {
	set := strings.Fields(mode)
	return slices.Contains(set, "isig") && slices.Contains(set, "icanon") && slices.Contains(set, "echo") && slices.Contains(set, "opost")
}

// settledTerminal reports what is wrong with a terminal that a conversation has left.
func settledTerminal(t *testing.T, dir string, term *terminalOf) {
	t.Helper()
	if mode := read(t, filepath.Join(dir, "tty")); !cooked(mode) {
		t.Errorf("the terminal is left as it is not for a shell:\n%s", mode)
	}
	raw := term.written(t)
	for _, mode := range []string{"2004", "1004"} {
		if on, off := strings.LastIndex(raw, "\x1b[?"+mode+"h"), strings.LastIndex(raw, "\x1b[?"+mode+"l"); on < 0 || on > off {
			t.Errorf("mode %s is left on", mode)
		}
	}
	if hidden, shown := strings.LastIndex(raw, "\x1b[?25l"), strings.LastIndex(raw, "\x1b[?25h"); hidden > shown {
		t.Error("the cursor is left hidden")
	}
	for _, mode := range []string{"1049", "1000", "1006"} { // the alternate screen and the mouse
		if strings.LastIndex(raw, "\x1b[?"+mode+"h") > strings.LastIndex(raw, "\x1b[?"+mode+"l") {
			t.Errorf("mode %s is left on", mode)
		}
	}
}

// signalled sends a signal to the conversation.
func signalled(t *testing.T, dir string, sig syscall.Signal) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(dir, "pid"))))
	if err == nil {
		err = syscall.Kill(pid, sig)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// all returns the screen and everything above it, wrapped lines as one.
func (term *terminalOf) all(t *testing.T) string {
	t.Helper()
	return term.tmux(t, "capture-pane", "-p", "-J", "-S", "-")
}

const repeating = "again\nturn\n  say\n    You said: \"{{question}}\".\n\n    - a **list**\n"

// TestChatAtTerminal proves that a conversation is shown once, kept in a session, and continued with
// the command that leaving prints; and that the terminal is left clean. J7 U7
func TestChatAtTerminal(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, repeating, "--session work")
	term.keys(t, "hello", "Enter")
	term.until(t, "• a list")
	term.keys(t, "more", "Enter")
	term.until(t, "You said: \"more\".")
	term.untilThat(t, "status", func(screen string) bool { return strings.Contains(screen, "tokens · work") })
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
	all := term.all(t)
	for _, want := range []string{"new session work", "› hello", "You said: \"hello\".", "› more", "You said: \"more\".", "antiphon chat agent.md --session work --store s.db continues it"} {
		if n := strings.Count(all, want); n != 1 {
			t.Errorf("%q is there %d times:\n%s", want, n, all)
		}
	}
	if strings.Contains(all, "tokens · work") {
		t.Errorf("the status line is left:\n%s", all)
	}
	settledTerminal(t, dir, term)
	if strings.Contains(term.written(t), "\x1b[?1049h") {
		t.Error("the alternate screen was used")
	}

	term = reopened(t, dir, "-c")
	screen := term.until(t, "You said: \"more\".")
	if !strings.Contains(screen, "continues work") || !strings.Contains(screen, "› hello") {
		t.Errorf("the end is not shown:\n%s", screen)
	}
	term.keys(t, "Up")
	term.until(t, "› more\nthe rehearsal")
	term.keys(t, "C-c", "C-c", "C-c")
	term.until(t, "[exit code 0]")
	if o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "work"); strings.Count(o.out, "hello") != 2 {
		t.Errorf("the session:\n%s", o.out)
	}
}

// TestChatFiles proves that a file that a prompt names is completed and sent, and that Esc twice
// takes the last message back, in a fork.
func TestChatFiles(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, "again\nturn\n  say It has: {{user | lines}}.\n", "--session work")
	write(t, filepath.Join(dir, "notes.txt"), "one\ntwo\nthree\n")
	term.keys(t, "see @no", "Tab")
	term.until(t, "› see @notes.txt")
	term.keys(t, "Enter")
	term.until(t, "It has: ")
	term.until(t, "-- 1 turn")
	if o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "work", "--full"); !strings.Contains(o.out, "three") {
		t.Errorf("the file was not sent:\n%s", o.out)
	}
	term.keys(t, "Escape")
	term.until(t, "Esc again goes back")
	term.keys(t, "Escape")
	term.until(t, "work stays as it is; this goes on in a fork")
	term.until(t, "work-2")
	term.keys(t, "C-c", "C-d")
	term.until(t, "[exit code 0]")
}

// TestChatFilesOutside proves that a prompt sends a file outside of the folder, also through a link in
// it, only after a yes: the prompt may be pasted from somebody else. K2
func TestChatFilesOutside(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, "again\nturn\n  say It has {{user | lines}}.\n", "--session work")
	outside := filepath.Join(t.TempDir(), "secret.txt")
	write(t, outside, stolen+"\n")
	if err := os.Symlink(outside, filepath.Join(dir, "notes.txt")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{outside, "notes.txt"} {
		term.keys(t, "see @"+name, "Enter")
		term.until(t, "which is not in this folder? [y]es, [n]o:")
		term.asked(t)
		term.keys(t, "n", "Enter")
		term.until(t, "is not sent")
		term.until(t, "-- 1 turn")
		term.keys(t, "C-l")
		term.tmux(t, "clear-history")
	}
	stored := func() string {
		return program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "work", "--full").out
	}
	if text := stored(); strings.Contains(text, stolen) {
		t.Errorf("it was sent:\n%s", text)
	}
	term.keys(t, "again @notes.txt", "Enter")
	term.until(t, "again @notes.txt")
	term.untilThat(t, "third question", func(string) bool { return strings.Count(term.all(t), "which is not in this folder?") >= 1 })
	term.asked(t)
	term.keys(t, "y", "Enter")
	term.until(t, "with "+outside)
	term.untilThat(t, "the reply", func(string) bool { return strings.Contains(stored(), stolen) })
	term.keys(t, "C-c", "C-d")
	term.until(t, "[exit code 0]")
}

// TestChatTrust proves that a file with powers is asked about once in a conversation, above the
// draft, and again when it has changed. K1 K6
func TestChatTrust(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const agent = "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\" approval=\"allow\"/>\n"
	write(t, filepath.Join(dir, "agent.md"), agent)
	write(t, filepath.Join(dir, "agent.script"), repeating)
	term := reopened(t, dir, "--session work")
	term.until(t, "allows itself append_to_file")
	term.asked(t)
	term.keys(t, "o", "Enter")
	term.until(t, "new session work")
	term.keys(t, "hello", "Enter")
	term.until(t, "-- 1 turn")
	term.keys(t, "/fork other", "Enter")
	if screen := term.until(t, "continues other"); strings.Count(screen, "allows itself append_to_file") != 1 {
		t.Errorf("asked again:\n%s", screen)
	}
	write(t, filepath.Join(dir, "agent.md"), agent+"<!-- changed -->\n")
	term.keys(t, "/fork third", "Enter")
	term.untilThat(t, "second question", func(screen string) bool { return strings.Count(screen, "allows itself append_to_file") == 2 })
	term.asked(t)
	term.keys(t, "o", "Enter")
	term.until(t, "continues third")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
}

// TestChatEmpty proves that a conversation in which nothing was said is not kept.
func TestChatEmpty(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, repeating, "")
	term.until(t, "new session")
	term.keys(t, "C-d")
	if screen := term.until(t, "[exit code 0]"); strings.Contains(screen, "continues it") {
		t.Errorf("the screen:\n%s", screen)
	}
	if o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "list", "--json"); strings.Contains(o.out, "agent.md") {
		t.Errorf("sessions: %s", o.out)
	}
}

// TestChatAsks proves that a call that needs approval is asked about above the draft, with
// the answers that run has, and that a refusal's reason reaches the model. A4 A5 L7
func TestChatAsks(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, "again\nturn\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\nturn\n  say It was: {{if failed -1}}{{error -1}}{{else}}done{{end}}\n", "--session work")
	term.keys(t, "go", "Enter")
	if screen := term.until(t, "run it? y, n, l, a or e:"); !strings.Contains(screen, question) {
		t.Errorf("the question:\n%s", screen)
	}
	term.asked(t)
	term.keys(t, "n not there", "Enter")
	term.until(t, "It was: The call was refused by the person in charge: not there")
	term.keys(t, "again", "Enter")
	term.untilThat(t, "second question", func(screen string) bool { return strings.Count(screen, "run it?") == 2 })
	term.asked(t)
	term.keys(t, "y", "Enter")
	term.until(t, "It was: done")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
	if got := read(t, filepath.Join(dir, "new.txt")); got != "one\n" {
		t.Errorf("the file holds %q", got)
	}
	settledTerminal(t, dir, term)
}

// TestChatStops proves that Esc stops the work and keeps what was said, that what was queued
// becomes the draft, and that the conversation goes on. L6 S8
func TestChatStops(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, "turn\n  say one two\n  pause 10m\nagain\nturn\n  say You said: \"{{question}}\".\n", "--session work")
	term.keys(t, "go", "Enter")
	term.until(t, "one two")
	term.keys(t, "next", "Enter")
	term.until(t, "queued: next")
	term.keys(t, "Escape")
	term.until(t, "what was said and done so far is kept")
	term.until(t, "› next")
	term.keys(t, " please", "Enter")
	term.until(t, "You said: \"next please\".")
	term.keys(t, "/quit", "Enter")
	term.until(t, "[exit code 0]")
	if o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "work"); !strings.Contains(o.out, "one two") {
		t.Errorf("the session:\n%s", o.out)
	}
}

// TestChatKilled proves that kill -9 loses neither the conversation nor the draft. J1
func TestChatKilled(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, repeating, "--session work")
	term.keys(t, "hello", "Enter")
	term.until(t, "You said: \"hello\".")
	term.keys(t, "not sent", "C-j", "yet")
	var drafts []string
	for until := time.Now().Add(stay); time.Now().Before(until); {
		if drafts, _ = filepath.Glob(filepath.Join(dir, "data", "antiphon", "drafts", "*")); len(drafts) == 1 && read(t, drafts[0]) == "not sent\nyet" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(drafts) != 1 {
		t.Fatalf("the drafts are %q", drafts)
	}
	if info, err := os.Stat(drafts[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the draft: %v, %v", info, err)
	}
	signalled(t, dir, syscall.SIGKILL)
	term.until(t, "[exit code 137]")

	term = reopened(t, dir, "--session work")
	term.until(t, "You said: \"hello\".")
	term.until(t, "› not sent\n  yet")
	term.keys(t, "!", "Enter")
	term.until(t, "You said: \"yet!\".")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
	if _, err := os.Stat(drafts[0]); !os.IsNotExist(err) {
		t.Errorf("the draft is still there: %v", err)
	}
}

// TestChatSignals proves that the end of the terminal, and a request to end, stop the work in
// order and leave the terminal clean. L6
func TestChatSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			dir, term := chatter(t, "turn\n  say one two\n  pause 10m\n", "--session work")
			term.keys(t, "go", "Enter")
			term.until(t, "one two")
			term.keys(t, "unsent")
			term.until(t, "› unsent")
			signalled(t, dir, sig)
			term.until(t, "[exit code 130]")
			settledTerminal(t, dir, term)
			o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "work")
			if !strings.Contains(o.out, "one two") || !strings.Contains(o.out, "cancelled") {
				t.Errorf("the session:\n%s", o.out)
			}
			if drafts, _ := filepath.Glob(filepath.Join(dir, "data", "antiphon", "drafts", "*")); len(drafts) != 1 || read(t, drafts[0]) != "unsent" {
				t.Errorf("the drafts are %q", drafts)
			}
		})
	}
}

// TestChatSuspended proves that Ctrl-Z gives the shell a clean terminal, and that the
// conversation goes on after fg.
func TestChatSuspended(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n")
	write(t, filepath.Join(dir, "agent.script"), repeating)
	term := openTerminal(t, dir, "bash --norc --noprofile -i")
	term.keys(t, "PS1='ready> '", "Enter")
	term.until(t, "\nready>")
	term.keys(t, "antiphon chat agent.md --store s.db --session work", "Enter")
	term.until(t, "›")
	term.keys(t, "draft", "C-z")
	term.until(t, "Stopped")
	term.keys(t, "stty -a >tty; echo here", "Enter")
	term.until(t, "\nhere")
	if mode := read(t, filepath.Join(dir, "tty")); !cooked(mode) {
		t.Errorf("the terminal while it is suspended:\n%s", mode)
	}
	term.keys(t, "fg", "Enter")
	term.untilThat(t, "the draft", func(screen string) bool {
		at := strings.LastIndex(screen, "fg")
		return at >= 0 && strings.Contains(screen[at:], "› draft")
	})
	term.keys(t, "!", "Enter")
	term.until(t, "You said: \"draft!\".")
	term.keys(t, "C-d")
	term.until(t, "continues it")
	term.keys(t, "exit", "Enter")
	term.until(t, "[exit code ")
}

// TestChatResized proves that sizes that change while a reply streams lose, double and leave
// nothing, down to 20 columns.
func TestChatResized(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	script.WriteString("pace 3ms\nturn\n  say\n")
	for i := range 60 {
		fmt.Fprintf(&script, "    Line w%d. has **some** words in it, and sometimes it is long enough to need several rows: x%d.\n", i, i)
	}
	_, term := chatter(t, script.String(), "--session work")
	term.tmux(t, "set-option", "-g", "history-limit", "5000")
	term.keys(t, "go", "Enter")
	for i, size := range [][2]string{{"20", "10"}, {"80", "24"}, {"40", "12"}, {"120", "50"}, {"20", "30"}, {"100", "30"}} {
		for word := fmt.Sprintf("w%d.", 3+8*i); !strings.Contains(term.all(t), word); {
			time.Sleep(10 * time.Millisecond)
		}
		term.tmux(t, "resize-window", "-x", size[0], "-y", size[1])
	}
	term.until(t, "x59.")
	term.until(t, "-- 1 turn")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
	all := strings.ReplaceAll(term.all(t), "\n", "")
	at := 0
	for i := range 60 {
		for _, word := range []string{fmt.Sprintf("w%d.", i), fmt.Sprintf("x%d.", i)} {
			n, next := strings.Count(all, word), strings.Index(all[at:], word)
			if n != 1 || next < 0 {
				t.Fatalf("%s is there %d times, in order: %v:\n%s", word, n, next >= 0, term.all(t))
			}
			at += next
		}
	}
	if strings.Contains(all, "Esc stops") || strings.Contains(all, "tokens · work") {
		t.Errorf("rows of the live part are left:\n%s", term.all(t))
	}
}

// TestChatFullScreen proves that the full screen can be entered and left while the agent works and
// while a question waits, shows the conversation, scrolls, and leaves what was said meanwhile in the
// scrollback, once; and that a signal in it leaves the terminal clean.
func TestChatFullScreen(t *testing.T) {
	t.Parallel()
	dir, term := chatter(t, "turn\n  say\n"+strings.Repeat("    before\n", 80)+"  pause 10m\nagain\nturn\n  say You said: \"{{question}}\".\n", "--session work")
	full := func() string { return strings.TrimSpace(term.tmux(t, "display-message", "-p", "#{alternate_on}")) }
	term.keys(t, "go", "Enter")
	term.until(t, "before")
	term.keys(t, "/fullscreen", "Enter")
	term.untilThat(t, "full screen", func(screen string) bool { return full() == "1" && strings.Contains(screen, "before") })
	term.keys(t, "PageUp", "PageUp")
	term.until(t, "› go")
	term.until(t, "scrolled")
	term.tmux(t, "resize-window", "-x", "20", "-y", "12")
	term.keys(t, "C-End", "Escape")
	term.until(t, "stopped;")
	term.tmux(t, "resize-window", "-x", "100", "-y", "30")
	term.keys(t, "more", "Enter")
	term.until(t, "You said: \"more\".")
	term.keys(t, "C-x", "C-f")
	term.untilThat(t, "inline view", func(screen string) bool { return full() == "0" && strings.Contains(screen, "You said") })
	all := term.all(t)
	for _, want := range []string{"› go", "what was said and done so far is kept", "› more", "You said: \"more\"."} {
		if n := strings.Count(all, want); n != 1 {
			t.Errorf("%q is there %d times:\n%s", want, n, all)
		}
	}
	if n := strings.Count(all, "before"); n != 80 {
		t.Errorf("%d lines of 80 are there:\n%s", n, all)
	}
	term.keys(t, "/fullscreen", "Enter")
	term.untilThat(t, "full screen", func(string) bool { return full() == "1" })
	signalled(t, dir, syscall.SIGTERM)
	term.until(t, "[exit code 130]")
	settledTerminal(t, dir, term)
}

// TestChatPlain proves that a plain conversation redraws nothing and has the same outcome.
func TestChatPlain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\"/>\n")
	write(t, filepath.Join(dir, "agent.script"), "again\nturn\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\nturn\n  say You said: \"{{question}}\".\n")
	term := openTerminal(t, dir, "ANTIPHON_PLAIN=1 antiphon chat agent.md --store s.db --session work")
	term.until(t, "\n>")
	term.keys(t, "hello", "Enter")
	term.until(t, "run it? y, n, l, a or e:")
	term.keys(t, "y", "Enter")
	term.until(t, "You said: \"hello\".\n")
	term.keys(t, "C-d")
	term.until(t, "[exit code 0]")
	if raw := term.written(t); strings.Contains(raw, "\x1b") {
		t.Errorf("escapes: %q", raw)
	}
	if got := read(t, filepath.Join(dir, "new.txt")); got != "one\n" {
		t.Errorf("the file holds %q", got)
	}
}

// TestChatNeedsTerminal proves that a conversation without a terminal is refused, with what
// scripts use.
func TestChatNeedsTerminal(t *testing.T) {
	t.Parallel()
	o := program(t, "chat", "agent.md")
	if o.code != exitUsage || !strings.Contains(o.err, "antiphon run FILE --session NAME PROMPT") {
		t.Errorf("exit code %d: %s", o.code, o.err)
	}
}
