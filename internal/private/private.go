// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package private reads files that decide what may run on this machine, where keys go, and what is
// sent. It refuses those that others than the user can write.
package private

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file of at most limit bytes that passes [Check].
func ReadFile(path string, limit int64) ([]byte, error) {
	f, info, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := Check(info); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return text, nil
}

// ErrNotRegular means that something else than a regular file was opened.
var ErrNotRegular = errors.New("it is not a file")

// Open opens a regular file, and describes what is open. It does not wait if a named pipe takes the
// file's place.
func Open(path string) (*os.File, os.FileInfo, error) {
	info, err := os.Stat(path) // to open a device may have effects
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, ErrNotRegular
	}
	return opened(path)
}

// OpenIn opens a regular file of a folder that is open, and describes what is open. A link in its
// place is [ErrNotRegular], also one that took its place just now.
func OpenIn(dir *os.Root, name string) (*os.File, os.FileInfo, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, ErrNotRegular
	}
	f, there, err := checked(dir.OpenFile(name, os.O_RDONLY|nonblock, 0))
	if err == nil && !os.SameFile(info, there) {
		err = errors.Join(ErrNotRegular, f.Close())
		return nil, nil, err
	}
	return f, there, err
}

// opened is Open without the first look.
func opened(path string) (*os.File, os.FileInfo, error) {
	return checked(os.OpenFile(path, os.O_RDONLY|nonblock, 0))
}

// checked describes a file that was opened, and closes it if it is not a regular one.
func checked(f *os.File, err error) (*os.File, os.FileInfo, error) {
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}
