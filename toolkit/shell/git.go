// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/obeyed"
	"github.com/antiphon-go/antiphon/internal/private"
)

// gitSettings are in force for every git that a command starts, whatever the
// configuration says. They are those by which the content of a folder decides what
// runs, and that nobody needs in a command without a terminal.
//
// Settings that people use in their own configuration stay as they are: hooks,
// core.sshCommand, filters, credential helpers.
var gitSettings = []struct{ name, value string }{
	{"safe.bareRepository", "explicit"}, // a folder that is a repository itself has a configuration, and a clone may hold one
	{"core.fsmonitor", "false"},         // a program that git status runs
	{"core.pager", "cat"},
	{"core.editor", "true"}, // there is no terminal to edit a message in
	{"diff.external", ""},
	{"log.showSignature", "false"}, // runs gpg.program
	{"protocol.ext.allow", "never"},
}

// withGit adds the settings to an environment, behind those that it has.
func withGit(env []string) []string {
	n := 0
	for _, v := range env {
		if count, ok := strings.CutPrefix(v, "GIT_CONFIG_COUNT="); ok {
			n, _ = strconv.Atoi(count)
		}
	}
	n = max(n, 0)
	for i, s := range gitSettings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n+i, s.name), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n+i, s.value))
	}
	// Without optional locks, git status does not write the index, and so runs no hook.
	return append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n+len(gitSettings)), "GIT_OPTIONAL_LOCKS=0")
}

// repositoryProblem returns why a command that reads the repository of a directory
// may run a program or read a file outside of the roots, or "". It accepts a
// repository as git init and git clone make it.
func repositoryProblem(dir string, roots []string) string {
	git := ""
	for at := dir; within(roots, at); at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			git = filepath.Join(at, ".git")
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if git == "" {
		return "there is no repository in the roots"
	}
	if info, err := os.Lstat(git); err != nil || !info.IsDir() {
		return "the repository is elsewhere"
	}
	if !complete(git) {
		return "git takes no notice of " + git + ", and uses a repository above it"
	}
	for _, name := range []string{filepath.Join("objects", "info", "alternates"), filepath.Join("..", ".gitmodules")} {
		if _, err := os.Lstat(filepath.Join(git, name)); !errors.Is(err, fs.ErrNotExist) {
			return "the repository has " + name
		}
	}
	entries, err := os.ReadDir(git)
	if err != nil {
		return "the repository cannot be read"
	}
	for _, e := range entries {
		if name := e.Name(); !slices.Contains(usualInGit, name) {
			return "the repository has " + name
		} else if e.Type()&fs.ModeSymlink != 0 {
			return "the repository's " + name + " is elsewhere"
		}
	}
	hooks, err := os.ReadDir(filepath.Join(git, "hooks"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || slices.ContainsFunc(hooks, func(e fs.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".sample") }) {
		return "the repository has hooks"
	}
	// Mode 160000 is a repository within the repository, with settings of its own. The
	// extensions are of an index that is not all in this file, or not all written out.
	index, err := readFile(filepath.Join(git, "index"))
	switch {
	case errors.Is(err, private.ErrNotRegular):
		return "the repository's index is not a file"
	case err == nil:
		for _, part := range []string{"\x00\x00\xE0\x00", "link\x00\x00", "sdir\x00\x00"} {
			if bytes.Contains(index, []byte(part)) {
				return "the repository may hold other repositories"
			}
		}
	}
	return settingsProblem(filepath.Join(git, "config"))
}

// usualInGit is what lies in a repository that neither starts a program nor leads to
// another repository. What else there is, such as modules, commondir or a shared index, is
// asked about.
var usualInGit = []string{
	"HEAD", "config", "description", "index", "hooks", "info", "logs", "objects", "refs", "branches", "packed-refs", "worktrees",
	"COMMIT_EDITMSG", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "AUTO_MERGE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "SQUASH_MSG", "gc.log",
}

// headOfGit is a HEAD by which git knows a repository.
var headOfGit = lazyregexp.New(`^(ref: refs/[^\x00-\x20]+|[0-9a-f]{40}|[0-9a-f]{64})\n?$`)

// complete reports whether git takes a folder for a repository for certain. It goes on to
// look in the folders above otherwise.
func complete(git string) bool {
	for _, name := range []string{"objects", "refs"} {
		info, err := os.Lstat(filepath.Join(git, name))
		if err != nil || !info.IsDir() {
			return false
		}
		if _, err := os.Lstat(filepath.Join(git, name) + "/."); err != nil { // it may not be entered
			return false
		}
	}
	path := filepath.Join(git, "HEAD")
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
		return false
	}
	head, err := readFile(path)
	return err == nil && headOfGit.Match(head)
}

func settingsProblem(path string) string {
	text, err := readFile(path)
	if err != nil {
		return "the repository's configuration cannot be read"
	}
	if line := obeyed.Setting(string(text)); line != "" {
		return "the repository's configuration has the line " + line
	}
	return ""
}

// readFile reads a file of a repository. What is not a regular file is an error: a command may have
// left a named pipe there, which would be waited for without end.
func readFile(path string) ([]byte, error) {
	f, _, err := private.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
