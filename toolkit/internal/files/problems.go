// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/antiphon-go/antiphon/internal/typo"
)

// Problem turns an error of the file system into one that a model can act on.
// The word doing completes the phrase "cannot …".
func (p Place) Problem(doing string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return p.Missing()
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot %s %s: permission denied. Use another file, or ask the user for access", doing, p)
	case isEscape(err):
		return fmt.Errorf("cannot %s %s: a symbolic link on the way leads out of the root %s, which is not allowed", doing, p, p.in().Name)
	case errors.Is(err, fs.ErrClosed):
		return fmt.Errorf("cannot %s %s: the tool is closed", doing, p)
	}
	return fmt.Errorf("cannot %s %s: %w", doing, p, Cause(err))
}

// Cause strips the operation and the path from an error, because the path names a
// place on this machine.
func Cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return Cause(pathErr.Err)
	}
	var linkErr *os.LinkError
	if errors.As(err, &linkErr) {
		return Cause(linkErr.Err)
	}
	return err
}

// isEscape recognizes the error by which [os.Root] rejects a path. The error
// value is not exported, so isEscape compares the text; only the wording of our
// message depends on it.
func isEscape(err error) bool {
	return Cause(err).Error() == "path escapes from parent"
}

// Missing returns the error for a path that does not exist. It names the part that
// is missing and similar names in the deepest directory that exists.
func (p Place) Missing() error {
	lost := p
	dir := p.Parent()
	for lost.Rel != "." {
		if info, err := dir.Dir().Stat(dir.OSPath()); err == nil {
			if !info.IsDir() {
				return fmt.Errorf("no such file: %s; %s is a file, not a directory", p, dir)
			}
			break
		}
		lost, dir = dir, dir.Parent()
	}
	text := "no such file or directory: " + p.String()
	if lost.Rel != p.Rel {
		text += fmt.Sprintf("; the directory %s does not exist", lost)
	}
	if filepath.Separator == '/' && strings.Contains(p.Rel, `\`) {
		text += "; directories are separated by /"
	}
	if near := nearNames(dir, lost.Base()); len(near) > 0 {
		text += fmt.Sprintf(". Similar names there: %s", strings.Join(near, ", "))
	} else {
		text += fmt.Sprintf(". Use read_directory on %s to see what is there", dir)
	}
	return errors.New(text)
}

const (
	maxNear    = 5
	maxCompare = 5000 // entries compared in search of a similar name
)

// nearNames returns the entries of a directory whose names are closest to base.
func nearNames(dir Place, base string) []string {
	d, err := dir.Dir().Open(dir.OSPath())
	if err != nil {
		return nil
	}
	defer d.Close()
	entries, _ := d.ReadDir(maxCompare)
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	for _, e := range entries {
		if d := unlike(base, e.Name()); d >= 0 {
			found = append(found, candidate{dir.Entry(e.Name()).String(), d})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var names []string
	for _, c := range found[:min(len(found), maxNear)] {
		names = append(names, c.name)
	}
	return names
}

// unlike returns how far a name is from the wanted one, or -1 if it is too far.
// Names are near that differ in case or extension, that contain each other, or in
// which up to a third is mistyped.
func unlike(want, name string) int {
	w, n := strings.ToLower(want), strings.ToLower(name)
	if w == n {
		return 0
	}
	ws, ns := strings.TrimSuffix(w, path.Ext(w)), strings.TrimSuffix(n, path.Ext(n))
	if ws == ns && ws != "" {
		return 1
	}
	limit := max(1, len(w)/3)
	if far := len(w) - len(n); far <= limit && -far <= limit { // saves the comparison of long names
		if d := typo.Distance(w, n); d <= limit {
			return 1 + d
		}
	}
	if len(w) >= 3 && len(n) >= 3 && (strings.Contains(n, ws) && len(ws) >= 3 || strings.Contains(w, ns) && len(ns) >= 3) {
		return 2 + limit
	}
	return -1
}
