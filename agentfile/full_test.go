// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package agentfile_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/antiphon-go/antiphon/agentfile"
	"github.com/antiphon-go/antiphon/item"
	"github.com/antiphon-go/antiphon/session"
	"github.com/antiphon-go/antiphon/trust"
)

// TestDiskFull proves that a write that does not fit leaves the file as it was,
// or no file where there was none, and that writing goes on when there is room
// again. J1 M3
//
// A process of its own lives under a limit on the size of files, which fails a
// write in its middle as a disk does that is full.
func TestDiskFull(t *testing.T) {
	if os.Getenv("ANTIPHON_TEST_LIMIT") != "" {
		limited(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDiskFull$", "-test.v")
	cmd.Env = append(os.Environ(), "ANTIPHON_TEST_LIMIT=1")
	text, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(text), "--- PASS: TestDiskFull") {
		t.Errorf("%v\n%s", err, text)
	}
}

func limited(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ) // it would end the process
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	limit := func(n int) {
		now := old
		now.Cur = uint64(n)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
			t.Fatal(err)
		}
	}
	fails := func(s *session.Session, out string) {
		t.Helper()
		_, err := s.Append(t.Context(), session.InputItem{Item: item.User(strings.Repeat("much ", 100))})
		if !errors.Is(err, syscall.EFBIG) || strings.Count(err.Error(), "file too large") != 1 || !strings.Contains(err.Error(), "hint: free some space") {
			t.Errorf("%v", err)
		}
		if left, _ := filepath.Glob(out + ".*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	dir := t.TempDir()
	path, out := write(t, prompt, dir, "agent.md"), filepath.Join(dir, "talk.md")
	_, s := open(t, path, out)
	limit(len(prompt) / 2)
	fails(s, out)
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a prompt was left: %v", err)
	}

	limit(1 << 20)
	appendTo(t, s, session.InputItem{Item: item.User("one")})
	text := read(t, out)
	limit(len(text) + 20)
	fails(s, out)
	if got := read(t, out); got != text {
		t.Errorf("half an element was left:\n%s", got)
	}

	limit(0)
	if _, _, err := agentfile.OpenTranscript(t.Context(), path, filepath.Join(dir, "another.md"), agentfile.Options{Consent: trust.Everything}); !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "hint: free some space") {
		t.Errorf("the lock: %v", err)
	}

	limit(1 << 20)
	appendTo(t, s, session.InputItem{Item: item.User("two")})
	if got := read(t, out); !strings.HasPrefix(got, text) || !strings.Contains(got, "two") {
		t.Errorf("the file:\n%s", got)
	}
}
