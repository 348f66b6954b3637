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

// create makes a temporary file that the system deletes.
func create() (*os.File, error) {
	name := filepath.Join(os.TempDir(), "antiphon-"+rand.Text())
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|deleteOnClose, 0o600)
}

// remove is called when the Spool is no longer used.
func remove(f *os.File) {
	_ = f.Close() // nobody can handle the error
}
