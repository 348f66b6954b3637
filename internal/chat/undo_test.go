// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/antiphon-go/antiphon/session"
)

// swapping is a store that does something to the disk when a content is kept or read.
type swapping struct {
	session.Blobs
	swap func()
}

func (s swapping) PutBlob(ctx context.Context, id string, data []byte) (session.Hash, error) {
	s.swap()
	return s.Blobs.PutBlob(ctx, id, data)
}

func (s swapping) OpenBlob(ctx context.Context, hash session.Hash) (session.Blob, int64, error) {
	s.swap()
	return s.Blobs.OpenBlob(ctx, hash)
}

// Taking back a change works in the folder that it has looked at: if a link takes its place in
// between, or before, nothing is written, deleted or changed where the link leads. A1
func TestUndoSwappedFolder(t *testing.T) {
	old, made := fileState{hashOf([]byte("old")), 0o600}, fileState{hashOf([]byte("made")), 0o755}
	for name, c := range map[string]fileChange{
		"changed": {before: old, after: made}, "deleted": {before: old}, "new": {after: made},
	} {
		for _, early := range []bool{false, true} {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			folder, hooks := filepath.Join(dir, "folder"), filepath.Join(dir, "hooks")
			for _, d := range []string{folder, hooks} {
				if err := os.Mkdir(d, 0o700); err != nil {
					t.Fatal(err)
				}
				if c.after.hash != "" {
					write(t, filepath.Join(d, "f"), "made")
				}
			}
			before := listed(t, hooks)
			swap := func() {
				if _, err := os.Lstat(folder + ".away"); err == nil {
					return
				}
				if err := os.Rename(folder, folder+".away"); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(hooks, folder); err != nil {
					t.Fatal(err)
				}
			}
			store := new(session.Memory)
			if err := store.Create(t.Context(), session.Info{ID: "s"}); err != nil {
				t.Fatal(err)
			}
			if _, err := store.PutBlob(t.Context(), "s", []byte("old")); err != nil {
				t.Fatal(err)
			}
			if early {
				swap()
			}
			c.path = filepath.Join(folder, "f")
			err = restoreFile(t.Context(), swapping{store, swap}, "s", c)
			if now := listed(t, hooks); now != before {
				t.Errorf("%s, early %v: %v, and where the link leads is\n%s", name, early, err, now)
			}
			if early && err == nil {
				t.Errorf("%s: no error", name)
			}
			if info, err := os.Lstat(filepath.Join(hooks, "f")); err == nil && info.Mode().Perm()&0o111 != 0 {
				t.Errorf("%s, early %v: the mode is %v", name, early, info.Mode())
			}
		}
	}
}

// TestBackByLine: /back finds messages by their first line, as it is shown, newest first.
func TestBackByLine(t *testing.T) {
	t.Parallel()
	list := []said{{1, "go on", nil}, {2, " look\x1b\nat it", nil}, {3, "go on\nplease", nil}}
	for line, want := range map[string][]int{"": {1, 2, 3}, "go on": {1, 3}, "look<U+001B>": {2}, "at it": nil} {
		if got := numbersOf(list, line); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}
