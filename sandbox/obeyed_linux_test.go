// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/sandbox"
)

// gitGround makes a workspace that is a repository with a submodule, a linked worktree,
// a repository of its own below, and a branch of a remote.
func gitGround(t *testing.T, s setting) *ground {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is needed: ", err)
	}
	g := newGround(t, s)
	g.must(os.WriteFile(g.path("home/.gitconfig"), []byte("[user]\n\tname = a\n\temail = b@c.d\n[protocol \"file\"]\n\tallow = always\n[init]\n\tdefaultBranch = main\n"), 0o600))
	const script = `set -e
git init -q outside/origin; cd outside/origin
echo one > a; git add a; git commit -qm one; git checkout -qb topic; echo two > a; git commit -qam two; git checkout -q main
cd ../..; rm -rf workspace; git clone -q outside/origin workspace; cd workspace
git submodule --quiet add ../outside/origin sub 2>/dev/null || git submodule --quiet add "$PWD/../outside/origin" sub
git commit -qm sub; git worktree add -q linked 2>/dev/null; git clone -q ../outside/origin deep/er/own
mkdir .vscode; echo '{}' > .vscode/tasks.json; echo true > .envrc; cp -r ../outside/origin shared; rm -rf shared/.git
git config core.hooksPath tools/hooks; mkdir -p tools/hooks .hg deep/er/.hg .sl .jj/repo/store; printf '%%include ../shared.rc\n[paths]\n' > .hg/hgrc; echo > shared.rc; mkdir mise; echo > mise/config.toml
`
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir, cmd.Env = g.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.path("home")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	g.must(filepath.WalkDir(g.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !s.nobody {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	}))
	return g
}

// plants are ways to make git, and other programs of the person, run something later.
// Each is a script that succeeds without a sandbox, and the file that it changes.
var plants = map[string]string{
	"echo evil >> .git/config":                                                          ".git/config",
	"git config core.fsmonitor evil":                                                    ".git/config",
	"rm .git/config; echo evil > .git/config":                                           ".git/config",
	"echo evil > x; mv x .git/config":                                                   ".git/config",
	"echo evil > .git/hooks/pre-commit":                                                 ".git/hooks/pre-commit",
	"echo evil > .git/hooks/pre-push.sample":                                            ".git/hooks/pre-push.sample",
	"mv .git/hooks .git/h; mkdir .git/hooks; echo evil > .git/hooks/x":                  ".git/hooks/x",
	"mv .git g; mkdir .git; echo evil > .git/config":                                    ".git/config",
	"echo evil > .git/modules/sub/hooks/x":                                              ".git/modules/sub/hooks/x",
	"echo evil > .git/modules/sub/config":                                               ".git/modules/sub/config",
	"mv .git/modules m; mkdir -p .git/modules/sub; echo evil > .git/modules/sub/config": ".git/modules/sub/config",
	"echo evil > sub/.git":                                                              "sub/.git",
	"rm sub/.git; echo evil > sub/.git":                                                 "sub/.git",
	"echo evil > linked/.git":                                                           "linked/.git",
	"echo evil > .git/worktrees/linked/commondir":                                       ".git/worktrees/linked/commondir",
	"mv .git/worktrees/linked l; mkdir .git/worktrees/linked; echo x > .git/worktrees/linked/commondir": ".git/worktrees/linked/commondir",
	"echo evil > deep/er/own/.git/hooks/x":                                 "deep/er/own/.git/hooks/x",
	"echo evil > deep/er/own/.git/config":                                  "deep/er/own/.git/config",
	"echo evil > tools/hooks/x":                                            "tools/hooks/x",
	"echo evil > .vscode/tasks.json":                                       ".vscode/tasks.json",
	"echo evil > .envrc":                                                   ".envrc",
	"rm -f .envrc; echo evil > .envrc":                                     ".envrc",
	"mv mise m; mkdir mise; echo evil > mise/config.toml":                  "mise/config.toml",
	"echo evil >> .hg/hgrc":                                                ".hg/hgrc",
	"mv .hg h; mkdir .hg; echo evil > .hg/hgrc":                            ".hg/hgrc",
	"echo evil >> shared.rc":                                               "shared.rc",
	"rm -f .sl/config; echo evil > .sl/config":                             ".sl/config", // it was not there
	"rm -rf .jj/repo; mkdir -p .jj/repo; echo evil > .jj/repo/config.toml": ".jj/repo/config.toml",
	"rm -f deep/er/.hg/hgrc; echo evil > deep/er/.hg/hgrc":                 "deep/er/.hg/hgrc", // it was not there
}

// TestNothingIsPlanted proves that a program that may write in a workspace cannot change
// what git and other programs of the person run there, with namespaces; and that the
// run reports it without them. A11
func TestNothingIsPlanted(t *testing.T) {
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := gitGround(t, s)
			g.must(exec.Command("cp", "-a", g.path("workspace"), g.path("template")).Run())
			for script, name := range plants {
				before, _ := os.ReadFile(g.path("workspace/" + name))
				a := g.run(g.workspace(), "/bin/sh", "-c", script)
				after, _ := os.ReadFile(g.path("workspace/" + name))
				changed := string(after) != string(before)
				if a.Error != "" || changed != s.shared() {
					t.Errorf("%s: %s is now %q: %+v", script, name, after, a)
				}
				if said := strings.Join(a.Planted, "\n"); strings.Contains(said, g.path("workspace/"+strings.TrimSuffix(name, "/tasks.json"))) != (changed && !strings.HasSuffix(name, ".sample")) {
					t.Errorf("%s: it is said that %q", script, said)
				}
				if changed {
					g.must(os.RemoveAll(g.path("workspace")))
					g.must(exec.Command("cp", "-a", g.path("template"), g.path("workspace")).Run())
				}
			}
		})
	}
}

// TestGitWorks proves that a program in the sandbox can work with git as usual.
func TestGitWorks(t *testing.T) {
	const script = `set -e
echo x > new; git add new; git commit -qm new; git status --short; git log --oneline | grep -q new
git fetch -q origin; git checkout -q -b mine; git checkout -q --no-track -b theirs origin/topic; git checkout -q mine
echo y >> new; git stash -q; git stash pop -q; git commit -qam more; git rebase -q HEAD~1; git tag v1; git merge -q v1
git worktree add -q ../workspace/second; cd second; echo z > z; git add z; git commit -qm z; cd ..
git worktree remove second; git worktree prune; git branch -q -D second; git cherry-pick --allow-empty -x v1~1 >/dev/null 2>&1 || git cherry-pick --abort
(cd linked; echo l > l; git add l; git commit -qm l); (cd sub; echo s > s; git add s; git commit -qm s); git add sub; git commit -qm sub
(cd deep/er/own; echo o > o; git add o; git commit -qm o; git gc -q); git gc -q; git init -q fresh; git clone -q sub cloned
git fsck 2>/dev/null; echo done
`
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := gitGround(t, s)
			p := g.workspace()
			p.Read = append(p.Read, g.path("outside/origin"))
			a := g.run(p, "/bin/sh", "-c", script)
			if a.Exit != (sandbox.Exit{}) || a.Error != "" || !strings.HasSuffix(a.Output, "done\n") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestHomeIsSpared proves that a workspace that is the user's home, or holds it, does not
// let programs write what the user's other programs obey, nor make anything in the home
// folder itself. The root of all files is no workspace.
func TestHomeIsSpared(t *testing.T) {
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			for _, dir := range []string{"home/.config", "home/work", "home/bin", "home/.local", "home/.local/bin"} {
				g.must(os.Mkdir(g.path(dir), 0o700))
				g.own(dir)
			}
			for _, file := range []string{"home/.bashrc", "home/work/notes", "home/notes"} {
				g.must(os.WriteFile(g.path(file), []byte("old\n"), 0o600))
				g.own(file)
			}
			const script = `cd "$0/home" || exit 9
for f in .bashrc .profile .config/x .local/bin/x bin/x .ssh/id .ssh/new new; do echo evil > $f; done 2>/dev/null; mv .bashrc .b 2>/dev/null; mv work/notes .profile 2>/dev/null
cat .bashrc; echo new > work/notes; echo new > notes; mkdir work/d; mv work/notes work/d; cat .ssh/id 2>/dev/null
cat work/d/notes notes`
			const want, files = "old\nnew\nnew\n", ".bashrc .ssh/id notes work/d/notes"
			for _, workspace := range []string{g.path("home"), g.dir} {
				if workspace == g.dir && s.nobody && s.shared() {
					continue // the folder above is not this user's
				}
				p := g.workspace()
				p.Write, p.Hidden = []string{workspace, g.path("workspace")}, []string{g.path("outside")}
				a := g.run(p, "/bin/sh", "-c", script, g.dir)
				var names []string
				g.must(filepath.WalkDir(g.path("home"), func(path string, d fs.DirEntry, err error) error {
					if name, _ := filepath.Rel(g.path("home"), path); err == nil && !d.IsDir() {
						names = append(names, name)
					}
					return err
				}))
				if got := strings.Join(names, " "); a.Output != want || a.Error != "" || got != files {
					t.Errorf("%s: %+v %s", workspace, a, got)
				}
				g.must(os.WriteFile(g.path("home/work/notes"), nil, 0o600))
				g.own("home/work/notes")
				g.must(os.RemoveAll(g.path("home/work/d")))
			}
			p := g.workspace()
			p.Write = []string{"/"}
			if a := g.run(p, "/bin/true"); !strings.Contains(a.Error, "cannot write in /: it is the root of all files: name a folder in it") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestFixed proves that a program cannot change the paths that its profile fixes, unless
// the profile names them as writable, too, and that one that is new is reported.
func TestFixed(t *testing.T) {
	for _, s := range settings(t) {
		if s.shared() {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			for _, file := range []string{"workspace/agent.md", "workspace/.envrc"} {
				g.must(os.WriteFile(g.path(file), []byte("old\n"), 0o600))
				g.own(file)
			}
			p := g.workspace()
			p.Fixed = []string{g.path("workspace/agent.md"), g.path("workspace/store.db"), g.path("outside/file")}
			p.Write = append(p.Write, g.path("workspace/.envrc"))
			a := g.run(p, "/bin/sh", "-c", "echo new > .envrc; echo x > agent.md; cat agent.md .envrc; echo x > store.db")
			if !strings.HasSuffix(a.Output, "old\nnew\n") || len(a.Planted) != 2 || !strings.Contains(a.Planted[1], "store.db is new") {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestPipesAreNotRead proves that named pipes where git expects files end neither the run that
// makes them nor the next one: nobody writes to them, and to read one would wait for ever.
func TestPipesAreNotRead(t *testing.T) {
	for _, s := range settings(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, s)
			a := g.run(g.workspace(), "/bin/sh", "-c", "mkdir -p x y/.git; mkfifo x/.git y/.git/config y/.git/HEAD")
			said := strings.Join(a.Planted, "\n")
			if a.Error != "" || a.Exit != (sandbox.Exit{}) || !strings.Contains(said, "x/.git is new") || !strings.Contains(said, "y/.git/config is new") {
				t.Errorf("%+v", a)
			}
			if a := g.run(g.workspace(), "/bin/echo", "done"); a.Output != "done\n" || a.Error != "" {
				t.Errorf("the next run: %+v", a)
			}
		})
	}
}
