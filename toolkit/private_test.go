// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
)

// K2: in a root that contains the home folder, a person is asked before hidden files are read,
// and before anything outside of the home folder is. A project is read without a question.
func TestPrivateFiles(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home", "me")
	for _, name := range []string{"home/me/.ssh/id_rsa", "home/me/.config/nvim/init.lua", "home/me/notes.txt", "home/me/.chatmd/x", "home/me/project/.env", "home/other/x", "etc/shadow"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"keys": ".ssh", "key.txt": ".ssh/id_rsa"} {
		if err := os.Symlink(to, filepath.Join(home, name)); err != nil {
			t.Skip(err)
		}
	}
	for _, tt := range []struct {
		root, path string
		asked      bool
	}{
		{home, "notes.txt", false},
		{home, "project/../notes.txt", false},
		{home, ".chatmd/x", false},
		{home, ".ssh/id_rsa", true},
		{home, "./project/../.ssh/id_rsa", true},
		{home, filepath.Join(home, ".ssh", "id_rsa"), true},
		{home, "workspace:.ssh/id_rsa", true},
		{home, "project/.env", true},
		{home, "keys/id_rsa", true},
		{home, "key.txt", true},
		{home, ".ssh/not-there-yet", true},
		{dir, "home/me/notes.txt", false},
		{dir, "home/me/.ssh/id_rsa", true},
		{dir, "home/me/key.txt", true},
		{dir, "home/other/x", true},
		{dir, "etc/shadow", true},
		{filepath.Join(home, "project"), ".env", false},
		{filepath.Join(home, ".config", "nvim"), "init.lua", false},
	} {
		files, err := toolkit.Open(toolkit.Root{Path: tt.root})
		if err != nil {
			t.Fatal(err)
		}
		files.Home(home)
		for _, name := range []string{"read_file", "import_image"} {
			built, err := toolkit.New(name, toolkit.Deps{Files: files})
			if err != nil {
				t.Fatal(err)
			}
			judge := built.(interface {
				Approval(tool.Call, []session.Rule) (session.Verdict, string)
			})
			call := tool.Call{Name: name, Arguments: fmt.Sprintf(`{"path":%q}`, tt.path)}
			always := []session.Rule{{Verdict: session.Allow, Tool: name, Prefix: []string{tt.path}}}
			for _, rules := range [][]session.Rule{nil, always} {
				verdict, reason := judge.Approval(call, rules)
				if asked := verdict == session.Ask && reason != ""; asked != tt.asked {
					t.Errorf("%s of %s in %s: %q %q", name, tt.path, tt.root, verdict, reason)
				}
			}
		}
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	}
}
