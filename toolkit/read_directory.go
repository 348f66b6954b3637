// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package toolkit

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/antiphon-go/antiphon/tool"
)

// MaxEntries is how many entries one call of read_directory lists.
const MaxEntries = 1000

//go:embed read_directory.md
var readDirectoryText string

type readDirectoryInput struct {
	Path   string `json:"path,omitzero" jsonschema:"the directory, relative to a root, or name:path for a named root; default: the first root itself"`
	Offset int    `json:"offset,omitzero" jsonschema:"the first entry to list, counted from 1; default 1"`
}

func newReadDirectory(name string, f *Files) (tool.Tool, error) {
	return tool.New(name, f.describe(readDirectoryText), f.readDirectory, tool.ReadOnly(), tool.Idempotent())
}

func (f *Files) readDirectory(ctx context.Context, in readDirectoryInput) (string, error) {
	if in.Offset < 0 {
		return "", errors.New("offset cannot be negative; the first entry is 1")
	}
	p, err := f.resolve(cmp.Or(in.Path, "."))
	if err != nil {
		return "", err
	}
	entries, err := f.entries(p)
	if err != nil {
		return "", err
	}
	shown := quoted(p.shown)
	if len(entries) == 0 {
		return fmt.Sprintf("The directory %s is empty.", shown), nil
	}
	first := max(in.Offset, 1)
	if first > len(entries) {
		return "", fmt.Errorf("the directory %s has %d entries; offset %d is past the last", shown, len(entries), first)
	}
	last := min(first-1+MaxEntries, len(entries))
	var lines []string
	for _, e := range entries[first-1 : last] {
		if err := ctx.Err(); err != nil {
			return strings.Join(lines, "\n"), err
		}
		lines = append(lines, f.entryLine(p, e))
	}
	if last < len(entries) {
		lines = append(lines, fmt.Sprintf("[entries %d to %d of %d; list the next with offset=%d]", first, last, len(entries), last+1))
	}
	return strings.Join(lines, "\n"), nil
}

// entries returns what is in a directory, sorted by name.
func (f *Files) entries(p place) ([]fs.DirEntry, error) {
	info, err := p.root.dir.Stat(p.osPath())
	if err != nil {
		return nil, f.problem("list", p, err)
	}
	if !info.IsDir() {
		return nil, isFile(p)
	}
	dir, err := p.root.dir.Open(p.osPath())
	if err != nil {
		return nil, f.problem("list", p, err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, isFile(p)
	}
	if err != nil {
		return nil, f.problem("list", p, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func isFile(p place) error {
	return fmt.Errorf("%s is a file, not a directory; use read_file to read it", quoted(p.shown))
}

// entryLine is one line of a listing: a directory ends with a slash, a file
// has its size, a link its target, anything else its kind.
func (f *Files) entryLine(p place, e fs.DirEntry) string {
	name := quoted(e.Name())
	switch t := e.Type(); {
	case t.IsDir():
		return name + "/"
	case t&fs.ModeSymlink != 0:
		target, err := p.root.dir.Readlink(p.entry(e.Name()).osPath())
		if err != nil {
			return name + " (link)"
		}
		return name + " -> " + quoted(target)
	case !t.IsRegular():
		return fmt.Sprintf("%s (special file)", name)
	}
	info, err := e.Info()
	if err != nil {
		return name
	}
	if info.Size() == 1 {
		return name + " (1 byte)"
	}
	return fmt.Sprintf("%s (%d bytes)", name, info.Size())
}
