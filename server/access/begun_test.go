// Copyright 2026 The Antiphon Authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

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
		return func() error { return end(access.Use{}) }
	}
	long := begin(1)
	for range 20_000 {
		if err := begin(1000)(); err != nil {
			t.Fatal(err)
		}
	}
	late := begin(10)
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
	// A response that has not ended when the ledger is closed counts once, as it ended.
	if err := l.Recover(); err != nil {
		t.Error(err)
	}
	if err := l.Add(access.Use{At: now, Tokens: 7, Status: "completed"}); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := late(); err != nil {
			t.Error(err)
		}
	}
	if err := l.Recover(); err != nil {
		t.Error(err)
	}
	if tokens, n := summed(t, l); tokens != 18 || n != 2 {
		t.Errorf("after the end: %d tokens of %d responses", tokens, n)
	}
	if names, err := filepath.Glob(folder + "/begun-*"); err != nil || len(names) > 0 {
		t.Errorf("%q are left, %v", names, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// killed writes what a killed process leaves: responses that had begun, by their tokens.
func killed(t *testing.T, folder string, uses ...access.Use) {
	t.Helper()
	var text []byte
	for i, u := range uses {
		line, err := json.Marshal(map[string]any{"n": i + 1, "use": u})
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "begun-killed.jsonl"), text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// If one response cannot be added, the others count once all the same, and it counts when it can be added.
func TestRecoverOfSome(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	use := func(at time.Time, tokens int64) access.Use { return access.Use{At: at, Tokens: tokens} }
	killed(t, folder, use(now, 1), use(now, 1), use(old, 20), use(now, 300))
	blocked := filepath.Join(folder, "2020-01-02.jsonl")
	if err := os.Mkdir(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	l := access.OpenLedger(folder)
	for range 3 {
		if err := l.Recover(); err == nil {
			t.Error("a response was added to a folder")
		}
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Recover(); err != nil {
			t.Error(err)
		}
	}
	if tokens, n := summed(t, l); tokens != 322 || n != 4 {
		t.Errorf("%d tokens of %d responses", tokens, n)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// Who is killed after it has added what was left, and before it removes the file, leaves nothing that
// counts again. What is left of other files goes, too.
func TestRecoverKilled(t *testing.T) {
	folder := t.TempDir()
	l := access.OpenLedger(folder)
	for range 2 {
		killed(t, folder, access.Use{At: time.Now(), Tokens: 5})
		for _, name := range []string{"begun-killed.jsonl.new", "begun-other.jsonl.new", "begun-third.jsonl.lock"} {
			if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Recover(); err != nil {
			t.Error(err)
		}
	}
	if tokens, n := summed(t, l); tokens != 5 || n != 1 {
		t.Errorf("%d tokens of %d responses", tokens, n)
	}
	if names, err := filepath.Glob(folder + "/begun-*"); err != nil || len(names) > 0 {
		t.Errorf("%q are left, %v", names, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A line that was cut, such as on a full disk, does not take the next one with it.
func TestAddAfterCut(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	if err := os.WriteFile(filepath.Join(folder, now.UTC().Format(time.DateOnly)+".jsonl"), []byte(`{"at":"2`), 0o600); err != nil {
		t.Fatal(err)
	}
	l := access.OpenLedger(folder)
	if err := errors.Join(l.Add(access.Use{At: now, Tokens: 3}), l.Add(access.Use{At: now, Tokens: 4})); err != nil {
		t.Fatal(err)
	}
	if tokens, _ := summed(t, l); tokens != 7 {
		t.Errorf("%d tokens", tokens)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// What has begun is noted also when the file cannot be written anew, or not be opened for a while.
func TestBeginWithoutNewFile(t *testing.T) {
	for _, blocked := range []string{"the new file", "the file"} {
		t.Run(blocked, func(t *testing.T) {
			if blocked == "the file" && runtime.GOOS == "windows" {
				t.Skip("Windows removes no open file")
			}
			folder := t.TempDir()
			l := access.OpenLedger(folder)
			use := access.Use{At: time.Now(), Agent: strings.Repeat("a", 100_000), Tokens: 1}
			var ends []func() error
			begin := func() error {
				end, err := l.Begin(use)
				if err == nil {
					ends = append(ends, func() error { return end(access.Use{}) })
				}
				return err
			}
			if err := begin(); err != nil {
				t.Fatal(err)
			}
			names, err := filepath.Glob(folder + "/begun-*.jsonl")
			if err != nil || len(names) != 1 {
				t.Fatal(names, err)
			}
			in := names[0]
			if blocked == "the new file" {
				in += ".new"
			} else if err := os.Remove(in); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(in+"/x", 0o700); err != nil {
				t.Fatal(err)
			}
			for range 30 {
				if err := begin(); err != nil && blocked == "the new file" {
					t.Error(err) // the old one is there
				}
			}
			if err := os.RemoveAll(in); err != nil {
				t.Fatal(err)
			}
			for range 30 {
				if err := begin(); err != nil {
					t.Error(err)
				}
			}
			text, err := os.ReadFile(names[0])
			if err != nil {
				t.Fatal(err)
			}
			elsewhere := t.TempDir() // where the process does not live
			if err := os.WriteFile(filepath.Join(elsewhere, "begun-killed.jsonl"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			other := access.OpenLedger(elsewhere)
			if err := other.Recover(); err != nil {
				t.Error(err)
			}
			if _, n := summed(t, other); n != len(ends) {
				t.Errorf("%d of %d responses", n, len(ends))
			}
			err = errors.Join(other.Close(), l.Close())
			for _, end := range ends {
				err = errors.Join(err, end())
			}
			if err != nil {
				t.Error(err)
			}
			if names, err := filepath.Glob(folder + "/begun-*"); err != nil || len(names) > 0 {
				t.Errorf("%q are left, %v", names, err)
			}
		})
	}
}

// A process that is killed after it has added what a response used, and before it notes the end, leaves nothing
// that counts again, also on a later day.
func TestRecoverAfterAdd(t *testing.T) {
	for _, ended := range []time.Time{time.Now(), time.Now().Add(49 * time.Hour)} {
		folder := t.TempDir()
		l := access.OpenLedger(folder)
		end, err := l.Begin(access.Use{At: time.Now(), Tokens: 100})
		if err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(folder + "/begun-*.jsonl")
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		text, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(end(access.Use{At: ended, Tokens: 7, Status: "completed"}), l.Close(), os.WriteFile(names[0], text, 0o600)); err != nil {
			t.Fatal(err)
		}
		if left, err := l.Left(); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
		if err := l.Recover(); err != nil {
			t.Error(err)
		}
		if tokens, n := summed(t, l); tokens != 7 || n != 0 {
			t.Errorf("%d tokens, %d interrupted", tokens, n)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What a killed process left can be read without writing anything. What a living one makes is not left.
func TestLeft(t *testing.T) {
	folder := t.TempDir()
	killed(t, folder, access.Use{At: time.Now(), Tokens: 5}, access.Use{At: time.Now(), Tokens: 6})
	l := access.OpenLedger(folder)
	end, err := l.Begin(access.Use{At: time.Now(), Tokens: 100})
	if err != nil {
		t.Fatal(err)
	}
	before, err := filepath.Glob(folder + "/*")
	if err != nil {
		t.Fatal(err)
	}
	left, err := access.OpenLedger(folder).Left()
	if err != nil || len(left) != 2 || left[0].Tokens != 5 || left[1].Tokens != 6 || left[0].Status != access.StatusInterrupted {
		t.Errorf("%v, %v", left, err)
	}
	after, err := filepath.Glob(folder + "/*")
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("%q became %q, %v", before, after, err)
	}
	if err := errors.Join(end(access.Use{}), l.Close()); err != nil {
		t.Error(err)
	}
}

// What cannot be added when a response ends is not lost: it counts as the estimate later.
func TestEndNotAdded(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	blocked := filepath.Join(folder, now.UTC().Format(time.DateOnly)+".jsonl")
	l := access.OpenLedger(folder)
	end, err := l.Begin(access.Use{At: now, Tokens: 100})
	if err == nil {
		err = os.Mkdir(blocked, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := end(access.Use{At: now, Tokens: 7}); err == nil {
		t.Error("a line was added to a folder")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(end(access.Use{At: now, Tokens: 7}), l.Close()); err != nil { // once more
		t.Error(err)
	}
	if tokens, n := summed(t, l); tokens != 7 || n != 0 {
		t.Errorf("%d tokens, %d interrupted", tokens, n)
	}
}
