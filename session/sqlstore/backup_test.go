// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// wholeStore proves that a store has nothing damaged.
func wholeStore(t *testing.T, s session.Verifier) {
	t.Helper()
	for d, err := range s.Verify(t.Context()) {
		t.Errorf("%v %v", d, err)
	}
}

// J14: a backup that is made while another process writes holds a whole log up to
// some entry, with its payloads; it is a store that goes on.
func TestBackupWhileWriting(t *testing.T) {
	dir := t.TempDir()
	where, file := filepath.Join(dir, "s.db"), filepath.Join(dir, "copy.db")
	s := reopen(t, where)
	p := start(t, "write", where)
	for range 30 {
		p.line(t)
	}
	said := number(t, p.line(t))
	done, err := s.Backup(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	number(t, p.line(t)) // it still writes
	p.kill()
	if info, err := os.Stat(file); err != nil || info.Size() != done.Bytes || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	copied := reopen(t, file)
	wholeStore(t, copied)
	n := checkSteps(t, copied, "a")
	if n < said || int64(n) != done.Entries || done.Sessions != 1 || done.Blobs == 0 {
		t.Errorf("%d entries, %d were written before; %+v", n, said, done)
	}
	mustAppend(t, copied, "a", int64(n), step(n)...)
	checkSteps(t, copied, "a")
	if left, _ := filepath.Glob(filepath.Join(dir, ".antiphon-*")); left != nil {
		t.Errorf("left: %v", left)
	}
}

// J14: after a kill in the middle of a backup no file has its name, and the store
// is as it was.
func TestBackupKilled(t *testing.T) {
	dir := t.TempDir()
	where, file := filepath.Join(dir, "s.db"), filepath.Join(dir, "s.db.backup")
	s := reopen(t, where)
	n := 0
	for range 200 {
		bodies := step(n)
		mustAppend(t, s, "a", int64(n), bodies...)
		n += len(bodies)
	}
	mustAppend(t, s, "a", int64(n), session.InputItem{Item: image(8<<20, 1)})
	for range 5 {
		p := start(t, "backup", where)
		if got := p.line(t); got != "begins" { // its parent kills it somewhere behind that
			t.Fatal(got)
		}
		for range 30_000 {
			drafts, _ := filepath.Glob(filepath.Join(dir, ".antiphon-backup-*"))
			if _, err := os.Stat(file); err == nil || len(drafts) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		p.kill()
		if info, err := os.Stat(file); err == nil { // it was faster: then it is whole
			copied := reopen(t, file)
			wholeStore(t, copied)
			if err := copied.Close(); err != nil || info.Size() == 0 {
				t.Error(err)
			}
			_ = os.Remove(file)
		}
		drafts, _ := filepath.Glob(filepath.Join(dir, ".antiphon-backup-*"))
		for _, draft := range drafts {
			_ = os.Remove(draft)
		}
	}
	wholeStore(t, s)
}

// J14: a backup replaces nothing, and a store that is damaged gives none.
func TestBackupRefused(t *testing.T) {
	s, where := newSQLite(t)
	mustAppend(t, s, "a", 0, session.InputItem{Item: image(10_000, 1)}, session.RunStarted{})
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "copy.db"), "mine")
	_, err := s.Backup(t.Context(), file)
	wantError(t, err, file, "exists already", "another name")
	if text, _ := os.ReadFile(file); string(text) != "mine" || !errors.Is(err, fs.ErrExist) {
		t.Errorf("%q %v", text, err)
	}
	_, err = s.Backup(t.Context(), filepath.Join(dir, "missing", "copy.db"))
	wantError(t, err, "copy.db", "does not exist", "")
	db, err := openSQLite(where)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE antiphon_entries SET data = CAST(replace(CAST(data AS text), 'input_image', 'input_imagf') AS blob)`); err != nil {
		t.Fatal(err)
	}
	_, err = s.Backup(t.Context(), filepath.Join(dir, "other.db"))
	if !errors.Is(err, session.ErrDamaged) || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// A restored store is the backup, byte for byte.
func TestBackupRestored(t *testing.T) {
	s, where := newSQLite(t)
	n := 0
	for range 20 {
		bodies := step(n)
		mustAppend(t, s, "a", int64(n), bodies...)
		n += len(bodies)
	}
	file := filepath.Join(t.TempDir(), "copy.db")
	if _, err := s.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "a", int64(n), session.RunStarted{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"-wal", "-shm"} {
		_ = os.Remove(where + end) // as the documents say
	}
	if err := os.WriteFile(where, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, where)
	wholeStore(t, s)
	if got := checkSteps(t, s, "a"); got != n {
		t.Errorf("%d entries, want %d", got, n)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, text) {
		t.Error("the backup was changed", err)
	}
}

// A Postgres store says what to use instead.
func TestBackupPostgres(t *testing.T) {
	s, err := openAny(t.Context(), postgresDSN(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Backup(t.Context(), filepath.Join(t.TempDir(), "x"))
	wantError(t, err, "", "only stores that are files", "pg_dump")
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
