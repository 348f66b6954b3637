// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// K3: fmt and check neither quote nor change what a link in another folder leads to.
func TestLinkToOutside(t *testing.T) {
	dir := t.TempDir()
	secret := write(t, filepath.Join(dir, "secret"), stolen)
	prompt := write(t, filepath.Join(dir, "prompt"), "<user>x</user><user>y</user>")
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"l.md": secret, "p.md": prompt, "zero.md": "/dev/zero"} {
		if err := os.Symlink(to, filepath.Join(work, name)); err != nil {
			t.Skip(err)
		}
		for _, command := range []string{"check", "fmt", "run"} {
			if command != "fmt" && name == "p.md" {
				continue // it is an agent's file, which a person named
			}
			o := program(t, command, filepath.Join(work, name))
			if o.code == 0 || strings.Contains(o.out+o.err, stolen) {
				t.Errorf("%s %s: exit code %d\n%s%s", command, name, o.code, o.out, o.err)
			}
		}
	}
	if got, err := os.ReadFile(prompt); err != nil || string(got) != "<user>x</user><user>y</user>" {
		t.Errorf("fmt has changed a file outside: %q %v", got, err)
	}
}
