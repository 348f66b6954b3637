// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/trust"
)

func lay(t *testing.T, text string, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// K2: a link that takes the place of a file, or of its folder, after it was found to be inside
// is not followed: nobody agreed to what it leads to.
func TestReadOfWhatWasAgreedTo(t *testing.T) {
	dir := resolved(t.TempDir())
	lay(t, "secret", dir, "outside", "x.txt")
	for what, swap := range map[string]func(sub string) error{
		"the file": func(sub string) error {
			path := filepath.Join(sub, "x.txt")
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(dir, "outside", "x.txt"), path)
		},
		"its folder": func(sub string) error {
			if err := os.RemoveAll(sub); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(dir, "outside"), sub)
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := lay(t, "inside", t.TempDir(), "sub", "x.txt")
			g := newGate(places{promptDir: filepath.Dir(filepath.Dir(path))})
			g.begin(path)
			real, err := g.mayRead(path, place{})
			if err != nil {
				t.Fatal(err)
			}
			if text, err := readAgreed(real, 100); err != nil || string(text) != "inside" {
				t.Errorf("%q, %v", text, err)
			}
			if err := swap(filepath.Dir(path)); err != nil {
				t.Skip(err)
			}
			if text, err := readAgreed(real, 100); err == nil {
				t.Errorf("it read %q", text)
			}
			if hash, why := g.hash(real); why == "" {
				t.Errorf("it hashed %s", hash)
			}
		})
	}
}

// K1, K6: the script of a rehearsal is the one that was read with the file, and an answer that is kept for
// the agent is for that one.
func TestRehearsalScriptIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	path := lay(t, `<config model="rehearsal:play.script"/><user>x</user>`, dir, "agent.md")
	lay(t, "turn\n  say hi\n", dir, "play.script")
	f, err := Load(t.Context(), path, Options{Consent: trust.Everything})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	key := func() string {
		a, err := f.AgentBy(func(*File) (agent.Model, string, error) { return nil, "rehearsal:play.script", nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		key, err := f.key(a, "", f.Items[0])
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	before := key()
	for _, swap := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "play.script"), []byte("nonsense\n"), 0o600) },
		func() error { return os.Remove(filepath.Join(dir, "play.script")) },
	} {
		if err := swap(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Script("play.script"); err != nil {
			t.Error(err)
		}
		if key() != before {
			t.Error("an answer to the script that was read is not found")
		}
	}
}
