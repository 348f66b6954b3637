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

// isReadOnly reports whether a file could not be made in a folder that cannot be
// written to.
func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// alsoItself locks a transcript that is there. What cannot be opened or locked is
// for the run to find out.
func alsoItself(path string) (*filelock.Lock, error) {
	lock, err := filelock.TakeFile(path)
	var busy *filelock.BusyError
	if err != nil && !errors.As(err, &busy) {
		return nil, nil
	}
	return lock, err
}
