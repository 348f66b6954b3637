// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// besides are ways to change what lies in .chatmd/talk.md, which a profile fixes, or to put
// something else in its place.
var besides = []string{
	"echo evil > .chatmd/talk.md/1.json",
	"echo evil > .chatmd/talk.md/2.json",
	"rm .chatmd/talk.md/1.json",
	"rm -rf .chatmd/talk.md",
	"mv .chatmd/talk.md away",
	"mv .chatmd away; mkdir -p .chatmd/talk.md; echo evil > .chatmd/talk.md/1.json",
	"mv .chatmd away && ln -s ../outside .chatmd",
	"mv .chatmd away; echo evil > away/talk.md/1.json; mv away .chatmd",
	"rm -rf .chatmd",
	"ln .chatmd/talk.md/1.json link && echo evil > link",
	"cp -r .chatmd c; echo evil > c/talk.md/1.json; mv -T --exchange c .chatmd",
	"exec 3<.chatmd/talk.md/1.json; echo evil > /proc/self/fd/3",
	"cd .chatmd/talk.md; cd ..; mv talk.md ../t; mkdir talk.md; echo evil > talk.md/1.json",
	"umount .chatmd/talk.md; echo evil > .chatmd/talk.md/1.json",
}

// TestSupervisorTellsNoPaths proves that a program does not read from the supervisor, which is the
// first process that it sees, where the user keeps files. A11
func TestSupervisorTellsNoPaths(t *testing.T) {
	for _, s := range settings(t) {
		if s.shared() {
			continue // the command lines of all processes are visible
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			a := g.run(g.workspace(), "/bin/sh", "-c", "tr -d '\\000' </proc/1/cmdline; cat /proc/1/comm /proc/1/environ 2>/dev/null")
			if a.Error != "" || !strings.HasPrefix(a.Output, "antiphon-sandbox-stage") || strings.Contains(a.Output, "/") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestFixedBelow proves that what a profile fixes deep in a folder stays as it is and where it is,
// also if a program moves the folders around it; and that the run names each change where the
// system cannot protect it. A11
func TestFixedBelow(t *testing.T) {
	for _, s := range settings(t) {
		if s.hide || testing.Short() && s.nobody {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			lay := func() {
				g.must(os.RemoveAll(g.path("workspace")))
				for _, dir := range []string{"workspace", "workspace/.chatmd", "workspace/.chatmd/talk.md"} {
					g.must(os.Mkdir(g.path(dir), 0o700))
					g.own(dir)
				}
				g.must(os.WriteFile(g.path("workspace/.chatmd/talk.md/1.json"), []byte("old\n"), 0o600))
				g.own("workspace/.chatmd/talk.md/1.json")
			}
			state := func() string {
				var b strings.Builder
				_ = filepath.WalkDir(g.path("workspace/.chatmd"), func(path string, d fs.DirEntry, err error) error {
					if err != nil {
						return err
					}
					text, _ := os.ReadFile(path)
					b.WriteString(strings.TrimPrefix(path, g.dir) + " " + d.Type().String() + " " + string(text) + "\n")
					return nil
				})
				return b.String()
			}
			for _, script := range besides {
				lay()
				before := state()
				p := g.workspace()
				p.Fixed = []string{g.path("workspace/.chatmd/talk.md")}
				a := g.run(p, "/bin/sh", "-c", script)
				changed := state() != before
				if a.Error != "" || changed && !s.shared() {
					t.Errorf("%s: %+v\n%s", script, a, state())
				}
				if said := strings.Contains(strings.Join(a.Planted, "\n"), "workspace/.chatmd/talk.md "); said != changed {
					t.Errorf("%s: changed %v, and it is said that %q", script, changed, a.Planted)
				}
			}
			// What does not exist yet cannot be protected, and what is new is named.
			for _, exists := range []bool{true, false} {
				lay()
				g.must(os.RemoveAll(g.path("workspace/.chatmd/talk.md")))
				if !exists {
					g.must(os.RemoveAll(g.path("workspace/.chatmd")))
				}
				p := g.workspace()
				p.Fixed = []string{g.path("workspace/.chatmd/talk.md")}
				a := g.run(p, "/bin/sh", "-c", "mkdir -p .chatmd/talk.md; echo evil > .chatmd/talk.md/1.json")
				if !strings.Contains(strings.Join(a.Planted, "\n"), "workspace/.chatmd/talk.md is new") {
					t.Errorf("%+v", a)
				}
			}
			// Work beside it goes on.
			lay()
			p := g.workspace()
			p.Fixed = []string{g.path("workspace/.chatmd/talk.md")}
			if a := g.run(p, "/bin/sh", "-ec", "echo x > .chatmd/other; mkdir sub; mv .chatmd/other sub/other; rm -r sub; cat .chatmd/talk.md/1.json"); a.Output != "old\n" || len(a.Planted) > 0 {
				t.Errorf("%+v", a)
			}
		})
	}
}
