// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// The file and all beside it are the user's alone, whatever the umask; its name
// may hold what URLs escape; and a link to it is the same store.
func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "a b%20?#é")
	file := filepath.Join(dir, "s&t=1.db")
	s := reopen(t, file)
	mustAppend(t, s, "a", 0, session.RunStarted{})
	unlock, err := s.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		seen := 0
		err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: others may %v", path, info.Mode())
			}
			seen++
			return err
		})
		if err != nil || seen < 5 { // folder, file, WAL, shared memory, locks
			t.Errorf("%d files, %v", seen, err)
		}
		link := filepath.Join(t.TempDir(), "link.db")
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		other := reopen(t, link)
		if _, err := other.Lock(t.Context(), "a"); !errors.Is(err, session.ErrBusy) {
			t.Errorf("by way of a link: got %v, want ErrBusy", err)
		}
		if n := len(loadAll(t, other, "a")); n != 1 {
			t.Errorf("by way of a link: %d entries", n)
		}
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

// wantError proves that an error says in one go what is wrong and what to do.
func wantError(t *testing.T, err error, place, problem, hint string) {
	t.Helper()
	var e *sqlstore.Error
	if !errors.As(err, &e) {
		t.Errorf("got %v, want an Error", err)
		return
	}
	if !strings.Contains(e.Store, place) || !strings.Contains(e.Problem, problem) || !strings.Contains(e.Hint, hint) {
		t.Errorf("got\n%v\nwant %s: %s, hint: %s", err, place, problem, hint)
	}
}

// Files that are not stores are told apart and left as they are.
func TestNoStore(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is not a database at all\n", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other.db")
	db, err := openSQLite(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE users (name TEXT)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	blocked := filepath.Join(dir, "blocked")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ file, problem, hint string }{
		{text, "not an SQLite database", "another file"},
		{other, "of another program", "another file"},
		{dir, "is not a file", "another place"},
		{filepath.Join(blocked, "s.db"), "", "another place"},
		{"", "needs a file", ""},
		{":memory:", "session.Memory", ""},
	} {
		before, _ := os.ReadFile(test.file)
		s, err := sqlstore.OpenSQLite(t.Context(), test.file, openSQLite, sqlstore.Options{})
		if err == nil {
			_ = s.Close()
		}
		wantError(t, err, test.file, test.problem, test.hint)
		if after, _ := os.ReadFile(test.file); test.file == text && string(after) != string(before) {
			t.Errorf("%s was changed", test.file)
		}
	}
	if s, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(dir, "x.db"), func(string) (*sql.DB, error) { return nil, errSpy }, sqlstore.Options{}); s != nil || !errors.Is(err, errSpy) {
		t.Errorf("got %v", err)
	}
}

// J5: a file of a newer program is refused with both versions named, and is not
// changed.
func TestNewerFile(t *testing.T) {
	s, file := newSQLite(t)
	mustAppend(t, s, "a", 0, session.RunStarted{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := openSQLite(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("UPDATE antiphon_format SET version = 99"); err != nil {
		t.Fatal(err)
	}
	newest, _ := sqlstore.Formats("sqlite")
	_, err = sqlstore.OpenSQLite(t.Context(), file, openSQLite, sqlstore.Options{})
	if !errors.Is(err, session.ErrNewer) || !strings.Contains(err.Error(), "format 99") || !strings.Contains(err.Error(), fmt.Sprintf("up to %d", newest)) {
		t.Errorf("got %v, want ErrNewer with both versions", err)
	}
	if _, err := db.Exec("UPDATE antiphon_format SET version = ?", newest); err != nil {
		t.Fatal(err)
	}
	if n := len(loadAll(t, reopen(t, file), "a")); n != 1 {
		t.Errorf("%d entries", n)
	}
}

// J5: an entry of a kind of tomorrow is refused by name; what is before it can
// be read.
func TestNewerEntry(t *testing.T) {
	s, file := newSQLite(t)
	mustAppend(t, s, "a", 0, session.RunStarted{})
	mustAppend(t, s, "a", 1, session.RunStarted{})
	db, err := openSQLite(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var sums []byte
	if err := db.QueryRow(`SELECT sums FROM antiphon_entries WHERE last = 2`).Scan(&sums); err != nil {
		t.Fatal(err)
	}
	tomorrow := `{"seq":2,"kind":"dreamt"}`
	sum := session.Sum(sums[:16]).Next(2, []byte(tomorrow))
	if _, err := db.Exec(`UPDATE antiphon_entries SET data = ?, sums = ? WHERE last = 2`, []byte(tomorrow+"\n"), append(sums[:16], sum[:]...)); err != nil {
		t.Fatal(err)
	}
	_, err = session.Open(t.Context(), s, "a")
	if !errors.Is(err, session.ErrNewer) || !strings.Contains(err.Error(), `kind "dreamt"`) {
		t.Errorf("got %v, want ErrNewer with the kind", err)
	}
}

// J11: a store is opened as soon as there is room on the disk; if there is none
// for as long as the options say, the error says so.
func TestOpenOnFullDisk(t *testing.T) {
	tries := 0
	full := func(until int) sqlstore.Opener {
		return func(dsn string) (*sql.DB, error) {
			if tries++; tries < until {
				dsn += "&_pragma=max_page_count(3)"
			}
			return sql.Open("sqlite", dsn)
		}
	}
	file := filepath.Join(t.TempDir(), "s.db")
	_, err := sqlstore.OpenSQLite(t.Context(), file, full(1000), impatient)
	wantError(t, err, file, "disk is full", "make room")
	tries = 0
	patient := fast
	patient.Retry = time.Minute
	s, err := sqlstore.OpenSQLite(t.Context(), file, full(4), patient)
	if err != nil || tries != 4 {
		t.Fatal(tries, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// J11: a file that others keep busy is opened as soon as they let it go, for as
// long as the options say.
func TestOpenBusy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	s, err := sqlstore.OpenSQLite(t.Context(), file, openSQLite, fast)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := openSQLite(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	_, err = sqlstore.OpenSQLite(t.Context(), file, openSQLite, sqlstore.Options{Wait: time.Millisecond, Retry: -1})
	wantError(t, err, file, "another process", "end the other one")
	tries := 0
	s, err = sqlstore.OpenSQLite(t.Context(), file, func(dsn string) (*sql.DB, error) {
		if tries++; tries == 3 {
			if _, err := db.Exec("ROLLBACK"); err != nil {
				t.Error(err)
			}
		}
		return openSQLite(dsn)
	}, sqlstore.Options{Wait: time.Millisecond, Retry: time.Minute})
	if err != nil || tries != 3 {
		t.Fatal(tries, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// J1: a full disk is one error with a hint; the session stays where it was, and
// goes on when there is room.
func TestDiskFull(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	limit := func(pages int) sqlstore.Opener {
		return func(dsn string) (*sql.DB, error) {
			return sql.Open("sqlite", fmt.Sprintf("%s&_pragma=max_page_count(%d)", dsn, pages))
		}
	}
	s, err := sqlstore.OpenSQLite(t.Context(), file, limit(200), impatient)
	if err != nil {
		t.Fatal(err)
	}
	log, err := session.Open(t.Context(), s, "a")
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = log.Append(t.Context(), session.InputItem{Item: image(40_000+len(log.Log()), byte(len(log.Log())))}, session.RunStarted{})
	}
	wantError(t, err, file, "disk is full", "make room")
	n := len(log.Log())
	if got := len(loadAll(t, s, "a")); got != n || n < 4 {
		t.Errorf("%d entries, want %d", got, n)
	}
	if swept, err := s.Sweep(t.Context(), true); err != nil || swept.Blobs > 0 {
		t.Errorf("left %+v, %v", swept, err)
	}
	if _, err := log.Append(t.Context(), session.RunStarted{}); err != nil {
		t.Errorf("something small: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, file)
	if log, err = session.Open(t.Context(), s, "a"); err != nil || len(log.Log()) != n+1 {
		t.Fatal(len(log.Log()), err)
	}
	if _, err := log.Append(t.Context(), session.InputItem{Item: image(400_000, 7)}); err != nil {
		t.Error(err)
	}
}

// Another process that writes for too long is an error with a hint, and nothing
// is lost.
func TestBusy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	s, err := sqlstore.OpenSQLite(t.Context(), file, openSQLite, sqlstore.Options{Wait: time.Millisecond, Retry: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustAppend(t, s, "a", 0, session.RunStarted{})
	db, err := openSQLite(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	err = s.Append(t.Context(), "a", 1, numbered(1, session.RunStarted{}))
	wantError(t, err, file, "another process", "run it again")
	if n := len(loadAll(t, s, "a")); n != 1 {
		t.Errorf("%d entries can be read meanwhile", n)
	}
	if _, err := db.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "a", 1, session.RunStarted{})
}

// A damaged file is an error that says so, never a shorter log.
func TestDamaged(t *testing.T) {
	s, file := newSQLite(t)
	for n := range int64(600) {
		mustAppend(t, s, "a", n, session.InputItem{Item: item.User(strings.Repeat("words ", 100))})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for at := 4096; at+4096 <= len(whole); at += 4096 {
		if at > 40*4096 && at/4096%7 != 0 {
			continue
		}
		broken := append([]byte{}, whole...)
		for i := range 4096 {
			broken[at+i] = byte(i * 7)
		}
		path := filepath.Join(t.TempDir(), "broken.db")
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sqlstore.OpenSQLite(t.Context(), path, openSQLite, sqlstore.Options{})
		if err == nil {
			var log *session.Session
			if log, err = session.Open(t.Context(), s, "a"); err == nil && len(log.Log()) != 600 {
				t.Errorf("page %d: %d entries and no error", at/4096, len(log.Log()))
			}
			_ = s.Close() // it was only read
		}
		if err == nil {
			continue
		}
		told++
		var e *sqlstore.Error
		if !errors.As(err, &e) || e.Problem == "" {
			t.Errorf("page %d: %v", at/4096, err)
		}
	}
	if told == 0 {
		t.Error("no damage was told of")
	}
}

// J1: whatever is left of the write-ahead log when the machine stops, the store
// opens with whole appends up to some point, and goes on.
func TestTornWAL(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: damages many stores")
	}
	s, file := newSQLite(t)
	n := 0
	for len(loadAll(t, s, "a")) < 30 {
		bodies := step(n)
		mustAppend(t, s, "a", int64(n), bodies...)
		n += len(bodies)
	}
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	main, wal := read(file), read(file+"-wal")
	longest := 0
	for cut := len(wal); cut >= 0; cut -= 1 + len(wal)/60 {
		for _, garbage := range []bool{false, true} {
			torn := append([]byte{}, wal[:cut]...)
			if garbage {
				torn = append(torn, make([]byte, min(4096, len(wal)-cut))...)
			}
			path := filepath.Join(t.TempDir(), "torn.db")
			for name, data := range map[string][]byte{path: main, path + "-wal": torn} {
				if err := os.WriteFile(name, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := sqlstore.OpenSQLite(t.Context(), path, openSQLite, fast)
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			got := checkSteps(t, s, "a")
			longest = max(longest, got)
			mustAppend(t, s, "a", int64(got), step(got)...)
			checkSteps(t, s, "a")
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if longest != n {
		t.Errorf("the whole WAL gives %d entries, want %d", longest, n)
	}
}

// A lock file that is left behind, with whatever in it, locks nothing.
func TestLockLeftBehind(t *testing.T) {
	s, file := newSQLite(t)
	unlock, err := s.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	locks, err := filepath.Glob(filepath.Join(file+"-locks", "*"))
	if err != nil || len(locks) != 1 {
		t.Fatal(locks, err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(locks[0], []byte("process 1 on mars\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		unlock, err := s.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"", "a\x00b", "\xff", "a\nb"} {
		if _, err := s.Lock(t.Context(), id); err == nil {
			t.Errorf("%q was locked", id)
		}
		if err := s.Append(t.Context(), id, 0, numbered(0, session.RunStarted{})); err == nil || errors.Is(err, session.ErrConflict) {
			t.Errorf("%q was written to: %v", id, err)
		}
	}
}

// J4: a history with the same image 20 times grows by one image; so does one
// with forks, and another session with it.
func TestSameImage(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: stores large images")
	}
	s, file := newSQLite(t)
	size := func() int64 {
		t.Helper()
		if err := s.Close(); err != nil { // the WAL goes into the file
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		s = reopen(t, file)
		return info.Size()
	}
	const megabytes = 2 << 20
	empty := size()
	for n := range int64(20) {
		mustAppend(t, s, "a", n, session.InputItem{Item: image(megabytes, 1)})
	}
	if err := s.Fork(t.Context(), "a", 10, "b"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "b", 10, session.InputItem{Item: image(megabytes, 1)})
	mustAppend(t, s, "c", 0, session.InputItem{Item: image(megabytes, 1)})
	if grown := size() - empty; grown < megabytes || grown > megabytes+megabytes/20 {
		t.Errorf("22 times an image of %d bytes: the file has grown by %d", megabytes, grown)
	}
	for _, e := range loadAll(t, s, "a") {
		if it := e.Body.(session.InputItem).Item; !it.Externalized() || len(it.JSON()) > 1000 {
			t.Errorf("entry %d is in memory with its payload: %d bytes", e.Seq, len(it.JSON()))
		}
		if line(t, e) != line(t, numbered(e.Seq-1, session.InputItem{Item: image(megabytes, 1)})[0]) {
			t.Errorf("entry %d is not what was written", e.Seq)
		}
	}
	for _, id := range []string{"a", "b", "c"} {
		if err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Sweep(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if left := size() - empty; left > 100_000 {
		t.Errorf("%d bytes are left when all is deleted and swept", left)
	}
}

// The clock goes back: nothing but what is shown changes.
func TestClockGoesBack(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "s.db"), openSQLite, sqlstore.Options{
		Poll: fast.Poll,
		Now: func() time.Time {
			now = now.Add(-time.Hour)
			return now
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for n := range int64(3) {
		for _, id := range []string{"a", "b", "c"} {
			mustAppend(t, s, id, n, step(0)...)
		}
	}
	var ids []string
	for i, err := range s.List(t.Context(), session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, i.ID)
	}
	if got := strings.Join(ids, " "); got != "c b a" {
		t.Errorf("listed %s, want the one written to last first", got)
	}
	list := loadAll(t, s, "a")
	for i := range list[1:] {
		if !list[i+1].Time.Before(list[i].Time) || list[i].Time.Location() != time.UTC {
			t.Errorf("entry %d has the time %v", i+2, list[i+1].Time)
		}
	}
}

// Two stores on one file in one process are as two processes.
func TestTwoStores(t *testing.T) {
	one, file := newSQLite(t)
	two := reopen(t, file)
	for n := range int64(50) {
		s, other := one, two
		if n%2 == 1 {
			s, other = two, one
		}
		mustAppend(t, s, "a", n, session.TurnStarted{Turn: int(n)})
		if err := other.Append(t.Context(), "a", n, numbered(n, session.RunStarted{})); !errors.Is(err, session.ErrConflict) {
			t.Fatalf("got %v, want ErrConflict", err)
		}
	}
	unlock, err := one.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Lock(t.Context(), "a"); !errors.Is(err, session.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

// A store that was closed says so.
func TestClosed(t *testing.T) {
	s, file := newSQLite(t)
	mustAppend(t, s, "a", 0, session.RunStarted{})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	err := s.Append(t.Context(), "a", 1, numbered(1, session.RunStarted{}))
	wantError(t, err, file, "closed", "")
	for _, err := range s.Load(t.Context(), "a", 0) {
		wantError(t, err, file, "closed", "")
	}
}
