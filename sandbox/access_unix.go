// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import "golang.org/x/sys/unix"

// mayUse reports whether this process may read a path, or write to it.
func mayUse(path string, write bool) bool {
	mode := uint32(unix.R_OK)
	if write {
		mode = unix.W_OK
	}
	return unix.Access(path, mode) == nil
}
