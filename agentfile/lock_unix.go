// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agentfile

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/antiphon-go/antiphon/internal/filelock"
)

// isReadOnly reports whether a file could not be created because its folder is not
// writable.
func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// alsoItself locks an existing transcript. It ignores files that cannot be opened or
// locked, because the run will report the error.
func alsoItself(path string) (*filelock.Lock, error) {
	lock, err := filelock.TakeFile(path)
	var busy *filelock.BusyError
	if err != nil && !errors.As(err, &busy) {
		return nil, nil
	}
	return lock, err
}
