// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

// patchDisk is what a patch does to the disk, all of it through [os.Root].
// before, in tests, can make any step fail.
type patchDisk struct {
	before func(op, name string) error
}

func (d patchDisk) may(op string, p files.Place) error {
	if d.before == nil {
		return nil
	}
	return d.before(op, p.Shown)
}

func (d patchDisk) mkdir(p files.Place) error {
	if err := d.may("mkdir", p); err != nil {
		return err
	}
	return p.Dir().Mkdir(p.OSPath(), 0o777)
}

// write makes a new file and brings it to the disk. mode is that of another
// file, or nil.
func (d patchDisk) write(p files.Place, content []byte, mode fs.FileInfo) error {
	if err := d.may("write", p); err != nil {
		return err
	}
	perm := fs.FileMode(0o666)
	if mode != nil {
		perm = mode.Mode().Perm()
	}
	file, err := p.Dir().OpenFile(p.OSPath(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	return files.Fill(file, content, mode)
}

func (d patchDisk) link(from, to files.Place) error {
	if err := d.may("link", to); err != nil {
		return err
	}
	return from.Dir().Link(from.OSPath(), to.OSPath())
}

func (d patchDisk) rename(from, to files.Place) error {
	if err := d.may("rename", to); err != nil {
		return err
	}
	return from.Dir().Rename(from.OSPath(), to.OSPath())
}

func (d patchDisk) remove(p files.Place) error {
	if err := d.may("remove", p); err != nil {
		return err
	}
	return p.Dir().Remove(p.OSPath())
}

// sync brings the names in a directory to the disk, where the system can.
func (d patchDisk) sync(p files.Place) {
	if dir, err := p.Dir().Open(p.OSPath()); err == nil {
		dir.Sync()
		dir.Close()
	}
}

// commit is one writing of a plan. First everything that can fail for want of
// room or of rights is done beside the files: new contents are written and
// synced, and each old file gets a second name. Then come the steps that can be
// seen, each a single rename or link, new contents before removals; when one
// fails, those before it are taken back. A crash between two steps leaves each
// file as it was or as it will be, and what is removed is still there under a
// name that begins with ".antiphon-".
type commit struct {
	patchDisk
	files *files.Files
	temps []files.Place // to be removed in the end
	dirs  []files.Place // made by this commit
	undo  []func() error
}

// staged is a file with what lies ready beside it.
type staged struct {
	*plannedFile
	fresh  files.Place // the new content
	backup files.Place // the old file
}

// commit returns the temporary files that could not be removed.
func (p *patchPlan) commit(ctx context.Context, changed []*plannedFile) (left []string, err error) {
	c := &commit{patchDisk: p.disk, files: p.files}
	defer func() {
		if err == nil {
			left = c.clean()
			return
		}
		if undone := c.takeBack(); undone != nil {
			err = fmt.Errorf("the patch failed half-way: %w. Not all of it could be taken back: %w", err, undone)
			return
		}
		c.clean()
		c.removeDirs()
		err = fmt.Errorf("nothing was changed, in no file: %w", err)
	}()
	var all []staged
	for _, file := range changed {
		s, err := c.prepare(file)
		if err != nil {
			return nil, c.worded(file.Place, err)
		}
		all = append(all, s)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return nil, c.steps(all)
}

func (c *commit) worded(p files.Place, err error) error {
	if errors.Is(err, files.ErrChanged) {
		return fmt.Errorf("%s: %w", p, files.ErrChanged)
	}
	return p.Problem("write", err)
}

// prepare does what nobody sees yet.
func (c *commit) prepare(file *plannedFile) (s staged, err error) {
	s.plannedFile = file
	if file.exists {
		if err := c.makeDirs(file.Parent()); err != nil {
			return s, err
		}
		s.fresh = file.Beside()
		c.temps = append(c.temps, s.fresh)
		if err := c.write(s.fresh, file.content, file.mode); err != nil {
			return s, err
		}
	}
	if file.info == nil {
		return s, nil
	}
	if err := file.Unchanged(file.info); err != nil {
		return s, err
	}
	s.backup = file.Beside()
	c.temps = append(c.temps, s.backup)
	if !file.exists {
		return s, nil // the removal is a rename to this name
	}
	if err := c.link(file.Place, s.backup); err == nil {
		return s, nil
	}
	// A file system without links: keep a copy.
	return s, c.write(s.backup, file.old, file.info)
}

// makeDirs makes the directories that are missing, the outermost first.
func (c *commit) makeDirs(dir files.Place) error {
	if _, err := dir.Dir().Stat(dir.OSPath()); err == nil || dir.Rel == "." {
		return nil
	}
	if err := c.makeDirs(dir.Parent()); err != nil {
		return err
	}
	err := c.mkdir(dir)
	if err == nil {
		c.dirs = append(c.dirs, dir)
	} else if errors.Is(err, fs.ErrExist) {
		return nil // somebody else was faster
	}
	return err
}

// steps does what can be seen.
func (c *commit) steps(all []staged) error {
	for _, s := range all {
		if !s.exists {
			continue
		}
		if err := c.put(s); err != nil {
			return c.worded(s.Place, err)
		}
	}
	for _, s := range all {
		if s.exists {
			c.sync(s.Parent())
		}
	}
	for _, s := range all {
		if s.exists {
			continue
		}
		if err := c.take(s); err != nil {
			return c.worded(s.Place, err)
		}
	}
	return nil
}

// put gives a new content its name.
func (c *commit) put(s staged) error {
	if err := s.Unchanged(s.info); err != nil {
		return err
	}
	if s.info == nil {
		return c.putNew(s)
	}
	if err := c.rename(s.fresh, s.Place); err != nil {
		return err
	}
	c.undo = append(c.undo, func() error { return c.rename(s.backup, s.Place) })
	return nil
}

// putNew never takes the place of a file that came up meanwhile, where the
// file system has links.
func (c *commit) putNew(s staged) error {
	err := c.link(s.fresh, s.Place)
	if errors.Is(err, fs.ErrExist) {
		return files.ErrChanged
	}
	if err != nil {
		err = c.rename(s.fresh, s.Place)
	}
	if err == nil {
		c.undo = append(c.undo, func() error { return c.remove(s.Place) })
	}
	return err
}

// take removes a file, by giving it another name.
func (c *commit) take(s staged) error {
	if err := s.Unchanged(s.info); err != nil {
		return err
	}
	if err := c.rename(s.Place, s.backup); err != nil {
		return err
	}
	c.undo = append(c.undo, func() error { return c.rename(s.backup, s.Place) })
	return nil
}

// takeBack undoes the steps that were done, the last first. It goes on after an
// error, so that as much as can be is as it was.
func (c *commit) takeBack() error {
	var errs []error
	for _, undo := range slices.Backward(c.undo) {
		if err := undo(); err != nil {
			errs = append(errs, files.Cause(err))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	var kept []string
	for _, temp := range c.temps {
		if _, err := temp.Dir().Lstat(temp.OSPath()); err == nil {
			kept = append(kept, temp.String())
		}
	}
	return fmt.Errorf("%w. What the files were, and were to be, is kept in %s", errors.Join(errs...), strings.Join(kept, ", "))
}

// clean removes the temporary files and returns those that stay.
func (c *commit) clean() (left []string) {
	for _, temp := range c.temps {
		if err := c.remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = append(left, temp.Shown)
		}
	}
	return left
}

// removeDirs removes the directories that were made, unless somebody has put
// something into them.
func (c *commit) removeDirs() {
	for _, dir := range slices.Backward(c.dirs) {
		c.remove(dir)
	}
}
