// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"crypto/rand"
	"os"
	"path/filepath"
)

// deleteOnClose is FILE_FLAG_DELETE_ON_CLOSE: the system removes the file when the
// program closes it or ends.
const deleteOnClose = 0x04000000

// Temporary makes a temporary file that the system deletes. It is private to its owner. Remove must be called.
func Temporary() (*os.File, error) {
	name := filepath.Join(os.TempDir(), "antiphon-"+rand.Text())
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|deleteOnClose, 0o600)
}

// Remove is called when a temporary file is no longer used.
func Remove(f *os.File) {
	_ = f.Close() // nobody can handle the error
}
