// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package obeyed

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// ofMercurial are the files in .hg that say what Mercurial starts. The last one names another
// repository, whose hgrc it obeys too; an empty one would name the current folder.
var ofMercurial = []string{"hgrc", "hgrc-not-shared", sharedPath}

const sharedPath = "sharedpath"

// mercurial looks at what is called .hg: a repository, or a link to one.
func (s *Scan) mercurial(path string) {
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
	for _, name := range ofMercurial {
		s.mark(filepath.Join(path, name), mercurial)
	}
}

// The lines of .hg/hgrc that start no program and read no file, as hg clone writes them.
var harmlessLine = lazyregexp.New(`^([#;].*|\s*|\[(paths|ui)\]|(default|default-push|default:pushurl|username)\s*=.*)$`)

// newHgrc reports whether what is at a place makes Mercurial obey something that it did not obey
// before. A change of what was there always counts.
func newHgrc(path string, before, now marked) bool {
	if before.stamp != "" || len(now.text) == mostText || filepath.Base(path) == sharedPath {
		return now.text != before.text || len(now.text) == mostText
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(now.text, "\r", "\n"), "\n") {
		if !harmlessLine.MatchString(line) {
			return true
		}
	}
	return false
}
