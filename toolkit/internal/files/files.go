// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package files holds what tools that work on files share: the roots, the only
// directories they reach, and places in them, which are read, written and worded
// here. No path a model can write leads out of a root, for every access goes
// through [os.Root].
package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// DefaultRootName is the name of the first root when it is given none.
const DefaultRootName = "workspace"

// Root is a directory that tools may work in.
type Root struct {
	// Name is how a model picks the root: letters, digits, '.', '_' and '-'.
	// Only the first root may leave it empty; it is then [DefaultRootName].
	Name string
	// Path is the directory. A relative one is taken from the working directory
	// at the time of [Open].
	Path string
	// Description tells the model what is there. It may be empty.
	Description string
}

// Files are the opened roots of a set of tools. The first root is the one that
// a plain relative path belongs to. It is safe for concurrent use; writes
// through one Files are done one at a time.
type Files struct {
	roots   []*openRoot
	writing sync.Mutex
}

type openRoot struct {
	Root
	dir       *os.Root
	isDefault bool
	// abs are the spellings of the directory's absolute path: as given, and
	// with symbolic links resolved.
	abs []string
}

var rootName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// Open opens the roots. It fails when there are none, when a name is invalid or
// given twice, and when a path is not a directory that can be opened. The caller
// closes the Files when no tool uses it any more.
func Open(roots ...Root) (*Files, error) {
	if len(roots) == 0 {
		return nil, errors.New("toolkit: no root directory given")
	}
	f := new(Files)
	for i, r := range roots {
		if r.Name == "" && i == 0 {
			r.Name = DefaultRootName
		}
		o, err := openOne(r)
		if err == nil && f.root(r.Name) != nil {
			o.dir.Close()
			err = errors.New("the name is given twice")
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("toolkit: root %q: %w", r.Name, err)
		}
		o.isDefault = i == 0
		f.roots = append(f.roots, o)
	}
	return f, nil
}

// ValidName reports whether a name can be that of a root, or of something else
// that a model calls by a name and that may be a file's.
func ValidName(name string) bool { return rootName.MatchString(name) }

func openOne(r Root) (*openRoot, error) {
	if !ValidName(r.Name) {
		return nil, errors.New("a name is 1 to 64 letters, digits, '.', '_' and '-', and does not begin with '.' or '-'")
	}
	abs, err := filepath.Abs(r.Path)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	o := &openRoot{Root: r, dir: dir, abs: []string{abs}}
	if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
		o.abs = append(o.abs, real)
	}
	return o, nil
}

// Close closes the roots. Tools over them fail afterwards.
func (f *Files) Close() error {
	var errs []error
	for _, r := range f.roots {
		errs = append(errs, r.dir.Close())
	}
	return errors.Join(errs...)
}

// Roots returns the roots as they were opened, the default first, with
// absolute paths.
func (f *Files) Roots() []Root {
	var roots []Root
	for _, r := range f.roots {
		root := r.Root
		root.Path = r.abs[0]
		roots = append(roots, root)
	}
	return roots
}

// Lock begins a writing, which [Files.Unlock] ends: writes through one Files are
// done one at a time. [Files.Edit] does it itself.
func (f *Files) Lock() { f.writing.Lock() }

// Unlock ends a writing.
func (f *Files) Unlock() { f.writing.Unlock() }

// In returns the place of a path inside the root of that name, "" for the default,
// and whether there is such a root.
func (f *Files) In(root, rel string) (Place, bool) {
	r := f.roots[0]
	if root != "" {
		r = f.root(root)
	}
	if r == nil {
		return Place{}, false
	}
	return r.place(rel), true
}

// Dirs are the absolute paths of the roots in all their spellings.
func (f *Files) Dirs() (dirs []string) {
	for _, r := range f.roots {
		dirs = append(dirs, r.abs...)
	}
	return dirs
}

func (f *Files) root(name string) *openRoot {
	i := slices.IndexFunc(f.roots, func(r *openRoot) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return f.roots[i]
}

// names lists the roots for an error text.
func (f *Files) names() string {
	var names []string
	for _, r := range f.roots {
		names = append(names, r.Name)
	}
	return strings.Join(names, ", ")
}

// Describe ends a tool's description with what the model must know about the
// roots. Their places on this machine are not told.
func (f *Files) Describe(text string) string {
	text = strings.TrimSpace(text)
	if len(f.roots) == 1 && f.roots[0].Description == "" {
		return text
	}
	var b strings.Builder
	b.WriteString(text)
	b.WriteString("\n\nRoots (write `name:path`; a plain relative path belongs to the first):\n")
	for i, r := range f.roots {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("- " + r.Name)
		if r.Description != "" {
			b.WriteString(": " + r.Description)
		}
	}
	return b.String()
}
