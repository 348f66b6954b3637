// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// OpenSQLite opens the store in a file, which is made if it is not there, with
// its folder, for the user alone. Beside it are SQLite's own files and a folder
// of locks, all of the file's name with something after it. The file must be on
// a disk of this machine.
func OpenSQLite(ctx context.Context, file string, open Opener, o Options) (s *Store, err error) {
	room := &Store{path: file, retry: cmp.Or(o.Retry, sqliteRetry)}
	err = room.again(ctx, room.isTransient, func() error { // as an append is
		s, err = openSQLite(ctx, file, open, o)
		return err
	})
	return s, err
}

// sqliteRetry is the default of [Options.Retry].
const sqliteRetry = 5 * time.Second

func openSQLite(ctx context.Context, file string, open Opener, o Options) (*Store, error) {
	s := &Store{place: file}
	path, err := makeFile(file)
	if problem, hint := explain(err); problem != "" {
		return nil, &Error{Store: file, Op: "opening", Problem: problem + " (" + err.Error() + ")", Hint: hint, Err: err}
	}
	if err != nil {
		return nil, &Error{Store: file, Op: "opening", Problem: err.Error(), Hint: "see whether the file and its folder may be written to, or choose another place", Err: err}
	}
	s.wait, s.path = waitOf(o), path
	db, err := open(sqliteDSN(path, s.wait))
	if err != nil {
		return nil, s.fail("opening", err)
	}
	s = newStore(db, file, o)
	s.path, s.open, s.retry, s.locker = path, open, cmp.Or(o.Retry, sqliteRetry), s.lockFile
	s.locks = path + "-locks"
	if err := s.openSQLite(ctx); err != nil {
		_ = s.Close() // what failed is told already
		return nil, s.fail("opening", err)
	}
	return s, nil
}

// makeFile makes the file and its folder, and returns its path with links
// resolved: whoever opens it by another name shares the locks.
func makeFile(file string) (string, error) {
	if file == "" || file == ":memory:" {
		return "", errors.New("a store wants a file; for one in memory there is session.Memory")
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		err = f.Close()
	case errors.Is(err, fs.ErrExist):
		err = nil
	}
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a file", path)
	}
	// SQLite would read it, and leave files beside it that cannot be written to
	// later either.
	return path, writable(path)
}

// sqliteDSN names the file as SQLite wants it, and how long connections wait for
// each other.
func sqliteDSN(path string, wait time.Duration) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive of Windows
	}
	u := url.URL{Scheme: "file", Path: path, OmitHost: true}
	return fmt.Sprintf("%s?_pragma=busy_timeout(%d)", &u, wait.Milliseconds())
}

// openSQLite takes the connection that writes and brings the file up to date.
func (s *Store) openSQLite(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	s.commit = &committer{conn: conn, tx: tx{q: conn, prepared: new(sync.Map)}}
	for _, pragma := range []string{
		"auto_vacuum = incremental", // of a new file
		"journal_mode = WAL",
		"synchronous = FULL",
		"fullfsync = ON", // on a Mac, where to wait for the disk is more than fsync
		"checkpoint_fullfsync = ON",
		"secure_delete = ON",
		"cell_size_check = ON", // a damaged page is noticed before it is used
	} {
		if err := s.pragma(ctx, pragma); err != nil {
			return err
		}
	}
	if err := s.checkDurable(ctx); err != nil {
		return err
	}
	all, err := ours("sqlite")
	if err != nil {
		return err
	}
	var version int
	newest := all[len(all)-1].version
	if conn.QueryRowContext(ctx, `SELECT max(version) FROM antiphon_format`).Scan(&version) == nil && version == newest {
		return s.openSeal(ctx, &s.reads)
	}
	err = s.commit.write(context.WithoutCancel(ctx), func(ctx context.Context, t *tx) error {
		var tables, ours int
		err := t.row(ctx, `SELECT count(*), coalesce(sum(name = 'antiphon_format'), 0) FROM sqlite_master`).Scan(&tables, &ours)
		if err != nil {
			return err
		}
		if tables > 0 && ours == 0 {
			return &Error{Store: s.place, Op: "opening", Problem: "this is the database of another program", Hint: "choose another file"}
		}
		return s.upToDate(ctx, t, all)
	})
	if err != nil {
		return err
	}
	return s.openSeal(ctx, &s.reads)
}

// checkDurable is the error for a file for which the settings that make it
// durable were not taken, which SQLite does not report.
func (s *Store) checkDurable(ctx context.Context) error {
	list, err := s.durableSQLite(ctx)
	if err != nil {
		return err
	}
	for _, setting := range list {
		if setting.Weak != "" && setting.Name != "file system" {
			return &Error{Store: s.place, Op: "opening", Problem: setting.Name + " is " + setting.Value + ": " + setting.Weak, Hint: "choose another disk"}
		}
	}
	return s.moved()
}

// pragma runs a pragma on the connection that writes. Where others open the file
// at the same moment it waits for them, which SQLite does not do by itself while
// the file is not in WAL mode.
func (s *Store) pragma(ctx context.Context, pragma string) error {
	began := time.Now()
	for {
		_, err := s.commit.conn.ExecContext(ctx, "PRAGMA "+pragma)
		if err == nil || !isBusy(err) || time.Since(began) > s.wait {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *committer) close() error {
	return errors.Join(closeStatements(c.tx.prepared), c.conn.Close())
}
