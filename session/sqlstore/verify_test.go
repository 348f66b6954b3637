// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// losses are rows that a damaged page may take along, and what Verify says of it.
var losses = map[string]struct{ table, found string }{
	"what keeps a payload": {"antiphon_refs", `session "pictures": entry 2 (table antiphon_refs`},
	"a payload":            {"antiphon_blobs", `session "pictures": entry 2 (table antiphon_refs`},
	"a part of a payload":  {"antiphon_chunks", "a part of it is missing"},
	"a log":                {"antiphon_logs", "table antiphon_logs, log 1"},
}

// J8: Verify finds rows that are lost, in an encrypted store too, and goes on.
func TestVerifyFindsLostRows(t *testing.T) {
	for name, lost := range losses {
		for kind, o := range map[string]sqlstore.Options{"plain": {}, "encrypted": withKey(sqlstore.NewSecret())} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				where := filepath.Join(t.TempDir(), "s.db")
				s, err := openWith(t, where, o)
				if err != nil {
					t.Fatal(err)
				}
				mustAppend(t, s, "pictures", 0, session.InputItem{Item: item.User("look")}, session.InputItem{Item: image(9000, 1)})
				mustAppend(t, s, "another", 0, session.InputItem{Item: item.User("words")})
				db := openPlain(t, where)
				for _, statement := range []string{
					"DELETE FROM " + lost.table,
					"UPDATE antiphon_entries SET sums = zeroblob(32) WHERE log = 2",
				} {
					if _, err := db.Exec(statement); err != nil {
						t.Fatal(err)
					}
				}
				var found []string
				for d, err := range s.Verify(t.Context()) {
					if err != nil {
						t.Error(err)
					}
					found = append(found, d.Error())
				}
				all := strings.Join(found, "\n")
				if !strings.Contains(all, lost.found) || !strings.Contains(all, `session "another"`) {
					t.Errorf("found %q", found)
				}
			})
		}
	}
}

// J8: if the rows are lost that say what is needed, a sweep removes nothing, and
// Verify finds it, also where only a text names the payload.
func TestSweepRemovesNothingOfADamagedStore(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where).(*sqlstore.Store)
		ctx := t.Context()
		mustAppend(t, s, "talk", 0, session.InputItem{Item: item.User("one")})
		mustAppend(t, s, "gone", 0, session.InputItem{Item: image(9000, 1)})
		hash, err := s.PutBlob(ctx, "talk", []byte(strings.Repeat("long ", 2000)))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, "gone"); err != nil {
			t.Fatal(err)
		}
		if swept, err := s.Sweep(ctx, false); err != nil || swept.Blobs != 1 {
			t.Fatal(swept, err)
		}
		if _, err := openPlain(t, where).Exec(`DELETE FROM antiphon_refs`); err != nil {
			t.Fatal(err)
		}
		found := 0
		for d, err := range s.Verify(ctx) {
			if found++; err != nil || !strings.Contains(d.Place, "antiphon_refs") {
				t.Error(d, err)
			}
		}
		if found != 1 {
			t.Errorf("found %d, want one", found)
		}
		if swept, err := s.Sweep(ctx, false); !errors.Is(err, session.ErrDamaged) {
			t.Errorf("swept %+v, %v, want an error", swept, err)
		}
		if _, _, err := s.OpenBlob(ctx, hash); err != nil {
			t.Error(err)
		}
	})
}

// J8: what is deleted while Verify looks at it is no damage.
func TestVerifyWhileDeleting(t *testing.T) {
	s, file := newSQLite(t)
	ctx := t.Context()
	for _, id := range []string{"a", "b"} {
		mustAppend(t, s, id, 0, session.InputItem{Item: item.User("one")})
		mustAppend(t, s, id, 1, session.InputItem{Item: item.User("two")})
		mustAppend(t, s, id, 2, session.InputItem{Item: image(9000, 1)})
	}
	if _, err := openPlain(t, file).Exec(`UPDATE antiphon_entries SET sums = zeroblob(32) WHERE log = 1 AND last = 1`); err != nil {
		t.Fatal(err)
	}
	found := 0
	for d, err := range s.Verify(ctx) {
		if found++; err != nil || found > 1 {
			t.Error(d, err)
			continue
		}
		if err := errors.Join(s.Delete(ctx, "a"), s.Delete(ctx, "b")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Sweep(ctx, false); err != nil {
			t.Fatal(err)
		}
	}
	if found != 1 {
		t.Errorf("found %d, want one", found)
	}
}
