// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix && !windows

package spool

import "os"

// Temporary makes a temporary file, private to its owner. Remove deletes it.
func Temporary() (*os.File, error) { return os.CreateTemp("", "antiphon-*") }

// Remove is called when a temporary file is no longer used.
func Remove(f *os.File) {
	_ = f.Close() // nobody can handle the error
	_ = os.Remove(f.Name())
}
