// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/server/access"
)

// summed returns the tokens in a ledger, and how many responses its processes left.
func summed(t *testing.T, l *access.Ledger) (tokens int64, interrupted int) {
	t.Helper()
	for u, err := range l.All(time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		tokens += u.Tokens
		if u.Status == access.StatusInterrupted {
			interrupted++
		}
	}
	return tokens, interrupted
}

// What had begun in a process that was killed counts once, and what a living process makes does not. The
// file of a process stays small, also while a response of it takes long.
func TestRecover(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "usage")
	l, now := access.OpenLedger(folder), time.Now()
	begin := func(n int64) func() error {
		end, err := l.Begin(access.Use{At: now, Agent: strings.Repeat("a", 100), Tokens: n})
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	long := begin(1)
	for range 20_000 {
		if err := begin(1000)(); err != nil {
			t.Fatal(err)
		}
	}
	begin(10)
	if err := l.Recover(); err != nil {
		t.Fatal(err)
	}
	if tokens, _ := summed(t, l); tokens != 0 {
		t.Errorf("%d tokens of a process that lives", tokens)
	}
	names, err := filepath.Glob(folder + "/*.jsonl")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	text, err := os.ReadFile(names[0])
	if err != nil || len(text) > 2<<20 {
		t.Fatal(len(text), err)
	}
	// A killed process leaves its file, the last line of which may be cut, and no lock.
	if err := os.WriteFile(folder+"/begun-killed.jsonl", append(text, `{"n":2000000,"use":{"tok`...), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := access.OpenLedger(folder).Recover(); err != nil {
			t.Fatal(err)
		}
		if tokens, n := summed(t, l); tokens != 11 || n != 2 {
			t.Errorf("%d tokens of %d responses", tokens, n)
		}
	}
	if err := long(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Recover(); err != nil { // one had not ended when the ledger was closed
		t.Error(err)
	}
	if tokens, n := summed(t, l); tokens != 21 || n != 3 {
		t.Errorf("after the end: %d tokens of %d responses", tokens, n)
	}
	if names, err := filepath.Glob(folder + "/begun-*"); err != nil || len(names) > 0 {
		t.Errorf("%q are left, %v", names, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
