// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package host

import (
	"os"
	"syscall"
	"testing"
)

// Only the script of the mock model is read: not a file that has the name of a model, and no
// named pipe, which would be waited for.
func TestScriptOfModel(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile("script", []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]string{"rehearsal:script": "hello", "script": "", "rehearsal": "", "pipe": "", "rehearsal:pipe": ""} {
		if got := (&Endpoint{Model: model}).script(); string(got) != want {
			t.Errorf("%s: %q", model, got)
		}
	}
}
