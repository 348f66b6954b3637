// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package files

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
	"syscall"

	"github.com/antiphon-go/antiphon/tool/output"
)

// Open opens a regular file for reading. Directories and special files are
// refused with the name of the tool to use instead; opening never waits, not
// even for a named pipe.
func (p Place) Open(doing string) (*os.File, fs.FileInfo, error) {
	file, err := p.Dir().OpenFile(p.OSPath(), os.O_RDONLY|openNonblock, 0)
	if err != nil {
		if info, e := p.Dir().Stat(p.OSPath()); e == nil && info.IsDir() {
			return nil, nil, isDirectory(p)
		}
		return nil, nil, p.Problem(doing, err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		err = p.Problem(doing, err)
	case info.IsDir():
		err = isDirectory(p)
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file (%v)", p, info.Mode().Type())
	case p.direct:
		if there, e := p.Dir().Lstat(p.OSPath()); e != nil || !os.SameFile(there, info) {
			err = fmt.Errorf("%s: %w", p, errSwapped)
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// errSwapped reports that a file was opened through a link that was not there before.
var errSwapped = errors.New("another program put something else there at the same time; repeat the call")

// isDirectory returns the error for a directory where a file is needed.
func isDirectory(p Place) error {
	return fmt.Errorf("%s is a directory; use read_directory to list it", p)
}

// ReadAll returns the content of a file. It returns an error if the file has more
// than most bytes.
func (p Place) ReadAll(ctx context.Context, most int64) ([]byte, error) {
	file, info, err := p.Open("read")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes; the limit is %d", p, info.Size(), most)
	}
	b := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = b.ReadFrom(io.LimitReader(ReadWithin(ctx, file), most))
	if err != nil {
		return nil, p.Problem("read", err)
	}
	return b.Bytes(), nil
}

// ReadWithin returns a reader of r that returns an error once ctx is done.
func ReadWithin(ctx context.Context, r io.Reader) io.Reader { return &contextReader{ctx, r} }

// contextReader is a reader that ends with a context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// Entries returns the entries of a directory, sorted by name.
func (p Place) Entries() ([]fs.DirEntry, error) {
	info, err := p.Dir().Stat(p.OSPath())
	if err != nil {
		return nil, p.Problem("list", err)
	}
	if !info.IsDir() {
		return nil, isFile(p)
	}
	dir, err := p.Dir().Open(p.OSPath())
	if err != nil {
		return nil, p.Problem("list", err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, isFile(p)
	}
	if err != nil {
		return nil, p.Problem("list", err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// isFile returns the error for a file where a directory is needed.
func isFile(p Place) error {
	return fmt.Errorf("%s is a file, not a directory; use read_file to read it", p)
}

// SniffBytes is the number of bytes at the start of a file by which it is recognized
// as text.
const SniffBytes = 8 << 10

// RefuseBinary returns an error that names the kind of file if head, its first
// bytes, is not text. It accepts text in older encodings, which is mostly ASCII.
func (p Place) RefuseBinary(head []byte, size int64) error {
	head = head[:min(len(head), SniffBytes)]
	if t := output.SniffPicture(head); t != "" {
		return fmt.Errorf("%s is an image (%s, %d bytes), not text; use import_image to look at it", p, t, size)
	}
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return fmt.Errorf("%s is a PDF document (%d bytes), not text", p, size)
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return fmt.Errorf("%s looks like UTF-16 text (%d bytes); it must be converted to UTF-8 first", p, size)
	case bytes.IndexByte(head, 0) >= 0:
		return fmt.Errorf("%s is a binary file (%d bytes, begins with % x), not text", p, size, head[:min(len(head), 8)])
	}
	return nil
}
