// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/session"
)

func files(texts ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i, text := range texts {
		fs["migrations/sqlite/000"+string(rune('1'+i))+".sql"] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

// From every version to the newest one, in one step and in any number of steps.
func TestMigrate(t *testing.T) {
	texts := []string{
		"CREATE TABLE a (x INTEGER);\nINSERT INTO a VALUES (1);\n",
		"ALTER TABLE a ADD COLUMN y INTEGER;\nUPDATE a SET y = x + 1;\n",
		"CREATE TABLE b AS SELECT x + y AS z FROM a;\nDROP TABLE a;\n",
	}
	for from := range len(texts) + 1 {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "m.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, upTo := range []int{from, len(texts), len(texts)} {
			if upTo == 0 {
				continue
			}
			all, err := migrationsOf(files(texts[:upTo]...), "sqlite")
			if err != nil {
				t.Fatal(err)
			}
			if err := migrate(t.Context(), &tx{q: db}, all); err != nil {
				t.Fatalf("from %d to %d: %v", from, upTo, err)
			}
		}
		var z int
		if err := db.QueryRow("SELECT z FROM b").Scan(&z); err != nil || z != 3 {
			t.Errorf("from %d: %d, %v", from, z, err)
		}
		all, _ := migrationsOf(files(texts[:2]...), "sqlite")
		err = migrate(t.Context(), &tx{q: db}, all)
		if !errors.Is(err, session.ErrNewer) || !strings.Contains(err.Error(), "format 3") || !strings.Contains(err.Error(), "up to 2") {
			t.Errorf("an older program: got %v, want ErrNewer with both versions", err)
		}
	}
	gap := files("x", "y", "z")
	delete(gap, "migrations/sqlite/0002.sql")
	if _, err := migrationsOf(gap, "sqlite"); err == nil || !strings.Contains(err.Error(), "migration 2 of sqlite is missing") {
		t.Errorf("got %v", err)
	}
}
