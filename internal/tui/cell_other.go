// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package tui

import "os"

// cellSize returns zeros: the size of a character in pixels is not known.
func cellSize(*os.File) (width, height int) { return 0, 0 }
