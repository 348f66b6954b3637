// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNoLaunch: without a session's bus, no program is started to make one. It would get the
// variables of this process, keys among them. B5
func TestNoLaunch(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "dbus-launch")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nenv >"+folder+"/launched\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	t.Setenv(busVariable, "")
	if _, err := ringGet("antiphon test", "nobody"); err == nil {
		t.Error("a key that was never kept")
	}
	if _, err := os.Stat(filepath.Join(folder, "launched")); !os.IsNotExist(err) {
		t.Error("dbus-launch was started", err)
	}
}
