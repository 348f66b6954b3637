// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestChatAttach proves that a session that runs elsewhere is attached to when it is opened; that what
// is said there is answered by the terminal that has it; that the first answer about a call counts and
// the other terminal is told; that the list of sessions says so; and that the conversation goes on where somebody still is. J2
func TestChatAttach(t *testing.T) {
	t.Parallel()
	dir, one := chatter(t, "again\nturn\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\nturn\n  say It was: {{if failed -1}}{{error -1}}{{else}}done{{end}}\n", "--session work")
	one.keys(t, "go", "Enter")
	one.until(t, "run it?")
	two := reopened(t, dir, "--session work")
	two.until(t, "attached to work, which ")
	two.until(t, "run it?")
	two.answers(t, "y", "It was: done")
	one.until(t, "answered by ")
	one.until(t, "It was: done")

	write(t, filepath.Join(dir, "note.txt"), "a note that goes along\n")
	two.does(t, "more @note.txt", "(said: it is answered when what is under way is done)")
	// Lines above may have left the screen.
	since := func(line, text string) func(screen string) bool {
		return func(screen string) bool {
			_, since, ok := strings.Cut(screen, line)
			return ok && strings.Contains(since, text)
		}
	}
	one.untilThat(t, "the second question", since("› more", "run it?"))
	two.untilThat(t, "the second question", since("<< more", "run it?"))
	three := openTerminal(t, dir, "export XDG_DATA_HOME="+dir+"/data; antiphon chat agent.md --store s.db -r")
	three.until(t, "  1. ")
	three.until(t, "work  go (waits for you, elsewhere)")
	three.keys(t, "C-d")
	three.until(t, "[exit code 0]")
	one.answers(t, "n not there", "It was: The call was refused by the person in charge: not there")
	two.until(t, "answered by ")
	two.until(t, "It was: The call was refused by the person in charge: not there")
	two.does(t, "/model x", "!! /model needs the conversation here: /take takes it")
	two.does(t, "/take", "continues work,")
	one.until(t, "the session goes on elsewhere: taken to a terminal by ")
	one.until(t, "attached to work")
	two.keys(t, "third", "Enter")
	two.untilThat(t, "the third question", since("› third", "run it?"))
	one.untilThat(t, "the third question", since("third", "run it?"))
	two.asked(t)
	two.keys(t, "y", "Enter")
	two.untilThat(t, "the third answer", since("› third", "It was: done"))
	two.keys(t, "C-d")
	two.until(t, "[exit code 0]")
	one.until(t, "nobody else runs work any more, so it goes on here")
	one.keys(t, "C-d")
	one.until(t, "--session work --store s.db continues it")

	o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "-1", "--full")
	if !strings.Contains(o.out, "third") || !strings.Contains(o.out, "a note that goes along") {
		t.Errorf("the last session:\n%s%s", o.out, o.err)
	}
	if got := read(t, filepath.Join(dir, "new.txt")); got != "one\none\n" {
		t.Errorf("the file holds %q", got)
	}
}

// TestChatDetach proves that /detach, and by setting a lost terminal, leave the work to workers when the
// reply and its calls are complete. D1
func TestChatDetach(t *testing.T) {
	t.Parallel()
	const script = "turn\n  say one two\n  pause 2s\n  call append_to_file {\"path\": \"new.txt\", \"content\": \"one\\n\"}\nturn\n  say Done.\n"
	for _, c := range []struct {
		name  string
		leave func(t *testing.T, dir string, term *terminalOf)
	}{
		{"command", func(t *testing.T, _ string, term *terminalOf) {
			term.keys(t, "/detach", "Enter")
			term.until(t, "workers go on with the session work")
			term.until(t, "antiphon chat --attach work --store s.db shows it")
			term.until(t, "[exit code 0]")
		}},
		{"hangup", func(t *testing.T, dir string, term *terminalOf) {
			signalled(t, dir, syscall.SIGHUP)
			term.until(t, "[exit code 0]")
		}},
		{"lost terminal", func(t *testing.T, dir string, term *terminalOf) {
			pid, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(dir, "pid"))))
			if err != nil {
				t.Fatal(err)
			}
			term.tmux(t, "kill-server")
			for until := time.Now().Add(stay); time.Now().Before(until); {
				if err := syscall.Kill(pid, 0); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Error("the conversation did not end")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<tool name=\"append_to_file\"/>\n")
			write(t, filepath.Join(dir, "agent.script"), script)
			term := openTerminal(t, dir, "export XDG_DATA_HOME="+dir+"/data ANTIPHON_HANGUP=detach; sh -c 'echo $$ >pid; exec antiphon chat agent.md --store s.db --session work --allow append_to_file'")
			term.until(t, "›")
			term.keys(t, "go", "Enter")
			term.until(t, "one two")
			c.leave(t, dir, term)
			if got := read(t, filepath.Join(dir, "new.txt")); got != "one\n" {
				t.Errorf("the file holds %q", got)
			}
			o := program(t, "work", "status", "--store", filepath.Join(dir, "s.db"))
			if !strings.Contains(o.out, "work") || !strings.Contains(o.out, "waits for a worker") {
				t.Errorf("the work: %s%s", o.out, o.err)
			}
		})
	}
}
