// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// emulator is a terminal of others.
type emulator interface {
	begin(width, height int)
	write(b []byte)
	resize(width, height int)
	// show returns the lines of the scrollback and the screen. If the terminal cuts rows, they
	// are rows.
	show() []string
}

// TestTerminals compares what terminals of others hold with what our model of a terminal holds,
// line by line, scrollback and screen: after random streams, replies taller than the screen,
// drafts that grow, and sizes that change in the middle of it.
func TestTerminals(t *testing.T) {
	for _, c := range []struct {
		name      string
		flat, low bool
		open      func(*testing.T) emulator
	}{
		{"tmux", false, false, openTmux},
		{"xterm.js", false, true, openXterm},
		{"libvterm", true, false, openVterm},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := c.open(t)
			recordings := 12
			if testing.Short() {
				recordings = 3
			}
			for seed := range recordings {
				record(t, seed, c.flat, c.low).play(t, fmt.Sprintf("recording %d", seed), e)
			}
		})
	}
}

// record records a conversation.
func record(t *testing.T, seed int, flat, low bool) *tape {
	return rapid.Custom(func(r *rapid.T) *tape {
		b := newBench(t, rapid.IntRange(leastCompared, 100).Draw(r, "width"), rapid.IntRange(6, 40).Draw(r, "height"), rapid.Bool().Draw(r, "colour"))
		b.vt.flat, b.t.screen.low = flat, low
		b.tape = &tape{width: b.width, height: b.height}
		b.t.screen.out = io.MultiWriter(b.vt, b.tape)
		scenario(r, b, leastCompared, func() {
			lines := b.vt.text
			if flat {
				lines = b.vt.rows
			}
			b.tape.events = append(b.tape.events, tapeEvent{lines: compared(lines())})
		})
		return b.tape
	}).Example(seed)
}

// compared returns lines without what terminals are free to do: blanks at the end, empty rows
// below everything, and the blank before a wide character that went to the next row.
func compared(lines []string) (list []string) {
	list = []string{}
	empty := 0
	for _, line := range lines {
		if line = strings.TrimRight(line, " "); strings.ContainsFunc(line, func(r rune) bool { return columns(string(r)) > 1 }) {
			line = strings.ReplaceAll(line, " ", "")
		}
		if line == "" {
			empty++
			continue
		}
		for ; empty > 0; empty-- {
			list = append(list, "")
		}
		list = append(list, line)
	}
	return list
}

// play gives a recording to a terminal.
func (p *tape) play(t *testing.T, name string, e emulator) {
	t.Helper()
	e.begin(p.width, p.height)
	var last string
	for i, ev := range p.events {
		switch {
		case ev.written != nil:
			e.write(ev.written)
			last = fmt.Sprintf("%q", ev.written)
		case ev.width > 0:
			e.resize(ev.width, ev.height)
			last = fmt.Sprintf("a size of %d and %d", ev.width, ev.height)
		default:
			if diff := cmp.Diff(ev.lines, compared(e.show())); diff != "" {
				t.Fatalf("%s, event %d, after %s (-model +terminal):\n%s", name, i, last, diff)
			}
		}
	}
}

// program is an emulator that is a program of ours around a terminal of others.
type program struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
	hex bool
}

func startProgram(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var noise strings.Builder
	cmd.Stderr = &noise
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, noise.String())
		}
	})
	return &program{t: t, in: in, out: bufio.NewReader(out)}
}

func (p *program) say(format string, args ...any) {
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) begin(width, height int)  { p.say("new %d %d", width, height) }
func (p *program) resize(width, height int) { p.say("resize %d %d", width, height) }

func (p *program) write(b []byte) {
	if p.hex {
		p.say("write %x", b)
	} else {
		p.say("write %s", base64.StdEncoding.EncodeToString(b))
	}
}

func (p *program) line() string {
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (p *program) show() (lines []string) {
	p.say("show")
	n, err := strconv.Atoi(p.line())
	if err != nil {
		p.t.Fatal(err)
	}
	for range n {
		lines = append(lines, p.line())
	}
	return lines
}

func openXterm(t *testing.T) emulator {
	dir := os.Getenv("ANTIPHON_SDK")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		dir = filepath.Join(cache, "antiphon", "sdk")
	}
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "@xterm", "headless")); err != nil {
		t.Skip("@xterm/headless is not installed: run .ci/sdk")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no Node.js")
	}
	cmd := exec.Command(node, filepath.Join("testdata", "xterm.cjs"))
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	return startProgram(t, cmd)
}

func openVterm(t *testing.T) emulator {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler for testdata/vterm.c")
	}
	const source = "#include <vterm.h>\n"
	probe := exec.Command(cc, "-E", "-")
	probe.Stdin = strings.NewReader(source)
	if probe.Run() != nil {
		t.Skip("libvterm is not installed: run .ci/setup")
	}
	path := filepath.Join(t.TempDir(), "vterm")
	if out, err := exec.Command(cc, "-o", path, filepath.Join("testdata", "vterm.c"), "-lvterm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := startProgram(t, exec.Command(path))
	p.hex = true
	return p
}

// tmux is an emulator that is a window of a tmux server. The program in it copies what it reads
// from a named pipe, and what the terminal answers to another.
type tmux struct {
	t       *testing.T
	dir     string
	count   int
	in, out *os.File
}

func openTmux(t *testing.T) emulator {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux")
	}
	dir, err := os.MkdirTemp("", "tm") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m := &tmux{t: t, dir: dir}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", filepath.Join(dir, "s"), "kill-server").Run()
		m.closePipes()
	})
	return m
}

func (m *tmux) closePipes() {
	if m.in != nil {
		_ = m.in.Close()
		_ = m.out.Close()
	}
}

func (m *tmux) command(args ...string) string {
	m.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", filepath.Join(m.dir, "s"), "-f", "/dev/null"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.dir, "LANG=C.UTF-8", "TERM=xterm-256color", "SHELL=/bin/sh"}
	text, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %v: %v\n%s", args, err, text)
	}
	return string(text)
}

func (m *tmux) window() string { return fmt.Sprintf("w%d", m.count) }

func (m *tmux) begin(width, height int) {
	m.t.Helper()
	m.closePipes()
	m.count++
	var files [2]*os.File
	for i, name := range []string{"in", "out"} {
		path := filepath.Join(m.dir, m.window()+name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			m.t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0) // does not wait for the other end
		if err != nil {
			m.t.Fatal(err)
		}
		files[i] = file
	}
	m.in, m.out = files[0], files[1]
	path := filepath.Join(m.dir, m.window())
	m.command("set-option", "-g", "history-limit", "100000", ";", "new-session", "-d", "-s", m.window(), "-x", strconv.Itoa(width), "-y", strconv.Itoa(height),
		"stty raw -echo; cat <"+path+"in & exec cat >"+path+"out")
}

func (m *tmux) write(b []byte) {
	if _, err := m.in.Write(b); err != nil {
		m.t.Fatal(err)
	}
}

// settle waits until the terminal has read everything: it answers to what comes last.
func (m *tmux) settle() {
	m.write([]byte("\x1b[5n"))
	answer := make([]byte, 4)
	if _, err := io.ReadFull(m.out, answer); err != nil || string(answer) != "\x1b[0n" {
		m.t.Fatalf("tmux answers %q, %v", answer, err)
	}
}

func (m *tmux) resize(width, height int) {
	m.settle()
	m.command("resize-window", "-t", m.window(), "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

func (m *tmux) show() []string {
	m.settle()
	return strings.Split(m.command("capture-pane", "-p", "-J", "-t", m.window(), "-S", "-"), "\n")
}
