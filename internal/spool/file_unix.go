// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package spool

import (
	"errors"
	"os"
)

// Temporary makes a temporary file, and removes its name. It is private to its owner. Remove must be called.
func Temporary() (*os.File, error) {
	f, err := os.CreateTemp("", "antiphon-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Remove is called when a temporary file is no longer used.
func Remove(f *os.File) {
	_ = f.Close() // nobody can handle the error
}
