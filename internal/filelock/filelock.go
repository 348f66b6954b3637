// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

// Package filelock locks files. A lock belongs to the operating system: it ends with
// its process, and a file that is left behind is not locked.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/lazyregexp"
)

// BusyError means that another process has the lock.
type BusyError struct {
	// Holder names the process, such as "process 17 on host", or is "" if it is not
	// known.
	Holder string
}

// Error names the holder.
func (e *BusyError) Error() string {
	if e.Holder == "" {
		return "another process has the lock"
	}
	return e.Holder + " has the lock"
}

var errLocked = errors.New("the file is locked")

// patience is how long [Take] and [TakeFile] retry, and pause the delay between
// attempts. A process that was killed while it started another one leaves the lock
// to that one for an instant.
const (
	patience = 200 * time.Millisecond
	pause    = 10 * time.Millisecond
)

// Lock is a lock held by this process.
type Lock struct {
	file *os.File
	path string // the lock's own file, or ""
}

// Take creates the file at path with its folders, and locks it. The file names the
// holder of the lock; [Lock.Release] removes it. The error is a [*BusyError] if
// another process has the lock, and wraps [errors.ErrUnsupported] if the file system
// does not support locks. It neither follows a link at path nor writes to a file that
// is not a lock, because the folder may come from a stranger; both are an error. Links
// to folders are followed.
func Take(path string) (*Lock, error) {
	return TakeWithin(context.Background(), path, patience)
}

// TakeWithin is like [Take], with a time to wait for another holder. It tries at
// least once; if ctx is done, it returns the error of the last attempt.
func TakeWithin(ctx context.Context, path string, patience time.Duration) (*Lock, error) {
	return retry(ctx, patience, func() (*Lock, error) { return take(path) })
}

// TakeFile locks an existing file without changing its text.
func TakeFile(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	l, err := retry(context.Background(), patience, func() (*Lock, error) {
		if err := flock(f); err != nil {
			return nil, busyOr(err, "")
		}
		return &Lock{file: f}, nil
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// retry tries until it gets the lock or a permanent error.
func retry(ctx context.Context, patience time.Duration, try func() (*Lock, error)) (*Lock, error) {
	for began := time.Now(); ; {
		l, err := try()
		var busy *BusyError
		if err == nil || !errors.As(err, &busy) || time.Since(began) > patience {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

func take(path string) (*Lock, error) {
	f, err := create(path)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		who, _ := io.ReadAll(io.LimitReader(f, 1024))
		_ = f.Close() // it was not written
		return nil, busyOr(err, strings.TrimSpace(string(who)))
	}
	if !same(f, path) { // the last holder removed it in the meantime
		return nil, errors.Join(&BusyError{}, f.Close())
	}
	if err := isLock(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Truncate(0), writeAt(f, Self()+"\n")); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{file: f, path: path}, nil
}

// create opens the file at path and makes what is missing: the file and its folders.
// Others may remove the folders meanwhile, as the holder of a lock does that leaves
// nothing behind. So it tries again, but not for long: where a folder cannot be made
// at all, the error is the same, and nobody is about to make it.
func create(path string) (f *os.File, err error) {
	for range 1000 {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			f, err = open(path)
		}
		// A folder that vanishes in the middle of MkdirAll is reported as existing.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, err
}

// open creates the file at path, or opens the regular file that is there. If a link
// takes its place in between, same finds that out before anything is written.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%s is a link, not a lock; remove it", path)
	case !info.Mode().IsRegular():
		return nil, notALock(path)
	}
	return os.OpenFile(path, os.O_RDWR, 0)
}

func notALock(path string) error {
	return fmt.Errorf("%s is not a lock; move it away", path)
}

// lockText matches what is in the file of a lock: who had it, or nothing.
var lockText = lazyregexp.New(`^(process [0-9]+ on .*\n)?$`)

// isLock returns an error unless the open file is one that this package wrote.
func isLock(f *os.File, path string) error {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1024))
	if err == nil && !lockText.Match(text) {
		err = notALock(path)
	}
	return err
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

func busyOr(err error, who string) error {
	if errors.Is(err, errLocked) {
		return &BusyError{Holder: who}
	}
	return err
}

// same reports whether the open file is the file with that name, which is not a link.
func same(f *os.File, name string) bool {
	open, err1 := f.Stat()
	named, err2 := os.Lstat(name)
	return err1 == nil && err2 == nil && os.SameFile(open, named)
}

// Self names this process, for the error that other processes report.
func Self() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// Release releases the lock. It may be called more than once, and on nil.
func (l *Lock) Release() error {
	if l == nil || l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	if l.path != "" {
		_ = os.Remove(l.path) // a file that is left is not locked
	}
	return f.Close()
}
