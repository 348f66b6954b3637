// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlstore

import (
	"os"
	"syscall"
)

// writable reports a file that may not be written to, without opening it: to
// close it again would end the locks that SQLite has on it in this process.
func writable(path string) error {
	const write = 2
	if err := syscall.Access(path, write); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
