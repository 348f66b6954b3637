// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package mcpserver_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// pipe makes a named pipe and returns its name.
func (w *world) pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(w.dir, "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	return name
}
