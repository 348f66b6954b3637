// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

func newSpied(t *testing.T) (*sqlstore.Store, *spy) {
	t.Helper()
	return newSpiedAt(t, filepath.Join(t.TempDir(), "s.db"))
}

func newSpiedAt(t *testing.T, file string) (*sqlstore.Store, *spy) {
	t.Helper()
	var s spy
	store, err := sqlstore.OpenSQLite(t.Context(), file, s.open, fast)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, &s
}

// Appends that come while one is being committed share the next transaction:
// 16 sessions, two commits. What is refused fails alone: an append that conflicts, a delivery
// to a full inbox and one whose key has another text.
func TestGroupCommit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	store, spy := newSpiedAt(t, file)
	for _, id := range []string{"refused", "full", "used"} {
		mustAppend(t, store, id, 0, session.RunStarted{})
	}
	fillInbox(t, file, "full")
	if _, err := store.Deliver(t.Context(), "used", hello("1")); err != nil {
		t.Fatal(err)
	}
	const writers = 15
	committing, release := make(chan bool), make(chan bool)
	var once sync.Once
	spy.watch(func(query string) error {
		if query == "COMMIT" {
			once.Do(func() {
				committing <- true
				<-release
			})
		}
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { mustAppend(t, store, "first", 0, step(0)...) })
	<-committing
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			errs[w] = store.Append(t.Context(), fmt.Sprint(w), 0, numbered(0, step(3)...))
		})
	}
	var refused, full, used error
	wg.Go(func() { refused = store.Append(t.Context(), "refused", 0, numbered(0, step(0)...)) })
	wg.Go(func() { _, full = store.Deliver(t.Context(), "full", hello("one more")) })
	other := hello("2")
	other.Key = "1"
	wg.Go(func() { _, used = store.Deliver(t.Context(), "used", other) })
	for store.Waiting() < writers+3 {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if !errors.Is(refused, session.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", refused)
	}
	if !errors.Is(full, session.ErrInboxFull) || !errors.Is(used, session.ErrKeyUsed) {
		t.Errorf("got %v and %v, want ErrInboxFull and ErrKeyUsed", full, used)
	}
	if begun, done := spy.count("BEGIN IMMEDIATE"), spy.count("COMMIT"); begun != 2 || done != 2 {
		t.Errorf("%d transactions and %d commits, want 2", begun, done)
	}
	for w := range writers {
		if n := len(loadAll(t, store, fmt.Sprint(w))); n != 2 {
			t.Errorf("session %d has %d entries", w, n)
		}
	}
}

// fillInbox puts as many deliveries into the inbox of a session as it has room for.
func fillInbox(t *testing.T, file, id string) {
	t.Helper()
	_, err := openPlain(t, file).Exec(`WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 1000)
		INSERT INTO antiphon_inbox (log, n, key, sum, data) SELECT s.log, i.n, randomblob(32), x'00', x'00' FROM antiphon_sessions s, i WHERE s.id = ?`, id)
	if err != nil {
		t.Fatal(err)
	}
}

// One of those who share a transaction has a payload that cannot be read: it
// fails, and the others are written.
func TestGroupCommitFailure(t *testing.T) {
	from, _ := newSQLite(t)
	mustAppend(t, from, "a", 0, session.InputItem{Item: image(9000, 1)})
	held := loadAll(t, from, "a")[0].Body
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	store, spy := newSpied(t)
	committing, release := make(chan bool), make(chan bool)
	var once sync.Once
	spy.watch(func(query string) error {
		if query == "COMMIT" {
			once.Do(func() {
				committing <- true
				<-release
			})
		}
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { mustAppend(t, store, "first", 0, session.RunStarted{}) })
	<-committing
	var bad error
	wg.Go(func() { mustAppend(t, store, "good 1", 0, session.RunStarted{}) })
	wg.Go(func() { bad = store.Append(t.Context(), "bad", 0, numbered(0, held)) })
	wg.Go(func() { mustAppend(t, store, "good 2", 0, session.RunStarted{}) })
	for store.Waiting() < 3 {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	var lost *item.HeldError
	if !errors.As(bad, &lost) {
		t.Errorf("got %v, want a HeldError", bad)
	}
	for id, want := range map[string]int{"good 1": 1, "good 2": 1, "bad": 0} {
		if n := len(loadAll(t, store, id)); n != want {
			t.Errorf("%s: %d entries, want %d", id, n, want)
		}
	}
}

// Whatever statement of an append fails, nothing of it is there, the session is
// where it was, and the next append is fine.
func TestEveryStatementFails(t *testing.T) {
	store, spy := newSpied(t)
	end := int64(0)
	failed := 0
	for fail := 0; ; fail++ {
		n := 0
		spy.watch(func(query string) error {
			if query == "ROLLBACK" {
				return nil
			}
			if n++; n == fail+1 {
				return errSpy
			}
			return nil
		})
		bodies := []session.Body{session.InputItem{Item: image(300_000+fail, byte(fail))}}
		for len(bodies) < 2048 { // enough to put rows together
			bodies = append(bodies, session.TurnStarted{Turn: fail})
		}
		err := store.Append(t.Context(), "a", end, numbered(end, bodies...))
		spy.watch(nil)
		got := loadAll(t, store, "a")
		if err == nil {
			if len(got) != int(end)+2048 || failed < 8 {
				t.Errorf("%d entries, %d statements that fail", len(got), failed)
			}
			return
		}
		if !errors.Is(err, errSpy) || !strings.Contains(err.Error(), "writing: ") {
			t.Fatal(err)
		}
		if failed++; len(got) != int(end) {
			t.Fatalf("statement %d failed: %d entries, want %d", fail, len(got), end)
		}
		if swept, err := store.Sweep(t.Context(), true); err != nil || swept.Blobs != 0 {
			t.Fatalf("statement %d failed: left %+v, %v", fail, swept, err)
		}
		mustAppend(t, store, "a", end, session.RunStarted{})
		end++
	}
}

// F3: a fork writes the same few rows for a history of any length.
func TestForkIsConstant(t *testing.T) {
	store, spy := newSpied(t)
	var bodies []session.Body
	for range 5000 {
		bodies = append(bodies, session.RunStarted{})
	}
	mustAppend(t, store, "short", 0, bodies[:10]...)
	mustAppend(t, store, "long", 0, bodies...)
	var counts []int
	for _, from := range []string{"short", "long"} {
		inserted := 0
		spy.watch(func(query string) error {
			if strings.HasPrefix(query, "INSERT") {
				inserted++
			}
			if strings.Contains(query, "antiphon_entries") && !strings.HasPrefix(query, "SELECT last, n, sums") {
				t.Errorf("forking reads or writes entries: %s", query)
			}
			return nil
		})
		if err := store.Fork(t.Context(), from, 9, "fork of "+from); err != nil {
			t.Fatal(err)
		}
		spy.watch(nil)
		counts = append(counts, inserted)
	}
	if counts[0] != 2 || counts[1] != 2 {
		t.Errorf("%v rows are written, want 2", counts)
	}
}

// A long log is read in few rows: they are put together when a writer lets go,
// and now and then while nobody does.
func TestRowsArePutTogether(t *testing.T) {
	store, file := newSQLite(t)
	db, err := openSQLite(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	unlock, err := store.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	const each = 8
	for end := int64(0); end < 2048+each; end += each {
		switch end {
		case 304:
			wantRows(t, db, 38, int(end))
			if err := unlock(); err != nil {
				t.Fatal(err)
			}
			wantRows(t, db, 1, int(end))
		case 2040:
			wantRows(t, db, 1+(2040-304)/each, int(end))
		case 2048:
			wantRows(t, db, 2, int(end))
		}
		var bodies []session.Body
		for n := range each {
			bodies = append(bodies, session.TurnStarted{Turn: int(end) + n})
		}
		mustAppend(t, store, "a", end, bodies...)
	}
	for i, e := range loadAll(t, store, "a") {
		if e.Body != (session.TurnStarted{Turn: i}) {
			t.Fatalf("entry %d is %+v", i+1, e)
		}
	}
}

func wantRows(t *testing.T, db *sql.DB, want, entries int) {
	t.Helper()
	var rows, n int
	if err := db.QueryRow("SELECT count(*), sum(n) FROM antiphon_entries").Scan(&rows, &n); err != nil {
		t.Fatal(err)
	}
	if rows != want || n != entries {
		t.Errorf("%d entries in %d rows, want %d in %d", n, rows, entries, want)
	}
}
