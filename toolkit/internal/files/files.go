// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package files resolves, reads and writes the files of the tools. It holds the
// roots, which are the only directories the tools can reach, and words the errors
// that a model reads about them. A path written by a model cannot lead out of a
// root, because every access goes through [os.Root].
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// DefaultRootName is the name of the first root when it is given none.
const DefaultRootName = "workspace"

// A Root is a directory that tools may work in.
type Root struct {
	// Name is what a model calls the root: letters, digits, '.', '_' and '-'.
	// Only the first root may leave it empty; its name is then [DefaultRootName].
	Name string
	// Path is the directory. A relative path is relative to the working directory
	// at the time of [Open].
	Path string
	// Description tells the model what the directory contains. It may be empty.
	Description string
}

// Files holds the open roots of a set of tools. A plain relative path belongs to
// the first root. It is safe for concurrent use; writes through one Files are
// serialized.
type Files struct {
	roots     []*openRoot
	protected []string
	home      string // with links resolved
	writing   sync.Mutex
}

// openRoot is a root with its open directory.
type openRoot struct {
	Root
	dir       *os.Root
	isDefault bool
	// abs holds the spellings of the directory's absolute path: as given, and
	// with symbolic links resolved.
	abs []string
	// real is the path with symbolic links resolved when the directory was opened.
	real string
	// in is shown in front of the paths in it: a directory that Hold opened, with a slash.
	in string
}

var rootName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// Open opens the roots. It fails if no root is given, if a name is invalid or
// given twice, or if a path is not a directory that can be opened. The caller
// must close the Files when no tool uses it any more.
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
			_ = o.dir.Close()
			err = errors.New("the name is given twice")
		}
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("toolkit: root %q: %w", r.Name, err)
		}
		o.isDefault = i == 0
		f.roots = append(f.roots, o)
	}
	return f, nil
}

// Check returns an error for a Files that [Open] did not return.
func Check(f *Files) error {
	if f == nil || len(f.roots) == 0 {
		return errors.New("toolkit: the Files is not open: use Open with at least one root")
	}
	return nil
}

// ValidName reports whether name can be the name of a root, or of anything else
// that a model names and that may become a file name.
func ValidName(name string) bool { return rootName.MatchString(name) }

// openOne opens one root.
func openOne(r Root) (*openRoot, error) {
	if !ValidName(r.Name) {
		return nil, errors.New("a name is 1 to 64 letters, digits, '.', '_' and '-', and does not begin with '.' or '-'")
	}
	abs, err := filepath.Abs(r.Path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(abs); err == nil && !info.IsDir() { // to open a named pipe would wait
		return nil, &fs.PathError{Op: "open", Path: abs, Err: syscall.ENOTDIR}
	}
	dir, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	o := &openRoot{Root: r, dir: dir, abs: []string{abs}}
	if o.real, err = realOf(dir, abs); err != nil {
		_ = dir.Close()
		return nil, err
	}
	if o.real != abs {
		o.abs = append(o.abs, o.real)
	}
	return o, nil
}

// realOf returns the path of a root's open directory with symbolic links resolved. A program may
// change the links meanwhile. Of a directory in a root, see [openRoot.realOf].
func realOf(dir *os.Root, abs string) (string, error) {
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	there, err := os.Lstat(real)
	if err != nil {
		return "", err
	}
	opened, err := dir.Stat(".")
	if err != nil {
		return "", err
	}
	if !os.SameFile(there, opened) {
		return "", fmt.Errorf("%s: a link on the way changed while it was opened; try again", abs)
	}
	return real, nil
}

// Close closes the roots. Tools that use them fail afterwards.
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

// Lock waits until no other write through f is running and reserves f for the
// caller, until [Files.Unlock]. [Files.Edit] locks f itself.
func (f *Files) Lock() { f.writing.Lock() }

// Unlock releases the lock taken by [Files.Lock].
func (f *Files) Unlock() { f.writing.Unlock() }

// In returns the place of the path rel inside the named root and reports whether
// the root exists. The empty name means the default root.
func (f *Files) In(root, rel string) (Place, bool) {
	if Check(f) != nil {
		return Place{}, false
	}
	r := f.roots[0]
	if root != "" {
		r = f.root(root)
	}
	if r == nil {
		return Place{}, false
	}
	return r.place(rel), true
}

// Dirs returns the absolute paths of the roots, in all their spellings.
func (f *Files) Dirs() (dirs []string) {
	if f == nil { // of a Command that its constructor did not return
		return nil
	}
	for _, r := range f.roots {
		dirs = append(dirs, r.abs...)
	}
	return dirs
}

// Held returns what the paths of [Files.Dirs] led to when the roots were opened.
func (f *Files) Held() map[string]string {
	held := map[string]string{}
	if f == nil {
		return held
	}
	for _, r := range f.roots {
		for _, path := range r.abs {
			held[path] = r.real
		}
	}
	return held
}

// root returns the root with the name, or nil.
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

// Describe appends to a tool's description the names and descriptions of the roots.
// It does not reveal their location on this machine.
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
