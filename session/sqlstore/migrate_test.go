// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/queue"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

var update = flag.Bool("update", false, "write the database of the newest format anew")

// J5: a database of each earlier format opens, in one step, and has what it had.
// testdata/sqlite-N.sql and postgres-N.sql are databases as format N had them;
// when there is a new format, go test -update writes the new one (with a server
// for Postgres) and leaves the earlier ones alone.
func TestFormats(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: opens databases of all formats")
	}
	places(t, func(t *testing.T, where string) {
		dialect := "sqlite"
		if strings.HasPrefix(where, "host=") {
			dialect = "postgres"
		}
		newest, schema := sqlstore.Formats(dialect)
		file := filepath.Join("testdata", fmt.Sprintf("%s-%d.sql", dialect, newest))
		if *update {
			s := openHere(t, where)
			populate(t, s)
			label(t, s)
			mail(t, s)
			work(t, s)
			limits(t, s)
			dump := schema + "CREATE TABLE antiphon_format (version INTEGER NOT NULL);\n" + rowsOf(t, where)
			if err := os.WriteFile(file, []byte(dump), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		for version := 1; version <= newest; version++ {
			t.Run(fmt.Sprint(version), func(t *testing.T) {
				dump, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("%s-%d.sql", dialect, version)))
				if err != nil {
					t.Fatalf("%v: go test -run TestFormats -update writes it", err)
				}
				where := filepath.Join(t.TempDir(), "old.db")
				if dialect == "postgres" {
					where = postgresDSN(t)
				}
				restore(t, where, string(dump))
				s := openHere(t, where)
				if got, want := describe(t, s), described(t, version); got != want {
					t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
				}
				mustAppend(t, s, "main", 302, session.RunStarted{})
				mustAppend(t, s, "new", 0, session.InputItem{Item: image(9000, 1)})
				if now := versionIn(t, where); now != newest {
					t.Errorf("format %d, want %d", now, newest)
				}
			})
		}
	})
}

// populate writes a bit of everything.
func populate(t *testing.T, store session.Store) {
	t.Helper()
	s := store.(*sqlstore.Store)
	if err := s.Create(t.Context(), session.Info{ID: "main", Name: "n'ame", Path: "/p/a.md"}); err != nil {
		t.Fatal(err)
	}
	var bodies []session.Body
	for n := range 300 {
		bodies = append(bodies, session.TurnStarted{Turn: n})
	}
	mustAppend(t, s, "main", 0, bodies...)
	mustAppend(t, s, "main", 300, session.InputItem{Item: item.User("it's \"said\"")})
	mustAppend(t, s, "main", 301, session.InputItem{Item: image(5000, 3)})
	mustAppend(t, s, "main/1-call", 0, session.RunStarted{})
	if err := s.Fork(t.Context(), "main", 301, "fork"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "fork", 301, session.Stopped{Why: "answered"})
	if _, err := s.PutBlob(t.Context(), "fork", []byte("a spilled output")); err != nil {
		t.Fatal(err)
	}
	if err := s.Archive(t.Context(), "fork", true); err != nil {
		t.Fatal(err)
	}
}

// describe says what a store has, without times.
func describe(t *testing.T, store session.Store) string {
	t.Helper()
	s := store.(session.Catalog)
	var b strings.Builder
	for i, err := range s.List(t.Context(), session.Query{Archived: true, Nested: true}) {
		if err != nil {
			t.Fatal(err)
		}
		i.Created, i.Updated, i.Cursor = session.Info{}.Created, session.Info{}.Updated, ""
		fmt.Fprintf(&b, "%+v\n", i)
		for _, e := range loadAll(t, s, i.ID) {
			fmt.Fprintln(&b, line(t, e))
		}
		for d, err := range s.(session.Inbox).Deliveries(t.Context(), i.ID) {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%+v\n", d)
		}
	}
	for w, err := range s.(queue.Queue).Works(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		w.Since = time.Time{}
		fmt.Fprintf(&b, "%+v\n", w)
	}
	list, err := s.(queue.Limits).Endpoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s%+v\n", b.String(), list)
}

// label writes what formats before 3 have no place for.
func label(t *testing.T, store session.Store) {
	t.Helper()
	s := store.(session.Catalog)
	title, owner := "called so", "ann"
	if err := s.Label(t.Context(), "main", session.Labels{Title: &title, Owner: &owner, Tags: []string{"b", "a=1"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), session.Info{ID: "owned", Owner: "bob", Tags: []string{"b"}}); err != nil {
		t.Fatal(err)
	}
}

// mail writes what formats before 5 have no place for.
func mail(t *testing.T, store session.Store) {
	t.Helper()
	s := store.(session.Inbox)
	taken := session.Delivery{Delivered: session.Delivered{Key: "1", By: "ann"}, Bodies: []session.Body{session.InputItem{Item: item.User("taken")}}}
	waits := session.Delivery{Delivered: session.Delivered{Key: "2", By: "bob"}, Bodies: []session.Body{session.InputItem{Item: item.User("waits")}}}
	for _, d := range []session.Delivery{taken, waits} {
		if _, err := s.Deliver(t.Context(), "fork", d); err != nil {
			t.Fatal(err)
		}
	}
	taken.Delivered.Entries = 1
	mustAppend(t, s, "fork", 302, taken.Delivered, taken.Bodies[0])
}

// work writes what formats before 7 have no place for.
func work(t *testing.T, store session.Store) {
	t.Helper()
	s := store.(queue.Queue)
	for _, w := range []queue.Work{{Session: "main", Agent: "hash", Tenant: "ann", Priority: 2, Needs: []string{"gpu"}, Due: time.UnixMilli(1e12)}, {Session: "fork"}} {
		if err := s.Enqueue(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	fork, err := s.Work(t.Context(), "fork")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Move(t.Context(), fork, queue.Parked, "by hand"); err != nil {
		t.Fatal(err)
	}
}

// limits writes what formats before 9 have no place for.
func limits(t *testing.T, store session.Store) {
	t.Helper()
	s := store.(queue.Limits)
	if err := s.Limit(t.Context(), "http://localhost:1/v1", queue.Caps{Requests: 60, Runs: 2}); err != nil {
		t.Fatal(err)
	}
}

func described(t *testing.T, version int) string {
	t.Helper()
	s, _ := newSQLite(t)
	populate(t, s)
	if version >= 3 {
		label(t, s)
	}
	if version >= 5 {
		mail(t, s)
	}
	if version >= 7 {
		work(t, s)
	}
	if version >= 9 {
		limits(t, s)
	}
	return describe(t, s)
}

// openPlain opens the database of a store, by the way of no pooler.
func openPlain(t *testing.T, where string) *sql.DB {
	t.Helper()
	open := openSQLite
	if strings.HasPrefix(where, "host=") {
		open, where = openPostgres, strings.Replace(where, " port=6432", "", 1)
	}
	db, err := open(where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // it was only looked at
	return db
}

var tables = []string{"format", "logs", "sessions", "entries", "blobs", "chunks", "refs", "tags", "inbox", "work", "endpoints", "schedules"}

// rowsOf returns the rows of all tables as statements.
func rowsOf(t *testing.T, where string) string {
	t.Helper()
	db := openPlain(t, where)
	postgres := strings.HasPrefix(where, "host=")
	var b strings.Builder
	for _, table := range tables {
		rows, err := db.Query("SELECT * FROM antiphon_" + table + " ORDER BY 1, 2")
		if table == "format" {
			rows, err = db.Query("SELECT * FROM antiphon_format")
		}
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			var literals []string
			for _, v := range values {
				literals = append(literals, literal(v, postgres))
			}
			overriding := ""
			if postgres && (table == "logs" || table == "blobs") {
				overriding = " OVERRIDING SYSTEM VALUE"
			}
			fmt.Fprintf(&b, "INSERT INTO antiphon_%s (%s)%s VALUES (%s);\n", table, strings.Join(columns, ", "), overriding, strings.Join(literals, ", "))
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if postgres && (table == "logs" || table == "blobs") {
			fmt.Fprintf(&b, "SELECT setval(pg_get_serial_sequence('antiphon_%s', '%s'), 100);\n", table, columns[0])
		}
	}
	var touches int
	if postgres {
		if err := db.QueryRow("SELECT last_value FROM antiphon_touches").Scan(&touches); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "SELECT setval('antiphon_touches', %d);\n", touches)
	} else {
		if err := db.QueryRow("SELECT n FROM antiphon_touches").Scan(&touches); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "UPDATE antiphon_touches SET n = %d;\n", touches)
	}
	return b.String()
}

func literal(v any, postgres bool) string {
	switch v := v.(type) {
	case []byte:
		if postgres {
			return `'\x` + hex.EncodeToString(v) + `'`
		}
		return "x'" + hex.EncodeToString(v) + "'"
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	}
	return fmt.Sprint(v)
}

// restore makes the database that a dump describes.
func restore(t *testing.T, where, dump string) {
	t.Helper()
	db := openPlain(t, where)
	for _, statement := range strings.Split(dump, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%.200s: %v", statement, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func versionIn(t *testing.T, where string) (version int) {
	t.Helper()
	if err := openPlain(t, where).QueryRow("SELECT max(version) FROM antiphon_format").Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

// A migration that fails leaves the database as it was.
func TestMigrationFails(t *testing.T) {
	var s spy
	file := filepath.Join(t.TempDir(), "s.db")
	s.watch(func(query string) error {
		if strings.HasPrefix(query, "INSERT INTO antiphon_format") {
			return errSpy
		}
		return nil
	})
	if _, err := sqlstore.OpenSQLite(t.Context(), file, s.open, fast); !errors.Is(err, errSpy) {
		t.Fatalf("got %v", err)
	}
	var tables int
	if err := openPlain(t, file).QueryRow("SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil || tables != 0 {
		t.Errorf("%d tables are left, %v", tables, err)
	}
	mustAppend(t, reopen(t, file), "a", 0, session.RunStarted{})
}
