// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// MaxEditBytes is the largest file, in bytes, that append_to_file and
// find_and_replace change.
const MaxEditBytes = 16 << 20

// ErrChanged reports that another program wrote to a file while it was edited.
var ErrChanged = errors.New("the file was changed by another program at the same time; nothing was written. Read it again and repeat")

// Edit replaces the content of a file with the result of change. No reader sees
// a half-written file: Edit writes the new content to a file in the same
// directory and renames it. The new file has the mode of the old one and belongs
// to the user who runs this program; other hard links keep the old content. If
// create is set, a missing file counts as empty. If change fails, Edit writes
// nothing.
//
// Another writer in this program waits. If another program has changed the file
// since Edit read it, Edit returns [ErrChanged]; it cannot notice a change in the
// instant between its check and the renaming.
func (f *Files) Edit(p Place, create bool, change func(old []byte, exists bool) ([]byte, error)) error {
	if change == nil {
		return fmt.Errorf("%s: no change was given", p)
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	old, info, err := p.readForEdit(create)
	if err != nil {
		return err
	}
	content, err := change(old, info != nil)
	if err != nil {
		return err
	}
	if len(content) > MaxEditBytes {
		return TooLarge(p, int64(len(content)))
	}
	held, release, err := f.Hold(context.Background(), "", p) // the place is pinned already
	if err == nil {
		err = held.Replace(content, info)
		_ = release()
	}
	if err != nil {
		if errors.Is(err, ErrChanged) {
			return fmt.Errorf("%s: %w", p, err)
		}
		return p.Problem("write", err)
	}
	return nil
}

// Hold opens the directory of p, which a call of ctx named, and returns p in it: what is done with held stays
// in this directory, even if a link takes its place. It returns an error if the call may not use this
// place; see [Files.Pin]. The caller calls release at the end.
func (f *Files) Hold(ctx context.Context, name string, p Place) (held Place, release func() error, err error) {
	parent := p.Parent()
	dir, err := p.Dir().OpenRoot(parent.OSPath())
	if err != nil {
		return Place{}, nil, err
	}
	real, err := p.in().realOf(dir, parent.Rel)
	if err == nil {
		r := &openRoot{Root: p.in().Root, dir: dir, isDefault: p.in().isDefault, abs: []string{parent.Path()}, real: real, in: p.in().in}
		if parent.Rel != "." {
			r.in += parent.Rel + "/"
		}
		held, err = f.HoldBeside(ctx, name, r.place("."), p)
	}
	if err != nil {
		_ = dir.Close()
		return Place{}, nil, err
	}
	return held, dir.Close, nil
}

// HoldBeside is [Files.Hold] for another file of a directory that is held, with any place in it.
func (f *Files) HoldBeside(ctx context.Context, name string, held, p Place) (Place, error) {
	if err := f.mayUse(ctx, name, p, filepath.Join(held.in().real, p.Base()), true); err != nil {
		return Place{}, err
	}
	at := held.in().place(p.Base())
	at.direct = true
	return at, nil
}

// MayMake returns an error if the call of ctx may not use the place p, as [Files.Hold] does, but needs no
// directory: those that are missing would be made in the deepest one that exists.
func (f *Files) MayMake(ctx context.Context, name string, p Place) error {
	at, rest := p.Parent(), p.Base()
	for at.Rel != "." {
		if _, err := at.Dir().Stat(at.OSPath()); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		at, rest = at.Parent(), filepath.Join(at.Base(), rest)
	}
	dir, err := p.open(at.Rel)
	if err != nil {
		return err
	}
	defer dir.dir.Close()
	return f.mayUse(ctx, name, p, filepath.Join(dir.real, rest), true)
}

// TooLarge returns the error for a change that makes a file larger than [MaxEditBytes].
func TooLarge(p Place, size int64) error {
	return fmt.Errorf("%s would grow to %d bytes; the limit is %d. Write to another file", p, size, MaxEditBytes)
}

// readForEdit returns the content of a file and its information. The information
// is nil if the file does not exist and may be created.
func (p Place) readForEdit(create bool) ([]byte, fs.FileInfo, error) {
	if err := p.RefuseLink(); err != nil {
		return nil, nil, err
	}
	if _, err := p.Dir().Lstat(p.OSPath()); create && errors.Is(err, fs.ErrNotExist) {
		if _, err := p.Dir().Stat(p.Parent().OSPath()); err != nil {
			return nil, nil, p.Problem("write", err)
		}
		return nil, nil, nil
	}
	file, info, err := p.Open("edit")
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if info.Size() > MaxEditBytes {
		return nil, nil, fmt.Errorf("%s has %d bytes; the limit for editing is %d", p, info.Size(), MaxEditBytes)
	}
	content, err := io.ReadAll(io.LimitReader(file, MaxEditBytes+1))
	if err != nil {
		return nil, nil, p.Problem("read", err)
	}
	return content, info, nil
}

// RefuseLink returns an error if p is a symbolic link. Replacing the link would
// leave its target unchanged, which is not what the writer expects.
func (p Place) RefuseLink() error {
	info, err := p.Dir().Lstat(p.OSPath())
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	target, err := p.Dir().Readlink(p.OSPath())
	if err != nil || filepath.IsAbs(target) {
		return fmt.Errorf("%s is a symbolic link; write to the file itself", p)
	}
	to := p.in().place(path.Join(path.Dir(p.Rel), filepath.ToSlash(target)))
	return fmt.Errorf("%s is a symbolic link; write to the file itself: %s", p, to)
}

// Replace replaces the content of a file. The argument old is the state in which
// the file was read, nil if it did not exist.
func (p Place) Replace(content []byte, old fs.FileInfo) (err error) {
	dir := p.Dir()
	mode := fs.FileMode(0o666)
	if old != nil {
		mode = old.Mode().Perm()
	}
	temp := p.Beside().OSPath()
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.Remove(temp))
		}
	}()
	if err := Fill(file, bytes.NewReader(content), old); err != nil {
		return err
	}
	if err := p.Unchanged(old); err != nil {
		return err
	}
	return dir.Rename(temp, p.OSPath())
}

// Fill writes, syncs and closes a new file, so that its content is on disk before
// it gets its final name.
func Fill(file *os.File, content io.Reader, old fs.FileInfo) error {
	_, err := io.Copy(file, content)
	if err == nil && old != nil {
		// The umask may have reduced the mode at creation.
		err = file.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// Unchanged returns [ErrChanged] if the file is no longer in the state old.
func (p Place) Unchanged(old fs.FileInfo) error {
	now, err := p.Dir().Lstat(p.OSPath())
	if old == nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return ErrChanged
	}
	if err != nil || !os.SameFile(old, now) || old.Size() != now.Size() || !old.ModTime().Equal(now.ModTime()) {
		return ErrChanged
	}
	return nil
}
