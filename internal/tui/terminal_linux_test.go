// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openPty returns both ends of a terminal.
func openPty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no terminals:", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

// raw reports whether a terminal is in raw mode.
func raw(t *testing.T, tty *os.File) bool {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return mode.Lflag&unix.ICANON == 0
}

// TestPanics proves that a panic while keys are read or a frame is drawn leaves the terminal as it was, also
// in the full screen and while what broke holds the terminal.
func TestPanics(t *testing.T) {
	for _, wide := range []bool{false, true} {
		master, slave := openPty(t)
		in, err := openInput(slave, "xterm")
		if err != nil {
			t.Fatal(err)
		}
		if !raw(t, slave) {
			t.Fatal("the terminal is not raw")
		}
		b := newBench(t, 80, 24, false)
		b.t.in, b.t.opts.In, b.t.opts.Out, b.t.screen.out = in, slave, slave, slave
		b.t.over, b.t.quit, b.t.jobs = make(chan struct{}), make(chan struct{}), make(chan func())
		b.t.allKeys, b.t.wantFull = true, wide
		go func() { b.t.jobs <- func() { panic("broken") } }()
		func() {
			defer func() {
				if p := recover(); p != "broken" {
					t.Errorf("it panics with %v", p)
				}
			}()
			if b.t.wantFull {
				_ = b.t.switchFull(80, 24)
			}
			b.t.run()
		}()
		if raw(t, slave) {
			t.Error("the terminal is still raw")
		}
		_, _ = slave.WriteString("over")
		var said strings.Builder
		for part := make([]byte, 1024); !strings.Contains(said.String(), "over"); {
			n, err := master.Read(part)
			if err != nil {
				t.Fatal(err)
			}
			said.Write(part[:n])
		}
		for _, want := range []string{"\x1b[?2004l", "\x1b[?1004l", "\x1b[?25h", keysOff} {
			if !strings.Contains(said.String(), want) {
				t.Errorf("it is not told %q: %q", want, said.String())
			}
		}
		if strings.Contains(said.String(), leaveFull) != wide {
			t.Errorf("the other screen: %q", said.String())
		}
		_ = in.reader.Close()
	}
}

// TestEditorOutlives proves that a terminal that is gone when the editor ends is as one that went before: the
// program is told, and Close does not fail.
func TestEditorOutlives(t *testing.T) {
	_, slave := openPty(t)
	lost := make(chan struct{})
	term, err := Open(Options{In: slave, Out: slave, Term: "xterm", Lost: func() { close(lost) }})
	if err != nil {
		t.Fatal(err)
	}
	term.jobs <- func() {
		if err := term.away(func() error { return slave.Close() }); err == nil {
			t.Error("there is no error")
		}
	}
	<-lost
	<-term.Left()
	if err := term.Close(); errors.Is(err, os.ErrClosed) {
		t.Errorf("the error of closing is %v", err)
	}
}

// asChild says that this process is a program with a terminal, in the full screen if it is "full".
const asChild = "ANTIPHON_TUI_CHILD"

// TestChild is a program that panics in a goroutine of nobody when a line comes.
func TestChild(t *testing.T) {
	how := os.Getenv(asChild)
	if how == "" {
		t.Skip("it is run by TestGuard")
	}
	term, err := Open(Options{In: os.Stdin, Out: os.Stdout, Term: "xterm"})
	if err != nil {
		t.Fatal(err)
	}
	term.jobs <- func() { term.wantFull = how == "full" }
	term.jobs <- func() {}
	term.Say("it is ready")
	if _, err := term.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() { panic("broken by \x1b[31mnobody") }()
	select {}
}

// TestGuard proves that a panic of a goroutine that knows no terminal, and kill -9, leave the terminal as it was, and
// that the reason of a panic can be read then. After a panic it is so before the program has ended, when the shell looks.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		how    string
		killed bool
	}{{"inline", false}, {"full", false}, {"inline", true}, {"full", true}} {
		t.Run(fmt.Sprint(c.how, " killed ", c.killed), func(t *testing.T) {
			master, slave := openPty(t)
			cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
			cmd.Env = append(os.Environ(), asChild+"="+c.how)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			until := func(text string) {
				t.Helper()
				for part := make([]byte, 1024); !strings.Contains(said.String(), text); {
					n, err := master.Read(part)
					if err != nil {
						t.Fatalf("%v, before %q: %q", err, text, said.String())
					}
					said.Write(part[:n])
				}
			}
			until("it is ready")
			if !raw(t, slave) {
				t.Fatal("the terminal is not raw")
			}
			before := said.Len()
			if c.killed {
				_ = cmd.Process.Kill()
			} else if _, err := master.WriteString("go\r"); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			until(end)
			if c.how == "full" {
				until(leaveFull)
			}
			if !c.killed {
				until("panic: broken by ?[31mnobody\r\n")
			}
			so := said.String()[before:]
			go func() { _, _ = io.Copy(io.Discard, master) }() // the program must not wait for a reader
			<-ended
			if raw(t, slave) {
				t.Error("the terminal is still raw")
			}
			if strings.Contains(so, leaveFull) != (c.how == "full") {
				t.Errorf("the other screen: %q", so)
			}
		})
	}
}
