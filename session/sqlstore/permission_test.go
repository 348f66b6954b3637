// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// A file that cannot be written to, one that cannot be read, and a folder
// that is closed: one error each, which says what to do.
func TestPermission(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("permissions bind neither root nor Windows; .ci/unprivileged runs this as nobody")
	}
	s, file := newSQLite(t)
	mustAppend(t, s, "a", 0, session.RunStarted{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path string
		mode os.FileMode
	}{{file, 0o400}, {file, 0}, {filepath.Dir(file), 0o500}, {filepath.Dir(file), 0}} {
		before, err := os.Stat(test.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(test.path, test.mode); err != nil {
			t.Fatal(err)
		}
		s, err := sqlstore.OpenSQLite(t.Context(), file, openSQLite, sqlstore.Options{})
		if err == nil { // it may be read
			err = s.Append(t.Context(), "a", 1, numbered(1, session.RunStarted{}))
			_ = s.Close()
		}
		if err := os.Chmod(test.path, before.Mode()); err != nil {
			t.Fatal(err)
		}
		wantError(t, err, file, "", "")
		t.Logf("%v of %s: %v", test.mode, filepath.Base(test.path), err)
	}
	if n := len(loadAll(t, reopen(t, file), "a")); n != 1 {
		t.Errorf("%d entries", n)
	}
}
