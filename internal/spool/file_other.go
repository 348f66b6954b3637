// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix && !windows

package spool

import "os"

// create makes a temporary file; remove deletes it.
func create() (*os.File, error) { return os.CreateTemp("", "antiphon-*") }

// remove is called when the Spool is no longer used.
func remove(f *os.File) {
	_ = f.Close() // nobody can handle the error
	_ = os.Remove(f.Name())
}
