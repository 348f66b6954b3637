// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A11: what others may not read is hidden, and so is a folder that they may list and not
// enter: they read nothing in it.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for name, mode := range map[string]os.FileMode{"open": 0o755, "listed": 0o744, "group": 0o754, "closed": 0o700, "entered": 0o711} {
		folder := filepath.Join(dir, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, of := range map[string]os.FileMode{"public": 0o644, "key": 0o640} {
			if err := os.WriteFile(filepath.Join(folder, file), nil, of); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(folder, mode); err != nil {
			t.Fatal(err)
		}
		if want = append(want, folder); mode == 0o755 {
			want[len(want)-1] = filepath.Join(folder, "key")
		}
	}
	slices.Sort(want)
	if got := unreadable(dir); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
