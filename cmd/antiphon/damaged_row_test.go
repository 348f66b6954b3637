// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

// A session whose row is damaged hides no other one from a list to choose from, which says that one is
// missing; and -1 names no session while the damaged one may be meant.
func TestDamagedRowHidesNoOther(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, "s.db")
	file := write(t, filepath.Join(dir, "agent.md"), "<config model=\"rehearsal\"/>\n<user>Hi.</user>\n")
	for _, name := range []string{"one", "two", "three"} {
		if o := program(t, "run", file, "--session", name, "--store", place); o.code != 0 {
			t.Fatal(o.err)
		}
	}
	db, err := sql.Open("sqlite", place)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("UPDATE antiphon_sessions SET title = 'forged' WHERE name = 'three'")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	c := &runCommand{File: file}
	c.Store = place
	list, err := c.choices(t.Context(), stdio{err: &shown}, environment{}, 80)
	if err != nil || len(list) != 2 || strings.Count(shown.String(), "\n!! a session is not in this list: ") != 1 || strings.Contains(shown.String(), "forged") {
		t.Errorf("%v, %v:\n%s", list, err, shown.String())
	}
	for _, name := range []string{"-1", "-2"} {
		if o := program(t, "sessions", "show", name, "--store", place); o.code == 0 || !strings.Contains(o.err, "three") {
			t.Errorf("%s: %+v", name, o)
		}
	}
	term := openTerminal(t, dir, samePerson()+"antiphon chat agent.md --session two --store s.db")
	term.until(t, "two")
	term.keys(t, "/branches", "Enter")
	screen := term.until(t, "!! ")
	if !strings.Contains(screen, "one, ") || !strings.Contains(screen, "two, ") {
		t.Errorf("the branches:\n%s", screen)
	}
}
