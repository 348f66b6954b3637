// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/antiphon-go/antiphon/chatmd"
	"github.com/antiphon-go/antiphon/internal/show"
)

// fmtCommand is antiphon fmt.
type fmtCommand struct {
	Files []string `arg:"" name:"file" help:"Agent files or transcripts; - is standard input, formatted to standard output."`
	Check bool     `help:"Change nothing: list the files that would change, with exit code 1 if there are any."`
	Diff  bool     `short:"d" help:"Change nothing: show what would change."`
}

// Help is shown by antiphon fmt --help.
func (fmtCommand) Help() string {
	return `Each element is put on its own line, attribute values are quoted, and elements
without content are closed. What messages say stays as it is, comments stay where
they were. A file with mistakes is reported and left alone. Changed files are listed.

Examples:
  antiphon fmt agent.md
  antiphon fmt --check agents/*.md
  antiphon fmt - < draft.md > agent.md`
}

// Run formats the files.
func (c *fmtCommand) Run(std stdio) error {
	bad, differ := 0, 0
	for _, path := range c.Files {
		changed, err := c.format(std, path)
		if out, ok := std.out.(*printed); ok && out.err != nil {
			return out.err // and not a mistake in the file
		}
		if err != nil {
			bad++
			fmt.Fprintln(std.err, unforged(err.Error(), path))
		}
		if changed {
			differ++
		}
	}
	switch {
	case bad > 0:
		return usage(fmt.Errorf("%s of %d could not be formatted", show.Plural(bad, "file"), len(c.Files)))
	case c.Check && differ > 0:
		return &exitError{code: exitFailed}
	}
	return nil
}

// format formats one file and reports whether its text changed, or would change.
func (c *fmtCommand) format(std stdio, path string) (changed bool, err error) {
	name, src := path, []byte(nil)
	if path == "-" {
		name = "standard input"
		src, err = io.ReadAll(std.in)
	} else {
		src, err = readOwn(path)
	}
	var problem *fs.PathError
	switch {
	case errors.As(err, &problem):
		return false, fmt.Errorf("%s: %w", path, problem.Err)
	case err != nil:
		return false, err
	}
	file, _ := chatmd.Parse(name, src) // Format reports the errors again
	out, err := file.Format()
	if err != nil {
		return false, err
	}
	changed = out != string(src)
	switch {
	case c.Diff && changed:
		err = writeForeign(std.out, show.UnifiedDiff(name, string(src), out))
	case c.Check && changed:
		err = writeForeign(std.out, name+"\n")
	case c.Diff, c.Check:
	case path == "-":
		err = writeForeign(std.out, out)
	case changed:
		if err = replace(path, out); err == nil {
			err = writeForeign(std.out, path+"\n")
		}
	}
	return changed, err
}

// maxFormatted is the size of the largest file that is formatted.
const maxFormatted = 64 << 20

// readOwn reads a regular file. A link to another folder is an error: what is there, which an
// error would quote, may be a secret.
func readOwn(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := notOutside(path); err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxFormatted:
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxFormatted>>20)
	}
	return os.ReadFile(path)
}

// replace rewrites a file atomically. It follows links, and keeps the file's mode.
func replace(path, text string) error {
	full, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(full)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	draft, err := createDraft(full)
	if err != nil {
		return err
	}
	_, err = draft.WriteString(text)
	err = errors.Join(err, draft.Chmod(info.Mode().Perm()), draft.Sync(), draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), full)
	}
	if err != nil {
		_ = os.Remove(draft.Name())
		return aboutFile(err, draft.Name(), path)
	}
	return nil
}
