// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/agent"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit"
	"github.com/antiphon-go/antiphon/toolkit/patch"
)

// K2: in a root that contains the home folder, a person is asked before hidden files are read,
// and before anything outside of the home folder is. A link that leads there is not followed, and so not asked
// about. A project is read without a question.
func TestPrivateFiles(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home", "me")
	for _, name := range []string{"home/me/.ssh/id_rsa", "home/me/.config/notes/a.lua", "home/me/notes.txt", "home/me/.chatmd/x", "home/me/project/.env", "home/other/x", "etc/shadow"} {
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
		{home, "keys/id_rsa", false},
		{home, "key.txt", false},
		{home, ".ssh/not-there-yet", true},
		{dir, "home/me/notes.txt", false},
		{dir, "home/me/.ssh/id_rsa", true},
		{dir, "home/me/key.txt", false},
		{dir, "home/other/x", true},
		{dir, "etc/shadow", true},
		{filepath.Join(home, "project"), ".env", false},
		{filepath.Join(home, ".config", "notes"), "a.lua", false},
	} {
		files, err := toolkit.Open(toolkit.Root{Path: tt.root})
		if err != nil {
			t.Fatal(err)
		}
		files.Home(home)
		for name, arguments := range map[string]string{
			"read_file": `{"path":%q}`, "import_image": `{"path":%q}`, "append_to_file": `{"path":%q,"content":"x"}`, "find_and_replace": `{"path":%q,"find":"x","replace":"y"}`,
			"apply_patch": `{"type":"delete_file","path":%q}`, "markdown_search": `{"query":"x","vector_db_root":%q}`, "index_markdown_docs": `{"index_name":"x","root":%q}`,
		} {
			built, err := toolkit.New(name, toolkit.Deps{Files: files, PatchForm: patch.API})
			if err != nil {
				t.Fatal(err)
			}
			judge := built.(interface {
				Approval(tool.Call, []session.Rule) (session.Verdict, string)
			})
			call := tool.Call{Name: name, Arguments: fmt.Sprintf(arguments, tt.path)}
			always := []session.Rule{{Verdict: session.Allow, Tool: name, Prefix: []string{tt.path}}}
			for _, rules := range [][]session.Rule{nil, always} {
				verdict, reason := judge.Approval(call, rules)
				led := strings.Contains(tt.path, "key.txt") || strings.Contains(tt.path, "keys/")
				if asked := verdict == session.Ask && reason != ""; asked != tt.asked || (verdict == session.Deny) != led {
					t.Errorf("%s of %s in %s: %q %q", name, tt.path, tt.root, verdict, reason)
				}
			}
		}
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	}
}

// K2: an index of a folder above the home folder has no file that read_file would ask about, unless a
// person was asked about this folder.
func TestIndexLeavesPrivateFilesOut(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home", "me")
	for _, name := range []string{"home/me/notes.md", "home/me/.secret/a.md", "home/me/project/b.md", "home/other/c.md", "home/d.md", "etc/e.md"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("# word\n\nword in "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := toolkit.Open(toolkit.Root{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	files.Home(home)
	run := func(name, arguments string) string {
		one, call := made(t, name, toolkit.Deps{Files: files}), tool.Call{Name: name, Arguments: arguments}
		one.(agent.ApprovalAdvisor).Approval(call, nil) // and somebody says yes, if it asks
		res, err := one.Run(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return res.Text
	}
	for root, want := range map[string][]string{
		".": {"home/me/notes.md", "home/me/project/b.md"}, "home": {"home/me/notes.md", "home/me/project/b.md"}, "home/me": {"home/me/notes.md", "home/me/project/b.md"},
		"home/me/.secret": {"home/me/.secret/a.md"}, "etc": {"etc/e.md"},
	} {
		run("index_markdown_docs", fmt.Sprintf(`{"root":%q,"index_name":"x"}`, root))
		found := run("markdown_search", `{"query":"word","index_name":"x","k":50}`)
		for _, name := range []string{"home/me/notes.md", "home/me/.secret/a.md", "home/me/project/b.md", "home/other/c.md", "home/d.md", "etc/e.md"} {
			if strings.Contains(found, name) != slices.Contains(want, name) {
				t.Errorf("index of %s, %s: %s", root, name, found)
			}
		}
	}
}
