// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tui

import (
	"os"

	"golang.org/x/sys/unix"
)

// cellSize returns the size of a character of a terminal in pixels, or zeros if the terminal does not say it.
func cellSize(out *os.File) (width, height int) {
	size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 || size.Xpixel < size.Col || size.Ypixel < size.Row {
		return 0, 0
	}
	width, height = int(size.Xpixel/size.Col), int(size.Ypixel/size.Row)
	if width >= mostOfCell || height >= mostOfCell {
		return 0, 0
	}
	return width, height
}
