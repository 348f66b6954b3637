// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// K7: a link beside a transcript does not lead outputs out of its folder.
func TestOutputsThroughLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	folder := filepath.Join(dir, ".chatmd", "talk.md", "outputs")
	if err := besideOnly(folder); err != nil {
		t.Errorf("nothing there: %v", err)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, folder); err != nil {
		t.Skip(err)
	}
	agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<tool name=\"read_file\"/>\n<user>Hi.</user>\n")
	o := program(t, "run", agent, "--out", filepath.Join(dir, "talk.md"), "--rehearsal")
	if o.code != exitUsage || !strings.Contains(o.err, "is not a folder of its own") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}
