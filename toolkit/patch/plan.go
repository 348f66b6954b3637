// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// maxPatchTotal limits the bytes that one patch holds in memory.
const maxPatchTotal = 64 << 20

// A patchPlan computes the files after a patch. It applies the sections in order,
// so a later section sees the result of an earlier one. Nothing is written until
// all sections fit.
type patchPlan struct {
	files   *files.Files
	byPlace map[string]*plannedFile
	order   []*plannedFile
	total   int64
	disk    patchDisk
	held    map[string]files.Place // a place in each directory that is open
	close   []func() error         // of these directories
}

// A plannedFile is a file before and after the patch.
type plannedFile struct {
	files.Place
	name string       // as the patch names it
	at   *files.Place // the file in its directory, which is open; nil until the directory exists
	info fs.FileInfo  // nil if the file does not exist
	read bool
	old  []byte // once read

	exists  bool
	content []byte
	mode    fs.FileInfo  // the file whose mode it gets; nil for a new file
	from    *files.Place // where it was moved from
	remarks []string
}

// maxPatchErrors limits the problems reported at once.
const maxPatchErrors = 8

// applySections applies all sections or none, and returns one line for each file.
func applySections(ctx context.Context, f *files.Files, sections []filePatch, disk patchDisk) (string, error) {
	if err := files.Check(f); err != nil {
		return "", err
	}
	f.Lock()
	defer f.Unlock()
	plan := &patchPlan{files: f, byPlace: make(map[string]*plannedFile), disk: disk, held: make(map[string]files.Place)}
	defer plan.release()
	var problems []error
	for i := range sections {
		if err := plan.section(ctx, &sections[i]); err != nil {
			problems = append(problems, unjoin(err)...)
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
	if len(problems) == 0 {
		problems = plan.aliases()
	}
	if len(problems) > 0 {
		return "", refusal(problems)
	}
	changed := plan.changed()
	if len(changed) == 0 {
		return "", errors.New("nothing was changed: the files are as the patch wants them already")
	}
	left, err := plan.commit(ctx, changed)
	if err != nil {
		return "", err
	}
	return summary(changed, left), nil
}

func unjoin(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

// refusal returns the error for a patch that was not applied.
func refusal(problems []error) error {
	if n := len(problems) - maxPatchErrors; n > 0 {
		problems = append(problems[:maxPatchErrors], fmt.Errorf("and %d more problems", n))
	}
	return fmt.Errorf("nothing was changed, in no file: %w", errors.Join(problems...))
}

// section plans one section of the patch.
func (p *patchPlan) section(ctx context.Context, s *filePatch) error {
	file, err := p.file(ctx, s.path)
	if err == nil {
		switch s.op {
		case patchAdd:
			err = p.add(file, s)
		case patchDelete:
			err = p.remove(file)
		case patchUpdate:
			err = p.update(ctx, file, s)
		}
	}
	var worded *Error
	if err == nil || errors.As(err, &worded) {
		return err
	}
	return &Error{Path: s.path, Line: s.line, Problem: err.Error()}
}

// file returns the planned file at a path. The first time a path is named, the
// file is as it is on disk.
func (p *patchPlan) file(ctx context.Context, name string) (*plannedFile, error) {
	at, err := p.files.Resolve(name)
	if err != nil {
		return nil, err
	}
	if file, ok := p.byPlace[at.Shown]; ok {
		return file, nil
	}
	if err := at.RefuseLink(); err != nil {
		return nil, err
	}
	file := &plannedFile{Place: at, name: name}
	if err := p.load(ctx, file); err != nil {
		return nil, err
	}
	p.byPlace[at.Shown] = file
	p.order = append(p.order, file)
	return file, nil
}

// load looks at the file on disk, in its directory, which stays open: the file that is read is also the
// one that is written. A file that exists must be a regular one. load does not read the content; a section
// that needs it does.
func (p *patchPlan) load(ctx context.Context, file *plannedFile) error {
	if _, err := file.Place.Dir().Stat(file.Place.Parent().OSPath()); errors.Is(err, fs.ErrNotExist) {
		return nil // the directory is created with the file
	} else if err != nil {
		return file.Place.Problem("look at", err)
	}
	if err := p.hold(ctx, file); err != nil {
		return file.Place.Problem("look at", err)
	}
	if _, err := file.at.Dir().Lstat(file.at.OSPath()); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return file.Place.Problem("look at", err)
	}
	opened, info, err := file.at.Open("open")
	if err != nil {
		return err
	}
	file.info, file.mode, file.exists = info, info, true
	return opened.Close()
}

// hold opens the directory of a file, unless it is open, so that all steps are done in it. It returns an
// error if the call may not use this place.
func (p *patchPlan) hold(ctx context.Context, file *plannedFile) error {
	if file.at != nil {
		return nil
	}
	in := file.Parent().Shown
	if one, ok := p.held[in]; ok {
		at, err := p.files.HoldBeside(ctx, file.name, one, file.Place)
		if err == nil {
			file.at = &at
		}
		return err
	}
	at, release, err := p.files.Hold(ctx, file.name, file.Place)
	if err != nil {
		return err
	}
	p.held[in], file.at = at, &at
	p.close = append(p.close, release)
	return nil
}

// release closes the directories.
func (p *patchPlan) release() {
	for _, release := range p.close {
		_ = release()
	}
}

// text returns the content of the file as planned so far.
func (p *patchPlan) text(file *plannedFile) ([]byte, error) {
	if file.read || file.info == nil {
		return file.content, nil
	}
	shown := file
	if size := file.info.Size(); size > files.MaxEditBytes {
		return nil, fmt.Errorf("%s has %d bytes; the limit for editing is %d", shown, size, files.MaxEditBytes)
	}
	opened, info, err := file.at.Open("read")
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	if !os.SameFile(info, file.info) {
		return nil, fmt.Errorf("%s: %w", shown, files.ErrChanged)
	}
	content, err := io.ReadAll(io.LimitReader(opened, files.MaxEditBytes+1))
	if err != nil {
		return nil, file.Place.Problem("read", err)
	}
	file.info, file.read, file.old, file.content = info, true, content, content
	return content, p.count(file.Place, len(content))
}

// count keeps the sizes of the files within their limits.
func (p *patchPlan) count(at files.Place, size int) error {
	if size > files.MaxEditBytes {
		return fmt.Errorf("%s would grow to %d bytes; the limit is %d. Write to another file", at, size, files.MaxEditBytes)
	}
	if p.total += int64(size); p.total > maxPatchTotal {
		return fmt.Errorf("the files of the patch have more than %d bytes together; send it in parts", maxPatchTotal)
	}
	return nil
}

func (p *patchPlan) add(file *plannedFile, s *filePatch) error {
	if file.exists {
		return fmt.Errorf("%s exists already; change it with \"%s\", or put a section \"%s\" in front to replace it whole", file, markUpdate, markDelete)
	}
	if err := cmp.Or(p.parent(file.Place), p.directoryOf(file.Place)); err != nil {
		return err
	}
	file.exists, file.read, file.content = true, true, []byte(s.content)
	return p.count(file.Place, len(s.content))
}

// parent makes sure that the directory of a new file can exist: what exists on
// the way must be directories. Missing directories are created later.
func (p *patchPlan) parent(at files.Place) error {
	for dir := at.Parent(); ; dir = dir.Parent() {
		if other, ok := p.byPlace[dir.Shown]; ok && other.exists {
			return fmt.Errorf("%s is a file, not a directory", dir)
		}
		info, err := dir.Dir().Stat(dir.OSPath())
		switch {
		case err == nil && info.IsDir():
			return nil
		case err == nil:
			return fmt.Errorf("%s is a file, not a directory", dir)
		case !errors.Is(err, fs.ErrNotExist) || dir.Rel == ".":
			return at.Problem("write", err)
		}
		if err := dir.RefuseLink(); err != nil {
			return err // a dangling symbolic link
		}
	}
}

// directoryOf rejects a new file in the place of a directory that an earlier
// section needs.
func (p *patchPlan) directoryOf(at files.Place) error {
	for _, f := range p.order {
		if f.exists && f.RootName() == at.RootName() && strings.HasPrefix(f.Rel, at.Rel+"/") {
			return fmt.Errorf("%s cannot be a file: an earlier section of this patch puts %s into a directory of that name", at, f)
		}
	}
	return nil
}

func (p *patchPlan) remove(file *plannedFile) error {
	if !file.exists {
		return p.missing(file)
	}
	file.exists, file.content, file.remarks = false, nil, nil
	return nil
}

func (p *patchPlan) missing(file *plannedFile) error {
	if file.info != nil {
		return fmt.Errorf("%s was deleted or moved by an earlier section of this patch", file)
	}
	return file.Place.Missing()
}

func (p *patchPlan) update(ctx context.Context, file *plannedFile, s *filePatch) error {
	if !file.exists {
		return p.missing(file)
	}
	content, err := p.text(file)
	if err != nil {
		return err
	}
	if len(s.hunks) > 0 {
		if err := file.Place.RefuseBinary(content, int64(len(content))); err != nil {
			return err
		}
		text, remarks, err := splitText(string(content)).apply(ctx, s.path, s.hunks)
		if err != nil {
			return err
		}
		if err := p.count(file.Place, len(text)); err != nil {
			return err
		}
		file.content, file.remarks = []byte(text), append(file.remarks, remarks...)
	}
	if s.moveTo != "" {
		return p.move(ctx, file, s.moveTo)
	}
	return nil
}

func (p *patchPlan) move(ctx context.Context, file *plannedFile, name string) error {
	to, err := p.file(ctx, name)
	if err != nil {
		return err
	}
	if to == file {
		return nil
	}
	if to.exists {
		return fmt.Errorf("it cannot be moved to %s, which exists already; a section \"%s\" in front would make room", to, markDelete)
	}
	if err := cmp.Or(p.parent(to.Place), p.directoryOf(to.Place)); err != nil {
		return err
	}
	from := file.Place
	to.exists, to.read, to.content, to.mode, to.from, to.remarks = true, true, file.content, file.mode, &from, file.remarks
	file.exists, file.content, file.remarks = false, nil, nil
	return nil
}

// aliases finds two names of the same file, through a link to a directory or a
// second hard link. What the patch means in that case is not clear.
func (p *patchPlan) aliases() (problems []error) {
	for i, a := range p.order {
		for _, b := range p.order[:i] {
			if a.info != nil && b.info != nil && os.SameFile(a.info, b.info) {
				problems = append(problems, fmt.Errorf("%s and %s are the same file; use one of the names, or two patches", b, a))
			}
		}
	}
	return problems
}

// changed returns the files that the patch changes.
func (p *patchPlan) changed() []*plannedFile {
	return slices.DeleteFunc(slices.Clone(p.order), func(f *plannedFile) bool {
		return f.exists == (f.info != nil) && (!f.exists || f.from == nil && f.read && f.old != nil && bytes.Equal(f.old, f.content) || !f.read)
	})
}

// summary reports what was done, one line for each file.
func summary(changed []*plannedFile, left []string) string {
	var b strings.Builder
	b.WriteString("The patch was applied:")
	for _, f := range changed {
		switch {
		case f.exists && f.from != nil:
			fmt.Fprintf(&b, "\nM %s (moved from %s)", f, f.from)
		case f.exists && f.info != nil:
			fmt.Fprintf(&b, "\nM %s", f)
		case f.exists:
			fmt.Fprintf(&b, "\nA %s", f)
		case !movedAway(changed, f):
			fmt.Fprintf(&b, "\nD %s", f)
		}
		if len(f.remarks) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(f.remarks, "; "))
		}
	}
	for _, name := range left {
		fmt.Fprintf(&b, "\nThe temporary file %s could not be removed.", wording.Quoted(name))
	}
	return b.String()
}

func movedAway(changed []*plannedFile, f *plannedFile) bool {
	return slices.ContainsFunc(changed, func(to *plannedFile) bool { return to.exists && to.from != nil && to.from.Shown == f.Shown })
}
