// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package tui

import "golang.org/x/sys/unix"

const (
	readModes  = unix.TCGETS
	socketSize = 1 // the system makes it as large as a few writes
)
