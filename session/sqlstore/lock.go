// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/antiphon-go/antiphon/session"
)

// Lock implements [session.Locker]. On SQLite it is a lock of the operating
// system on a file in a folder beside the database, on Postgres an advisory lock
// of a connection: both end with their process, and no file or row that is left
// behind locks anything.
func (s *Store) Lock(ctx context.Context, id string) (unlock func() error, err error) {
	if err = checkID(id); err != nil {
		return nil, err
	}
	lock := s.lockFile
	if s.postgres {
		lock = s.lockPostgres
	}
	release, err := lock(ctx, id)
	if err != nil {
		return nil, s.fail("locking the session", err)
	}
	return sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), s.wait)
		defer cancel()
		_ = s.tidy(ctx, id) // nothing is lost without it
		return release()
	}), nil
}

var (
	errBadConn = driver.ErrBadConn
	errLocked  = errors.New("the file is locked")
)

// lockKey returns a number for a name.
func lockKey(parts ...string) int64 {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// self says who this process is.
func self() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

func busy(who string) error {
	return fmt.Errorf("%w: %s\n  hint: end it or wait for it; to try something else, fork the session", session.ErrBusy, strings.TrimSpace(who))
}

// lockFile takes the session's lock file.
func (s *Store) lockFile(_ context.Context, id string) (unlock func() error, err error) {
	if err := os.MkdirAll(s.locks, 0o700); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(id))
	name := filepath.Join(s.locks, hex.EncodeToString(sum[:16]))
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(f); err != nil {
			who, _ := io.ReadAll(io.LimitReader(f, 1024))
			_ = f.Close() // it was only looked at
			if errors.Is(err, errLocked) {
				return nil, busy(string(who))
			}
			return nil, err
		}
		if same(f, name) {
			return holdFile(f, name)
		}
		_ = f.Close() // whoever had it before has removed it meanwhile
	}
}

// same reports whether the open file is the one of that name.
func same(f *os.File, name string) bool {
	open, err1 := f.Stat()
	named, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(open, named)
}

// holdFile writes who has the lock. The file is removed before the lock ends,
// where the system lets one.
func holdFile(f *os.File, name string) (unlock func() error, err error) {
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteAt([]byte(self()+"\n"), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		_ = os.Remove(name) // one that is left locks nothing
		return f.Close()
	}, nil
}
