// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || linux

package sqlstore_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/session/sqlstore"
)

// limitFiles bounds the size of all files that this process writes.
func limitFiles(size uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: size})
}

// A limit on the size of files is not a failure of the disk: the error says what
// it is and what to do, and what was written is there.
func TestFileSizeLimit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	if err := reopen(t, file).Close(); err != nil { // it makes the tables
		t.Fatal(err)
	}
	p := start(t, "limited", file)
	told := p.outlive(t)
	last := told[len(told)-1]
	if !strings.Contains(strings.Join(told, "\n"), "the file may not grow any more") || strings.Contains(last, "disk failed") {
		t.Errorf("the child said %q", told)
	}
	checkSteps(t, reopen(t, file), "a")
}

// outlive waits until the child ends by itself, and returns what it said.
func (p *process) outlive(t *testing.T) (all []string) {
	t.Helper()
	for p.lines.Scan() {
		all = append(all, p.lines.Text())
	}
	_ = p.Wait() // it fails
	return all
}

// A lock that a dying process still has for an instant is waited for; one that
// stays is not.
func TestLockWaitsAnInstant(t *testing.T) {
	s, file := newSQLite(t)
	sum := sha256.Sum256([]byte("a"))
	if err := os.MkdirAll(file+"-locks", 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := os.OpenFile(filepath.Join(file+"-locks", hex.EncodeToString(sum[:16])), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lock(t.Context(), "a"); !errors.Is(err, session.ErrBusy) {
		t.Errorf("it stays: got %v, want ErrBusy", err)
	}
	s.BePatient()
	released := make(chan struct{})
	go func() {
		defer close(released)
		time.Sleep(50 * time.Millisecond)
		_ = held.Close()
	}()
	unlock, err := s.Lock(t.Context(), "a")
	<-released
	if err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

var _ session.Verifier = (*sqlstore.Store)(nil)
