// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"errors"
	"fmt"
	"os"
	"strings"
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
