// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sqlstore_test

import (
	"strings"
	"syscall"
	"testing"
)

// D2: a process is frozen for longer than its lease lasts, and another goes on. When
// the first one is thawed, it can append nothing, and is told who has the session.
func TestFrozenHolder(t *testing.T) {
	dsn := postgresDSN(t)
	p := start(t, "write", dsn)
	for range 6 {
		p.line(t) // it has locked, and writes
	}
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s := newPostgres(t, dsn)
	if err := s.EndLease(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	unlock, err := s.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	before := len(loadAll(t, s, "a"))
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	told := ""
	for p.lines.Scan() {
		told = p.lines.Text()
		if strings.HasPrefix(told, "error: ") {
			break
		}
	}
	if !strings.Contains(told, "it is held by process ") {
		t.Errorf("it was told %q", told)
	}
	if after := len(loadAll(t, s, "a")); after != before {
		t.Errorf("%d entries, %d before it was thawed", after, before)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}
