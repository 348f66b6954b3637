// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package toolkit

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A named pipe must not make a tool wait for its other end.
func TestNamedPipe(t *testing.T) {
	k := newKit(t)
	if err := syscall.Mkfifo(filepath.Join(k.Dir, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"read_file", "import_image"} {
		k.Fails(name, args{"path": "pipe"}, "not a regular file")
	}
	k.Fails("find_and_replace", args{"path": "pipe", "find": "a", "replace": "b"}, "not a regular file")
	k.Fails("append_to_file", args{"path": "pipe", "content": "a"}, "not a regular file")
	if got := k.OK("read_directory", nil); got != "pipe (special file)" {
		t.Errorf("%q", got)
	}
	if _, err := Open(Root{Path: filepath.Join(k.Dir, "pipe")}); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a pipe as a root: %v", err)
	}
}
