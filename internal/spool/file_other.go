// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix && !windows

package spool

import "os"

// create makes a file that is removed when nobody has it any more.
func create() (*os.File, error) { return os.CreateTemp("", "antiphon-*") }

// remove is called when nobody has the Spool any more.
func remove(f *os.File) {
	_ = f.Close() // there is nobody to tell
	_ = os.Remove(f.Name())
}
