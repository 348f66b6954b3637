// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

const planted = "xyzzy-planted-secret"

// plant makes sessions that say the secret in texts, names, titles, payloads and
// spilled outputs, between others that stay.
func plant(t *testing.T, s *sqlstore.Store) (secret []string) {
	t.Helper()
	ctx := t.Context()
	for n := range 16 {
		id := fmt.Sprintf("%s-%d", planted, n)
		secret = append(secret, id)
		if err := s.Create(ctx, session.Info{ID: id, Name: id, Path: "/" + planted}); err != nil {
			t.Fatal(err)
		}
		for i := range int64(40) {
			mustAppend(t, s, id, i, session.InputItem{Item: item.User(fmt.Sprintf("%s %d %s", planted, i, strings.Repeat("word ", int(i*7%90))))})
			mustAppend(t, s, fmt.Sprintf("stays-%d", n), i, session.InputItem{Item: item.User(strings.Repeat("stays ", int(i*5%70)))})
		}
		if _, err := s.PutBlob(ctx, id, []byte(strings.Repeat(planted, 500+n))); err != nil {
			t.Fatal(err)
		}
	}
	long := secret[0]
	unlock, err := s.Lock(ctx, long)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(1500) {
		mustAppend(t, s, long, 40+i, session.InputItem{Item: item.User(fmt.Sprintf("%s %d", planted, i))})
	}
	if err := unlock(); err != nil { // its rows are put together, and thereby moved
		t.Fatal(err)
	}
	return secret
}

// occurrences counts the secret in all files of a folder.
func occurrences(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		n += bytes.Count(data, []byte(planted))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// J9: after deleting and sweeping, no byte of what was said is in any file.
func TestDeletedIsErased(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: searches many files for deleted bytes")
	}
	s, file := newSQLite(t)
	secret := plant(t, s)
	dir := filepath.Dir(file)
	if n := occurrences(t, dir); n < 1000 {
		t.Fatalf("the secret is there %d times: the test proves nothing", n)
	}
	for _, id := range secret {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if swept, err := s.Sweep(t.Context(), false); err != nil || swept.Left != "" {
		t.Fatalf("%+v, %v", swept, err)
	}
	if n := occurrences(t, dir); n != 0 {
		t.Errorf("the secret is still there %d times", n)
	}
	for n := range 16 {
		if got := len(loadAll(t, s, fmt.Sprintf("stays-%d", n))); got != 40 {
			t.Errorf("%d entries of another session", got)
		}
	}
	mustAppend(t, s, "stays-0", 40, session.RunStarted{})
}

// J9: while another process reads what was before, a sweep says that not
// everything is erased, and the next one erases it.
func TestErasureWaitsForReaders(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits for readers")
	}
	file := filepath.Join(t.TempDir(), "sessions.db")
	s, err := sqlstore.OpenSQLite(t.Context(), file, openSQLite, sqlstore.Options{Wait: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	secret := plant(t, s)
	db, err := openSQLite(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	reading, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reading.QueryRow("SELECT count(*) FROM antiphon_entries").Scan(&n); err != nil {
		t.Fatal(err)
	}
	for _, id := range secret {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	swept, err := s.Sweep(t.Context(), false)
	if err != nil || !strings.Contains(swept.Left, "-wal") {
		t.Errorf("%+v, %v: want a word about the -wal file", swept, err)
	}
	if err := reading.Rollback(); err != nil {
		t.Fatal(err)
	}
	if swept, err = s.Sweep(t.Context(), false); err != nil || swept.Left != "" {
		t.Errorf("%+v, %v", swept, err)
	}
	if n := occurrences(t, filepath.Dir(file)); n != 0 {
		t.Errorf("the secret is still there %d times", n)
	}
}

// J9: on Postgres nothing of it is in the tables, and what the server keeps
// elsewhere is said.
func TestDeletedIsErasedOnPostgres(t *testing.T) {
	dsn := postgresDSN(t)
	s := newPostgres(t, dsn)
	for _, id := range plant(t, s) {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	swept, err := s.Sweep(t.Context(), false)
	if err != nil || !strings.Contains(swept.Left, "write-ahead log") {
		t.Errorf("%+v, %v: want a word about the server's log", swept, err)
	}
	db := openPlain(t, dsn)
	for _, table := range tables {
		var raw []byte
		if err := db.QueryRow("SELECT coalesce(string_agg(pg_read_binary_file(pg_relation_filepath(c.oid)), ''), '') FROM pg_class c WHERE c.relname = $1 AND c.relnamespace = current_schema()::regnamespace", "antiphon_"+table).Scan(&raw); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(raw, []byte(planted)); n != 0 {
			t.Errorf("table %s still has the secret %d times", table, n)
		}
	}
}
