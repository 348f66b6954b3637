// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package spool

import (
	"errors"
	"os"
)

// create makes a file that has no name any more.
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

// remove is called when nobody has the Spool any more.
func remove(f *os.File) {
	_ = f.Close() // there is nobody to tell
}
