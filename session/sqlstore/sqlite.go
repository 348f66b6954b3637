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

// OpenSQLite opens the store in a file. It creates the file and its folder if they
// do not exist, accessible only to the user. SQLite's own files and a folder of
// locks are beside the file; their names begin with its name. The file must be on a
// local disk.
func OpenSQLite(ctx context.Context, file string, open Opener, o Options) (s *Store, err error) {
	room := &Store{path: file, retry: cmp.Or(o.Retry, sqliteRetry)}
	err = room.again(ctx, room.isTransient, func() error { // retried like an append
		s, err = openSQLite(ctx, file, open, o)
		return err
	})
	return s, err
}

// sqliteRetry is the default of [Options.Retry] for a file.
const sqliteRetry = 5 * time.Second

// openSQLite opens a store in a file once, without retries.
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
	db, err := open.open(sqliteDSN(path, s.wait))
	if err != nil {
		return nil, s.fail("opening", err)
	}
	s = newStore(db, file, o)
	s.path, s.open, s.retry = path, open, cmp.Or(o.Retry, sqliteRetry)
	s.locks = path + "-locks"
	if err := s.openSQLite(ctx); err != nil {
		_ = s.Close() // its error adds nothing to the first one
		return nil, s.fail("opening", err)
	}
	return s, nil
}

// makeFile creates the file and its folder if necessary. It returns the path with
// symbolic links resolved, so that all who open the file use the same locks,
// whatever name they open it by.
func makeFile(file string) (string, error) {
	if file == "" || file == ":memory:" {
		return "", errors.New("a store needs a file; for a store in memory use session.Memory")
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	// SQLite would create the file readable for others, subject to the umask.
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
	// SQLite would open a file that cannot be written, and leave files beside it
	// that cannot be written later either.
	return path, writable(path)
}

// sqliteDSN returns the connection string for a file. Wait is how long a connection
// waits for another one that writes.
func sqliteDSN(path string, wait time.Duration) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows path with a drive letter
	}
	u := url.URL{Scheme: "file", Path: path, OmitHost: true}
	return fmt.Sprintf("%s?_pragma=busy_timeout(%d)", &u, wait.Milliseconds())
}

// openSQLite opens the connection for all writes and migrates the file.
func (s *Store) openSQLite(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	s.commit = &committer{conn: conn, tx: tx{q: conn, prepared: new(sync.Map)}}
	for _, pragma := range []string{
		"auto_vacuum = incremental", // takes effect only in a new file
		"journal_mode = WAL",
		// In WAL mode, NORMAL could lose the last commits when the power fails.
		"synchronous = FULL",
		"fullfsync = ON", // on macOS, fsync alone does not wait for the disk
		"checkpoint_fullfsync = ON",
		"secure_delete = ON",
		"cell_size_check = ON", // detects a damaged page before using it
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
	// The file is normally up to date, and then opening it does not wait for a
	// writer.
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

// checkDurable returns an error if the settings that make the file durable did not
// take effect. SQLite itself does not report that.
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

// pragma runs a pragma on the connection for writes. It waits for other processes
// that open the file at the same moment, which SQLite does not do while the file is
// not yet in WAL mode.
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
