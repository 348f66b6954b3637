// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package private

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// nonblock makes opening a named pipe return at once.
const nonblock = syscall.O_NONBLOCK

// Check returns an error if others than the user, or root, could have written the file.
func Check(info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("other users may write to it, so it is not used\n  hint: look at its content, and remove the permission (chmod go-w)")
	}
	if !Owned(info) {
		return errors.New("it belongs to another user, so it is not used")
	}
	return nil
}

// Owned reports whether the file belongs to the user, or to root.
func Owned(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(s.Uid) == os.Geteuid() || s.Uid == 0
}
