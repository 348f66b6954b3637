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
	"strings"

	"github.com/antiphon-go/antiphon/tool"
	"github.com/antiphon-go/antiphon/toolkit/internal/files"
	"github.com/antiphon-go/antiphon/toolkit/internal/wording"
)

// MaxEntries is the maximum number of entries that one call of read_directory lists.
const MaxEntries = 1000

//go:embed read_directory.md
var readDirectoryText string

// readDirectoryInput are the arguments of read_directory.
type readDirectoryInput struct {
	Path   string `json:"path,omitzero" jsonschema:"the directory, relative to a root, or name:path for a named root; default: the first root itself"`
	Offset int    `json:"offset,omitzero" jsonschema:"the first entry to list, counted from 1; default 1"`
}

func newReadDirectory(name string, f *files.Files) (tool.Tool, error) {
	return tool.New(name, f.Describe(readDirectoryText), fileTools{f}.readDirectory, tool.ReadOnly(), tool.Idempotent(), f.Option())
}

// readDirectory lists a directory. If there are more than [MaxEntries] entries, the
// last line names the offset to continue with.
func (f fileTools) readDirectory(ctx context.Context, in readDirectoryInput) (string, error) {
	if in.Offset < 0 {
		return "", errors.New("offset cannot be negative; the first entry is 1")
	}
	p, release, err := f.Pin(ctx, cmp.Or(in.Path, "."), "list", false)
	if err != nil {
		return "", err
	}
	defer func() { _ = release() }()
	entries, err := p.Entries()
	if err != nil {
		return "", err
	}
	if len(entries) == 0 {
		return fmt.Sprintf("The directory %s is empty.", p), nil
	}
	first := max(in.Offset, 1)
	if first > len(entries) {
		return "", fmt.Errorf("the directory %s has %d entries; offset %d is past the last", p, len(entries), first)
	}
	last := min(first-1+MaxEntries, len(entries))
	var lines []string
	for _, e := range entries[first-1 : last] {
		if err := ctx.Err(); err != nil {
			return strings.Join(lines, "\n"), err
		}
		lines = append(lines, entryLine(p, e))
	}
	if last < len(entries) {
		lines = append(lines, fmt.Sprintf("[entries %d to %d of %d; list the next with offset=%d]", first, last, len(entries), last+1))
	}
	return strings.Join(lines, "\n"), nil
}

// entryLine returns one line of a listing: a directory ends with a slash, a file has
// its size, a link its target, and other entries their kind.
func entryLine(p files.Place, e fs.DirEntry) string {
	name := wording.Quoted(e.Name())
	switch t := e.Type(); {
	case t.IsDir():
		return name + "/"
	case t&fs.ModeSymlink != 0:
		target, err := p.Dir().Readlink(p.Entry(e.Name()).OSPath())
		if err != nil {
			return name + " (link)"
		}
		return name + " -> " + wording.Quoted(target)
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
