// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agentfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
)

// M6: a circle is told as such when links give its files other names.
func TestImportLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(".", filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	_, err := agentfile.Load(t.Context(), write(t, `<import src="d/p.md"/>`, dir, "p.md"), agentfile.Options{})
	if err == nil || !strings.Contains(err.Error(), "the file imports itself: ") {
		t.Errorf("got %v", err)
	}
}

// A pipe instead of a file is an error; opening it would wait for ever.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	_, err := agentfile.Load(t.Context(), write(t, `<user><import src="pipe"/><doc src="pipe" local/></user>`, dir, "p.md"), agentfile.Options{})
	if err == nil || strings.Count(err.Error(), "not a regular file") != 2 {
		t.Errorf("got %v", err)
	}
}
