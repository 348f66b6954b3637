// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/antiphon-go/antiphon/session"
)

// places runs a test on both databases. Where is what processes share.
func places(t *testing.T, run func(t *testing.T, where string)) {
	t.Run("sqlite", func(t *testing.T) { run(t, filepath.Join(t.TempDir(), "sessions.db")) })
	t.Run("postgres", func(t *testing.T) { run(t, postgresDSN(t)) })
}

func openHere(t *testing.T, where string) session.Store {
	t.Helper()
	s, err := openAny(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// J1, J2: a process is killed in the middle of its writing. What it said that it
// had written is there, each once, and whole; and the session is free.
func TestKilled(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		said := 0
		for round := range 8 {
			p := start(t, "write", where)
			if got := p.line(t); got != "locked" {
				t.Fatal(got)
			}
			for range round * 5 {
				said = number(t, p.line(t))
			}
			for _, more := range p.kill() {
				if n, err := strconv.Atoi(more); err == nil {
					said = n
				}
			}
			s := openHere(t, where)
			if n := checkSteps(t, s, "a"); n < said {
				t.Fatalf("round %d: %d entries, and %d were said to be written", round, n, said)
			}
			unlock, err := lockSoon(t, s.(session.Locker), "a") // a server has to see first that the client is gone
			if err != nil {
				t.Fatal(err)
			}
			if err := unlock(); err != nil {
				t.Error(err)
			}
			if swept, err := s.(session.Catalog).Sweep(t.Context(), true); err != nil || swept != (session.GCStats{}) {
				t.Errorf("something of what was not written is left: %+v, %v", swept, err)
			}
		}
	})
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("the child said %q", s)
	}
	return n
}

// J2: another process has the session: it is named, reading goes on, and when
// the process is killed the session is free, whatever it leaves behind.
func TestTwoProcesses(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		p := start(t, "hold", where)
		if got := p.line(t); got != "locked" {
			t.Fatal(got)
		}
		s := openHere(t, where)
		l := s.(session.Locker)
		_, err := l.Lock(t.Context(), "a")
		if !errors.Is(err, session.ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("process %d on ", p.Process.Pid)) || !strings.Contains(err.Error(), "hint: ") {
			t.Errorf("got %v, want ErrBusy with the process and a hint", err)
		}
		if n := checkSteps(t, s, "a"); n != 0 {
			t.Errorf("%d entries", n)
		}
		other, err := l.Lock(t.Context(), "b")
		if err != nil {
			t.Fatalf("another session: %v", err)
		}
		p.kill()
		unlock, err := lockSoon(t, l, "a")
		if err != nil {
			t.Fatalf("the other process is dead: %v", err)
		}
		for _, unlock := range []func() error{unlock, other} {
			if err := unlock(); err != nil {
				t.Error(err)
			}
		}
	})
}

// lockSoon locks a session whose holder was killed: a server hears of that a
// moment later.
func lockSoon(t *testing.T, l session.Locker, id string) (unlock func() error, err error) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if unlock, err = l.Lock(t.Context(), id); !errors.Is(err, session.ErrBusy) || time.Now().After(until) {
			return unlock, err
		}
	}
}

// Two processes follow each other: what one writes the other sees.
func TestWatchOtherProcess(t *testing.T) {
	places(t, func(t *testing.T, where string) {
		s := openHere(t, where)
		p := start(t, "write", where)
		n := int64(0)
		for e, err := range s.(session.Watcher).Watch(t.Context(), "a", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; e.Seq != n {
				t.Fatalf("entry %d where %d belongs", e.Seq, n)
			}
			if n == 300 {
				break
			}
		}
		p.kill()
		if got := checkSteps(t, s, "a"); int64(got) < n {
			t.Errorf("%d entries, and %d were seen", got, n)
		}
	})
}
