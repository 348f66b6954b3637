// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/internal/person"
)

// waitingCall returns the id of the first call of the session work in dir that has no output.
func waitingCall(t *testing.T, dir string) string {
	t.Helper()
	o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "info", "work", "--json")
	var info struct {
		Open []string `json:"open_calls"`
	}
	if err := json.Unmarshal([]byte(o.out), &info); err != nil || len(info.Open) == 0 {
		t.Fatalf("no call waits: %v\n%s%s", err, o.out, o.err)
	}
	_, id, _ := strings.Cut(info.Open[0], " ")
	return id
}

// D1: a question at a terminal ends at once when somebody else answers it, and says who
// said what; the run goes on.
func TestQuestionEndsAtTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flag, says, file string }{
		{"", "answered by " + person.AccountName() + " (sessions approve): yes", "one\n"},
		{"--refuse", "answered by " + person.AccountName() + " (sessions approve): no", ""},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			dir := writer(t)
			term := openTerminal(t, dir, "antiphon run agent.md --session work --store s.db")
			term.until(t, "run it?")
			args := []string{"sessions", "--store", filepath.Join(dir, "s.db"), "approve", "work", waitingCall(t, dir)}
			if c.flag != "" {
				args = append(args, c.flag)
			}
			if o := program(t, args...); o.code != 0 || !strings.Contains(o.out, "1 call answered") {
				t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
			}
			term.until(t, c.says)
			term.untilThat(t, "second question", func(screen string) bool { return strings.Count(screen, "run it?") == 2 })
			term.keys(t, "n", "Enter")
			term.until(t, "[exit code 0]")
			if got := read(t, filepath.Join(dir, "new.txt")); got != c.file {
				t.Errorf("the file holds %q, want %q", got, c.file)
			}
		})
	}
}

// D1: who is asked by sessions approve learns at once that the terminal was faster, and who
// answers by the id of the call is told who was first.
func TestTerminalWasFirst(t *testing.T) {
	t.Parallel()
	dir := writer(t)
	term := openTerminal(t, dir, "antiphon run agent.md --session work --store s.db")
	term.until(t, "run it?")
	call := waitingCall(t, dir)
	other := openTerminal(t, dir, "antiphon sessions --store s.db approve work")
	other.until(t, "run it?")
	term.keys(t, "y", "Enter")
	screen := other.until(t, "[exit code 0]")
	if !strings.Contains(screen, "answered by "+person.Name+" (terminal): yes") || !strings.Contains(screen, "0 calls answered") {
		t.Errorf("the other terminal:\n%s", screen)
	}
	term.untilThat(t, "second question", func(screen string) bool { return strings.Count(screen, "run it?") == 2 })
	if o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "approve", "work", call, "--refuse"); o.code != exitUsage || !strings.Contains(o.err, "was answered by "+person.Name+" (terminal): yes") {
		t.Errorf("a call that is decided: exit code %d\n%s%s", o.code, o.out, o.err)
	}
	term.keys(t, "n", "Enter")
	term.until(t, "[exit code 0]")
	if got := read(t, filepath.Join(dir, "new.txt")); got != "one\n" {
		t.Errorf("the file holds %q", got)
	}
}

// samePerson begins a line for a terminal with the data folder of the test's own program, which says whose the store is.
func samePerson() string {
	return "XDG_DATA_HOME=" + filepath.Join(os.Getenv("HOME"), ".local", "share") + " "
}

// J2 D1: a second terminal shows what the first one runs, and who runs it; each can answer
// what is asked, and both end with the run.
func TestAttach(t *testing.T) {
	t.Parallel()
	dir := writer(t)
	line := samePerson() + "antiphon run agent.md --session work --store s.db"
	first := openTerminal(t, dir, line)
	first.until(t, "run it?")
	o := program(t, "run", filepath.Join(dir, "agent.md"), "--session", "work", "--store", filepath.Join(dir, "s.db"))
	if o.code != exitFailed || !strings.Contains(o.err, "another process or run is writing to the session: process ") {
		t.Errorf("without a terminal: exit code %d\n%s", o.code, o.err)
	}
	third := openTerminal(t, dir, line+" --no-attach")
	wantAll(t, "--no-attach", third.until(t, "[exit code 1]"), "another process or run is writing to the session: process ")
	second := openTerminal(t, dir, line)
	second.until(t, "which process ")
	second.until(t, "run it?")
	second.keys(t, "y", "Enter")
	first.until(t, "answered by "+person.AccountName()+" (run): yes")
	for _, term := range []*terminalOf{first, second} {
		term.untilThat(t, "second question", func(screen string) bool { return strings.Count(screen, "run it?") == 2 })
	}
	first.keys(t, "n", "Enter")
	second.until(t, "answered by "+person.Name+" (terminal): no")
	wantAll(t, "the first terminal", first.until(t, "[exit code "), "First: done", "[exit code 0]")
	wantAll(t, "the second terminal", second.until(t, "[exit code "), "First: done", "[exit code 0]")
	if got := read(t, filepath.Join(dir, "new.txt")); got != "one\n" {
		t.Errorf("the file holds %q", got)
	}
	if o := program(t, "sessions", "--store", filepath.Join(dir, "s.db"), "show", "work"); !strings.Contains(o.out, "by "+person.AccountName()+" (run)") {
		t.Errorf("the log:\n%s", o.out)
	}
}

// J2 D2: what is typed at an attached terminal is said to the run; leaving it changes
// nothing; and if the run's process is killed, it says so.
func TestAttachAndLeave(t *testing.T) {
	t.Parallel()
	dir := slow(t, "step one")
	line := samePerson() + "antiphon run agent.md --session work --store s.db"
	first := openTerminal(t, dir, line+" --allow build")
	first.until(t, "step one")
	write(t, filepath.Join(dir, "note.txt"), "a note that goes along")
	second := openTerminal(t, dir, line+" -f note.txt Careful.")
	screen := second.until(t, "-> build")
	leaver := openTerminal(t, dir, line)
	leaver.until(t, "-> build")
	leaver.keys(t, "C-c")
	leaver.until(t, "which runs on")
	leaver.until(t, "[exit code 0]")
	second.keys(t, "And hurry.", "Enter")
	second.untilThat(t, "second (said", func(screen string) bool { return strings.Count(screen, "(said: ") == 2 })
	process := regexp.MustCompile(`which process (\d+) on `).FindStringSubmatch(screen)
	if process == nil {
		t.Fatalf("no process:\n%s", screen)
	}
	id, err := strconv.Atoi(process[1])
	if err != nil {
		t.Fatal(err)
	}
	holder, err := os.FindProcess(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Kill(); err != nil {
		t.Fatal(err)
	}
	second.until(t, "has ended before it took 2 deliveries")
	second.until(t, "[exit code 4]")
}
