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

// Hold makes this process the only writer of the transcript at out, as
// [OpenTranscript] does, for a program that replaces the file. If another process
// has the lock, the error wraps [session.ErrBusy]; if the file system does not
// support locks, it wraps [errors.ErrUnsupported].
func Hold(out string) (release func() error, err error) { return hold(out) }

// hold takes the lock, and removes the drafts of a writer that died before it
// created the transcript. The lock is on a separate file beside the transcript,
// because the transcript may not exist yet, and an editor may replace it. An
// existing transcript is locked too, because it may have another name as a hard
// link. In a folder without write access, only the transcript is locked. Links in the
// place of the lock or its folders are refused, because a stranger may have chosen
// where they lead.
func hold(out string) (release func() error, err error) {
	path, err := real(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", out, plain(err))
	}
	dir, name := filepath.Split(path)
	hidden := filepath.Join(dir, ".chatmd")
	for _, folder := range []string{hidden, filepath.Join(hidden, name)} {
		if info, err := os.Lstat(folder); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("%s: locking it: %s is a link or a file, not a folder; remove it", out, folder)
		}
	}
	lock, err := filelock.Take(filepath.Join(hidden, name, "lock"))
	if err != nil && isReadOnly(err) {
		itself, fileErr := filelock.TakeFile(path)
		switch {
		case fileErr == nil:
			return itself.Release, nil
		case !errors.Is(fileErr, fs.ErrNotExist): // otherwise the folder is the problem
			err = fileErr
		}
	}
	var onFile *filelock.Lock
	release = func() error {
		err := errors.Join(lock.Release(), onFile.Release())
		_ = os.Remove(filepath.Join(hidden, name)) // fails if payloads are in it
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
		return nil, fmt.Errorf("%s: this file system does not support locks, so two runs could write into each other's text: %w\n  hint: keep the transcript on a local disk, or the conversation in a session (--session)", out, err)
	default:
		return nil, fmt.Errorf("%s: locking it: %w", out, noRoom(err))
	}
	removeDrafts(dir, name)
	return release, nil
}

// real returns the path of an existing or future file with links resolved, so that
// the file has a single lock.
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

// removeDrafts removes drafts of new transcripts that a crash left behind. See
// create.
func removeDrafts(dir, name string) {
	entries, err := os.ReadDir(cmp.Or(dir, "."))
	if err != nil {
		return // the run reports the error
	}
	for _, e := range entries {
		pid, ok := strings.CutPrefix(e.Name(), name+".")
		if pid, draft := strings.CutSuffix(pid, ".new"); ok && draft && pid != "" && strings.Trim(pid, "0123456789") == "" && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
