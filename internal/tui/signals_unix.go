// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// resizes returns a channel that tells of new sizes.
func resizes() (resized <-chan os.Signal, end func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// noStop is how long to wait for a stop.
const noStop = 500 * time.Millisecond

// stopSelf stops the processes of the terminal's foreground until the shell continues them.
func stopSelf() error {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGCONT)
	defer signal.Stop(again)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return err
	}
	select {
	case <-again:
	case <-time.After(noStop): // without a shell that could continue them, the system stops nothing
	}
	return nil
}
