// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/session"
)

// Hold makes this process the only one that writes to the transcript at out, as
// [OpenTranscript] does, for a program that puts another file in its place. The
// error wraps [session.ErrBusy] if somebody else has it, and
// [errors.ErrUnsupported] where the file system has no locks.
func Hold(out string) (release func() error, err error) { return hold(out) }

// hold takes the lock, and removes what a writer that died before the file was
// there has left. The lock is on a file beside it, since the transcript may not be
// there yet, and an editor may put another file in its place. One that is there is
// locked as well, for it may have another name that is not a link; in a folder that
// cannot be written to, it alone.
func hold(out string) (release func() error, err error) {
	path, err := real(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", out, plain(err))
	}
	dir, name := filepath.Split(path)
	hidden := filepath.Join(dir, ".chatmd")
	lock, err := filelock.Take(filepath.Join(hidden, name, "lock"))
	if err != nil && isReadOnly(err) {
		itself, fileErr := filelock.TakeFile(path)
		switch {
		case fileErr == nil:
			return itself.Release, nil
		case !errors.Is(fileErr, fs.ErrNotExist): // else the folder is what is in the way
			err = fileErr
		}
	}
	var onFile *filelock.Lock
	release = func() error {
		err := errors.Join(lock.Release(), onFile.Release())
		_ = os.Remove(filepath.Join(hidden, name)) // unless there are payloads in it
		_ = os.Remove(hidden)
		return err
	}
	if err == nil {
		if onFile, err = alsoItself(path); err != nil {
			err = errors.Join(err, release())
		}
	}
	var busy *filelock.BusyError
	switch {
	case err == nil:
	case errors.As(err, &busy):
		return nil, fmt.Errorf("%s: %w: %s; nothing was sent or written\n  hint: wait for it to end, or keep this conversation in another file", out, session.ErrBusy, cmp.Or(busy.Holder, "another process"))
	case errors.Is(err, errors.ErrUnsupported):
		return nil, fmt.Errorf("%s: this file system has no locks, so that two runs could write into each other's text: %w\n  hint: keep the transcript on a local disk, or the conversation in a session (--session)", out, err)
	default:
		return nil, fmt.Errorf("%s: locking it: %w", out, noRoom(err))
	}
	removeDrafts(dir, name)
	return release, nil
}

// real returns the path of a file, or of one that is to be made, with links
// followed, so that there is one lock for it.
func real(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	full, err := filepath.EvalSymlinks(abs)
	if !errors.Is(err, fs.ErrNotExist) {
		return full, err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the folder %s: %w", filepath.Dir(path), fs.ErrNotExist)
	}
	return filepath.Join(dir, filepath.Base(abs)), err
}

// removeDrafts removes the beginnings of new transcripts that a crash left beside
// them. See create.
func removeDrafts(dir, name string) {
	entries, err := os.ReadDir(cmp.Or(dir, "."))
	if err != nil {
		return // the run finds out
	}
	for _, e := range entries {
		pid, ok := strings.CutPrefix(e.Name(), name+".")
		if pid, draft := strings.CutSuffix(pid, ".new"); ok && draft && pid != "" && strings.Trim(pid, "0123456789") == "" && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
