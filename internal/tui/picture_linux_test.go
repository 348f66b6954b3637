// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"os"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"golang.org/x/sys/unix"
)

// TestCellsOfXterm proves that sixel is used in a terminal that does not answer how large a character is, as xterm
// by default: the system knows it.
func TestCellsOfXterm(t *testing.T) {
	out, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer out.Close()
	if err := unix.IoctlSetWinsize(int(out.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80, Xpixel: 480, Ypixel: 312}); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, 80, 24, true)
	b.t.opts.Pictures, b.t.opts.Out, b.t.quit = "auto", out, make(chan struct{})
	found := make(chan ability)
	go func() { found <- b.t.ask() }()
	<-b.t.wake
	b.t.event(uv.PrimaryDeviceAttributesEvent{63, 4})
	if can := <-found; can.by != bySixel || can.width != 6 || can.height != 13 {
		t.Errorf("%+v", can)
	}
}
