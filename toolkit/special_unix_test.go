// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package toolkit

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A named pipe must not make a tool wait for its other end.
func TestNamedPipe(t *testing.T) {
	k := newKit(t)
	if err := syscall.Mkfifo(filepath.Join(k.dir, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"read_file", "import_image"} {
		k.fails(name, args{"path": "pipe"}, "not a regular file")
	}
	k.fails("find_and_replace", args{"path": "pipe", "find": "a", "replace": "b"}, "not a regular file")
	k.fails("append_to_file", args{"path": "pipe", "content": "a"}, "not a regular file")
	if got := k.ok("read_directory", nil); got != "pipe (special file)" {
		t.Errorf("%q", got)
	}
}
