// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// A name is looked up by the index of names, however many sessions there are:
// both databases say that they would.
func TestNamesUseTheirIndex(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		for n := range 50 {
			if err := s.Create(t.Context(), session.Info{ID: fmt.Sprint("id-", n), Name: fmt.Sprint("name-", n), Path: "/p"}); err != nil {
				t.Fatal(err)
			}
		}
		db := openPlain(t, where)
		db.SetMaxOpenConns(1)
		explain := "EXPLAIN QUERY PLAN "
		if strings.HasPrefix(where, "host=") {
			explain = "EXPLAIN "
			if _, err := db.Exec("SET enable_seqscan = off"); err != nil {
				t.Fatal(err)
			}
		}
		for _, query := range []string{
			strings.NewReplacer("path = ?", "path = '/p'", "name = ?", "name = 'name-7'", "whose = ?", "whose = ''", "id <> ?", "id <> 'x'").Replace(sqlstore.NameQuery),
		} {
			rows, err := db.Query(explain + query)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			columns, _ := rows.Columns()
			var plan strings.Builder
			for rows.Next() {
				values, into := make([]any, len(columns)), make([]any, len(columns))
				for i := range values {
					into[i] = &values[i]
				}
				if err := rows.Scan(into...); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(&plan, values...)
			}
			if !strings.Contains(plan.String(), "antiphon_sessions_name") {
				t.Errorf("%s\nis planned as\n%s", query, &plan)
			}
		}
	})
}

// J10: whatever the database says about synchronous_commit, no commit of ours
// goes without waiting for the disk.
func TestCommitsWaitForTheDisk(t *testing.T) {
	dsn := postgresDSN(t)
	db := openPlain(t, dsn)
	newPostgres(t, dsn) // makes the tables
	for _, statement := range []string{
		`CREATE FUNCTION awake() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN RAISE EXCEPTION 'this commit does not wait: %', current_setting('synchronous_commit'); END IF;
			RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER awake1 AFTER INSERT OR UPDATE OR DELETE ON antiphon_sessions DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION awake()`,
		`CREATE CONSTRAINT TRIGGER awake2 AFTER INSERT OR UPDATE OR DELETE ON antiphon_entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION awake()`,
		`CREATE CONSTRAINT TRIGGER awake3 AFTER INSERT OR UPDATE OR DELETE ON antiphon_refs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION awake()`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("INSERT INTO antiphon_refs (log, blob, first) VALUES (0, 0, 0)"); err != nil {
		t.Fatalf("with the server's own setting: %v", err)
	}
	for _, setting := range []string{"off", "local", "remote_write", "remote_apply"} {
		s := newPostgres(t, dsn+" synchronous_commit="+setting)
		id := "with-" + setting
		ctx := t.Context()
		for what, err := range map[string]error{
			"create":  s.Create(ctx, session.Info{ID: id}),
			"append":  s.Append(ctx, id, 0, numbered(0, session.InputItem{Item: item.User("x")}, session.InputItem{Item: image(9000, 1)})),
			"fork":    s.Fork(ctx, id, 1, id+"-fork"),
			"rename":  s.Rename(ctx, id, setting),
			"archive": s.Archive(ctx, id, true),
			"delete":  s.Delete(ctx, id+"-fork"),
		} {
			if err != nil {
				t.Errorf("%s: %s: %v", setting, what, err)
			}
		}
	}
}

// J10: what weakens durability and cannot be overridden is refused by name,
// unless it was accepted by name.
func TestUnsafeServersAreRefused(t *testing.T) {
	dsn := postgresDSN(t)
	newPostgres(t, dsn)
	db := openPlain(t, dsn)
	var fsync string
	if err := db.QueryRow("SHOW fsync").Scan(&fsync); err != nil {
		t.Fatal(err)
	}
	try := func(parameter string) error {
		s, err := sqlstore.OpenPostgres(t.Context(), dsn+parameter, openPostgres, sqlstore.Options{})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	if fsync == "off" {
		wantError(t, try(""), "postgres", "fsync = off", "antiphon_unsafe=fsync")
	}
	if _, err := db.Exec("ALTER TABLE antiphon_chunks SET UNLOGGED"); err != nil {
		t.Fatal(err)
	}
	wantError(t, try(" antiphon_unsafe=fsync"), "postgres", "unlogged", "antiphon_unsafe=unlogged")
	if err := try(" antiphon_unsafe=fsync,unlogged"); err != nil {
		t.Error(err)
	}
}

// J11: while all connections are cut again and again, runs go on, and what they
// wrote is there once.
func TestConnectionsAreCut(t *testing.T) {
	dsn := postgresDSN(t)
	s, err := sqlstore.OpenPostgres(t.Context(), dsn+unsafe+" application_name=cut_here", openPostgres, sqlstore.Options{Poll: fast.Poll, Retry: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	admin := openPlain(t, dsn)
	ctx, cancel := context.WithCancel(t.Context())
	var cutting, writing sync.WaitGroup
	const enough = 10
	var cut atomic.Int64
	var appended [4]atomic.Int64
	cutting.Go(func() {
		// Cuts come fast, and rarer while a writer does not get on: on a busy machine, or
		// with a pooler that waits before it connects again, nobody would write anything.
		const often = 60 * time.Millisecond
		pause := often
		var seen [4]int64
		for ctx.Err() == nil {
			var n int
			if err := admin.QueryRow("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'cut_here'").Scan(&n); err != nil {
				t.Error(err)
				return
			}
			cut.Add(int64(n))
			time.Sleep(pause)
			pause *= 2
			if moved(&appended, &seen) {
				pause = often
			}
		}
	})
	for w := range 4 {
		writing.Go(func() {
			id := fmt.Sprint("s", w)
			log, err := session.Open(ctx, s, id)
			if err != nil {
				t.Error(err)
				return
			}
			unlock, err := log.Lock(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			defer appended[w].Store(math.MaxInt64)
			for n := 0; n < 40 || cut.Load() < enough && n < 100_000; n++ {
				if _, err := log.Append(ctx, step(len(log.Log()))...); err != nil {
					t.Error(err)
					return
				}
				appended[w].Add(1)
			}
			if err := unlock(); err != nil {
				t.Error(err)
			}
		})
	}
	writing.Wait()
	cancel()
	cutting.Wait()
	for w := range 4 {
		if n := checkSteps(t, s, fmt.Sprint("s", w)); n < 40 {
			t.Errorf("%d entries", n)
		}
	}
	if n := cut.Load(); n < enough {
		t.Errorf("only %d connections were cut", n)
	}
}

// moved reports whether each writer appended since what was seen, or has ended, and
// then sees what they have appended now.
func moved(appended *[4]atomic.Int64, seen *[4]int64) bool {
	var now [4]int64
	for w := range appended {
		now[w] = appended[w].Load()
		if now[w] == seen[w] && now[w] != math.MaxInt64 {
			return false
		}
	}
	*seen = now
	return true
}

// J11: a database that is deleted or replaced while it is written to is noticed:
// by the next append, by those who hold a session, and at the end.
func TestDeletedUnderARun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits until the store looks")
	}
	for name, remove := range map[string]func(file string) error{
		"deleted": func(file string) error {
			return errors.Join(os.Remove(file), os.Remove(file+"-wal"), os.Remove(file+"-shm"))
		},
		"log deleted": func(file string) error { return os.Remove(file + "-wal") },
		"replaced": func(file string) error {
			return errors.Join(os.WriteFile(file+".new", []byte("another"), 0o600), os.Rename(file+".new", file))
		},
		"folder deleted": func(file string) error { return os.RemoveAll(filepath.Dir(file)) },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "folder", "s.db")
			s, err := sqlstore.OpenSQLite(t.Context(), file, openSQLite, fast)
			if err != nil {
				t.Fatal(err)
			}
			held, unlock, err := s.Hold(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, s, "a", 0, step(0)...)
			if err := remove(file); err != nil {
				t.Skip(err) // Windows keeps files that are open
			}
			<-held.Done()
			if err := context.Cause(held); !errors.Is(err, session.ErrLost) || !strings.Contains(err.Error(), "while it was in use") {
				t.Errorf("who holds it: got %v, want ErrLost", err)
			}
			if err := s.Append(t.Context(), "a", 1, numbered(1, step(1)...)); !errors.Is(err, session.ErrLost) {
				t.Errorf("the next append: got %v, want ErrLost", err)
			}
			if err := unlock(); !errors.Is(err, session.ErrLost) {
				t.Errorf("giving it back: got %v, want ErrLost", err)
			}
			if err := s.Close(); !errors.Is(err, session.ErrLost) {
				t.Errorf("at the end: got %v, want ErrLost", err)
			}
		})
	}
}
