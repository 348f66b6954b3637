// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// A Place is a path resolved to a root.
type Place struct {
	root *openRoot
	// Rel is the slash-separated path inside the root, clean and local; "." is
	// the root itself.
	Rel string
	// Shown is the same for every way to write the place: the relative path, with
	// "name:" in front unless the root is the default.
	Shown string
	// direct says that the place itself must not be a link: see [Files.Pin].
	direct bool
}

// String returns the place as it is written in a sentence.
func (p Place) String() string { return wording.Quoted(p.Shown) }

// Base returns the name of the place within its directory.
func (p Place) Base() string { return path.Base(p.Rel) }

// Parent returns the directory of the place. The parent of a root is the root
// itself.
func (p Place) Parent() Place { return p.in().place(path.Dir(p.Rel)) }

// Dir returns the directory of the root. All accesses go through it, with the path
// that [Place.OSPath] returns. That of the zero Place is closed.
func (p Place) Dir() *os.Root { return p.in().dir }

// in returns the root. The zero Place is in a root that is closed.
func (p Place) in() *openRoot {
	if p.root == nil {
		return nowhere()
	}
	return p.root
}

var nowhere = sync.OnceValue(func() *openRoot {
	r := &openRoot{Root: Root{Name: "nowhere"}, dir: new(os.Root), abs: []string{""}}
	if dir, err := os.OpenRoot(os.TempDir()); err == nil {
		_ = dir.Close() // whatever is done in it reports that it is closed
		r.dir = dir
	}
	return r
})

// OSPath returns the path inside the root with the separators of the operating
// system.
func (p Place) OSPath() string { return filepath.FromSlash(p.Rel) }

// Path returns the absolute path on this machine. It must not be shown to a model.
func (p Place) Path() string { return filepath.Join(p.in().abs[0], p.OSPath()) }

// RootName returns the name of the place's root for [Files.In]; it is "" for the
// default root.
func (p Place) RootName() string {
	if p.in().isDefault {
		return ""
	}
	return p.in().Name
}

// Beside returns the place of a new temporary file in the same directory.
func (p Place) Beside() Place { return p.Parent().Entry(".antiphon-" + rand.Text() + ".tmp") }

// Entry returns the place of one entry of a directory. It does not interpret the
// name, because on Unix a name may contain a backslash.
func (p Place) Entry(name string) Place {
	if p.Rel == "." {
		return p.in().place(name)
	}
	return p.in().place(p.Rel + "/" + name)
}

// place returns the place of a path inside the root.
func (r *openRoot) place(rel string) Place {
	p := Place{root: r, Rel: rel, Shown: r.in + rel}
	if !r.isDefault {
		p.Shown = r.Name + ":" + p.Shown
	}
	return p
}

// Resolve finds the root, and the path inside it, that a model means:
//
//   - name:path, where name is a root, always selects that root;
//   - an absolute path is accepted if it lies inside a root;
//   - name/path selects a root too, unless the default root contains an entry
//     of that name, because then a listing has shown the path in that sense;
//   - everything else belongs to the default root.
//
// Dots are resolved in the text, before any symbolic link is followed. Resolve
// only selects; [os.Root], which all accesses go through, makes sure that
// nothing leaves the root.
func (f *Files) Resolve(name string) (Place, error) {
	if name == "" {
		return Place{}, fmt.Errorf("the path is empty; a path is relative to a root, such as \"docs/notes.md\"")
	}
	if err := Check(f); err != nil {
		return Place{}, err
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

// inside cleans a path and rejects one that leads out of its root.
func (f *Files) inside(r *openRoot, rel, name string) (Place, error) {
	rel = path.Clean(rel)
	if !filepath.IsLocal(filepath.FromSlash(rel)) {
		return Place{}, f.outside(name)
	}
	return r.place(rel), nil
}

// absolute accepts an absolute path inside a root. If roots are nested, it
// selects the innermost.
func (f *Files) absolute(name string) (Place, error) {
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
		return Place{}, f.outside(name)
	}
	return f.inside(found, filepath.ToSlash(rel), name)
}

// outside returns the error for a path that is not in a root.
func (f *Files) outside(name string) error {
	return fmt.Errorf("%s is outside of what this tool may use; paths are relative to a root (%s), or name:path", wording.Quoted(name), f.names())
}
