// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// outside is the text of a file that no link of a stranger's folder may change.
const outside = "export EDITOR=vi\n"

// link makes a symbolic link with its folders, and skips the test if the system has none.
func link(t *testing.T, to string, elem ...string) string {
	t.Helper()
	from := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, from); err != nil {
		t.Skip(err)
	}
	return from
}

// K7: what is cut off a transcript goes into a file of its own if something else than a
// regular file has the name, so that nothing is written through a link.
func TestCutThroughLink(t *testing.T) {
	const torn = "<user>\nRAW|\nrm -rf"
	dir := t.TempDir()
	mine := write(t, outside, dir, "home", "profile")
	for name, to := range map[string]string{"a": mine, "b": "../../home/profile", "c": filepath.Join(dir, "home", "new")} {
		work := filepath.Join(dir, "work", name)
		path := write(t, prompt+torn, work, "talk.md")
		link(t, to, work, "talk.md.cut")
		link(t, to, work, "talk.md.cut.2")
		for range 2 { // the second is added to the first
			f, _ := open(t, path, path)
			if len(f.Warnings) != 1 || !strings.HasSuffix(f.Warnings[0].Error(), path+".cut.3") {
				t.Errorf("%s: %v", name, f.Warnings)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			write(t, prompt+torn, work, "talk.md")
		}
		if got := read(t, path+".cut.3"); got != strings.Repeat(torn+"\n", 2) {
			t.Errorf("%s: kept %q", name, got)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(mine)); err != nil || len(entries) != 1 || read(t, mine) != outside {
		t.Errorf("outside: %v, %v, %q", entries, err, read(t, mine))
	}
}

// K7: a link in the place of the lock, or of a folder of it, is an error that names it, and
// nothing is written through it.
func TestLockThroughLink(t *testing.T) {
	dir := t.TempDir()
	mine := write(t, outside, dir, "home", "talk.md", "lock")
	home := filepath.Join(dir, "home")
	for at, to := range map[string]string{
		".chatmd/talk.md/lock": mine,
		".chatmd/talk.md":      filepath.Join(home, "talk.md"),
		".chatmd":              home,
	} {
		work := filepath.Join(dir, strings.ReplaceAll(at, "/", "-"))
		path := write(t, prompt, work, "talk.md")
		from := link(t, to, work, filepath.FromSlash(at))
		_, _, err := agentfile.OpenTranscript(t.Context(), path, path, agentfile.Options{Consent: trust.Everything})
		if err == nil || !strings.Contains(err.Error(), filepath.FromSlash(at)+" is a link") {
			t.Errorf("%s: %v", at, err)
		}
		if got := read(t, mine); got != outside {
			t.Errorf("%s: %s is now %q", at, mine, got)
		}
		if _, err := os.Lstat(from); err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(home); err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}

// K7: the draft of a transcript is a new file, whatever has its name.
func TestDraftThroughLink(t *testing.T) {
	dir := t.TempDir()
	mine := write(t, outside, dir, "home", "profile")
	path := write(t, prompt, dir, "work", "agent.md")
	out := filepath.Join(dir, "work", "talk.md")
	link(t, mine, fmt.Sprintf("%s.%d.new", out, os.Getpid()))
	_, s := open(t, path, out)
	appendTo(t, s, session.InputItem{Item: item.User("more")})
	if got := read(t, out); !strings.Contains(got, "more") {
		t.Errorf("the transcript is %q", got)
	}
	if got := read(t, mine); got != outside {
		t.Errorf("outside: %q", got)
	}
}

// K7: a transcript is not a link to outside of its folder: the run would write there.
func TestTranscriptIsLinkToOutside(t *testing.T) {
	dir := t.TempDir()
	mine := write(t, "", dir, "home", "profile")
	path := write(t, prompt, dir, "work", "agent.md")
	out := link(t, "../home/profile", dir, "work", "talk.md")
	for _, from := range []string{path, out} {
		_, _, err := agentfile.OpenTranscript(t.Context(), from, out, agentfile.Options{Consent: trust.Everything, KeepAgent: true})
		if err == nil || !strings.Contains(err.Error(), "outside of its folder") {
			t.Errorf("%s: %v", from, err)
		}
	}
	if got := read(t, mine); got != "" {
		t.Errorf("outside: %q", got)
	}
}
