// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlstore

import (
	"errors"
	"os"
	"syscall"
)

// flock locks the file, or returns errLocked. The lock ends when it is closed.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return os.NewSyscallError("flock", err)
		}
	}
}

// writable reports a file that may not be written to, without opening it: to
// close it again would end the locks that SQLite has on it in this process.
func writable(path string) error {
	const write = 2
	if err := syscall.Access(path, write); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
