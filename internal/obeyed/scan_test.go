// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package obeyed

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// workspace returns a folder, and a function that runs a script in it.
func workspace(t *testing.T) (dir string, run func(script string)) {
	t.Helper()
	for _, program := range []string{"git", "sh"} {
		if _, err := exec.LookPath(program); err != nil || runtime.GOOS == "windows" {
			t.Skip("git and a shell are needed: ", err)
		}
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir, func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=b@c.d", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=b@c.d"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", script, err, out)
		}
	}
}

// TestSince proves that a scan tells what programs obey from what git makes itself.
func TestSince(t *testing.T) {
	const repository = `git init -q; git commit -q --allow-empty -m x; git branch b; git worktree add -q tree b; mkdir sub; `
	for script, want := range map[string]string{
		"git init -q new; git clone -q . copy; git commit -q --allow-empty -m y; git clone -q --bare . bare.git": "",
		"git worktree add -q other; git worktree remove tree; git branch -q --track c b; git remote add x ../y":  "",
		"git clone -q . o; git submodule --quiet add ./o m; git commit -qm m":                                    "",
		"git submodule --quiet add \"$PWD\" m":                                                                   "",
		"mkdir -p a/.vscode; echo x > a/b; rm -rf .git":                                                          "",
		"git config core.fsmonitor evil":                                                                         "/.git/config has the new line",
		"git init -q sub; git -C sub config core.pager evil":                                                     "/sub/.git/config has the new line",
		"git init -q sub; { yes '# nothing' | head -c 70000; echo; git -C sub config core.fsmonitor evil; cat sub/.git/config; } > c; mv c sub/.git/config": "/sub/.git/config is new, and is too long",
		"git init -q --bare x; git -C x config core.pager evil":                                              "/x/config has the new line",
		"git init -q sub; echo evil > sub/.git/hooks/post-checkout":                                          "/sub/.git/hooks/post-checkout is new",
		"echo evil > .git/hooks/pre-commit":                                                                  "/.git/hooks/pre-commit is new",
		"mkdir e; cp .git/config e; git -C . config -f e/config core.pager evil; echo ../e > .git/commondir": "/.git/commondir was removed",
		"echo /tmp > .git/worktrees/tree/commondir":                                                          "/.git/worktrees/tree/commondir was changed",
		"git config -f .git/config.worktree core.pager evil":                                                 "/.git/config.worktree has the new line",
		"git init -q e; git -C e config alias.x '!evil'; echo 'gitdir: ../e/.git' > sub/.git":                "/e/.git/config has the new line",
		"echo 'gitdir: /tmp/x' > tree/.git":                                                                  "/tree/.git was changed",
		"echo 'gitdir: /tmp/x' > sub/.git":                                                                   "/sub/.git is new",
		"mv .git g; ln -s g .git":                                                                            "/.git is new",
		"echo evil > .envrc":                                                                                 "/.envrc is new",
		"mkdir .vscode; echo evil > .vscode/tasks.json":                                                      "/.vscode is new",
		"mkfifo sub/.git": "/sub/.git is new: it tells git",
		"mkdir sub/.git; mkfifo sub/.git/config sub/.git/HEAD":                                 "/sub/.git/config is new: it is not a file",
		"mkfifo .git/commondir":                                                                "/.git/commondir was removed",
		"mkfifo .git/config.worktree":                                                          "/.git/config.worktree is new: it is not a file",
		"echo x > sub/.mcp.json":                                                               "/sub/.mcp.json is new",
		"mkdir -p .antiphon/agents; echo x > .antiphon/agents/fix.md":                          "/.antiphon is new",
		"echo x > mise.dev.toml":                                                               "/mise.dev.toml is new",
		"mkdir .mise; echo x > .mise/config.toml":                                              "/.mise is new",
		"mkdir mise; echo x > mise/config.local.toml":                                          "/mise/config.local.toml is new",
		"mkdir x; echo x > x/config.toml; ln -s x .cargo":                                      "/.cargo is new",
		"mkdir x; echo x > x/copilot-instructions.md; ln -s x .github":                         "/.github is new",
		"mkdir x; echo x > x/mise.toml; ln -s x .config":                                       "/.config is new",
		"mkdir .vs; echo x > .vs/tasks.vs.json":                                                "/.vs is new",
		"mkdir -p .config/mise; echo x > .config/mise/config.toml":                             "/.config/mise is new",
		"mkdir .config; echo x > .config/mise.toml":                                            "/.config/mise.toml is new",
		"mkdir .cargo; echo x > .cargo/config.toml; echo x > .cargo/other":                     "/.cargo/config.toml is new",
		"echo x > .devcontainer.json":                                                          "/.devcontainer.json is new",
		"echo x > my.code-workspace":                                                           "/my.code-workspace is new",
		"echo x > AGENTS.md":                                                                   "/AGENTS.md is new: agents read it",
		"echo x > sub/CLAUDE.md":                                                               "/sub/CLAUDE.md is new: agents read it",
		"echo x > .pre-commit-config.yaml":                                                     "/.pre-commit-config.yaml is new: agents read it as instructions, or git runs",
		"mkdir -p .github/workflows .github/hooks; echo x > .github/workflows/a.yml":           "/.github/hooks is new: agents read it",
		"mkdir copy .cargo; echo x > copy/AGENTS.md; echo x > Makefile; echo x > package.json": "",
		"mkdir -p a/.config/mise a/mise; echo x > a/mise/a":                                    "",
		"mkdir -p new/.hg/store; printf '# x\\n[paths]\\ndefault = /a\\n\\n[ui]\\n# username = a\\n' > new/.hg/hgrc; : > new/.hg/hgrc-not-shared": "", // as hg clone does
		"mkdir .hg; printf '[hooks]\\nupdate = evil\\n' > .hg/hgrc":                                                                               "/.hg/hgrc is new: Mercurial",
		"mkdir .hg; printf '# x\\r[hooks]\\rupdate = evil\\n' > .hg/hgrc":                                                                         "/.hg/hgrc is new",
		"mkdir .hg; echo '%include ../evil' > .hg/hgrc-not-shared":                                                                                "/.hg/hgrc-not-shared is new",
		"mkdir .sl; printf '[hooks]\\nupdate = evil\\n' > .sl/config":                                                                             "/.sl/config is new: Sapling",
		"mkdir .sl; echo ../e > .sl/sharedpath":                                                                                                   "/.sl/sharedpath is new: Sapling",
		"mkdir -p .jj/repo; echo '[signing]' > .jj/repo/config.toml":                                                                              "/.jj/repo/config.toml is new: Jujutsu",
		"mkdir .jj; echo ../e > .jj/repo":                                                                                                         "/.jj/repo is new: Jujutsu",
		"mkdir -p .jj/repo/store; printf ../../../e > .jj/repo/store/git_target":                                                                  "/.jj/repo/store/git_target is new",
		"mkdir -p .jj/repo/store; printf ../../../.git > .jj/repo/store/git_target":                                                               "",
		"mkdir -p a/.hg; echo '#evil' > a/.hg/sharedpath":                                                                                         "/a/.hg/sharedpath is new",
		"mkdir .hg; mkfifo .hg/hgrc":                                                                                                              "/.hg/hgrc is new",
		"mkdir -p evil/.hg; echo '[hooks]' > evil/.hg/hgrc; ln -s evil/.hg .hg":                                                                   "/evil/.hg/hgrc is new",
		"mkdir .hg; (yes '#' | head -c 65536; echo '[hooks]') > .hg/hgrc || true":                                                                 "/.hg/hgrc is new",
	} {
		dir, run := workspace(t)
		run(repository)
		s := Look([]string{dir})
		run(script)
		got := strings.Join(s.Since(), "\n")
		if strings.Contains(got, "\n") && !strings.Contains(script, "ln -s") || (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, not %q", script, got, want)
		}
	}
}

// What a link leads to is obeyed by the name of the link, also if the link was there before.
func TestThroughLinks(t *testing.T) {
	for link, file := range map[string]string{".cargo": "config.toml", ".github": "prompts/a", ".vscode": "tasks.json", ".config": "mise/config.toml"} {
		dir, run := workspace(t)
		run("mkdir x; ln -s x " + link)
		s := Look([]string{dir})
		if got := s.Since(); len(got) > 0 {
			t.Errorf("%s: nothing has changed, and it says %q", link, got)
		}
		run("mkdir -p x/" + filepath.Dir(file) + "; echo x > x/" + file)
		if got := strings.Join(s.Since(), "\n"); !strings.Contains(got, "/"+link+" was changed") {
			t.Errorf("%s: %q", link, got)
		}
	}
}

// A sandbox keeps programs from what others obey, except for the files that people and git change all the time: those are named.
func TestInstructionsMayBeWritten(t *testing.T) {
	dir, run := workspace(t)
	run("mkdir -p .cargo .github/prompts; echo x > .cargo/config.toml; echo x > AGENTS.md; echo x > .pre-commit-config.yaml; echo x > .github/prompts/a")
	s := Look([]string{dir})
	if want := []string{filepath.Join(dir, ".cargo/config.toml")}; !slices.Equal(s.Fixed, want) {
		t.Errorf("%q cannot be changed, want %q", s.Fixed, want)
	}
	run("echo y >> AGENTS.md; echo y > .github/prompts/a")
	if got := strings.Join(s.Since(), "\n"); !strings.Contains(got, "/AGENTS.md was changed") || !strings.Contains(got, "/.github/prompts was changed") {
		t.Error(got)
	}
}

// What a configuration of Mercurial includes is obeyed as well, also by what it includes.
func TestIncluded(t *testing.T) {
	dir, run := workspace(t)
	run(`mkdir .hg; printf '[ui]\n%%include ../shared.rc\n%%include ../missing.rc\n%%include /etc/hgrc\n' > .hg/hgrc; echo '%include more/other.rc' > shared.rc; mkdir more; echo '[paths]' > more/other.rc`)
	s := Look([]string{dir})
	for _, name := range []string{"shared.rc", "more/other.rc"} {
		if !slices.Contains(s.Fixed, filepath.Join(dir, name)) {
			t.Errorf("%s can be changed", name)
		}
	}
	run("echo '[hooks]' > missing.rc; echo '[hooks]' >> more/other.rc")
	if got := strings.Join(s.Since(), "\n"); !strings.Contains(got, "/missing.rc is new: Mercurial") || !strings.Contains(got, "/more/other.rc was changed") {
		t.Error(got)
	}
}

// Mercurial expands the home folder and variables in what is included. What a scan cannot expand is named.
func TestIncludedByVariable(t *testing.T) {
	dir, run := workspace(t)
	t.Setenv("HOME", dir)
	t.Setenv("OBEYED_TEST", "deep")
	run(`mkdir .hg deep; printf '%%include ~/a.rc\n%%include $HOME/b.rc\n%%include ../${OBEYED_TEST}/c.rc\n%%include $OBEYED_UNSET/d.rc\n%%include ~other/e.rc\n' > .hg/hgrc; echo > a.rc; echo > b.rc; echo > deep/c.rc`)
	s := Look([]string{dir})
	for _, name := range []string{"a.rc", "b.rc", "deep/c.rc"} {
		if !slices.Contains(s.Fixed, filepath.Join(dir, name)) {
			t.Errorf("%s can be changed", name)
		}
	}
	want := dir + `/.hg/hgrc includes "$OBEYED_UNSET/d.rc", which Mercurial obeys and which cannot be looked at` + "\n" +
		dir + `/.hg/hgrc includes "~other/e.rc", which Mercurial obeys and which cannot be looked at`
	if got := strings.Join(s.Since(), "\n"); got != want {
		t.Error(got)
	}
	if again := Look([]string{dir}).Since(); len(again) > 0 {
		t.Errorf("it says again %q", again)
	}
}

// TestLook proves what a scan finds, also through settings that name further files, and
// that it makes what is missing in a repository.
func TestLook(t *testing.T) {
	dir, run := workspace(t)
	run(`git init -q; rm -r .git/hooks; git config core.hooksPath .githooks; git config include.path ../shared.config; git config extensions.worktreeConfig true
echo > shared.config; mkdir -p .githooks .vscode .hg/store b/.hg .sl c/.jj/repo/store .config/mise mise; echo > .hg/hgrc; echo > .hg/sharedpath; echo > mise/config.toml; echo > mise.local.toml; echo > mise/x; echo > .envrc; mkdir -p node_modules/x; git init -q node_modules/x; git init -q a/b; ln -s a link; git commit -q --allow-empty -m x; git worktree add -q tree`)
	s := Look([]string{dir}, filepath.Join(dir, "agent.md"), "/elsewhere")
	made := s.Complete()
	var got []string
	for _, path := range slices.Concat(s.Fixed, []string{"pinned:"}, s.Pinned) {
		got = append(got, strings.TrimPrefix(path, dir+"/"))
	}
	const want = ".config/mise .envrc .git/config .git/config.worktree .git/hooks .git/worktrees/tree/commondir .git/worktrees/tree/config.worktree .githooks .hg/hgrc .hg/hgrc-not-shared .hg/sharedpath .sl/config .sl/config-not-shared .vscode " +
		"a/b/.git/config a/b/.git/hooks b/.hg/hgrc b/.hg/hgrc-not-shared c/.jj/repo/config.toml c/.jj/workspace-config.toml mise.local.toml mise/config.toml shared.config tree/.git " +
		"pinned: .config .git .git/worktrees .git/worktrees/tree .hg .sl a/b/.git b/.hg c/.jj c/.jj/repo mise"
	if strings.Join(got, " ") != want {
		t.Errorf("%s", got)
	}
	if len(made) == 0 || len(s.Since()) > 0 {
		t.Errorf("%v %v", made, s.Since())
	}
	run("git status --short; git -C tree status --short; git -C tree commit -q --allow-empty -m y")
	if again := Look([]string{dir}); len(again.Complete()) > 0 {
		t.Error("something was missing again")
	}
}

// TestLookEnds proves that a scan of many folders ends early, with those at the top.
func TestLookEnds(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		for i := range 700 {
			if err := os.MkdirAll(filepath.Join(dir, name, "x", strings.Repeat("y", i%70+1), strings.Repeat("z", i/70+1)), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "c", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := Look([]string{dir})
	if len(s.seen) > mostFolders || s.left != 0 || len(s.Pinned) != 1 {
		t.Errorf("%d %d %v", len(s.seen), s.left, s.Pinned)
	}
}

func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("y", i%30+1), strings.Repeat("z", i/30+1)), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	Look([]string{dir})
	for b.Loop() {
		Look([]string{dir})
	}
}
