// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/host"
)

// TestOutThroughDanglingLink: a link to a file that is not there is refused by all that
// write files, before anything is sent. Neither the link nor what it names changes. J3
func TestOutThroughDanglingLink(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "link.md"), filepath.Join(dir, "gone.md")
	if err := os.Symlink("gone.md", link); err != nil {
		t.Skip(err)
	}
	store := []string{"--store", filepath.Join(dir, "s.db")}
	agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<user>Hi.</user>\n")
	if o := program(t, append([]string{"run", agent, "--session", "talk"}, store...)...); o.code != exitOK {
		t.Fatalf("exit code %d\n%s", o.code, o.err)
	}
	for name, args := range map[string][]string{
		"run":               {"run", agent},
		"run, with force":   append([]string{"run", agent, "--session", "new", "--force"}, store...),
		"run, in a session": append([]string{"run", agent, "More.", "--session", "talk"}, store...),
		"export":            append([]string{"sessions", "export", "talk"}, store...),
		"export, by force":  append([]string{"sessions", "export", "talk", "--force"}, store...),
		"convert":           {"convert", agent, "--to", "items"},
		"convert, by force": {"convert", agent, "--to", "items", "--force"},
	} {
		o := program(t, append(args, "--out", link)...)
		if o.code != exitUsage || !strings.Contains(o.err, "is a symbolic link to gone.md, which does not exist") || strings.Contains(o.err, "turn") {
			t.Errorf("%s: exit code %d\n%s", name, o.code, o.err)
		}
		if to, err := os.Readlink(link); err != nil || to != "gone.md" {
			t.Errorf("%s: the link is %q, %v", name, to, err)
		}
		if _, err := os.Lstat(target); err == nil {
			t.Errorf("%s: %s was made", name, target)
		}
	}
}

// TestReplacedFilesKeepTheirMode: what --force replaces is whole at each moment, and
// those who could read it still can.
func TestReplacedFilesKeepTheirMode(t *testing.T) {
	dir := t.TempDir()
	agent := write(t, filepath.Join(dir, "agent.md"), "<user>Hi.</user>\n")
	out := write(t, filepath.Join(dir, "out.json"), "old")
	if err := os.Chmod(out, 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	if o := program(t, "convert", agent, "--to", "items", "--out", out, "--force"); o.code != exitOK {
		t.Fatalf("exit code %d\n%s", o.code, o.err)
	}
	after, err := os.Stat(out)
	if err != nil || after.Mode() != before.Mode() || os.SameFile(before, after) {
		t.Errorf("%v became %v, the same file: %v; %v", before.Mode(), after.Mode(), os.SameFile(before, after), err)
	}
}

// K7: a link beside a transcript does not lead outputs out of its folder.
func TestOutputsThroughLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	folder := filepath.Join(dir, ".chatmd", "talk.md", "outputs")
	if got, err := host.OutputsFolder(filepath.Join(dir, "talk.md")); err != nil || got != folder {
		t.Errorf("nothing there: %s, %v", got, err)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, folder); err != nil {
		t.Skip(err)
	}
	agent := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<tool name=\"read_file\"/>\n<user>Hi.</user>\n")
	o := program(t, "run", agent, "--out", filepath.Join(dir, "talk.md"), "--rehearsal")
	if o.code != exitUsage || !strings.Contains(o.err, "is a link or a file") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}

// J3: a link to outside of its folder, which a stranger may have put there, is not followed
// by what replaces files. One to a file of the folder is.
func TestOutThroughLinkToOutside(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	mine, own := write(t, filepath.Join(dir, "profile"), "mine"), write(t, filepath.Join(work, "own.json"), "old")
	for name, to := range map[string]string{"talk.md": "../profile", "near.json": "own.json"} {
		if err := os.Symlink(to, filepath.Join(work, name)); err != nil {
			t.Skip(err)
		}
	}
	store := []string{"--store", filepath.Join(dir, "s.db")}
	agent := write(t, filepath.Join(work, "agent.md"), "<config model=\"rehearsal\"/>\n<user>Hi.</user>\n")
	if o := program(t, append([]string{"run", agent, "--session", "talk"}, store...)...); o.code != exitOK {
		t.Fatalf("exit code %d\n%s", o.code, o.err)
	}
	for name, args := range map[string][]string{
		"export":            append([]string{"sessions", "export", "talk", "--force"}, store...),
		"convert":           {"convert", agent, "--to", "items", "--force"},
		"run, in a session": append([]string{"run", agent, "--session", "new", "--force"}, store...),
	} {
		o := program(t, append(args, "--out", filepath.Join(work, "talk.md"))...)
		if o.code != exitUsage || !strings.Contains(o.err, "outside of its folder") || strings.Contains(o.err, "turn") {
			t.Errorf("%s: exit code %d\n%s", name, o.code, o.err)
		}
		if got := read(t, mine); got != "mine" {
			t.Errorf("%s: the file outside is %q", name, got)
		}
	}
	if o := program(t, "convert", agent, "--to", "items", "--force", "--out", filepath.Join(work, "near.json")); o.code != exitOK || read(t, own) == "old" {
		t.Errorf("a link in the folder: exit code %d\n%s", o.code, o.err)
	}
}
