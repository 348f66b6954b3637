// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"crypto/rand"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
	"github.com/antiphon-go/antiphon/session/storetest"
)

func openSQLite(dsn string) (*sql.DB, error)   { return sql.Open("sqlite", dsn) }
func openPostgres(dsn string) (*sql.DB, error) { return sql.Open("pgx", dsn) }

// fast makes watchers of tests look often.
var fast = sqlstore.Options{Poll: 5 * time.Millisecond, Retry: 5 * time.Second}

// impatient is for tests of errors that may pass, and do not.
var impatient = sqlstore.Options{Poll: fast.Poll, Retry: -1}

// newSQLite opens a store in a file of its own.
func newSQLite(t testing.TB) (*sqlstore.Store, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sessions.db")
	return reopen(t, file), file
}

func reopen(t testing.TB, file string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.OpenSQLite(t.Context(), file, openSQLite, fast)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// postgresDSN returns a connection string to a schema of the test's own.
func postgresDSN(t testing.TB) string {
	t.Helper()
	dsn := os.Getenv("ANTIPHON_POSTGRES")
	if dsn == "" {
		t.Skip("no ANTIPHON_POSTGRES: `.ci/postgres go test ./session/sqlstore` starts a server and sets it")
	}
	schema := "test_" + strings.ToLower(rand.Text())
	db, err := openPostgres(dsn)
	if err != nil {
		t.Fatal(err)
	}
	do := func(statements ...string) {
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				t.Error(err)
			}
		}
	}
	drop := []string{"DROP SCHEMA " + schema + " CASCADE"}
	t.Cleanup(func() {
		do(drop...)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	do("CREATE SCHEMA " + schema)
	pooler := os.Getenv("ANTIPHON_PGBOUNCER")
	if pooler == "" {
		return dsn + " search_path=" + schema
	}
	// A pooler refuses the search path, so it is that of a user of the test's own.
	do("CREATE ROLE "+schema+" SUPERUSER LOGIN", "ALTER ROLE "+schema+" SET search_path = "+schema)
	// What still runs may hold locks. Connections that wait are left to the pooler, which closes
	// them soon: PgBouncer 1.18 ends if one is lost whose last query is just being cancelled.
	drop = append([]string{"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '" + schema + "' AND state <> 'idle'"}, append(drop, "DROP ROLE "+schema)...)
	return strings.Replace(pooler, "user=antiphon", "user="+schema, 1) + pooled
}

// pooled is what a connection string needs behind a pooler.
const pooled = " default_query_exec_mode=exec"

// unsafe takes the server of .ci/postgres, which does not wait for its disk.
const unsafe = " antiphon_unsafe=fsync"

func newPostgres(t testing.TB, dsn string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.OpenPostgres(t.Context(), dsn+unsafe, openPostgres, fast)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// The contract of stores, on a real file and on a real server.
func TestStoreSQLite(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T) session.Store {
		s, _ := newSQLite(t)
		return s
	})
}

// The contract of stores, where all that was said is encrypted; but there is no
// index of words.
func TestStoreEncrypted(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs the suite of TestStoreSQLite again, encrypted")
	}
	storetest.TestStore(t, func(t *testing.T) session.Store {
		return sealed(t, filepath.Join(t.TempDir(), "sessions.db"), sqlstore.NewSecret())
	})
}

func TestStorePostgres(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T) session.Store { return newPostgres(t, postgresDSN(t)) })
}
