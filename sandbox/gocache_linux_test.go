// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/antiphon-go/antiphon/sandbox"
)

// TestGoCacheIsOwn proves that a program reads and fills the cache of the Go compiler, and
// that neither the cache nor the next program gets what it added or changed.
func TestGoCacheIsOwn(t *testing.T) {
	workspace := t.TempDir()
	p := sandbox.Workspace(workspace)
	needs(t, p)
	if !sandbox.Available().Has(sandbox.Namespaces) {
		t.Skip("this system has no namespaces for the user")
	}
	cache := t.TempDir()
	t.Setenv("GOCACHE", cache)
	old := filepath.Join(cache, "old")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		cmd := exec.Command("/bin/sh", "-c", `cat "$GOCACHE/old" && ls "$GOCACHE" && echo new > "$GOCACHE/old" && echo new > "$GOCACHE/new"`)
		cmd.Dir = workspace
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		run, err := sandbox.Command(t.Context(), p, cmd)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		if end, err := run.Wait(); err != nil || end.Code != 0 || out.String() != "oldold\n" {
			t.Errorf("%+v, %v: %q", end, err, out.String())
		}
	}
	if text, err := os.ReadFile(old); err != nil || string(text) != "old" {
		t.Errorf("the cache has %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(cache, "new")); err == nil {
		t.Error("the cache has what a program added")
	}
}

// TestGoCacheThatCannotBeCovered proves that a program has an empty cache if it cannot have
// a folder of its own over the usual one, and not one that it can only read.
func TestGoCacheThatCannotBeCovered(t *testing.T) {
	workspace, cache := t.TempDir(), filepath.Join(t.TempDir(), "a,b")
	if err := os.Mkdir(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", cache)
	for _, without := range [][]sandbox.Part{nil, {sandbox.Namespaces}} {
		p := sandbox.Workspace(workspace)
		p.Without = without
		needs(t, p)
		cmd := exec.Command("/bin/sh", "-c", `echo "${GOCACHE-none}"; echo x > "$XDG_CACHE_HOME" && echo yes`)
		cmd.Dir = workspace
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		run, err := sandbox.Command(t.Context(), p, cmd)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		if end, err := run.Wait(); err != nil || end.Code != 0 || out.String() != "none\nyes\n" {
			t.Errorf("%v: %+v, %v: %q", without, end, err, out.String())
		}
	}
}

// TestFoldersOfVariables proves that a program gets the variables that say where packages of
// Go are, and reads what they name, unless that is the home folder.
func TestFoldersOfVariables(t *testing.T) {
	home, packages := t.TempDir(), t.TempDir()
	for _, dir := range []string{home, packages} {
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	for value, want := range map[string]string{packages: "x", home: ""} {
		t.Setenv("GOMODCACHE", value)
		p := sandbox.Workspace(t.TempDir())
		needs(t, p)
		cmd := exec.Command("/bin/sh", "-c", `cat "$GOMODCACHE/file"`)
		cmd.Dir = "/"
		var out bytes.Buffer
		cmd.Stdout = &out
		run, err := sandbox.Command(t.Context(), p, cmd)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Wait(); err != nil || out.String() != want {
			t.Errorf("%s: %q %v", value, out.String(), err)
		}
	}
}
