// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/kittest"
)

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, roots := range map[string][]files.Root{
		"none":           nil,
		"missing":        {{Path: filepath.Join(dir, "x")}},
		"a file":         {{Path: file}},
		"twice":          {{Name: "a", Path: dir}, {Name: "a", Path: dir}},
		"unnamed second": {{Path: dir}, {Path: dir}},
		"bad name":       {{Name: "a b", Path: dir}},
		"dots":           {{Name: "..", Path: dir}},
	} {
		if f, err := files.Open(roots...); err == nil {
			f.Close()
			t.Errorf("%s: no error", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
	f, err := files.Open(files.Root{Path: dir}, files.Root{Name: "b", Path: dir, Description: "d"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]files.Root{{Name: files.DefaultRootName, Path: dir}, {Name: "b", Path: dir, Description: "d"}}, f.Roots()); diff != "" {
		t.Error(diff)
	}
	f.Close()
	p, err := f.Resolve("file")
	if err == nil {
		_, err = p.ReadAll(t.Context(), 1)
	}
	if err == nil || !strings.Contains(err.Error(), "the tool is closed") {
		t.Errorf("closed: %v", err)
	}
}

func TestShownIsOneSpelling(t *testing.T) {
	docs := t.TempDir()
	k := kittest.New(t, files.Root{Name: "docs", Path: docs})
	k.Write("a.txt", "")
	for _, name := range []string{"a.txt", "./a.txt", "x/../a.txt", "workspace:a.txt", filepath.Join(k.Dir, "a.txt")} {
		if p, err := k.Files.Resolve(name); err != nil || p.Shown != "a.txt" {
			t.Errorf("%s: %v %v", name, p.Shown, err)
		}
	}
	for _, name := range []string{"docs:b", "docs/b", "docs:./b", filepath.Join(docs, "b")} {
		if p, err := k.Files.Resolve(name); err != nil || p.Shown != "docs:b" {
			t.Errorf("%s: %v %v", name, p.Shown, err)
		}
	}
	if p, err := k.Files.Resolve("docs"); err != nil || fmt.Sprint(p.Rel, p.Shown) != ".docs:." {
		t.Errorf("%+v %v", p, err)
	}
}

// A1: a change by another program while an edit is made is not overwritten.
func TestChangedMeanwhile(t *testing.T) {
	k := kittest.New(t)
	p := k.Write("f", "old")
	for name, other := range map[string]func() error{
		"written":  func() error { return os.WriteFile(p, []byte("other text"), 0o644) },
		"replaced": func() error { q := k.Write("q", "old"); return os.Rename(q, p) },
		"removed":  func() error { return os.Remove(p) },
	} {
		k.Write("f", "old")
		at, err := k.Files.Resolve("f")
		if err != nil {
			t.Fatal(err)
		}
		err = k.Files.Edit(at, false, func([]byte, bool) ([]byte, error) { return []byte("mine"), other() })
		if !errors.Is(err, files.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
		if b, _ := os.ReadFile(p); string(b) == "mine" {
			t.Errorf("%s: overwritten", name)
		}
	}
	at, _ := k.Files.Resolve("new")
	err := k.Files.Edit(at, true, func([]byte, bool) ([]byte, error) { k.Write("new", "theirs"); return []byte("mine"), nil })
	if !errors.Is(err, files.ErrChanged) || k.Content("new") != "theirs" {
		t.Errorf("created meanwhile: %v", err)
	}
	k.NoLeftovers()
}

// A directory that a link takes the place of between the look and the write leads no write to files
// that other programs obey, and neither does one that was a link before: nobody was asked about
// these. A1
func TestEditThroughLink(t *testing.T) {
	for name, create := range map[string]bool{"new file": true, "old file": false} {
		for _, early := range []bool{false, true} {
			k := kittest.New(t)
			folder, hooks := filepath.Join(k.Dir, "a", "folder"), filepath.Join(k.Dir, ".git", "hooks")
			k.Write(".git/hooks/x", "theirs")
			k.Write("a/folder/other", "")
			file := "pre-commit"
			if !create {
				file = "x"
				k.Write("a/folder/x", "mine")
			}
			swap := func() {
				if err := errors.Join(os.Rename(folder, folder+".away"), os.Symlink("../.git/hooks", folder)); err != nil {
					t.Fatal(err)
				}
			}
			if early {
				swap()
			}
			at, err := k.Files.Resolve("a/folder/" + file)
			if err != nil {
				t.Fatal(err)
			}
			err = k.Files.Edit(at, create, func([]byte, bool) ([]byte, error) {
				if !early {
					swap()
				}
				return []byte("evil"), nil
			})
			if err == nil || early && !strings.Contains(err.Error(), "nobody was asked about") {
				t.Errorf("%s, early %v: %v", name, early, err)
			}
			if got, _ := os.ReadFile(filepath.Join(hooks, file)); string(got) == "evil" {
				t.Errorf("%s, early %v: written through the link", name, early)
			}
		}
	}
	k := kittest.New(t) // the file itself is asked about, and then written
	k.Write(".git/hooks/x", "")
	at, err := k.Files.Resolve(".git/hooks/pre-commit")
	if err == nil {
		err = k.Files.Edit(at, true, func([]byte, bool) ([]byte, error) { return []byte("mine"), nil })
	}
	if err != nil || k.Content(".git/hooks/pre-commit") != "mine" {
		t.Error(err)
	}
	k.Write("docs/real/x", "") // other links are followed as before
	if err := os.Symlink("real", filepath.Join(k.Dir, "docs", "link")); err != nil {
		t.Fatal(err)
	}
	at, err = k.Files.Resolve("docs/link/y")
	if err == nil {
		err = k.Files.Edit(at, true, func([]byte, bool) ([]byte, error) { return []byte("mine"), nil })
	}
	if err != nil || k.Content("docs/real/y") != "mine" {
		t.Error(err)
	}
}
