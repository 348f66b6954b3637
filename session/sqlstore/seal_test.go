// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/endpoint"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// withKey are options with a key.
func withKey(secret string) sqlstore.Options {
	o := fast
	o.Key = func(context.Context) (endpoint.Key, error) { return endpoint.NewKey(secret), nil }
	return o
}

// sealed opens an encrypted store.
func sealed(t testing.TB, where, secret string) *sqlstore.Store {
	t.Helper()
	s, err := openWith(t, where, withKey(secret))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openWith(t testing.TB, where string, o sqlstore.Options) (s *sqlstore.Store, err error) {
	t.Helper()
	if strings.HasPrefix(where, "host=") {
		s, err = sqlstore.OpenPostgres(t.Context(), where+unsafe, openPostgres, o)
	} else {
		s, err = sqlstore.OpenSQLite(t.Context(), where, openSQLite, o)
	}
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, err
}

// linesOf is a session's log, each entry with its payloads.
func linesOf(t *testing.T, s *sqlstore.Store, id string) (lines []string) {
	t.Helper()
	for _, e := range loadAll(t, s, id) {
		lines = append(lines, line(t, e))
	}
	return lines
}

const hidden = "the planted secret"

// plantEverywhere writes a session, its fork and a nested one, each with a secret in words,
// in a payload and in a kept output.
func plantEverywhere(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	payload := bytes.Repeat([]byte(hidden+" in a picture. "), 30_000)
	picture := item.Must(&item.Message{Role: item.RoleUser, Content: item.Parts(
		&item.InputImage{ImageURL: "data:image/png;base64," + base64.StdEncoding.EncodeToString(payload)})})
	mustAppend(t, s, "a", 0, session.InputItem{Item: item.User(hidden)}, session.InputItem{Item: picture}, session.InputItem{Item: item.User("more")})
	for n := int64(3); n < 300; n++ {
		mustAppend(t, s, "a", n, session.InputItem{Item: item.User(fmt.Sprint(hidden, n))})
	}
	if _, err := s.PutBlob(t.Context(), "a", bytes.Repeat([]byte(hidden), 1000)); err != nil {
		t.Fatal(err)
	}
	if err := s.Fork(t.Context(), "a", 150, "b"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "b", 150, session.InputItem{Item: item.User(hidden + " in the fork")})
}

// J14: nothing that was said is in any file of an encrypted store, nor in its
// backup; with the key all of it is there.
func TestEncrypted(t *testing.T) {
	secret := sqlstore.NewSecret()
	dir := t.TempDir()
	where, backup := filepath.Join(dir, "s.db"), filepath.Join(dir, "backup.db")
	s := sealed(t, where, secret)
	plantEverywhere(t, s)
	look := func(when string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) == 0 {
			t.Fatal(err)
		}
		for _, file := range files {
			text, _ := os.ReadFile(file) // a folder has none
			for _, word := range []string{"planted", secret, base64.StdEncoding.EncodeToString([]byte(hidden))[:20], "given", "input_image"} {
				if bytes.Contains(text, []byte(word)) {
					t.Errorf("%s: %s holds %q", when, file, word)
				}
			}
		}
	}
	look("while it is open")
	if _, err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	unlock, err := s.Lock(t.Context(), "a") // whose end puts rows together
	if err == nil {
		err = unlock()
	}
	if err != nil {
		t.Fatal(err)
	}
	want := linesOf(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	look("when it is closed")
	for _, place := range []string{where, backup} {
		s = sealed(t, place, secret)
		wholeStore(t, s)
		if got := linesOf(t, s, "a"); !slices.Equal(got, want) {
			t.Errorf("%s: %d entries, want %d, or they are others", place, len(got), len(want))
		}
		if text := line(t, loadAll(t, s, "b")[150]); !strings.Contains(text, hidden+" in the fork") {
			t.Error(text)
		}
		if infos, err := s.Info(t.Context(), "a"); err != nil || infos.Title != hidden {
			t.Errorf("%+v %v", infos, err)
		}
	}
}

// J14: without the key, and with another one, an encrypted store is one clear
// error; nothing in it changes; without it, it can be verified all the same.
func TestEncryptedWithoutItsKey(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		secret := sqlstore.NewSecret()
		plantEverywhere(t, sealed(t, where, secret))
		for name, o := range map[string]sqlstore.Options{
			"no key":      fast,
			"another key": withKey(sqlstore.NewSecret()),
			"half a key":  withKey(secret[:32]),
		} {
			s, err := openWith(t, where, o)
			var e *sqlstore.Error
			if s != nil || !errors.Is(err, sqlstore.ErrKey) || !errors.As(err, &e) || strings.Contains(err.Error(), secret[:32]) {
				t.Errorf("%s: %v", name, err)
			}
		}
		keyless := fast
		keyless.Keyless = true
		s, err := openWith(t, where, keyless)
		if err != nil {
			t.Fatal(err)
		}
		wholeStore(t, s)
		for _, err := range s.Load(t.Context(), "a", 0) {
			wantError(t, err, "", "no key was given", "--store-key")
		}
		err = s.Append(t.Context(), "a", 300, numbered(300, session.RunStarted{}))
		wantError(t, err, "", "no key was given", "--store-key")
		_, err = s.PutBlob(t.Context(), "a", []byte("x"))
		wantError(t, err, "", "no key was given", "--store-key")
		_, err = s.Salvage(t.Context(), "a", "c")
		wantError(t, err, "", "no key was given", "--store-key")
		if err := s.Delete(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if _, err := s.Sweep(t.Context(), false); err != nil {
			t.Error(err)
		}
		s = sealed(t, where, secret)
		wholeStore(t, s)
		if n := len(loadAll(t, s, "b")); n != 151 {
			t.Errorf("the fork has %d entries", n)
		}
	})
}

// A store that was made without a key is refused with one, and stays as it is.
func TestNotEncrypted(t *testing.T) {
	s, where := newSQLite(t)
	mustAppend(t, s, "a", 0, session.RunStarted{})
	_, err := openWith(t, where, withKey(sqlstore.NewSecret()))
	wantError(t, err, where, "is not encrypted", "import")
	if n := len(loadAll(t, s, "a")); n != 1 || !errors.Is(err, sqlstore.ErrKey) {
		t.Errorf("%d entries", n)
	}
}

// J14 J8: what is sealed cannot be put in another place: not another entry's, not
// another session's, also with checksums made to fit.
func TestEncryptedIsBound(t *testing.T) {
	secret := sqlstore.NewSecret()
	for name, statements := range map[string][]string{
		"an entry of another session": {`UPDATE antiphon_entries SET data = (SELECT data FROM antiphon_entries WHERE log = 2), sums = (SELECT sums FROM antiphon_entries WHERE log = 2) WHERE log = 1`,
			`UPDATE antiphon_sessions SET head = (SELECT head FROM antiphon_sessions WHERE id = 'y') WHERE id = 'x'`},
		"the log of another session": {`UPDATE antiphon_logs SET log = 3 WHERE log = 1`, `UPDATE antiphon_logs SET log = 1 WHERE log = 2`, `UPDATE antiphon_entries SET log = 3 WHERE log = 1`, `UPDATE antiphon_entries SET log = 1 WHERE log = 2`,
			`UPDATE antiphon_sessions SET head = (SELECT head FROM antiphon_sessions WHERE id = 'y') WHERE id = 'x'`},
	} {
		where := filepath.Join(t.TempDir(), "s.db")
		s := sealed(t, where, secret)
		mustAppend(t, s, "x", 0, session.InputItem{Item: item.User("mine")})
		mustAppend(t, s, "y", 0, session.InputItem{Item: item.User("another's")})
		db, err := openSQLite(where)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		for e, err := range s.Load(t.Context(), "x", 0) {
			if !errors.Is(err, session.ErrDamaged) {
				t.Errorf("%s: %v %v", name, e, err)
			}
		}
		found := 0
		for _, err := range s.Verify(t.Context(), "x") {
			if err != nil {
				t.Error(err)
			}
			found++
		}
		if found == 0 {
			t.Errorf("%s: Verify found nothing", name)
		}
	}
}

// J14 J8: a store that has lost what its key is made with is not opened as one that
// is not encrypted: nothing readable gets into it, and it does not pass for whole.
func TestEncryptedWithoutItsSeal(t *testing.T) {
	secret := sqlstore.NewSecret()
	places(t, func(t *testing.T, where string) {
		s := sealed(t, where, secret)
		mustAppend(t, s, "a", 0, session.InputItem{Item: item.User("words")})
		if _, err := openPlain(t, where).Exec(`DELETE FROM antiphon_seal`); err != nil {
			t.Fatal(err)
		}
		for _, o := range []sqlstore.Options{withKey(secret), {}, {Keyless: true}} {
			s, err := openWith(t, where, o)
			if !errors.Is(err, session.ErrDamaged) || !strings.Contains(err.Error(), "antiphon_seal") {
				t.Errorf("got %v and %v, want an error that names the table", s, err)
			}
		}
	})
}

// Every bit of an encrypted store that is changed is noticed; see damage_test.go
// for those that are not encrypted.
func TestEncryptedSalvage(t *testing.T) {
	where := filepath.Join(t.TempDir(), "s.db")
	s := sealed(t, where, sqlstore.NewSecret())
	for n := range int64(5) {
		mustAppend(t, s, "a", n, session.InputItem{Item: item.User(fmt.Sprint("words ", n))})
	}
	db, err := openSQLite(where)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE antiphon_entries SET data = CAST(substr(CAST(data AS text), 1, 40) || 'AAAA' || substr(CAST(data AS text), 45) AS blob) WHERE last = 3`); err != nil {
		t.Fatal(err)
	}
	done, err := s.Salvage(t.Context(), "a", "b")
	if err != nil || done.Entries != 4 || len(done.Damage) != 1 || done.Damage[0].Entry != 3 {
		t.Errorf("%+v %v", done, err)
	}
	if text := line(t, loadAll(t, s, "b")[4]); !strings.Contains(text, "words 4") {
		t.Error(text)
	}
}

// A secret is what NewSecret makes, or 32 bytes in base64.
func TestCheckSecret(t *testing.T) {
	for text, want := range map[string]bool{
		sqlstore.NewSecret(): true, " " + sqlstore.NewSecret() + "\n": true, strings.Repeat("A", 43) + "=": true,
		"": false, "password": false, strings.Repeat("0", 62): false, strings.Repeat("x", 64): false,
	} {
		err := sqlstore.CheckSecret(endpoint.NewKey(text))
		if (err == nil) != want || err != nil && text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// J14: an encrypted store has no index of words, and says so; one session can be
// searched, and titles that people give are sealed.
func TestEncryptedHasNoIndex(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		secret := sqlstore.NewSecret()
		s := sealed(t, where, secret)
		mustAppend(t, s, "a", 0, session.InputItem{Item: item.User("a needle")})
		search := func(what session.Search) (found int, err error) {
			for _, err := range s.Search(t.Context(), what) {
				if err != nil {
					return found, err
				}
				found++
			}
			return found, nil
		}
		if _, err := search(session.Search{Words: "needle"}); !errors.Is(err, session.ErrNoIndex) || !strings.Contains(err.Error(), "encrypted") {
			t.Errorf("got %v", err)
		}
		if err := s.Index(t.Context(), true); !errors.Is(err, session.ErrNoIndex) {
			t.Errorf("got %v", err)
		}
		if n, err := search(session.Search{Words: "needle", In: "a"}); n != 1 || err != nil {
			t.Errorf("%d %v", n, err)
		}
		title := "a title of somebody's own"
		if err := s.Label(t.Context(), "a", session.Labels{Title: &title}); err != nil {
			t.Fatal(err)
		}
		if err := s.Label(t.Context(), "a", session.Labels{Tags: []string{"tagged"}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Create(t.Context(), session.Info{ID: "b", Title: title}); err != nil {
			t.Fatal(err)
		}
		for info, err := range s.List(t.Context(), session.Query{}) {
			if err != nil || info.Title != title {
				t.Errorf("%+v %v", info, err)
			}
		}
		o := fast
		o.Keyless = true
		keyless, err := openWith(t, where, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := keyless.Label(t.Context(), "a", session.Labels{Tags: []string{"more"}}); err != nil {
			t.Error(err)
		}
		if err := keyless.Label(t.Context(), "a", session.Labels{Title: &title}); !errors.Is(err, sqlstore.ErrKey) {
			t.Errorf("got %v", err)
		}
		if info, err := keyless.Info(t.Context(), "a"); err != nil || info.Title != "" {
			t.Errorf("%+v %v", info, err)
		}
		if info, err := s.Info(t.Context(), "a"); err != nil || info.Title != title || len(info.Tags) != 2 {
			t.Errorf("%+v %v", info, err)
		}
		if strings.HasPrefix(where, "host=") {
			return
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(where); err != nil || bytes.Contains(text, []byte(title)) || bytes.Contains(text, []byte("needle")) {
			t.Error("a title or a word is readable", err)
		}
	})
}

// J8: whatever is damaged in an encrypted file, reading gives the same
// conversation or an error; never other words, and never a panic.
func TestEncryptedDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: damages many stores")
	}
	secret := sqlstore.NewSecret()
	where := filepath.Join(t.TempDir(), "s.db")
	s := sealed(t, where, secret)
	for n := range int64(20) {
		mustAppend(t, s, "a", n, session.InputItem{Item: item.User(strings.Repeat(fmt.Sprint("words ", n), 20))})
	}
	mustAppend(t, s, "a", 20, session.InputItem{Item: image(9000, 1)})
	want := linesOf(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(where)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	o := withKey(secret)
	o.Retry = -1
	copied, failed := filepath.Join(t.TempDir(), "copy.db"), 0
	for n := range 300 {
		broken, what := damage(r, whole, "")
		if err := os.WriteFile(copied, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(t, copied, o)
		if err != nil {
			failed++
		} else if !slices.Equal(got, want) {
			t.Errorf("copy %d, %s: other words", n, what)
		}
		for _, rest := range []string{"-wal", "-shm", "-journal"} {
			_ = os.Remove(copied + rest) // most copies have none
		}
	}
	if failed < 10 {
		t.Errorf("%d errors: the damage is not what the test is about", failed)
	}
}

// readAll reads the session a of a file, with its payloads.
func readAll(t *testing.T, file string, o sqlstore.Options) (lines []string, err error) {
	s, err := sqlstore.OpenSQLite(t.Context(), file, openSQLite, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if _, err := s.Info(t.Context(), "a"); err != nil {
		return nil, err
	}
	for e, err := range s.Load(t.Context(), "a", 0) {
		if err != nil {
			return nil, err
		}
		e.Time = time.Time{}
		text, err := session.AppendEntry(nil, e)
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(text))
	}
	return lines, nil
}
