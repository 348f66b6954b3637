// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/antiphon-go/antiphon/internal/filelock"
	"github.com/antiphon-go/antiphon/session"
)

var errBadConn = driver.ErrBadConn

// lockKey returns a number derived from a name.
func lockKey(parts ...string) int64 {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// busy returns the error for a session that who has locked.
func busy(who string) error {
	return fmt.Errorf("%w: %s\n  hint: end it or wait for it; to try something else, fork the session", session.ErrBusy, strings.TrimSpace(who))
}

// lockPatience is how long to wait for a lock. After a process was killed, its lock
// can outlive it briefly: a child that it was about to start still has the file
// open, or the kernel has not yet ended it.
const lockPatience = 300 * time.Millisecond

// wait waits for d, and returns false if ctx is done before that.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// lockOf returns the path of a session's lock file.
func (s *Store) lockOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(s.locks, hex.EncodeToString(sum[:16]))
}

// lockFile locks the session's lock file.
func (s *Store) lockFile(ctx context.Context, id string) (unlock func() error, err error) {
	lock, err := filelock.TakeWithin(ctx, s.lockOf(id), s.patience)
	var held *filelock.BusyError
	switch {
	case errors.As(err, &held):
		return nil, busy(cmp.Or(held.Holder, "another process"))
	case err != nil:
		return nil, err
	}
	return lock.Release, nil
}

// Locked implements [session.LockLister]. On SQLite a lock that is free has no file, unless its
// process was killed.
func (s *Store) Locked(ctx context.Context) (ids []string, err error) {
	if err := s.opened(); err != nil {
		return nil, err
	}
	look := s.lockedFiles
	if s.postgres {
		look = s.leased
	}
	err = s.reading(ctx, func() (err error) {
		ids, err = look(ctx)
		return err
	})
	if err != nil {
		return nil, s.fail("looking for locked sessions", err)
	}
	return ids, nil
}

// lockedFiles returns the sessions whose lock files are locked.
func (s *Store) lockedFiles(ctx context.Context) (ids []string, err error) {
	files, err := os.ReadDir(s.locks)
	if len(files) == 0 {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	there := map[string]bool{}
	for _, f := range files {
		there[f.Name()] = true
	}
	all, err := s.reads.texts(ctx, `SELECT id FROM antiphon_sessions ORDER BY id`)
	for _, id := range all {
		if there[filepath.Base(s.lockOf(id))] && s.isHeld(ctx, id, "") {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// leased returns the sessions with a lease that has not ended.
func (s *Store) leased(ctx context.Context) (ids []string, err error) {
	rows, err := s.reads.rows(ctx, `SELECT id, owner FROM antiphon_leases WHERE until > clock_timestamp() ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, owner string
		if err := rows.Scan(&id, &owner); err != nil {
			return nil, err
		}
		if !isDead(owner) {
			ids = append(ids, id)
		}
	}
	return ids, cmp.Or(rows.Err(), rows.Close())
}

var _ session.LockLister = (*Store)(nil)
