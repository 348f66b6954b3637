// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

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
		if err := in.close(); err != nil {
			t.Error(err)
		}
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
		t.Skip("it is run by TestRestorer")
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

// modes returns the modes of a terminal.
func modes(t *testing.T, tty *os.File) unix.Termios {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *mode
}

// TestRestorer proves that a panic of a goroutine that knows no terminal, and kill -9, also of the whole group of processes, leave
// the terminal as it was, and that the reason of a panic can be read then. After a panic it is so before the program has ended, when the shell looks.
func TestRestorer(t *testing.T) {
	for _, c := range []struct{ how, end string }{
		{"inline", "panic"}, {"full", "panic"}, {"inline", "killed"}, {"full", "killed"}, {"inline", "group killed"},
	} {
		t.Run(c.how+" "+c.end, func(t *testing.T) {
			master, slave := openPty(t)
			was := modes(t, slave)
			was.Iflag = was.Iflag&^(unix.IXON|unix.ICRNL) | unix.ISTRIP // as nobody would guess
			if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, &was); err != nil {
				t.Fatal(err)
			}
			was = modes(t, slave)
			cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
			cmd.Env = append(os.Environ(), asChild+"="+c.how)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
			parts := make(chan string, 1000)
			go func() {
				defer close(parts)
				for {
					part := make([]byte, 1024)
					n, err := master.Read(part)
					if err != nil {
						return
					}
					parts <- string(part[:n])
				}
			}()
			late := time.After(2 * time.Minute) // a terminal has no end that says that nobody restores it
			said := ""
			until := func(text string) {
				t.Helper()
				for !strings.Contains(said, text) {
					select {
					case part, ok := <-parts:
						if !ok {
							t.Fatalf("the terminal ended before %q: %q", text, said)
						}
						said += part
					case <-late:
						t.Fatalf("%q does not come: %q", text, said)
					}
				}
			}
			until("it is ready")
			if !raw(t, slave) {
				t.Fatal("the terminal is not raw")
			}
			before := len(said)
			switch c.end {
			case "killed":
				_ = cmd.Process.Kill()
			case "group killed": // as a shell with jobs does
				if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			default:
				if _, err := master.WriteString("go\r"); err != nil {
					t.Fatal(err)
				}
			}
			until(end)
			if c.how == "full" {
				until(leaveFull)
			}
			if c.end == "panic" {
				until("panic: broken by ?[31mnobody\r\n")
			}
			so := said[before:]
			for running := true; running; {
				select {
				case <-parts: // the program must not wait for a reader
				case <-ended:
					running = false
				case <-late:
					t.Fatalf("the program does not end: %q", said)
				}
			}
			if now := modes(t, slave); now != was {
				t.Errorf("the terminal is not as it was: %+v, want %+v", now, was)
			}
			if strings.Contains(so, leaveFull) != (c.how == "full") {
				t.Errorf("the other screen: %q", so)
			}
		})
	}
}
