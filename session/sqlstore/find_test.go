// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

func heard(text string) session.Body { return session.InputItem{Item: item.User(text)} }

// places returns where words stand, as "session entry".
func placesOf(t *testing.T, s *sqlstore.Store, words string) (list []string) {
	t.Helper()
	for f, err := range s.Search(t.Context(), session.Search{Words: words}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(f.Session.ID, " ", f.Entry))
	}
	return list
}

func wantPlaces(t *testing.T, s *sqlstore.Store, words string, want ...string) {
	t.Helper()
	if got := placesOf(t, s, words); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", words, got, want)
	}
}

// planOf is how the database would answer a query.
func planOf(t *testing.T, db *sql.DB, explain, query string, args []any) string {
	t.Helper()
	rows, err := db.Query(explain+query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
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
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// J3: a page of a list or a search reads no more than it shows, whatever is asked
// for: each is planned along an index that has its order.
func TestPagesUseIndexes(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		openHere(t, where)
		db := openPlain(t, where)
		db.SetMaxOpenConns(1)
		postgres := strings.HasPrefix(where, "host=")
		explain, bad := "EXPLAIN QUERY PLAN ", []string{"TEMP B-TREE", "SCAN s\n", "SCAN t\n", "SCAN antiphon_sessions\n", "SCAN d\n"}
		if postgres {
			explain, bad = "EXPLAIN ", []string{"Sort", "Seq Scan"}
			for _, off := range []string{"enable_seqscan", "enable_bitmapscan", "enable_sort"} { // which an empty table would get
				if _, err := db.Exec("SET " + off + " = off"); err != nil {
					t.Fatal(err)
				}
			}
		}
		check := func(what any, query string, args []any) {
			if postgres {
				query = sqlstore.Numbered(query)
			}
			plan := planOf(t, db, explain, query, args)
			for _, word := range bad {
				if strings.Contains(plan, word) {
					t.Errorf("%+v\n%s\nis planned as\n%s", what, query, plan)
				}
			}
		}
		for _, q := range []session.Query{
			{}, {Archived: true}, {Nested: true}, {Archived: true, Nested: true}, {Owner: "o"}, {Path: "/p"}, {Path: "/p", Owner: "o"},
			{Tags: []string{"a"}}, {Tags: []string{"a", "b"}}, {Tags: []string{"a"}, Owner: "o"}, {Tags: []string{"a"}, Path: "/p"},
			{Name: "n", Archived: true}, {Name: "n"}, {Prefix: "p"}, {Prefix: "p", Owner: "o"},
		} {
			for _, after := range []string{"", "5-3"} {
				if q.After = after; q.Prefix != "" && after != "" {
					q.After = "=p1"
				}
				q.Limit = 50
				query, args := sqlstore.ListQuery(q, postgres)
				check(q, query, args)
			}
		}
		for _, s := range []session.Search{{Words: "a"}, {Words: `a "b c"`}, {Words: "a", Query: session.Query{Owner: "o", Tags: []string{"x"}, Path: "/p"}}} {
			for _, before := range []int64{0, 77} {
				query, args := sqlstore.SearchQuery(s, before, postgres)
				check(s, query, args)
			}
		}
		bad = []string{"SCAN s ", "SCAN l ", "Seq Scan"}
		check("owners of a log", sqlstore.OwnersQuery, []any{7})
	})
}

// J8: where an index is damaged, a session is not taken for one that does not
// exist.
func TestDamagedIndexOfNames(t *testing.T) {
	for _, index := range []string{"antiphon_sessions_name", "antiphon_sessions_by_name", "antiphon_sessions_begins"} {
		t.Run(index, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "s.db")
			s := openFile(t, file)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			// While the index is for another name, rows are written that it lacks.
			var was string
			rewrite := func(change func(string) string) {
				db := openPlain(t, file)
				db.SetMaxOpenConns(1)
				var text string
				if err := db.QueryRow(`SELECT sql FROM sqlite_master WHERE name = ?`, index).Scan(&text); err != nil {
					t.Fatal(err)
				}
				if was == "" {
					was = text
				}
				for _, statement := range []string{`PRAGMA writable_schema = ON`, `UPDATE sqlite_master SET sql = '` + strings.ReplaceAll(change(text), "'", "''") + `' WHERE name = '` + index + `'`} {
					if _, err := db.Exec(statement); err != nil {
						t.Fatal(err)
					}
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			rewrite(func(text string) string {
				text, _, _ = strings.Cut(text, " WHERE ")
				return text + " WHERE id = 'another'"
			})
			db := openPlain(t, file)
			if _, err := db.Exec(`INSERT INTO antiphon_sessions (id, log, entries, merged, touched, created, updated, name, path, name_key) VALUES ('work-1', 7, 0, 0, 1, 1, 1, 'work', '/p', ?)`, sqlstore.NameKey("work")); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			rewrite(func(string) string { return was })
			s = openFile(t, file)
			defer s.Close()
			q := session.Query{Name: "work", Archived: index == "antiphon_sessions_by_name"}
			switch index {
			case "antiphon_sessions_name":
				q.Path = "/p"
			case "antiphon_sessions_begins":
				q = session.Query{Prefix: "work"}
			}
			var failed error
			for i, err := range s.List(t.Context(), q) {
				if failed = err; err == nil {
					t.Errorf("found %+v: the test proves nothing", i)
				}
			}
			if !errors.Is(failed, session.ErrDamaged) {
				t.Errorf("got %v, want ErrDamaged", failed)
			}
		})
	}
}

func openFile(t *testing.T, file string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.OpenSQLite(t.Context(), file, openSQLite, fast)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// J9: after deleting, withdrawing and sweeping no word of it is in the index, nor
// a label anywhere.
func TestIndexIsErased(t *testing.T) {
	s, file := newSQLite(t)
	for n := range 50 {
		mustAppend(t, s, fmt.Sprint("stays-", n), 0, heard(fmt.Sprint("staying ", n)))
	}
	if err := s.Create(t.Context(), session.Info{ID: "gone", Owner: "zyxowner", Tags: []string{"zyxtag"}, Title: "zyxtitle"}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "gone", 0, heard("zyxdeleted words"))
	mustAppend(t, s, "kept", 0, heard("zyxwithdrawn words"))
	wantPlaces(t, s, "zyxdeleted", "gone 1")
	wantPlaces(t, s, "zyxtitle", "gone 0")
	wantPlaces(t, s, "zyxwithdrawn", "kept 1")
	inIndex := func(word string) bool {
		db := openPlain(t, file)
		defer db.Close()
		rows, err := db.Query(`SELECT block FROM antiphon_words_data`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var block []byte
			if err := rows.Scan(&block); err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(block, []byte(word)) {
				return true
			}
		}
		return false
	}
	if !inIndex("zyxdeleted") || !inIndex("withdrawn") { // of a word that shares its beginning, the rest is there
		t.Fatal("the index does not hold the words: the test proves nothing")
	}
	mustAppend(t, s, "kept", 1, session.ItemsWithdrawn{Seqs: []int64{1}})
	wantPlaces(t, s, "zyxwithdrawn")
	if err := s.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if swept, err := s.Sweep(t.Context(), false); err != nil || swept.Left != "" {
		t.Fatalf("%+v, %v", swept, err)
	}
	if inIndex("zyx") || inIndex("withdrawn") {
		t.Error("the index holds words of what was withdrawn or deleted")
	}
	for _, word := range []string{"zyxdeleted", "zyxowner", "zyxtag", "zyxtitle"} {
		if err := filepath.Walk(filepath.Dir(file), func(path string, info os.FileInfo, err error) error {
			if err != nil || info.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte(word)) {
				t.Errorf("%s is still in %s", word, filepath.Base(path))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(placesOf(t, s, "staying")); got != 50 {
		t.Errorf("%d others are found, want 50", got)
	}
}

// What a run writes under its lock is found while it runs, also behind a search
// of another process; the order of sessions moves on with a run's beginning and
// its end.
func TestSearchWhileRunning(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		other := openHere(t, where).(*sqlstore.Store)
		mustAppend(t, s, "b", 0, heard("b"))
		unlock, err := s.Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		order := func() (ids []string) {
			for i, err := range other.List(t.Context(), session.Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, i.ID)
			}
			return ids
		}
		for n := range int64(6) {
			mustAppend(t, s, "a", n, heard(fmt.Sprint("step", n)))
			if n%2 == 1 {
				wantPlaces(t, other, fmt.Sprint("step", n), fmt.Sprint("a ", n+1))
				wantPlaces(t, other, fmt.Sprint("step", n-1), fmt.Sprint("a ", n))
			}
		}
		mustAppend(t, s, "b", 1, heard("b again"))
		mustAppend(t, s, "a", 6, heard("step6"))
		mustAppend(t, s, "a", 7, session.Stopped{Why: "answered"})
		if got := order(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("after the run %q", got)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		wantPlaces(t, other, "step6", "a 7")
	})
}

// Searching and writing side by side: nothing fails, and all is found at the end.
func TestSearchBesideWriters(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for n := range int64(15) {
					entries := []session.Entry{{Seq: n + 1, Body: heard("common")}}
					if err := s.Append(t.Context(), fmt.Sprint("s", w), n, entries); err != nil {
						t.Error(err)
						return
					}
				}
			})
			wg.Go(func() {
				for range 8 {
					for _, err := range s.Search(t.Context(), session.Search{Words: "common"}) {
						if err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		got := placesOf(t, s, "common")
		slices.Sort(got)
		if want := []string{"s0 15", "s1 15", "s2 15", "s3 15"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// Without the index no word is in it and a search says so; turned on again, it has
// everything, also what only forks show.
func TestIndexOffAndOn(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		mustAppend(t, s, "a", 0, heard("before"), heard("cut"))
		if err := s.Fork(t.Context(), "a", 1, "f"); err != nil {
			t.Fatal(err)
		}
		wantPlaces(t, s, "before", "a 1")
		if err := s.Index(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		other := openHere(t, where).(*sqlstore.Store)
		mustAppend(t, other, "a", 2, heard("meanwhile"))
		var failed error
		for _, err := range other.Search(t.Context(), session.Search{Words: "before"}) {
			failed = err
		}
		if !errors.Is(failed, session.ErrNoIndex) {
			t.Errorf("got %v, want ErrNoIndex", failed)
		}
		var docs int
		if err := openPlain(t, where).QueryRow(`SELECT count(*) FROM antiphon_docs`).Scan(&docs); err != nil || docs != 0 {
			t.Errorf("%d docs, %v", docs, err)
		}
		mustAppend(t, s, "b", 0, heard("meanwhile, too"))
		if err := s.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if err := s.Index(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		wantPlaces(t, other, "before", "f 1")
		wantPlaces(t, other, "meanwhile", "b 1")
	})
}

// J1, J8: an index of words that is damaged keeps nothing from being written; a
// search and verify say so, and it can be built anew.
func TestDamagedIndexOfWords(t *testing.T) {
	s, file := newSQLite(t)
	for n := range 20 {
		mustAppend(t, s, fmt.Sprint("s", n), 0, heard("common word"))
	}
	if got := len(placesOf(t, s, "common")); got != 20 {
		t.Fatal(got)
	}
	if _, err := openPlain(t, file).Exec(`UPDATE antiphon_words_data SET block = x'00112233' WHERE id > 10`); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, file)
	unlock, err := s.Lock(t.Context(), "s0")
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "s0", 1, heard("common again"), session.Stopped{Why: "answered"})
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	var failed error
	n := 0
	for _, err := range s.Search(t.Context(), session.Search{Words: "common"}) {
		failed = err
		n++
	}
	if failed == nil && n < 20 {
		t.Errorf("%d are found and no error", n)
	}
	damage := 0
	for d, err := range s.Verify(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if damage++; !strings.Contains(d.Problem, "fts5") && !strings.Contains(d.Problem, "FTS5") {
			t.Errorf("found %v", d)
		}
	}
	if damage == 0 {
		t.Error("verify finds nothing")
	}
	if err := s.Index(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := len(placesOf(t, s, "common")); got != 20 {
		t.Errorf("%d are found after it was built anew, want 20", got)
	}
	for d, err := range s.Verify(t.Context()) {
		t.Errorf("then: %v, %v", d, err)
	}
}

// J5: what databases of earlier formats hold is found.
func TestSearchEarlierFormats(t *testing.T) {
	for version := 1; version <= 3; version++ {
		dump, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("sqlite-%d.sql", version)))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "old.db")
		restore(t, file, string(dump))
		wantPlaces(t, reopen(t, file), `"it's said"`, "main 301")
	}
}

// A list shows what was there when it began, whatever its reader does meanwhile.
func TestListWhileWriting(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		for n := range 40 {
			mustAppend(t, s, fmt.Sprint("s", n), 0, heard("x"))
		}
		n := 0
		for i, err := range s.List(t.Context(), session.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			mustAppend(t, s, i.ID, 1, heard("y"))
			if n%10 == 0 {
				if err := s.Delete(t.Context(), i.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n != 40 {
			t.Errorf("%d sessions, want 40", n)
		}
	})
}
