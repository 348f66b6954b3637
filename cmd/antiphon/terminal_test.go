// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// terminalOf is a terminal with a shell in it that runs one command line: a
// session of a tmux server of its own.
type terminalOf struct {
	socket, raw string
}

// openTerminal runs the command line in a terminal, in the folder dir.
func openTerminal(t *testing.T, dir, line string) *terminalOf {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux for a real terminal: not there, so this test is skipped")
	}
	short, err := os.MkdirTemp("", "tm") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	term := &terminalOf{filepath.Join(short, "s"), filepath.Join(short, "raw")}
	t.Cleanup(func() {
		// The program outlives the terminal for a moment and writes in its home, which is then
		// removed. It is in the group of the shell, because a script has no jobs.
		pane, err := exec.Command("tmux", "-S", term.socket, "display-message", "-p", "#{pane_pid}").Output()
		_ = exec.Command("tmux", "-S", term.socket, "kill-server").Run()
		if err == nil {
			_ = exec.Command("sh", "-c", "for n in $(seq 30000); do kill -0 -"+strings.TrimSpace(string(pane))+" 2>/dev/null || exit 0; sleep 0.01; done").Run()
		}
	})
	// The shell waits for a line, so that nothing is printed before it is piped.
	script := "trap : INT; read -r go; " + line + `; echo "[exit code $?]"; read -r end`
	term.tmux(t, "-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "60", "-c", dir, "sh", "-c", script)
	term.tmux(t, "pipe-pane", "-o", "cat > "+term.raw)
	term.keys(t, "Enter")
	return term
}

func (term *terminalOf) tmux(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", term.socket}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(term.socket), "LANG=C.UTF-8", "TERM=xterm-256color", "SHELL=/bin/sh", "GORACE=" + os.Getenv("GORACE")}
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %v: %v\n%s", args, err, text)
	}
	return string(text)
}

// keys types; Enter and C-c are keys.
func (term *terminalOf) keys(t *testing.T, keys ...string) {
	t.Helper()
	term.tmux(t, append([]string{"send-keys"}, keys...)...)
}

// until waits for a text on the screen and returns the screen.
func (term *terminalOf) until(t *testing.T, text string) string {
	t.Helper()
	return term.untilThat(t, strconv.Quote(text), func(screen string) bool { return strings.Contains(screen, text) })
}

// untilThat waits until the screen is as wanted, and returns it.
func (term *terminalOf) untilThat(t *testing.T, what string, wanted func(screen string) bool) string {
	t.Helper()
	screen := ""
	for until := time.Now().Add(stay); time.Now().Before(until); {
		if screen = term.tmux(t, "capture-pane", "-p"); wanted(screen) {
			return screen
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no %s on the screen:\n%s", what, screen)
	return ""
}

// takesKeys is the draft of a chat while it is the answer to a question.
var takesKeys = regexp.MustCompile(`(?m)^\?( |$)`)

// asked waits until the question of a chat takes keys.
func (term *terminalOf) asked(t *testing.T) {
	t.Helper()
	term.untilThat(t, "question that takes keys", takesKeys.MatchString)
}

// seconds is what a status line says of how long something runs.
var seconds = regexp.MustCompile(`, (\d+)s`)

// untilLater waits until a line with the text shows a later second than the given
// one, and returns the screen and that second. Which one it is depends on how busy
// the machine is.
func (term *terminalOf) untilLater(t *testing.T, text string, than int) (screen string, second int) {
	t.Helper()
	for until := time.Now().Add(stay); time.Now().Before(until); {
		screen = term.until(t, text)
		_, line, _ := strings.Cut(screen, text)
		line, _, _ = strings.Cut(line, "\n")
		if found := seconds.FindStringSubmatch(line); found != nil {
			if second, _ = strconv.Atoi(found[1]); second > than {
				return screen, second
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("nothing later than %ds behind %q on the screen:\n%s", than, text, screen)
	return "", 0
}

// written returns all that was sent to the terminal, when the command is done.
func (term *terminalOf) written(t *testing.T) string {
	t.Helper()
	for until := time.Now().Add(stay); time.Now().Before(until); {
		if raw := read(t, term.raw); strings.Contains(raw, "[exit code ") {
			return raw
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the command did not end: %q", read(t, term.raw))
	return ""
}

// writer makes a folder with an agent that writes twice.
func writer(t *testing.T) (dir string) {
	dir = t.TempDir()
	write(t, filepath.Join(dir, "agent.md"), `<config model="rehearsal:agent.script"/>
<tool name="append_to_file"/>
<user>Write.</user>
`)
	write(t, filepath.Join(dir, "agent.script"), `turn
  call append_to_file {"path": "new.txt", "content": "one\n"}
turn
  call append_to_file {"path": "new.txt", "content": "two\n"}
turn
  say First: {{if failed 1}}{{error 1}}{{else}}done{{end}}
`)
	return dir
}

const question = `?? append_to_file {"path": "new.txt", "content": "one\n"}`

// TestAskAtTerminal proves that a tool that writes asks the person at the
// terminal, and does what they say. A4 A5
func TestAskAtTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		keys  []string // one line for each question
		file  string
		says  string
		asked int
	}{
		{"yes, no", []string{"y", "n"}, "one\n", "First: done", 2},
		{"no, yes", []string{"no", "yes"}, "two\n", "First: The call was refused by the person in charge. Nothing was done.", 2},
		{"always", []string{"a"}, "one\ntwo\n", "First: done", 1},
		{"neither", []string{"maybe", "n", "n"}, "", "First: The call was refused", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := writer(t)
			term := openTerminal(t, dir, "antiphon run agent.md")
			term.until(t, question)
			for i, keys := range c.keys {
				for strings.Count(term.until(t, "run it?"), "run it?") <= i {
					time.Sleep(10 * time.Millisecond)
				}
				term.keys(t, keys, "Enter")
			}
			screen := term.until(t, "[exit code ")
			if !strings.Contains(screen, c.says) || !strings.Contains(screen, "[exit code 0]") || strings.Count(screen, "run it?") != c.asked {
				t.Errorf("the screen:\n%s", screen)
			}
			if got := read(t, filepath.Join(dir, "new.txt")); got != c.file {
				t.Errorf("the file holds %q, want %q", got, c.file)
			}
		})
	}
}

// TestInterruptAtTerminal proves that Ctrl-C at a question, and in the middle
// of slow text, ends the run with its exit code and a transcript that the next
// run goes on with. L6 P2
func TestInterruptAtTerminal(t *testing.T) {
	t.Parallel()
	t.Run("question", func(t *testing.T) {
		t.Parallel()
		dir := writer(t)
		term := openTerminal(t, dir, "antiphon run agent.md --out talk.md")
		term.until(t, "run it?")
		term.keys(t, "C-c")
		screen := term.until(t, "[exit code ")
		if !strings.Contains(screen, "\nantiphon: interrupted\n[exit code 130]") {
			t.Errorf("the screen:\n%s", screen)
		}
		o := programEnv(t, nil, "run", filepath.Join(dir, "agent.md"), "--out", filepath.Join(dir, "talk.md"), "--deny=*")
		if o.code != 0 || !strings.Contains(o.out, "First: The call was not started: the run was stopped first. Nothing was done.") {
			t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
		}
		if read(t, filepath.Join(dir, "new.txt")) != "" {
			t.Error("something was written")
		}
	})
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal:agent.script\"/>\n<user>Go.</user>\n")
		write(t, filepath.Join(dir, "agent.script"), "turn\n  say one two\n  pause 10m\n  say three\n")
		term := openTerminal(t, dir, "antiphon run agent.md --out talk.md")
		term.until(t, "one two")
		term.keys(t, "C-c")
		screen := term.until(t, "[exit code ")
		if !strings.Contains(screen, "!! the reply broke off here") || !strings.Contains(screen, "\nantiphon: interrupted\n[exit code 130]") {
			t.Errorf("the screen:\n%s", screen)
		}
		write(t, filepath.Join(dir, "agent.script"), "turn\n  say one two three\n")
		o := programEnv(t, nil, "run", agent, "--out", filepath.Join(dir, "talk.md"))
		if o.code != 0 || o.out != "one two three\n" {
			t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
		}
	})
}

// TestColours proves that notes have colours at a terminal alone, and none with
// NO_COLOR; and that a model cannot steer the terminal.
func TestColours(t *testing.T) {
	t.Parallel()
	const agent = `<config model="rehearsal:agent.script"/>
<tool name="read_file"/>
<user>Go.</user>
`
	const script = `turn
  call read_file {"path": "nope.txt"}
turn
  say {{"\x1b[31mred\x1b]0;title\x07"}} text
`
	for _, c := range []struct {
		name, env string
		colour    bool
	}{
		{"terminal", "", true},
		{"NO_COLOR", "NO_COLOR=1 ", false},
		{"dumb terminal", "TERM=dumb ", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "agent.md"), agent)
			write(t, filepath.Join(dir, "agent.script"), script)
			term := openTerminal(t, dir, c.env+"antiphon run agent.md")
			raw := term.written(t)
			if got := strings.Contains(raw, "\x1b[31m<- read_file"); got != c.colour {
				t.Errorf("colour %v, want %v:\n%q", got, c.colour, raw)
			}
			if !c.colour && strings.Contains(raw, "\x1b") {
				t.Errorf("escapes:\n%q", raw)
			}
			if strings.Contains(raw, "\x1b]") || strings.Contains(raw, "\x1b[31mred") || !strings.Contains(raw, "<U+001B>[31mred<U+001B>]0;title<U+0007> text") {
				t.Errorf("the model's escapes:\n%q", raw)
			}
			o := programEnv(t, nil, "run", filepath.Join(dir, "agent.md"))
			if !strings.Contains(o.out, "\x1b[31mred\x1b]0;title\a text\n") || strings.Contains(o.err, "\x1b") {
				t.Errorf("without a terminal: %q, %q", o.out, o.err)
			}
		})
	}
}

// TestWaitsAreShown proves that commands that ask an endpoint say what they wait for.
func TestWaitsAreShown(t *testing.T) {
	t.Parallel()
	url, _ := silence(t)
	dir := t.TempDir()
	term := openTerminal(t, dir, "antiphon models --base-url "+url)
	term.until(t, "127.0.0.1:")
	term.until(t, ", 1s")
	term.keys(t, "C-c")
	term.until(t, "antiphon: interrupted\n[exit code 130]")
	term = openTerminal(t, dir, "antiphon doctor --model m --base-url "+url)
	term.until(t, "\nProbes\n")
	term.until(t, "models are listed, 1s")
	term.keys(t, "C-c")
	term.until(t, "antiphon: interrupted\n[exit code 130]")
}
