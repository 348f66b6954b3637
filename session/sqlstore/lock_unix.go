// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlstore

import (
	"os"
	"syscall"
)

// writable returns an error if this process may not write to the file. It does not
// open the file: closing it again would release the locks that SQLite holds on it in
// this process.
func writable(path string) error {
	const write = 2
	if err := syscall.Access(path, write); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
