// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/session"
)

// U8: a pipe with a name, as shells make it of <(command), is read once and whole.
func TestFilesMayBePipes(t *testing.T) {
	dir := t.TempDir()
	lines := read(t, forged(t, filepath.Join(dir, "agent.md"), session.RunStarted{}, session.Stopped{Why: "answered"}))
	pipe, store := filepath.Join(dir, "pipe"), filepath.Join(dir, "s.db")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	const talk = "<config model=\"rehearsal\"/>\n<user>hello</user>\n"
	for _, c := range []struct {
		text string
		args []string
	}{
		{talk, []string{"check", pipe}},
		{talk, []string{"convert", pipe, "--to", "items"}},
		{talk, []string{"sessions", "--store", store, "import", pipe}},
		{lines, []string{"sessions", "--store", store, "import", pipe, "--name", "lines"}},
	} {
		written := make(chan error, 1)
		go func() {
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err == nil {
				_, err = w.WriteString(c.text)
				w.Close()
			}
			written <- err
		}()
		o := program(t, c.args...)
		r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0) // which ends the writer, if nobody read
		if err != nil {
			t.Fatal(err)
		}
		if o.code != 0 {
			t.Errorf("%v: exit code %d\n%s%s", c.args, o.code, o.out, o.err)
		}
		if c.args[0] == "convert" && !strings.Contains(o.out, `"text":"hello"`) {
			t.Errorf("%v: nothing of the file is in it:\n%s", c.args, o.out)
		}
		if err := <-written; err != nil {
			t.Error(err)
		}
		r.Close() // before the next: a writer that finds this reader has gone before the program opens the pipe
	}
}

// U8: an agent's file is read more than once, so a pipe cannot be one; run says so
// and does not wait for it.
func TestAgentIsNoPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if o := program(t, "run", pipe); o.code != exitUsage || !strings.Contains(o.err, "is a pipe") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

// J14: the file of a key is no pipe, and the program does not wait for one.
func TestKeyIsNoPipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if o := program(t, "run", reader(t), "--rehearsal", "--session", "work", "--store", filepath.Join(dir, "s.db"), "--store-key", "file:"+pipe); o.code != exitUsage || !strings.Contains(o.err, "not a regular file") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

// A stop ends a command that waits for the writer of a pipe.
func TestStopWhileAPipeWaits(t *testing.T) {
	dir := t.TempDir()
	pipe, agent := filepath.Join(dir, "pipe"), filepath.Join(dir, "a.md")
	write(t, agent, "<config model=\"rehearsal\"/>\n<user>x</user>\n")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", agent, "-f", pipe}, {"convert", pipe, "--to", "items"}, {"sessions", "import", pipe, "--store", filepath.Join(dir, "s.db")},
		{"run", agent, "--schema", pipe}, {"run", agent, "--profiles", pipe}, {"run", agent, "--approve-from", pipe},
		{"check", agent, "--profiles", pipe}, {"chat", agent, "--profiles", pipe}, {"serve", agent, "--profiles", pipe}, {"models", "--profiles", pipe},
	} {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan int)
		go func() { ended <- run(ctx, args, nil, stdio{strings.NewReader(""), io.Discard, io.Discard}) }()
		stop()
		if code := <-ended; code == 0 {
			t.Errorf("%q ends with 0", args)
		}
		f, err := os.OpenFile(pipe, os.O_RDWR, 0) // lets the reader go
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}
