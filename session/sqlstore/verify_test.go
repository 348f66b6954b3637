// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
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
				mustAppend(t, s, "pictures", 0, session.Given{Item: item.User("look")}, session.Given{Item: image(9000, 1)})
				mustAppend(t, s, "another", 0, session.Given{Item: item.User("words")})
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
