// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package private

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe that took the place of a file after the first look is an error at once: nobody
// writes to it, so that to wait would be for ever. K2
func TestPipeInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, _, err := opened(path); !errors.Is(err, ErrNotRegular) || f != nil {
		t.Errorf("%v, %v", f, err)
	}
}
