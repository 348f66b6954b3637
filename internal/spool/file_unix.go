// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package spool

import (
	"errors"
	"os"
)

// create makes a temporary file and removes its name.
func create() (*os.File, error) {
	f, err := os.CreateTemp("", "antiphon-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// remove is called when the Spool is no longer used.
func remove(f *os.File) {
	_ = f.Close() // nobody can handle the error
}
