// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/antiphon-go/antiphon/session/store"
)

// Backup writes a copy of the whole store, with all payloads, to a new file. Other
// writers may continue: the copy holds what was committed when Backup began. The
// copy is an ordinary store in a single file.
//
// Backup reads the copy back and compares every entry and payload with its checksum
// before the file gets its name. Until then a draft with another name is beside it,
// so that a crash never leaves an incomplete file under the name. Backup does not
// replace an existing file. Only the file's owner can read it.
//
// Backup works only for a store in a file. For Postgres, use pg_dump.
func (s *Store) Backup(ctx context.Context, file string) (store.BackedUp, error) {
	if err := s.opened(); err != nil {
		return store.BackedUp{}, err
	}
	if s.postgres {
		return store.BackedUp{}, &Error{Store: s.place, Op: "backing up", Problem: "this program copies only stores that are files",
			Hint: "use the server's own tool: pg_dump --format=custom --table='antiphon_*', and pg_restore; one session goes to a file by `antiphon sessions export`"}
	}
	done, err := s.backup(ctx, file)
	var known *Error
	if problem, hint := explain(err); problem != "" && !errors.As(err, &known) {
		return done, &Error{Store: file, Op: "backing up", Problem: problem, Hint: hint, Err: err}
	}
	return done, s.fail("backing up", err)
}

func (s *Store) backup(ctx context.Context, file string) (done store.BackedUp, err error) {
	if file, err = filepath.Abs(file); err != nil {
		return done, err
	}
	if _, err := os.Lstat(file); err == nil {
		return done, fileExists(file)
	}
	draft, err := os.CreateTemp(filepath.Dir(file), ".antiphon-backup-*") // mode 0600
	if err != nil {
		return done, err
	}
	defer os.Remove(draft.Name())
	if err := draft.Close(); err != nil {
		return done, err
	}
	if _, err := s.db.ExecContext(ctx, `VACUUM INTO ?`, draft.Name()); err != nil {
		// The driver's error does not say that the disk is full.
		if freeBytes(draft.Name()) < probeSize {
			return done, &fs.PathError{Op: "write", Path: file, Err: syscall.ENOSPC}
		}
		return done, err
	}
	// If the file at the store's path is a different one by now, this is not a copy
	// of it.
	if err := s.moved(); err != nil {
		return done, err
	}
	if err := syncFile(draft.Name()); err != nil {
		return done, err
	}
	if done, err = s.checkCopy(ctx, draft.Name()); err != nil {
		return done, err
	}
	if err := nameFile(draft.Name(), file); err != nil {
		return done, err
	}
	return done, syncFolder(filepath.Dir(file))
}

// fileExists returns the error for a backup to a file that exists.
func fileExists(file string) error {
	return &Error{Store: file, Op: "backing up", Problem: "the file exists already", Hint: "choose another name, or remove it: a backup never replaces a file", Err: fs.ErrExist}
}

// checkCopy verifies a copy that is not in use and counts its contents. The error is
// the first damage found.
func (s *Store) checkCopy(ctx context.Context, file string) (done store.BackedUp, err error) {
	db, err := s.open(sqliteDSN(file, s.wait) + "&mode=ro")
	if err != nil {
		return done, err
	}
	reads := tx{q: db, prepared: new(sync.Map)}
	// A copy has the same salt, so it is read with the seal of the original.
	c := &Store{db: db, place: file, wait: s.wait, reads: reads, seal: s.seal}
	defer func() { err = errors.Join(err, closeStatements(reads.prepared), db.Close()) }()
	for d, err := range c.Verify(ctx) {
		if err == nil {
			err = fmt.Errorf("nothing was written, because what is stored is damaged: %w", &d)
		}
		return done, err
	}
	for query, into := range map[string]any{
		`SELECT count(*) FROM antiphon_sessions`:                  &done.Sessions,
		`SELECT coalesce(sum(entries), 0) FROM antiphon_sessions`: &done.Entries,
		`SELECT count(*) FROM antiphon_blobs`:                     &done.Blobs,
	} {
		if err := db.QueryRowContext(ctx, query).Scan(into); err != nil {
			return done, err
		}
	}
	info, err := os.Stat(file)
	if err == nil {
		done.Bytes = info.Size()
	}
	return done, err
}

// closeStatements closes the prepared statements in a map from their texts.
func closeStatements(prepared *sync.Map) (err error) {
	prepared.Range(func(_, stmt any) bool {
		err = errors.Join(err, stmt.(*sql.Stmt).Close())
		return true
	})
	return err
}

// nameFile gives a draft its final name, unless another file has that name. It
// prefers a hard link to a rename because a link fails, atomically, if the name is
// taken.
func nameFile(draft, file string) error {
	err := os.Link(draft, file)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return fileExists(file)
	}
	if _, err := os.Lstat(file); err == nil { // the file system has no hard links
		return fileExists(file)
	}
	return os.Rename(draft, file)
}

// syncFile waits until a file's contents are on the disk.
func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFolder waits until the names in a folder are on the disk. On Windows, which
// cannot sync a folder, it does nothing.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
