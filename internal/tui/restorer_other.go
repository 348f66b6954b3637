// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package tui

import "os"

// restorer does nothing: this system has no shell that could give the terminal back.
type restorer struct{}

func newRestorer(in, out *os.File) *restorer { return nil }

func (r *restorer) say(line string) {}

func (r *restorer) end() {}

func modesOf(tty *os.File) string { return "" }
