// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/antiphon-go/antiphon/session"
)

// identity remembers which files SQLite has open. On most systems a process can go
// on writing to a deleted file, and nothing that it wrote could be found later.
type identity struct {
	mu     sync.Mutex
	files  map[string]os.FileInfo // by name
	closed bool
}

// close ends the checks. It must be called before SQLite closes the database and
// removes files itself, which would look like a deletion.
func (i *identity) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
}

// moved returns an error if the database's files were deleted or replaced while it
// is open.
func (s *Store) moved() error {
	s.file.mu.Lock()
	defer s.file.mu.Unlock()
	if s.path == "" || s.file.closed {
		return nil
	}
	for _, name := range []string{s.path, s.path + "-wal"} {
		now, err := os.Stat(name)
		before := s.file.files[name]
		switch {
		// The first time a file is seen, it is taken for the right one. The -wal
		// file may appear later than the database.
		case before == nil && err == nil:
			if s.file.files == nil {
				s.file.files = map[string]os.FileInfo{}
			}
			s.file.files[name] = now
		case before == nil:
		case errors.Is(err, fs.ErrNotExist):
			return s.gone(name + " was deleted")
		case err == nil && !os.SameFile(before, now):
			return s.gone(name + " was replaced by another file")
		}
	}
	return nil
}

// gone returns the error for a file that was deleted or replaced.
func (s *Store) gone(what string) error {
	return &Error{Store: s.place, Op: "writing", Problem: what + " while it was in use: what is written now would be lost",
		Hint: "put the file back from a copy, or begin anew; `antiphon sessions export` keeps copies", Err: session.ErrLost}
}

// isFull reports whether a write failed for lack of space, which may pass.
func (s *Store) isFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	switch codeOf(err) {
	case sqliteFull:
		return true
	case sqliteIO:
		cause := s.cause()
		return errors.Is(cause, syscall.ENOSPC) || errors.Is(cause, syscall.EDQUOT)
	}
	return false
}

// cause returns the operating system's reason why the file cannot be written, or nil
// if it finds none. The driver does not report that reason, so cause probes for it.
func (s *Store) cause() error {
	if s.path == "" {
		return nil
	}
	if _, err := os.Stat(s.path); err != nil {
		return err
	}
	for _, name := range []string{s.path, s.path + "-wal"} {
		// A probe is a small file, so it cannot find the limit on the size of a
		// file.
		if info, err := os.Stat(name); err == nil && info.Size()+probeSize > largestFile() {
			return syscall.EFBIG
		}
	}
	err := probe(filepath.Dir(s.path))
	if err == nil && freeBytes(s.path) < probeSize {
		err = syscall.ENOSPC
	}
	return err
}

// probeSize is roughly the size in bytes of an append.
const probeSize = 64 << 10

// probe writes a temporary file in a folder and removes it.
func probe(dir string) error {
	f, err := os.CreateTemp(dir, ".antiphon-probe-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeSize))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// explain describes what an operating system error means for a store and how to fix
// it. It returns empty texts for other errors.
func explain(err error) (problem, hint string) {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full", "make room, then run it again: the session continues where it was"
	case errors.Is(err, syscall.EDQUOT):
		return "your quota on this disk is used up", "delete something, or ask for more; then run it again: the session continues where it was"
	case errors.Is(err, syscall.EFBIG):
		return "the file may not grow any more: it has reached the largest size that the system allows", "raise the limit (ulimit -f), or choose another disk; then run it again: the session continues where it was"
	case errors.Is(err, syscall.EROFS):
		return "the disk can only be read", "mount it for writing, or choose another place"
	case errors.Is(err, fs.ErrPermission):
		return "the file or its folder may not be written to", "change the permissions of both, or choose another place"
	case errors.Is(err, fs.ErrNotExist):
		return "the file or its folder does not exist", "see whether the disk is mounted, or choose another place"
	}
	return "", ""
}
