// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package audit_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/audit"
)

// If the log is a named pipe, reading it is an error. It does not wait for a writer.
func TestPipeIsNoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	for _, err := range audit.Open(path).All() {
		if err == nil {
			t.Error("a line was read")
		}
		return
	}
	t.Error("it reads as an empty log")
}
