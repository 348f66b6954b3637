// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package obeyed

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// ofOthers are the folders in which Mercurial, Sapling and Jujutsu keep a repository, and the files in each that say what they start.
// Some name another repository, which they obey too: an empty one would name the current folder.
var ofOthers = map[string][]string{
	".hg": {"hgrc", "hgrc-not-shared", "sharedpath"},
	".sl": {"config", "config-not-shared", "sharedpath"},
	".jj": {"repo", "repo/config.toml", "repo/store/git_target", "workspace-config.toml"},
}

// points reports whether a file of these repositories names another one.
func points(path string) bool {
	return slices.Contains([]string{"sharedpath", "repo", "git_target"}, filepath.Base(path))
}

// programOf returns the program that obeys a file of these repositories.
func programOf(path string) string {
	switch {
	case strings.Contains(path, "/.jj/"):
		return "Jujutsu"
	case strings.Contains(path, "/.sl/"):
		return "Sapling"
	}
	return "Mercurial"
}

// others looks at such a folder, or a link to one.
func (s *Scan) others(path string, names []string) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		s.mark(path, whole)
		if path, err = filepath.EvalSymlinks(path); err != nil || !s.within(path) {
			return
		}
		info, err = os.Lstat(path)
	}
	if err != nil || !info.IsDir() {
		return
	}
	s.Pinned = append(s.Pinned, path)
	for _, name := range names {
		file := filepath.Join(path, name)
		if info, err := os.Lstat(file); err == nil && info.IsDir() {
			s.Pinned = append(s.Pinned, file) // the repository itself
			continue
		}
		s.mark(file, others)
		s.included(file)
	}
}

// including matches a line by which these programs obey another file.
var including = lazyregexp.New(`(?m)^%include[ \t]+(.*?)[ \t]*\r?$`)

// included adds the files that a configuration includes, and those that they include.
func (s *Scan) included(config string) {
	for _, found := range including.FindAllStringSubmatch(s.marks[config].text, -1) {
		path, ok := expanded(found[1])
		if !ok {
			s.unread = append(s.unread, fmt.Sprintf("%s includes %q, which %s obeys and which cannot be looked at", config, clip(found[1]), programOf(config)))
			continue
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(config), path)
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(dir, filepath.Base(path))
		}
		if _, known := s.marks[path]; !known && s.within(path) && !slices.Contains(s.folders, path) {
			s.mark(path, others)
			s.included(path)
		}
	}
}

// variable matches a variable in a path, as these programs expand it.
var variable = lazyregexp.New(`\$(\w+|\{[^}]*\})`)

// expanded returns a path with the home folder and the variables in it, and reports whether they are known.
func expanded(path string) (_ string, ok bool) {
	ok = true
	path = variable.ReplaceAllStringFunc(path, func(name string) string {
		value, known := os.LookupEnv(strings.Trim(name, "${}"))
		ok = ok && known
		return value
	})
	if !strings.HasPrefix(path, "~") {
		return path, ok
	}
	home, err := os.UserHomeDir()
	rest := path[1:]
	return home + rest, ok && err == nil && (rest == "" || rest[0] == '/')
}

// The lines of a configuration that start no program and read no file, as hg clone writes them.
var harmlessLine = lazyregexp.New(`^([#;].*|\s*|\[(paths|ui)\]|(default|default-push|default:pushurl|username)\s*=.*)$`)

// newHgrc reports whether what is at a place makes a program obey something that it did not obey
// before. A change of what was there always counts.
func newHgrc(path string, before, now marked) bool {
	if filepath.Base(path) == "git_target" && before.stamp == "" && slices.Contains([]string{"git", "../../../.git"}, strings.TrimSpace(now.text)) {
		return false // as jj git init writes it
	}
	if before.stamp != "" || len(now.text) == mostText || points(path) {
		return now.text != before.text || len(now.text) == mostText
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(now.text, "\r", "\n"), "\n") {
		if !harmlessLine.MatchString(line) {
			return true
		}
	}
	return false
}
