// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package agentfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
)

// K7: kept answers are for their owner alone, and are not believed where others
// may write, or where a link stands for the file.
func TestAnswersArePrivate(t *testing.T) {
	dir, own := t.TempDir(), filepath.Join(t.TempDir(), "answers")
	write(t, "<user>hi</user>", dir, "sum.md")
	path := write(t, "<user><agent src=\"sum.md\" local/></user>", dir, "agent.md")
	var asked []string
	o := agentfile.Options{Runner: runner(answers(t, "one", "two", "three"), "m", &asked), Answers: own}
	load(t, path, o)
	entry := filepath.Join(own, entries(t, own)[0])
	for name, want := range map[string]os.FileMode{own: 0o700, entry: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	if err := os.Chmod(own, 0o777); err != nil {
		t.Fatal(err)
	}
	f := load(t, path, o)
	if got := textOf(t, f.Items[0]); got != "two" || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Error(), "other users may write") {
		t.Errorf("%q %v", got, f.Warnings)
	}
	if err := os.Chmod(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := textOf(t, load(t, path, o).Items[0]); got != "one" {
		t.Errorf("private again: %q", got)
	}
	elsewhere := filepath.Join(dir, "entry")
	if err := os.Rename(entry, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, entry); err != nil {
		t.Fatal(err)
	}
	if got := textOf(t, load(t, path, o).Items[0]); got != "three" {
		t.Errorf("a link: %q", got)
	}
}
