// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLeadsFollowsNoLink proves that a path is one of an open directory only if none of its names is a
// link, wherever the link leads: a program puts links there and takes them away between two looks. A1
func TestLeadsFollowsNoLink(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"vault/d", "own/d"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(dir)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("vault", filepath.Join(root, "pub")), os.Symlink("d", filepath.Join(root, "vault", "e"))); err != nil {
		t.Skip(err)
	}
	f, err := Open(Root{Path: root})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := f.roots[0]
	dir, err := r.dir.OpenRoot("vault/d")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for path, leads := range map[string]bool{"vault/d": true, "pub/d": false, "vault/e": false, "own/d": false, "vault": false, ".": false, "none": false} {
		if err := r.leads(filepath.FromSlash(path), dir); (err == nil) != leads {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := r.leads(".", r.dir); err != nil {
		t.Errorf("the root: %v", err)
	}
}
