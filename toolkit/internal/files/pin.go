// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/antiphon-go/antiphon/tool"
)

// Pin finds the place that a model means and opens the directory that it is in, or the place
// itself if it is a directory. What is done with the returned place stays there, whatever
// other programs make of the links on the way. Pin returns an error if the call of ctx may not
// use this place: its path may have led elsewhere when rules allowed the call, or, for
// reading, to nothing private. The word doing completes the phrase "cannot …".
//
// With writing, a link at the end of the path is not followed, and a file may be missing.
// The caller calls release at the end.
func (f *Files) Pin(ctx context.Context, name, doing string, writing bool) (pinned Place, release func() error, err error) {
	p, err := f.Resolve(name)
	if err != nil {
		return Place{}, nil, err
	}
	return f.PinPlace(ctx, name, p, doing, writing)
}

// PinPlace is [Files.Pin] for a place that the argument name leads to, such as a file in the directory that
// it names. If name is "", no argument of the call says anything about the place, and rules that deny or ask hold for it
// whichever argument they are about.
func (f *Files) PinPlace(ctx context.Context, name string, p Place, doing string, writing bool) (pinned Place, release func() error, err error) {
	pinned, release, err = p.pin(writing)
	if err != nil {
		return Place{}, nil, p.Problem(doing, err)
	}
	if err := f.mayUse(ctx, name, p, pinned.unlinked(), writing); err != nil {
		_ = release()
		return Place{}, nil, err
	}
	return pinned, release, nil
}

// ErrMayNot is in the chain of an error about a place that a call may not use.
var ErrMayNot = errors.New("the call may not use this place")

type mayNot struct{ error }

func (m mayNot) Unwrap() error        { return m.error }
func (m mayNot) Is(target error) bool { return target == ErrMayNot }

// mayUse returns an error if the call of ctx may not use the place that it has opened: real is the
// path of this place without links, and p what the call named by its argument name, which is "" if no
// argument did.
func (f *Files) mayUse(ctx context.Context, name string, p Place, real string, writing bool) error {
	if err := f.use(ctx, name, p, real, writing); err != nil {
		return mayNot{err}
	}
	return nil
}

func (f *Files) use(ctx context.Context, name string, p Place, real string, writing bool) error {
	err := tool.CheckPlace(ctx, name, func(folder string) bool {
		in, err := f.Resolve(folder)
		return err == nil && lies(real, in.unlinked())
	})
	if err != nil {
		return err
	}
	// The reason may be the same for the path that was asked about and for the place, which are two files.
	led := real != p.unlinked()
	if led && writing && f.protectedAt(real) != "" {
		return fmt.Errorf("a symbolic link on the way leads to %s, which nobody was asked about; write to the file itself", real)
	}
	// What is written to may also be shown, such as the lines that a patch does not fit.
	if why := f.privateAt(p, real); led && why != "" {
		return errors.New("a symbolic link on the way leads to a place that nobody was asked about; name the file itself, which asks because " + why)
	}
	return nil
}

// mostLinks is how many links at the end of a path are followed.
const mostLinks = 40

var (
	errManyLinks = errors.New("too many symbolic links")
	errMoved     = errors.New("the path leads elsewhere than before it was opened: another program has changed a link or a directory on the way")
	errEscape    = errors.New("path escapes from parent") // as os.Root says it; see isEscape
)

// pin opens the directory that a place is in, or the place if it is a directory.
func (p Place) pin(writing bool) (pinned Place, release func() error, err error) {
	at := p
	for range mostLinks {
		parent, err := at.open(at.Parent().Rel)
		if err != nil {
			return Place{}, nil, err
		}
		pinned, next, err := parent.pinned(at, writing)
		if err == nil && next == "" {
			if pinned.root != parent {
				_ = parent.dir.Close()
			}
			pinned.Shown = p.Shown
			return pinned, pinned.root.dir.Close, nil
		}
		_ = parent.dir.Close()
		if err != nil {
			return Place{}, nil, err
		}
		rel, err := filepath.Rel(p.in().real, next)
		if err != nil || !filepath.IsLocal(rel) {
			return Place{}, nil, errEscape
		}
		at = p.in().place(filepath.ToSlash(rel))
	}
	return Place{}, nil, errManyLinks
}

// open opens a directory of the place's root.
func (p Place) open(rel string) (*openRoot, error) {
	at := p.in().place(rel)
	dir, err := p.Dir().OpenRoot(at.OSPath())
	if err != nil {
		if info, e := p.Dir().Stat(at.OSPath()); e == nil && !info.IsDir() {
			err = syscall.ENOTDIR // os.Root has an error of its own
		}
		return nil, err
	}
	r := &openRoot{Root: p.in().Root, dir: dir, isDefault: p.in().isDefault, in: p.in().in}
	if r.real, err = p.in().realOf(dir, at.Rel); err != nil {
		_ = dir.Close()
		return nil, err
	}
	if r.abs = []string{r.real}; rel != "." {
		r.in += rel + "/"
	}
	return r, nil
}

// realOf returns the path of a directory that was opened at rel in r, with symbolic links
// resolved.
func (r *openRoot) realOf(dir *os.Root, rel string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(r.real, filepath.FromSlash(rel)))
	if err != nil {
		return "", err
	}
	in, err := filepath.Rel(r.real, real)
	if err != nil || !filepath.IsLocal(in) {
		return "", errEscape
	}
	return real, r.leads(in, dir)
}

// leads returns an error unless a path in r leads to an open directory without a symbolic link. A
// program may change links at any time, so each name is looked at in the open directory that
// has it: a look at the whole path follows what the links on the way are at that moment.
func (r *openRoot) leads(in string, dir *os.Root) (err error) {
	at := r.dir
	defer func() {
		if at != r.dir {
			err = errors.Join(err, at.Close())
		}
	}()
	for name := range strings.SplitSeq(in, string(filepath.Separator)) {
		if name == "." { // the root itself
			break
		}
		found, err := at.Lstat(name)
		if err != nil {
			return err
		}
		next, err := at.OpenRoot(name)
		if err != nil {
			return err
		}
		if at != r.dir {
			_ = at.Close()
		}
		at = next
		opened, err := at.Stat(".")
		if err != nil {
			return err
		}
		if !os.SameFile(found, opened) { // the name is a link, or is another directory now
			return errMoved
		}
	}
	here, err := at.Stat(".")
	if err != nil {
		return err
	}
	there, err := dir.Stat(".")
	if err == nil && !os.SameFile(here, there) {
		err = errMoved
	}
	return err
}

// pinned returns a place in its open directory r or, if it is a directory, in itself. If it
// is a link that is followed, pinned returns where it leads.
func (r *openRoot) pinned(p Place, writing bool) (pinned Place, next string, err error) {
	if p.Rel == "." {
		return r.place("."), "", nil
	}
	pinned = r.place(p.Base())
	pinned.direct = true
	info, err := r.dir.Lstat(pinned.OSPath())
	switch {
	case errors.Is(err, fs.ErrNotExist) && writing:
		return pinned, "", nil
	case err != nil:
		return Place{}, "", err
	case info.IsDir():
		in, err := pinned.open(pinned.Rel)
		if err != nil {
			return Place{}, "", err
		}
		if same, err := in.dir.Stat("."); err != nil || !os.SameFile(same, info) {
			_ = in.dir.Close()
			return Place{}, "", errors.Join(ErrChanged, err)
		}
		return in.place("."), "", nil
	case info.Mode()&fs.ModeSymlink == 0 || writing:
		return pinned, "", nil
	}
	target, err := r.dir.Readlink(pinned.OSPath())
	if err != nil {
		return Place{}, "", err
	}
	if filepath.IsAbs(target) {
		return Place{}, "", errEscape // as os.Root has it
	}
	next, err = filepath.EvalSymlinks(r.real + string(filepath.Separator) + target) // not cleaned: a link may come before ".."
	return Place{}, next, err
}
