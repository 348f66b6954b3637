// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// place is a path that was resolved to a root.
type place struct {
	root *openRoot
	// rel is the slash-separated path inside the root, clean and local; "." is
	// the root itself.
	rel string
	// shown is one spelling for every way to write the same place: the relative
	// path, after "name:" unless the root is the default.
	shown string
}

// String is how the place stands in a sentence.
func (p place) String() string { return quoted(p.shown) }

func (p place) base() string  { return path.Base(p.rel) }
func (p place) parent() place { return p.root.place(path.Dir(p.rel)) }

// dir is the directory of the root, by which every access goes, and osPath the
// path in it.
func (p place) dir() *os.Root  { return p.root.dir }
func (p place) osPath() string { return filepath.FromSlash(p.rel) }

// path is where the place is on this machine, which a model is not told.
func (p place) path() string { return filepath.Join(p.root.abs[0], p.osPath()) }

// rootName names the root of the place for [Files.in]: "" is the default.
func (p place) rootName() string {
	if p.root.isDefault {
		return ""
	}
	return p.root.Name
}

// beside returns the place of a new temporary file in the same directory.
func (p place) beside() place { return p.parent().entry(".antiphon-" + rand.Text() + ".tmp") }

// entry returns the place of one entry of a directory. Its name is taken as it
// is: on Unix it may hold a backslash.
func (p place) entry(name string) place {
	if p.rel == "." {
		return p.root.place(name)
	}
	return p.root.place(p.rel + "/" + name)
}

func (r *openRoot) place(rel string) place {
	p := place{root: r, rel: rel, shown: rel}
	if !r.isDefault {
		p.shown = r.Name + ":" + rel
	}
	return p
}

// resolve finds the root and the path inside it that a model means:
//
//   - name:path, where name is a root, always picks that root;
//   - an absolute path is accepted if it lies inside a root;
//   - name/path picks a root too, unless the default root holds an entry of
//     that name, because then that is what a listing has shown;
//   - everything else belongs to the default root.
//
// Dots are resolved in the text, before any symbolic link is followed. This
// only chooses: that nothing escapes is the work of [os.Root], which every
// access goes through.
func (f *Files) resolve(name string) (place, error) {
	if name == "" {
		return place{}, fmt.Errorf("the path is empty; a path is relative to a root, such as \"docs/notes.md\"")
	}
	slashed := filepath.ToSlash(name)
	if prefix, rest, ok := strings.Cut(slashed, ":"); ok {
		if r := f.root(prefix); r != nil {
			return f.inside(r, strings.TrimLeft(rest, "/"), name)
		}
	}
	if filepath.IsAbs(name) || filepath.VolumeName(name) != "" || strings.HasPrefix(slashed, "/") {
		return f.absolute(name)
	}
	first, rest, _ := strings.Cut(path.Clean(slashed), "/")
	if r := f.root(first); r != nil {
		if _, err := f.roots[0].dir.Lstat(first); errors.Is(err, fs.ErrNotExist) {
			return f.inside(r, rest, name)
		}
	}
	return f.inside(f.roots[0], slashed, name)
}

// inside cleans a path and refuses one that leads out of its root.
func (f *Files) inside(r *openRoot, rel, name string) (place, error) {
	rel = path.Clean(rel)
	if !filepath.IsLocal(filepath.FromSlash(rel)) {
		return place{}, f.outside(name)
	}
	return r.place(rel), nil
}

// absolute accepts an absolute path inside a root, the innermost if roots lie
// in each other.
func (f *Files) absolute(name string) (place, error) {
	var found *openRoot
	var rel string
	for _, r := range f.roots {
		for _, abs := range r.abs {
			in, err := filepath.Rel(abs, name)
			if err == nil && filepath.IsLocal(in) && (found == nil || len(in) < len(rel)) {
				found, rel = r, in
			}
		}
	}
	if found == nil {
		return place{}, f.outside(name)
	}
	return f.inside(found, filepath.ToSlash(rel), name)
}

func (f *Files) outside(name string) error {
	return fmt.Errorf("%s is outside of what this tool may use; paths are relative to a root (%s), or name:path", quoted(name), f.names())
}
