// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// badBases are statements that damage what antiphon_logs says of one log.
var badBases = map[string]string{
	"itself":    `UPDATE antiphon_logs SET base = log, base_at = 1 WHERE log = %d`,
	"a later":   `UPDATE antiphon_logs SET base = log + 1, base_at = 1 WHERE log = %d`,
	"negative":  `UPDATE antiphon_logs SET base = -7, base_at = 1 WHERE log = %d`,
	"no number": `UPDATE antiphon_logs SET base_at = 0 WHERE log = %d`,
	"too much":  `UPDATE antiphon_logs SET base_at = 1000 WHERE log = %d`,
	"missing":   `DELETE FROM antiphon_logs WHERE log = %d`,
}

// breakBase damages the row of a session's log.
func breakBase(t *testing.T, where, id, how string) {
	t.Helper()
	db := openPlain(t, where)
	var log int64
	if err := db.QueryRow(`SELECT log FROM antiphon_sessions WHERE id = '` + id + `'`).Scan(&log); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(fmt.Sprintf(how, log)); err != nil {
		t.Fatal(err)
	}
}

// J8: a damaged row of the tree of logs is an error that says so, wherever the
// tree is walked: nothing waits for ever, and other sessions go on.
func TestDamagedTree(t *testing.T) {
	for name, how := range badBases {
		t.Run(name, func(t *testing.T) {
			places(t, func(t *testing.T, where string) {
				s := openHere(t, where).(*sqlstore.Store)
				ctx := t.Context()
				populate(t, s)
				mustAppend(t, s, "fork", 302, session.InputItem{Item: item.User("behind the fork")})
				breakBase(t, where, "fork", how)
				if err := s.Fork(ctx, "fork", 1, "again"); !errors.Is(err, session.ErrDamaged) {
					t.Errorf("forking: got %v, want ErrDamaged", err)
				}
				owner := "ann"
				if err := s.Label(ctx, "fork", session.Labels{Owner: &owner}); name == "itself" && !errors.Is(err, session.ErrDamaged) {
					t.Errorf("labels: got %v, want ErrDamaged", err)
				}
				for _, err := range s.Load(ctx, "fork", 0) {
					if !errors.Is(err, session.ErrDamaged) {
						t.Errorf("loading: got %v, want ErrDamaged", err)
					}
				}
				found := false
				for d, err := range s.Verify(ctx, "fork") {
					if err != nil {
						t.Fatal(err)
					}
					found = found || strings.Contains(d.Place, "antiphon_logs")
				}
				if !found {
					t.Error("verifying finds nothing")
				}
				if _, err := s.Salvage(ctx, "fork", "saved"); err != nil {
					t.Errorf("salvaging: %v", err)
				}
				if text := allLines(t, s, "saved"); !strings.Contains(text, "behind the fork") {
					t.Errorf("what is the session's own was not saved: %.300s", text)
				}
				mustAppend(t, s, "main", 302, session.RunStarted{})
				if err := s.Delete(ctx, "fork"); err != nil {
					t.Errorf("deleting: %v", err)
				}
			})
		})
	}
}

// J5: a database of an earlier format that is damaged a little still opens: it
// could not be verified and salvaged otherwise. What is whole in it is read.
func TestFormatsDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: damages many stores")
	}
	damages := map[string]func(t *testing.T, where string){
		"a payload's hash": func(t *testing.T, where string) {
			if _, err := openPlain(t, where).Exec(`UPDATE antiphon_blobs SET hash = substr(hash, 1, 5)`); err != nil {
				t.Fatal(err)
			}
		},
		"a payload's bytes": func(t *testing.T, where string) {
			if _, err := openPlain(t, where).Exec(`UPDATE antiphon_chunks SET data = substr(data, 1, 5)`); err != nil {
				t.Fatal(err)
			}
		},
		"an entry's count": func(t *testing.T, where string) {
			if _, err := openPlain(t, where).Exec(`UPDATE antiphon_entries SET n = n + 3 WHERE log = (SELECT log FROM antiphon_sessions WHERE id = 'fork')`); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, how := range badBases {
		damages["base: "+name] = func(t *testing.T, where string) { breakBase(t, where, "fork", how) }
	}
	places(t, func(t *testing.T, where string) {
		dialect := "sqlite"
		if strings.HasPrefix(where, "host=") {
			dialect = "postgres"
		}
		for name, damage := range damages {
			t.Run(name, func(t *testing.T) {
				dump, err := os.ReadFile(filepath.Join("testdata", dialect+"-1.sql"))
				if err != nil {
					t.Fatal(err)
				}
				where := filepath.Join(t.TempDir(), "old.db")
				if dialect == "postgres" {
					where = postgresDSN(t)
				}
				restore(t, where, string(dump))
				damage(t, where)
				s := openHere(t, where).(*sqlstore.Store)
				found := 0
				for _, err := range s.Verify(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					found++
				}
				if found == 0 {
					t.Error("verifying finds nothing")
				}
				if n := len(loadAll(t, s, "main")); n != 302 {
					t.Errorf("the other session has %d entries", n)
				}
				if _, err := s.Salvage(t.Context(), "fork", "saved"); err != nil {
					t.Errorf("salvaging: %v", err)
				}
				if text := allLines(t, s, "saved"); name != "an entry's count" && !strings.Contains(text, "answered") {
					t.Errorf("what is the session's own was not saved: %.300s", text)
				}
			})
		}
	})
}

// allLines is a session as text.
func allLines(t *testing.T, s session.Store, id string) string {
	t.Helper()
	var b strings.Builder
	for _, e := range loadAll(t, s, id) {
		b.WriteString(line(t, e))
	}
	return b.String()
}

// J8: entries whose session's row is gone are found. Those that a deleted session
// leaves behind for its forks are no damage, before a sweep and after it.
func TestVerifyFindsLostSessions(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		ctx := t.Context()
		populate(t, s)
		verify := func() (all []string) {
			t.Helper()
			for d, err := range s.Verify(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, d.Error())
			}
			return all
		}
		lose := func(id string) {
			t.Helper()
			if _, err := openPlain(t, where).Exec(`DELETE FROM antiphon_sessions WHERE id = '` + id + `'`); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Delete(ctx, "main"); err != nil {
			t.Fatal(err)
		}
		if found := verify(); len(found) > 0 {
			t.Errorf("after a session was deleted: %q", found)
		}
		if _, err := s.Sweep(ctx, false); err != nil {
			t.Fatal(err)
		}
		if found := verify(); len(found) > 0 {
			t.Errorf("after a sweep: %q", found)
		}
		mustAppend(t, s, "other", 0, step(0)...)
		if err := s.Fork(ctx, "other", 0, "empty"); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, "third", 0, step(0)...)
		mustAppend(t, s, "third", 1, step(1)...)
		if err := s.Fork(ctx, "third", 1, "third-fork"); err != nil {
			t.Fatal(err)
		}
		if found := verify(); len(found) > 0 {
			t.Errorf("before anything is lost: %q", found)
		}
		for n, id := range []string{"fork", "other", "third"} {
			lose(id)
			if found := verify(); len(found) != n+1 || !strings.Contains(found[n], "antiphon_sessions") {
				t.Errorf("after the row of %s was lost: %q", id, found)
			}
		}
	})
}

// J8: a sweep does not shorten a log that does not fit the forks that begin with
// it: they may need what it would remove.
func TestSweepKeepsWhatForksNeed(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		ctx := t.Context()
		populate(t, s)
		want := allLines(t, s, "fork")
		if err := s.Delete(ctx, "main"); err != nil {
			t.Fatal(err)
		}
		breakBase(t, where, "fork", `UPDATE antiphon_logs SET base_at = 200 WHERE log = %d`)
		if _, err := s.Sweep(ctx, false); !errors.Is(err, session.ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
		breakBase(t, where, "fork", `UPDATE antiphon_logs SET base_at = 301 WHERE log = %d`)
		if swept, err := s.Sweep(ctx, false); err != nil || swept.Entries != 1 {
			t.Errorf("mended: %+v, %v", swept, err)
		}
		if got := allLines(t, s, "fork"); got != want {
			t.Error("the fork lost something")
		}
	})
}

// J9: a sweep has Postgres write every table of the store anew, also those that a
// later format adds.
func TestSweepWritesAllTablesAnew(t *testing.T) {
	dsn := postgresDSN(t)
	s := newPostgres(t, dsn)
	populate(t, s)
	db := openPlain(t, dsn)
	if _, err := db.Exec(`CREATE TABLE "antiphon_From later" (n INTEGER)`); err != nil {
		t.Fatal(err)
	}
	files := func() map[string]int64 {
		t.Helper()
		rows, err := db.Query(`SELECT relname, relfilenode FROM pg_class WHERE relname LIKE 'antiphon\_%' AND relkind = 'r'`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		all := map[string]int64{}
		for rows.Next() {
			var name string
			var file int64
			if err := rows.Scan(&name, &file); err != nil {
				t.Fatal(err)
			}
			all[name] = file
		}
		return all
	}
	before := files()
	if err := s.Delete(t.Context(), "fork"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	after := files()
	for name, file := range before {
		if after[name] == file {
			t.Errorf("table %s is where it was", name)
		}
	}
	if len(before) < 10 {
		t.Errorf("only %d tables", len(before))
	}
}
