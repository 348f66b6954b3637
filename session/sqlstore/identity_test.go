// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// A file keeps its identity, whoever asks first, and a backup of it is a copy. Others have another one.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	of := func(file string) string {
		t.Helper()
		s, err := sqlstore.OpenSQLite(t.Context(), filepath.Join(dir, file), openSQLite, sqlstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var all [8]string
		var wg sync.WaitGroup
		for i := range all {
			wg.Go(func() {
				id, err := s.Identity(t.Context())
				if err != nil {
					t.Error(err)
				}
				all[i] = id
			})
		}
		wg.Wait()
		for _, id := range all {
			if id != all[0] || len(id) != 16 {
				t.Errorf("%s is %q and %q", file, all[0], id)
			}
		}
		if _, err := s.Backup(t.Context(), filepath.Join(dir, "copy of "+file)); err != nil && file == "a.db" {
			t.Log(err) // the second time it is there
		}
		return all[0]
	}
	one := of("a.db")
	if again, copied, other := of("a.db"), of("copy of a.db"), of("b.db"); again != one || copied != one || other == one {
		t.Errorf("%s, then %s, its copy %s, another %s", one, again, copied, other)
	}
}
