// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/toolkit/internal/files"
)

// patchDisk performs the disk operations of a patch, all of them through
// [os.Root]. Tests set before to make any operation fail.
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

// write creates a file and syncs it to disk. The file gets the mode of mode, or
// the default if mode is nil.
func (d patchDisk) write(p files.Place, content io.Reader, mode fs.FileInfo) error {
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

// copy writes what a file holds in the state info to another file.
func (d patchDisk) copy(ctx context.Context, from, to files.Place, info fs.FileInfo) error {
	file, _, err := from.Open("read")
	if err != nil {
		return err
	}
	defer file.Close()
	if err := d.write(to, files.ReadWithin(ctx, file), info); err != nil {
		return err
	}
	return from.Unchanged(info)
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

// sync syncs a directory to disk, if the system can do that. An error is ignored:
// the renames have already happened.
func (d patchDisk) sync(p files.Place) {
	if dir, err := p.Dir().Open(p.OSPath()); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// A commit writes a plan to disk. First it does beside the files everything that
// can fail because of space or permissions: it writes and syncs the new contents,
// and gives each old file a second name. Then come the visible steps, each a
// single rename or link, with new contents before removals. If a step fails, the
// earlier ones are undone. After a crash between two steps each file is in its
// old or its new state, and a removed file still exists under a name that begins
// with ".antiphon-".
type commit struct {
	patchDisk
	plan  *patchPlan
	temps []files.Place // removed at the end
	dirs  []files.Place // created by this commit
	undo  []func() error
}

// staged is a planned file together with the files prepared for it.
type staged struct {
	*plannedFile
	fresh  files.Place // the new content
	backup files.Place // the old file
}

// commit writes the changed files and returns the temporary files that could not
// be removed.
func (p *patchPlan) commit(ctx context.Context, changed []*plannedFile) (left []string, err error) {
	c := &commit{patchDisk: p.disk, plan: p}
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
		s, err := c.prepare(ctx, file)
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

// prepare does the steps that are not visible yet.
func (c *commit) prepare(ctx context.Context, file *plannedFile) (s staged, err error) {
	s.plannedFile = file
	if file.exists && file.at == nil {
		if err := c.plan.files.MayMake(ctx, file.name, file.Place); err != nil {
			return s, err
		}
		if err := c.makeDirs(file.Parent()); err != nil {
			return s, err
		}
	}
	if err := c.plan.hold(ctx, file); err != nil {
		return s, err
	}
	if file.exists {
		s.fresh = s.at.Beside()
		c.temps = append(c.temps, s.fresh)
		if err := c.write(s.fresh, bytes.NewReader(file.content), file.mode); err != nil {
			return s, err
		}
	}
	if file.info == nil {
		return s, nil
	}
	if err := s.at.Unchanged(file.info); err != nil {
		return s, err
	}
	s.backup = s.at.Beside()
	c.temps = append(c.temps, s.backup)
	if !file.exists {
		return s, nil // the removal renames the file to this name
	}
	if err := c.link(*s.at, s.backup); err == nil {
		return s, nil
	}
	// The file system has no links: keep a copy. The plan may not have read the file.
	return s, c.copy(ctx, *s.at, s.backup, file.info)
}

// makeDirs creates the missing directories, outermost first.
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
		return nil // another program created it first
	}
	return err
}

// steps performs the visible steps.
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
			c.sync(s.at.Parent())
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

// put gives the new content of a file its name.
func (c *commit) put(s staged) error {
	if err := s.at.Unchanged(s.info); err != nil {
		return err
	}
	if s.info == nil {
		return c.putNew(s)
	}
	if err := c.rename(s.fresh, *s.at); err != nil {
		return err
	}
	c.undo = append(c.undo, func() error { return c.rename(s.backup, *s.at) })
	return nil
}

// putNew gives a new file its name. Where the file system has links, it never
// replaces a file that appeared in the meantime.
func (c *commit) putNew(s staged) error {
	err := c.link(s.fresh, *s.at)
	if errors.Is(err, fs.ErrExist) {
		return files.ErrChanged
	}
	if err != nil {
		err = c.rename(s.fresh, *s.at)
	}
	if err == nil {
		c.undo = append(c.undo, func() error { return c.remove(*s.at) })
	}
	return err
}

// take removes a file by renaming it to its backup.
func (c *commit) take(s staged) error {
	if err := s.at.Unchanged(s.info); err != nil {
		return err
	}
	if err := c.rename(*s.at, s.backup); err != nil {
		return err
	}
	c.undo = append(c.undo, func() error { return c.rename(s.backup, *s.at) })
	return nil
}

// takeBack undoes the completed steps in reverse order. It continues after an
// error, to restore as much as possible.
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

// clean removes the temporary files and returns those it could not remove.
func (c *commit) clean() (left []string) {
	for _, temp := range c.temps {
		if err := c.remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			left = append(left, temp.Shown)
		}
	}
	return left
}

// removeDirs removes the directories that the commit created. Removal fails, as
// it should, for one that is no longer empty.
func (c *commit) removeDirs() {
	for _, dir := range slices.Backward(c.dirs) {
		_ = c.remove(dir)
	}
}
