// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package obeyed

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
	"github.com/antiphon-go/antiphon/internal/private"
)

// A Scan is what programs obey in folders, as it was when it was made. [Scan.Complete] is the
// only method that changes it.
type Scan struct {
	// Fixed lists the files and folders that exist and must stay as they are, outermost
	// first. None of them is a link.
	Fixed []string
	// Pinned lists folders that must stay where they are, outermost first: one in their
	// place would be obeyed. What is in them may change.
	Pinned []string

	folders []string
	more    []string
	seen    map[string]bool   // the folders that were looked at
	marks   map[string]marked // what was at each place that matters
	left    int               // how many folders may still be looked at
	unread  []string          // sentences about what is obeyed and cannot be found
}

// A kind says what is obeyed at a place.
type kind int

const (
	whole    kind = iota // a file, or a folder with all that is in it
	settings             // a configuration of git
	hooks                // a folder with hooks of git
	pointer              // a file that says where the repository is
	told                 // a file, or a folder with all that is in it, that programs may change
	others               // a configuration of Mercurial, Sapling or Jujutsu, or a file that says where there is one
)

// marked is what was at a place.
type marked struct {
	kind  kind
	stamp string // "" if there was nothing
	text  string // of a configuration
}

// mostFolders is how many folders a scan looks at, nearest first. Repositories count as
// several.
const mostFolders = 500

// Look looks for what programs obey in folders, which are resolved paths, and adds the
// paths of more that lie in them. It looks at the first 500 folders, those at the top
// first, and not into node_modules.
func Look(folders []string, more ...string) *Scan {
	s := &Scan{folders: folders, more: more, seen: map[string]bool{}, marks: map[string]marked{}, left: mostFolders}
	for _, path := range more {
		if s.within(path) {
			s.mark(path, whole)
		}
	}
	for queue := slices.Clone(folders); len(queue) > 0 && s.left > 0; queue = queue[1:] {
		queue = append(queue, s.folder(queue[0])...)
	}
	s.Fixed, s.Pinned = outermost(s.Fixed), slices.Compact(slices.Sorted(slices.Values(s.Pinned)))
	return s
}

// Absent returns the paths that do not exist and would be obeyed if they did, in order.
func (s *Scan) Absent() (list []string) {
	for path, m := range s.marks {
		if m.stamp == "" {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return list
}

// usesWorktreeConfig matches the setting by which git obeys the files config.worktree.
var usesWorktreeConfig = lazyregexp.New(`(?im)^\s*(\[[^\]]*\]\s*)?worktreeconfig\s*=\s*true`)

// Complete makes what git and programs like it obey in the repositories and what is not there, empty,
// so that it can be kept from changing: they do not tell an empty folder for hooks, or an empty
// configuration, from none. It returns the paths.
func (s *Scan) Complete() (made []string) {
	for _, dir := range s.Pinned {
		config := s.marks[filepath.Join(dir, "config")]
		if m, known := s.marks[filepath.Join(dir, "hooks")]; known && m.stamp == "" {
			if path := filepath.Join(dir, "hooks"); os.Mkdir(path, 0o777) == nil {
				made = append(made, path)
			}
		}
		for _, name := range ofOthers[strings.ToLower(filepath.Base(dir))] {
			path := filepath.Join(dir, name)
			if m, known := s.marks[path]; known && m.kind == others && m.stamp == "" && !points(path) && empty(path) {
				made = append(made, path)
			}
		}
		if !usesWorktreeConfig.MatchString(config.text) {
			continue
		}
		for path, m := range s.marks {
			if m.stamp == "" && within(path, dir) && filepath.Base(path) == "config.worktree" && empty(path) {
				made = append(made, path)
			}
		}
	}
	for _, path := range made {
		s.mark(path, s.marks[path].kind)
	}
	s.Fixed = outermost(s.Fixed)
	return made
}

func empty(path string) bool {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// folder looks at a folder of the workspace and returns those in it.
func (s *Scan) folder(dir string) []string {
	l, ok := s.list(dir)
	if !ok {
		return nil
	}
	for _, name := range l.obeyed {
		path := filepath.Join(dir, name)
		switch strings.ToLower(name) {
		case ".git":
			s.git(path)
		case ".hg", ".sl", ".jj":
			s.others(path, ofOthers[strings.ToLower(name)])
		default:
			s.mark(path, whole)
			if project(path) != dir {
				s.Pinned = append(s.Pinned, dir)
			}
		}
	}
	for _, name := range l.told {
		s.mark(filepath.Join(dir, name), told)
	}
	if l.bare {
		s.repository(dir, "")
	}
	return l.folders
}

// project returns the folder in which programs obey what is at a path: usually the one that it
// is in, but mise obeys .config/mise and mise/config.toml of a project.
func project(path string) string {
	dir := filepath.Dir(path)
	in := strings.ToLower(filepath.Base(dir))
	if inFolders[in] != nil {
		return filepath.Dir(dir)
	}
	if (in == ".config" || in == "mise") && ofMise(in, strings.ToLower(filepath.Base(path))) != "" {
		return filepath.Dir(dir)
	}
	return dir
}

// list lists a folder once, within the limit.
func (s *Scan) list(dir string) (listing, bool) {
	if s.seen[dir] || s.left <= 0 {
		return listing{}, false
	}
	s.seen[dir] = true
	s.left--
	return list(dir)
}

// git looks at what is called .git: a repository, or a file that says where one is.
func (s *Scan) git(path string) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
	case info.IsDir():
		s.repository(path, filepath.Dir(path))
	case info.Mode()&os.ModeSymlink != 0:
		s.mark(path, pointer)
		if real, err := filepath.EvalSymlinks(path); err == nil && s.within(real) {
			s.repository(real, filepath.Dir(path))
		}
	default:
		s.mark(path, pointer)
		to, names := strings.CutPrefix(s.marks[path].text, "gitdir:")
		if to = strings.TrimSpace(to); !names || to == "" {
			return
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		if real, err := filepath.EvalSymlinks(to); err == nil && s.within(real) {
			s.repository(real, filepath.Dir(path))
		}
	}
}

// repository looks at the folder of a repository, with the folder of its files if that is
// known, and at the repositories of its submodules and worktrees.
func (s *Scan) repository(dir, top string) {
	if _, known := s.marks[filepath.Join(dir, "commondir")]; known {
		return
	}
	if _, err := os.Lstat(filepath.Join(dir, "commondir")); err == nil && isTree(dir) {
		s.tree(dir)
		return
	}
	config := filepath.Join(dir, "config")
	s.list(dir) // it counts, and is not looked at as a folder of the workspace
	s.Pinned = append(s.Pinned, dir)
	s.mark(filepath.Join(dir, "hooks"), hooks)
	s.mark(config, settings)
	s.mark(filepath.Join(dir, "config.worktree"), settings)
	s.mark(filepath.Join(dir, "commondir"), pointer)
	s.named(s.marks[config].text, dir, top)
	if trees, ok := s.list(filepath.Join(dir, "worktrees")); ok {
		s.Pinned = append(s.Pinned, filepath.Join(dir, "worktrees"))
		for _, tree := range trees.folders {
			s.tree(tree)
		}
	}
	s.modules(filepath.Join(dir, "modules"))
}

// isTree reports whether a folder is where a repository keeps what belongs to a worktree.
func isTree(dir string) bool { return filepath.Base(filepath.Dir(dir)) == "worktrees" }

// tree looks at what a repository keeps of a worktree.
func (s *Scan) tree(dir string) {
	s.seen[dir] = true
	s.Pinned = append(s.Pinned, dir)
	s.mark(filepath.Join(dir, "config.worktree"), settings)
	s.mark(filepath.Join(dir, "commondir"), pointer)
}

// modules looks at a folder of repositories of submodules, whose names may have slashes.
func (s *Scan) modules(dir string) {
	l, ok := s.list(dir)
	if !ok {
		return
	}
	s.Pinned = append(s.Pinned, dir)
	for _, path := range l.folders {
		if inRepository(path) {
			s.repository(path, "")
		} else {
			s.modules(path)
		}
	}
}

// inRepository reports whether a folder has a part of a repository. A program could remove
// some of them at one time, and put them back at another.
func inRepository(dir string) bool {
	return slices.ContainsFunc([]string{"HEAD", "config", "hooks"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// Settings of git that name further files which it obeys.
var naming = lazyregexp.New(`(?im)^\s*(?:\[[^\]]*\]\s*)?(hookspath|path)\s*=[ \t]*(.*?)[ \t]*\r?$`)

// named adds the files that a configuration names: more configuration, and other folders
// for hooks.
func (s *Scan) named(config, dir, top string) {
	for _, found := range naming.FindAllStringSubmatch(config, -1) {
		path, kind, from := strings.Trim(found[2], `"`), settings, dir
		if strings.EqualFold(found[1], "hookspath") {
			kind, from = hooks, top
		}
		if !filepath.IsAbs(path) {
			if from == "" || path == "" {
				continue
			}
			path = filepath.Join(from, path)
		}
		if _, known := s.marks[path]; !known && s.within(path) && !slices.Contains(s.folders, path) {
			s.mark(path, kind)
		}
	}
}

// mark notes what is at a place.
func (s *Scan) mark(path string, k kind) {
	m := marked{kind: k, stamp: stampOf(path, 3)}
	switch {
	case strings.HasPrefix(m.stamp, "l"):
		m.text = "a link: " + m.stamp
		if real, err := filepath.EvalSymlinks(path); err == nil && k == whole { // what it leads to is obeyed by this name
			m.stamp += "\n" + stampOf(real, 2)
		}
	case k == settings, k == pointer, k == others:
		m.text = read(path, m.stamp)
	}
	s.marks[path] = m
	if m.stamp != "" && m.stamp[0] != 'l' && k != told {
		s.Fixed = append(s.Fixed, path)
	}
}

// within reports whether a path lies in the folders of the scan.
func (s *Scan) within(path string) bool {
	return slices.ContainsFunc(s.folders, func(folder string) bool { return within(path, folder) })
}

func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

func outermost(paths []string) (list []string) {
	for _, path := range slices.Sorted(slices.Values(paths)) {
		if !slices.ContainsFunc(list, func(folder string) bool { return within(path, folder) }) {
			list = append(list, path)
		}
	}
	return list
}

// mostText is how much of a configuration is read.
const mostText = 64 << 10

// notFile stands for the text of a named pipe or a device. Nothing is read of one: that could
// wait for ever.
const notFile = "not a file"

// read returns the beginning of the text at a path with a stamp.
func read(path, stamp string) string {
	f, _, err := private.Open(path)
	if errors.Is(err, private.ErrNotRegular) && strings.HasPrefix(stamp, "f") {
		return notFile
	}
	if err != nil {
		return ""
	}
	defer f.Close()
	text := make([]byte, mostText)
	n, _ := f.Read(text)
	return string(text[:n])
}

// Since looks again and says, a sentence each, what programs obey now and did not before.
// It does not mention what git itself makes for a new repository, branch or worktree. It
// removes a new file commondir, by which git would obey another folder, from a repository:
// git has it in worktrees only.
func (s *Scan) Since() (list []string) {
	now := Look(s.folders, s.more...)
	for _, path := range slices.Sorted(maps.Keys(now.marks)) {
		m, before := now.marks[path], s.marks[path]
		asked := slices.Contains(s.more, path)
		if m.stamp == before.stamp || m.stamp == "" && !asked {
			continue
		}
		made := "was changed"
		if before.stamp == "" {
			made = "is new"
		}
		switch m.kind {
		case settings:
			if m.text == notFile {
				list = append(list, path+" "+made+": it is not a file, and git obeys what a program writes to it")
			} else if line := Setting(added(before.text, m.text)); line != "" {
				list = append(list, fmt.Sprintf("%s has the new line %q, which git obeys", path, clip(line)))
			} else if len(m.text) == mostText {
				list = append(list, path+" "+made+", and is too long to look at: git obeys it")
			}
		case hooks:
			list = append(list, newHooks(path, before.stamp, m.stamp)...)
		case pointer:
			if m.text != before.text && !now.usual(path, m.text, before.stamp == "") {
				if filepath.Base(path) == "commondir" && before.stamp == "" && !isTree(filepath.Dir(path)) && os.Remove(path) == nil {
					made = "was removed"
				}
				list = append(list, path+" "+made+": it tells git which settings and hooks to use")
			}
		case others:
			if newHgrc(path, before, m) {
				list = append(list, path+" "+made+": "+programOf(path)+" obeys it")
			}
		case told:
			if before.stamp != "" || s.seen[project(path)] {
				list = append(list, path+" "+made+": agents read it as instructions, or git runs what it lists")
			}
		case whole:
			if m.stamp == "" {
				made = "is gone"
			}
			if asked || before.stamp != "" || s.seen[filepath.Dir(path)] || s.seen[project(path)] {
				list = append(list, path+" "+made+": other programs may obey it")
			}
		}
	}
	for _, sentence := range now.unread {
		if _, again := said.LoadOrStore(sentence, true); !again {
			list = append(list, sentence)
		}
	}
	return list
}

// said holds the sentences about what cannot be looked at. Nothing that a program does between two looks changes them, so each is said
// once in the life of this program.
var said sync.Map

// usual reports whether the text of a pointer is as git writes it: for a new worktree, and
// for a new submodule or worktree whose repository was looked at as well.
func (s *Scan) usual(path, text string, isNew bool) bool {
	text = strings.TrimSpace(text)
	if !isNew {
		return false
	}
	if filepath.Base(path) == "commondir" {
		return text == "../.." && isTree(filepath.Dir(path))
	}
	to, ok := strings.CutPrefix(text, "gitdir:")
	if to = strings.TrimSpace(to); ok && !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return ok && s.seen[to]
}

// ofSubmodules matches what git writes into configurations for a submodule.
var ofSubmodules = lazyregexp.New(`^\s*(\[submodule "[^"\\]*"\]|active = true|worktree = (\.\./)+[\w./-]+)$`)

// added returns the lines that a text has and an earlier one had not, without those for
// submodules.
func added(before, now string) string {
	var b strings.Builder
	old := strings.Split(before, "\n")
	for line := range strings.SplitSeq(now, "\n") {
		if !slices.Contains(old, line) && !ofSubmodules.MatchString(line) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// newHooks says which hooks in a folder are new or have changed. Git does not run samples.
func newHooks(dir, before, now string) (list []string) {
	old := strings.Split(before, "\n")
	for line := range strings.SplitSeq(now, "\n") {
		name, _, entry := strings.Cut(line, "\x00")
		if !entry || slices.Contains(old, line) || strings.HasSuffix(name, ".sample") {
			continue
		}
		made := " is new"
		if strings.Contains(before, "\n"+name+"\x00") {
			made = " was changed"
		}
		list = append(list, filepath.Join(dir, name)+made+": git may run it")
	}
	return list
}

func clip(text string) string {
	if len(text) > 120 {
		return strings.ToValidUTF8(text[:120], "") + "…"
	}
	return text
}
